/* [fallback NAME], the lists that name them, and what is left out of both, told but no reason to do
 * without the rest. */
#include "config_fixture.h"

#include "config/variable.h"

#define TEN   "0123456789"
#define FIFTY TEN TEN TEN TEN TEN

#define GOOD_FALLBACK "[fallback f]\nbase = https://f.example/v1\n"

static const char *variable(const char *name)
{
    static const char *const known[][2] = {
        {"KEY", "sk-canary"}, {"EMPTY", ""}, {"LINES", "a\nb"}, {"_x9", "$${KEY}"}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i][0], name) == 0)
            return known[i][1];
    return NULL;
}

/* One that is there although something was told. */
static struct config *load_checked(const char *text)
{
    struct config_source source = {.path = fixture_path, .variable = variable};

    write_bytes(text, strlen(text));
    struct config *config = load_source(&source);
    if (!config)
        print_error("%s:%u: %s: %s\n", problems[0].file, problems[0].line, problems[0].key,
                    problems[0].text);
    assert_non_null(config);
    return config;
}

static const struct config_fallback *find(const struct config *config, const char *name)
{
    return config_fallback(config, span_str(name));
}

static void assert_span(struct span span, const char *text)
{
    assert_int_equal(span.len, strlen(text));
    assert_memory_equal(span.ptr, text, span.len);
}

static void a_whole_one_has_everything(void **state)
{
    (void)state;
    struct config *config = load_checked("[fallback a]\n"
                                         "header = X-One:  1 \n"
                                         "model = gpt-4o:openai/gpt-4o,\tllama3.?:x:y\n"
                                         "base = HTTPS://Open.Router.example/api/v1/\n"
                                         "auth = Authorization: Bearer ${KEY} $$\n"
                                         "header = X-Two: a, \"b\" ${_x9}\n"
                                         "model = *:openai/{model}\n"
                                         "[fallback b]\n"
                                         "base = http://[::1]:11434\n");
    const struct config_fallback *a = find(config, "a"), *b = find(config, "b");

    assert_int_equal(problem_count, 0);
    assert_non_null(a);
    assert_string_equal(a->name, "a");
    assert_int_equal(a->line, 1);
    assert_string_equal(a->base, "HTTPS://Open.Router.example/api/v1");
    assert_span(a->scheme, "https");
    assert_span(a->host, "Open.Router.example");
    assert_int_equal(a->port, 443);
    assert_span(a->path, "/api/v1");
    assert_false(a->loopback);
    assert_string_equal(a->models, "gpt-4o:openai/gpt-4o, llama3.?:x:y, *:openai/{model}");
    assert_int_equal(a->header_count, 3);
    assert_string_equal(a->headers[0], "Authorization: Bearer ${KEY} $$");
    assert_string_equal(a->headers[1], "X-One: 1");
    assert_string_equal(a->headers[2], "X-Two: a, \"b\" ${_x9}");
    assert_span(b->scheme, "http");
    assert_span(b->host, "[::1]");
    assert_int_equal(b->port, 11434);
    assert_span(b->path, "");
    assert_true(b->loopback);
    assert_string_equal(b->models, "");
    assert_int_equal(b->header_count, 0);
    assert_ptr_equal(config_fallback_at(config, 0), a);
    assert_ptr_equal(config_fallback_at(config, 1), b);
    assert_null(config_fallback_at(config, 2));
    assert_null(find(config, "c"));
    assert_null(find(config, ""));
    config_free(config);
}

/* All of these are told at their line, and leave the one fallback out. */
static const struct {
    const char *keys; /* below "[fallback x]" */
    unsigned line;
    const char *key, *message;
} broken[] = {
    {"", 1, "[fallback x]", "expected base = http"},
    {"base =\n", 2, "base", "found nothing"},
    {"base = openrouter.ai/api/v1\n", 2, "base", "\"openrouter.ai/api/v1\", one without http://"},
    {"base = ftp://h\n", 2, "base", "without http:// or https://"},
    {"base = https:/h\n", 2, "base", "without http:// or https://"},
    {"base = https://\n", 2, "base", "without a good host"},
    {"base = https:///v1\n", 2, "base", "without a good host"},
    {"base = https://h:0\n", 2, "base", "port is not from 1 to 65535"},
    {"base = https://h:/v1\n", 2, "base", "port is not"},
    {"base = https://h:99999\n", 2, "base", "port is not"},
    {"base = https://a b\n", 2, "base", "a blank"},
    {"base = https://[::g]\n", 2, "base", "without a good host"},
    {"base = https://::1\n", 2, "base", "without a good host"},
    {"base = https://u:canary@h\n", 2, "base", "found one with a user name or a password"},
    {"base = canary@h\n", 2, "base", "found one without http"},
    {"base = https://h/?key=canary\n", 2, "base", "found one with a query"},
    {"base = https://h#canary\n", 2, "base", "a fragment"},
    {"base = https://a\nbase = https://b\n", 3, "base", "each key once"},
    {"base = https://a\nmodel =\n", 3, "model", "found nothing"},
    {"base = https://a\nmodel = a:b, gpt\n", 3, "model", "\"gpt\", which has no ':'"},
    {"base = https://a\nmodel = :b\n", 3, "model", "no GLOB"},
    {"base = https://a\nmodel = a:\n", 3, "model", "no NAME"},
    {"base = https://a\nmodel = a: b\n", 3, "model", "no NAME"},
    {"base = https://a\nmodel = a:b,,c:d\n", 3, "model", "no ':'"},
    {"base = https://a\nmodel = *:{modle}\n", 3, "model", "a brace that is not of {model}"},
    {"base = https://a\nmodel = a:b\x01\n", 3, "model", "a control character"},
    {"base = https://a\nauth = Bearer canary\n", 3, "auth", "expected Name: value, found no ':'"},
    {"base = https://a\nauth = Bearer canary: x\n", 3, "auth", "a name that no header can have"},
    {"base = https://a\nauth =\n", 3, "auth", "no ':'"},
    {"base = https://a\nauth = : canary\n", 3, "auth", "a name that no header can have"},
    {"base = https://a\nauth = A:\n", 3, "auth", "no value"},
    {"base = https://a\nauth = A: canary\x01\n", 3, "auth", "a control character"},
    {"base = https://a\nauth = A: canary$x\n", 3, "auth", "a '$' that begins no ${VAR}"},
    {"base = https://a\nheader = A: canary${x\n", 3, "header", "a '$' that begins no"},
    {"base = https://a\nheader = A: ${}canary\n", 3, "header", "a '$' that begins no"},
    {"base = https://a\nheader = A: ${ca-nary}\n", 3, "header", "a '$' that begins no"},
    {"base = https://a\nauth = A: canary\nauth = B: canary\n", 4, "auth", "each key once"},
    {"base = https://a\nauth = A: canary ${GONE}\n", 3, "auth",
     "a value of ${GONE} in the environment, for A, found none"},
    {"base = https://a\nheader = A: ${KEY}${EMPTY}\n", 3, "header", "found an empty one"},
    {"base = https://a\nheader = A: ${LINES}\n", 3, "header", "found one of several lines"},
    {"base = https://a\nallow_cleartext = true\n", 3, "allow_cleartext",
     "expected base, model, auth or header, found a key of [breaker] and targets"},
    {"base = https://a\nbasis = https://b\n", 3, "basis", "found an unknown key"},
    {"base = https://a\nauth Bearer canary = x\n", 3, "auth", "more than a key before the '='"},
    {"base = https://a\nauht canary = x\n", 3, "auht", "more than a key"},
    {"base = https://a\n = x\n", 3, "", "found no key"},
};

static void one_with_anything_wrong_is_left_out(void **state)
{
    (void)state;
    char text[512];

    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        snprintf(text, sizeof text,
                 "[fallback x]\n%s" GOOD_FALLBACK "[target t]\nfallback = x, f\n", broken[i].keys);
        struct config *config = load_checked(text);
        if (problem_count != 1 || !problems[0].skipped || problems[0].line != broken[i].line ||
            strcmp(problems[0].key, broken[i].key) != 0 ||
            !strstr(problems[0].text, broken[i].message) || strstr(problems[0].text, "canary"))
            fail_msg("%s: %u problems, :%u: %s: %s", broken[i].keys, problem_count,
                     problems[0].line, problems[0].key, problems[0].text);
        assert_null(find(config, "x"));
        assert_string_equal(config_fallback_at(config, 0)->name, "f");
        assert_string_equal(policy_of(config, "t", NULL).fallback, "f");
        config_free(config);
        struct config_source source = {.path = fixture_path, .variable = variable};
        config = config_load(&source, NULL, NULL); /* and with nobody to tell */
        assert_non_null(config);
        assert_null(find(config, "x"));
        assert_non_null(find(config, "f"));
        config_free(config);
    }
}

static void variables_are_looked_up_only_when_asked(void **state)
{
    (void)state;
    struct config *config =
        load_good("[fallback x]\nbase = https://a\nauth = A: ${GONE}\nheader = B: ${EMPTY}\n");

    assert_string_equal(find(config, "x")->headers[0], "A: ${GONE}");
    config_free(config);
}

static void sections_that_are_none(void **state)
{
    (void)state;
    static const struct {
        const char *head, *message;
    } bad[] = {
        {"[fallback]", "no name"},
        {"[fallback ]", "no name"},
        {"[fallback a b]", "a comma or a blank"},
        {"[fallback a,b]", "a comma or a blank"},
        {"[fallback f]", "each fallback once"},
    };
    char text[512];

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(text, sizeof text,
                 GOOD_FALLBACK "%s\nnonsense = 1\nbase = x\n[breaker]\nmode = off\n", bad[i].head);
        struct config *config = load_checked(text);
        assert_int_equal(problem_count, 1); /* of its keys nothing more is said */
        assert_true(problems[0].skipped);
        assert_int_equal(problems[0].line, 3);
        assert_string_equal(problems[0].key, bad[i].head);
        if (!strstr(problems[0].text, bad[i].message))
            fail_msg("%s: %s", bad[i].head, problems[0].text);
        assert_string_equal(find(config, "f")->base, "https://f.example/v1");
        assert_null(config_fallback_at(config, 1));
        config_free(config);
    }
}

/* --- lists -------------------------------------------------------------------------------------
 */

static void names_that_lead_nowhere(void **state)
{
    (void)state;
    struct config *config = load_checked("[fallback openrouter]\nbase = https://o\n"
                                         "[fallback local]\nbase = http://127.0.0.1:1\n"
                                         "[breaker]\nfallback = local nowhere\n"
                                         "[target a]\n"
                                         "fallback = opnrouter, local\n"
                                         "fallback = openrouter\n"
                                         "fallback = locale,local\n"
                                         "[target b]\nfallback = none\n");
    static const struct {
        unsigned line;
        const char *message;
    } expected[] = {
        {6, "such as local, found \"nowhere\""},
        {8, "such as openrouter, found \"opnrouter\""},
        {10, "such as local, found \"locale\""},
        {10, "expected each name once, found \"local\" again"},
        {12, "found \"none\""},
    };

    assert_int_equal(problem_count, 5);
    for (unsigned i = 0; i < problem_count; i++) {
        assert_true(problems[i].skipped);
        assert_string_equal(problems[i].file, fixture_path);
        assert_string_equal(problems[i].key, "fallback");
        if (problems[i].line != expected[i].line || !strstr(problems[i].text, expected[i].message))
            fail_msg("%u: %s", problems[i].line, problems[i].text);
    }
    assert_string_equal(policy_of(config, "x", NULL).fallback, "local");
    assert_string_equal(policy_of(config, "a", NULL).fallback, "local, openrouter");
    assert_string_equal(policy_of(config, "b", NULL).fallback, ""); /* not those of [breaker] */
    config_free(config);
    config = load_checked("[breaker]\nfallback = x\n");
    assert_non_null(strstr(problems[0].text, "found \"x\", and no such section"));
    config_free(config);
}

static void the_environment_and_set_name_them_too(void **state)
{
    (void)state;
    static const char *const environment[] = {"BREAKER_FALLBACK=f,gone", NULL};
    struct config_source source = {.path = fixture_path, .environ = environment};

    write_bytes(GOOD_FALLBACK, strlen(GOOD_FALLBACK));
    struct config *config = load_source(&source);
    assert_non_null(config);
    assert_int_equal(problem_count, 1);
    assert_true(problems[0].skipped);
    assert_string_equal(problems[0].file, "BREAKER_FALLBACK");
    assert_int_equal(problems[0].line, 0);
    assert_string_equal(policy_of(config, "h", "m").fallback, "f");
    config_free(config);
    source.environ = NULL;
    source.set = "fallback=other\nfallback=g f\nbase=x\nfallback_address=y";
    config = load_source(&source);
    assert_non_null(config);
    assert_int_equal(problem_count, 3); /* "other" was overruled */
    for (unsigned i = 0; i < 3; i++) {
        assert_true(problems[i].skipped);
        assert_string_equal(problems[i].file, "BREAKER_SET");
    }
    assert_non_null(strstr(problems[2].text, "found \"g\""));
    struct policy policy = policy_of(config, "h", "m");
    assert_string_equal(policy.fallback, "f");
    assert_string_equal(policy.base, CONFIG_NO_BASE);
    assert_string_equal(policy.fallback_address, "");
    config_free(config);
}

static void lists_that_cannot_be_read(void **state)
{
    (void)state;
    static const char *const bad[] = {"fallback = a,,b\n", "fallback = ,a\n", "fallback = a\x01\n"};
    char text[200];

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(text, sizeof text, GOOD_FALLBACK "[breaker]\n%s", bad[i]);
        assert_null(load_text(text));
        assert_int_equal(problem_count, 1);
        assert_false(problems[0].skipped);
        assert_int_equal(problems[0].line, 4);
    }
}

static void bases_and_addresses_of_targets(void **state)
{
    (void)state;
    struct config *config = load_checked("[breaker]\nbase = https://wide/v1\n"
                                         "fallback_address = Wide.Example.:443\n"
                                         "[target a]\n"
                                         "base = api.openai.com/v1\n"
                                         "fallback_address = gpu2\n"
                                         "[target b]\nbase =\nfallback_address =\n"
                                         "[target c]\nbase = HTTP://C:80//\n"
                                         "fallback_address = [::1]:8000\n"
                                         "[target d]\nbase = https://u:canary@h\n");
    struct policy policy = policy_of(config, "x", NULL);

    assert_string_equal(policy.base, "https://wide/v1");
    assert_string_equal(policy.fallback_address, "wide.example:443");
    policy = policy_of(config, "a", NULL);
    assert_string_equal(policy.base, CONFIG_NO_BASE);
    assert_string_equal(policy.fallback_address, "");
    policy = policy_of(config, "b", NULL);
    assert_string_equal(policy.base, "");
    assert_string_equal(policy.fallback_address, "");
    policy = policy_of(config, "c", NULL);
    assert_string_equal(policy.base, "HTTP://C:80");
    assert_string_equal(policy.fallback_address, "[::1]:8000");
    assert_int_equal(problem_count, 4);
    static const unsigned lines[] = {5, 6, 12, 14};
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(problems[i].line, lines[i]);
        assert_int_equal(problems[i].skipped, i != 2);
        assert_int_equal(problems[i].warning, i == 2);
        assert_null(strstr(problems[i].text, "canary"));
    }
    assert_non_null(strstr(problems[1].text, "expected HOST:PORT, found \"gpu2\""));
    assert_non_null(strstr(problems[2].text, "found \"[::1]:8000\""));
    config_free(config);
}

/* --- the way back ------------------------------------------------------------------------------
 */

static const char places[] = "[fallback a]\nbase = https://a.example/v1\n"
                             "[fallback a-model]\nbase = https://A.example\nmodel = *:m\n"
                             "[fallback a80]\nbase = http://a.example\n"
                             "[fallback b]\nbase = https://b.example:444\n"
                             "[fallback c]\nbase = https://c.example\n";

static const struct {
    const char *targets; /* below the twelve lines above */
    unsigned line;       /* of the one that is refused; 0: none */
    const char *message;
} ways[] = {
    {"[target a.example]\nfallback = a\n", 13, "\"a\", which is the target itself"},
    {"[target a.example:443/m]\nfallback = a\n", 13, "the target itself"},
    {"[target x]\nfallback = a\nmatch = A.example.\n", 13, "the target itself"},
    {"[target a.example]\nfallback = a-model, a80\n", 0, NULL},
    {"[target a.example:80]\nfallback = a, a80\n", 13, "\"a80\", which is the target itself"},
    {"[target *.example]\nfallback = a\n", 0, NULL},
    {"[target a.example]\nfallback = b\n[target b.example:444]\nfallback = a\n", 15,
     "expected no cycle, found \"a\", whose host's own fallbacks lead back"},
    {"[target b.example:444]\nfallback = a\n[target a.example]\nfallback = c,b\n", 15, "\"b\""},
    {"[target a.example]\nfallback = b\n[target b.example]\nfallback = a\n", 0, NULL},
    {"[target a.example]\nfallback = b\n[target b.example:444]\nfallback = c\n"
     "[target c.example]\nfallback = a80, a-model\n",
     17, "\"a-model\""},
    {"[target a.example/m]\nfallback = b\n[target a.example/n]\nfallback = c\n"
     "[target c.example]\nfallback = b\n[target b.example:444]\nfallback = a\n",
     19, "\"a\""},
    {"[target a.example]\nfallback = b, c\n[target b.example:444]\nfallback = c\n", 0, NULL},
};

static void no_way_leads_back(void **state)
{
    (void)state;
    char text[1024];

    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        snprintf(text, sizeof text, "%s%s", places, ways[i].targets);
        struct config *config = load_checked(text);
        bool told = problem_count == 1 && problems[0].skipped && problems[0].line == ways[i].line &&
                    strstr(problems[0].text, ways[i].message);
        if (ways[i].line ? !told : problem_count > 0)
            fail_msg("%s: %u problems, :%u: %s", ways[i].targets, problem_count, problems[0].line,
                     problems[0].text);
        config_free(config);
    }
    snprintf(text, sizeof text, "%s%s", places, ways[7].targets);
    struct config *config = load_checked(text);
    assert_string_equal(policy_of(config, "a.example", NULL).fallback, "c");
    assert_string_equal(policy_of(config, "b.example:444", NULL).fallback, "a");
    config_free(config);
}

/* --- sizes -------------------------------------------------------------------------------------
 */

static char big[1 << 18];

static void fallbacks_are_bounded(void **state)
{
    (void)state;
    size_t len = 0;

    for (unsigned i = 0; i < 66; i++)
        len += (size_t)snprintf(big + len, sizeof big - len,
                                "[fallback f%u]\nbase = https://h%u.example\n", i, i);
    /* One way around, through all of them. */
    for (unsigned i = 0; i < 64; i++)
        len += (size_t)snprintf(big + len, sizeof big - len,
                                "[target h%u.example]\nfallback = f%u\n", i, (i + 1) % 64);
    struct config *config = load_checked(big);
    assert_int_equal(problem_count, 3);
    assert_int_equal(problems[0].line, 64 * 2 + 1);
    assert_non_null(strstr(problems[0].text, "at most 64 fallbacks"));
    assert_int_equal(problems[1].line, 65 * 2 + 1);
    assert_int_equal(problems[2].line, 66 * 2 + 64 * 2);
    assert_non_null(strstr(problems[2].text, "no cycle, found \"f0\""));
    assert_non_null(find(config, "f63"));
    assert_null(find(config, "f64"));
    assert_string_equal(policy_of(config, "h62.example", NULL).fallback, "f63");
    config_free(config);
}

static void headers_and_models_are_bounded(void **state)
{
    (void)state;
    size_t len = (size_t)snprintf(big, sizeof big, "%s", GOOD_FALLBACK "auth = A: b\n");

    for (unsigned i = 0; i < 32; i++)
        len += (size_t)snprintf(big + len, sizeof big - len, "header = H%u: v\n", i);
    for (unsigned i = 0; i < 800; i++)
        len += (size_t)snprintf(big + len, sizeof big - len, "model = a:b\n");
    struct config *config = load_checked(big);
    assert_int_equal(problem_count, 0);
    assert_int_equal(find(config, "f")->header_count, 33);
    assert_string_equal(find(config, "f")->headers[32], "H31: v");
    assert_int_equal(strlen(find(config, "f")->models), 800 * 5 - 2);
    config_free(config);
    for (unsigned i = 0; i < 20; i++)
        len += (size_t)snprintf(big + len, sizeof big - len, "model = a:b\n");
    snprintf(big + len, sizeof big - len, "header = H: v\n");
    config = load_checked(big);
    assert_int_equal(problem_count, 2);
    assert_non_null(strstr(problems[0].text, "less than 4096 bytes"));
    assert_non_null(strstr(problems[1].text, "at most 32 headers"));
    assert_null(find(config, "f"));
    config_free(config);
}

static void lines_as_long_as_they_may_be(void **state)
{
    (void)state;
    static const char *const heads[] = {"base = https://f/",
                                        "auth = A: ", "header = A: ", "model = a:"};

    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        int len = snprintf(big, sizeof big, "[fallback f]\n%s%s", i ? "base = https://f\n" : "",
                           heads[i]);
        memset(big + len, 'x', 199 - strlen(heads[i]));
        strcpy(big + len + 199 - strlen(heads[i]), "\n");
        struct config *config = load_good(big);
        const struct config_fallback *f = find(config, "f");
        const char *kept = i == 0 ? f->base : i == 3 ? f->models : f->headers[0];
        assert_string_equal(kept + strlen(kept) - 5, "xxxxx");
        assert_true(strlen(kept) >= 189);
        config_free(config);
        strcpy(big + len + 199 - strlen(heads[i]), "y\n");
        assert_null(load_text(big)); /* as everywhere */
    }
}

/* More of it than anybody reads must not hide what follows, nor end the reading. */
static void many_problems_leave_the_rest(void **state)
{
    (void)state;
    size_t len = (size_t)snprintf(big, sizeof big, "[fallback f]\n");

    for (unsigned i = 0; i < 300; i++)
        len += (size_t)snprintf(big + len, sizeof big - len, "nonsense%u = 1\n", i);
    snprintf(big + len, sizeof big - len, "[fallback g]\nbase = https://g\n");
    struct config *config = load_checked(big);
    assert_int_equal(problem_count, 100);
    assert_non_null(find(config, "g"));
    config_free(config);
    strcat(big, "[breaker]\nnonsense = 1\n");
    assert_null(load_text(big));
    assert_int_equal(problem_count, 101);
    assert_false(problems[100].skipped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_one_has_everything),
        cmocka_unit_test(one_with_anything_wrong_is_left_out),
        cmocka_unit_test(variables_are_looked_up_only_when_asked),
        cmocka_unit_test(sections_that_are_none),
        cmocka_unit_test(names_that_lead_nowhere),
        cmocka_unit_test(the_environment_and_set_name_them_too),
        cmocka_unit_test(lists_that_cannot_be_read),
        cmocka_unit_test(bases_and_addresses_of_targets),
        cmocka_unit_test(no_way_leads_back),
        cmocka_unit_test(fallbacks_are_bounded),
        cmocka_unit_test(headers_and_models_are_bounded),
        cmocka_unit_test(lines_as_long_as_they_may_be),
        cmocka_unit_test(many_problems_leave_the_rest),
    };

    return cmocka_run_group_tests_name("config_fallback", tests, fixture_make, fixture_remove);
}
