/* [fallback NAME]: what a whole one has, and what leaves one out, which is told but no reason to do
 * without the rest. */
#include "fallback_fixture.h"

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
                                         "base = http://[::1]:11434\n"
                                         "[breaker]\nfallback = a, b\n");
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
    assert_int_equal(a->base_line, 4);
    assert_int_equal(a->models_line, 3);
    static const unsigned lines[] = {5, 2, 6};
    assert_memory_equal(a->header_lines, lines, sizeof lines);
    assert_true(a->has_auth);
    assert_int_equal(b->models_line, 0);
    assert_false(b->has_auth);
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
    {"base = https://a\nheader = Content-Length: 1\n", 3, "header",
     "expected Name: value, found one of the connection or of the body's length"},
    {"base = https://a\nauth = transfer-encoding: chunked\n", 3, "auth", "the connection"},
    {"base = https://a\nheader = HOST: canary\n", 3, "header", "the connection"},
    {"base = https://a\nheader = connection: canary\n", 3, "header", "the connection"},
    {"base = https://a\nheader = Upgrade: canary\n", 3, "header", "the connection"},
    {"base = https://a\nheader = TE: canary\n", 3, "header", "the connection"},
    {"base = https://a\nheader = Trailer: canary\n", 3, "header", "the connection"},
    {"base = https://a\nheader = Keep-Alive: canary\n", 3, "header", "the connection"},
    {"base = https://a\nheader = Proxy-Connection: canary\n", 3, "header", "the connection"},
    {"base = https://a\nheader = Expect: 100-continue\n", 3, "header", "the connection"},
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
    {"base = https://a\n = x\n", 3, "line", "found no key"},
};

static void one_with_anything_wrong_is_left_out(void **state)
{
    (void)state;
    char text[512];

    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        snprintf(text, sizeof text,
                 "[fallback x]\n%s" GOOD_FALLBACK "[target t]\nfallback = x, f\n", broken[i].keys);
        struct config *config = load_checked(text);
        assert_told(text, broken[i].line, broken[i].key, broken[i].message);
        assert_true(problems[0].skipped);
        assert_null(strstr(problems[0].text, "canary"));
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
        load_good("[fallback x]\nbase = https://a\nauth = A: ${GONE}\nheader = B: ${EMPTY}\n"
                  "[breaker]\nfallback = x\n");

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
                 GOOD_FALLBACK "%s\nnonsense = 1\nbase = x\n[breaker]\nfallback = f\n",
                 bad[i].head);
        struct config *config = load_checked(text);
        assert_told(text, 3, bad[i].head, bad[i].message); /* of its keys nothing more is said */
        assert_true(problems[0].skipped);
        assert_string_equal(find(config, "f")->base, "https://f.example/v1");
        assert_null(config_fallback_at(config, 1));
        config_free(config);
    }
}

/* --- sizes -------------------------------------------------------------------------------------
 */

static char big[1 << 18];

static void headers_and_models_are_bounded(void **state)
{
    (void)state;
    size_t len = (size_t)snprintf(big, sizeof big, "%s",
                                  "[breaker]\nfallback = f\n" GOOD_FALLBACK "auth = A: b\n");

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
        int len = snprintf(big, sizeof big, "[breaker]\nfallback = f\n[fallback f]\n%s%s",
                           i ? "base = https://f\n" : "", heads[i]);
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

/* Where the host's breaker is the only one no target of a model has a say. */
static void who_holds_a_model(void **state)
{
    static const struct {
        const char *ini;
        bool holds;
    } files[] = {
        {"[target c]\nmatch = a.example/n*\nallow_fallbacks = false\n", true},
        {"[target c]\nmatch = *.example/n\nallow_fallbacks = false\n"
         "[target a.example]\nfailure_threshold = 2\n",
         true},
        {"[target a.example]\nscope = host\n"
         "[target c]\nmatch = a.example/n\nallow_fallbacks = false\n",
         false},
        {"[target c]\nmatch = b.example/n\nallow_fallbacks = false\n", false},
        {"[target c]\nmatch = a.example/n\nallow_fallbacks = true\n", false},
        {"[target a.example]\nallow_fallbacks = false\n", false},
    };
    struct policy policy;

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct config *config = load_good(files[i].ini);
        config_policy(config, SPAN_LIT("a.example"), SPAN_NONE, &policy);
        assert_int_equal(policy.holds_models, files[i].holds);
        config_policy(config, SPAN_LIT("a.example"), SPAN_LIT("-"), &policy);
        assert_int_equal(policy.holds_models, files[i].holds);
        config_policy(config, SPAN_LIT("a.example"), SPAN_LIT("n"), &policy);
        assert_false(policy.holds_models);
        config_free(config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_holds_a_model),
        cmocka_unit_test(a_whole_one_has_everything),
        cmocka_unit_test(one_with_anything_wrong_is_left_out),
        cmocka_unit_test(variables_are_looked_up_only_when_asked),
        cmocka_unit_test(sections_that_are_none),
        cmocka_unit_test(headers_and_models_are_bounded),
        cmocka_unit_test(lines_as_long_as_they_may_be),
        cmocka_unit_test(many_problems_leave_the_rest),
    };

    return cmocka_run_group_tests_name("config_fallback", tests, fixture_make, fixture_remove);
}
