/* The lists that `fallback` keys are, and what is taken out of them: names that lead nowhere, to
 * the target itself, or back. */
#include "fallback_fixture.h"

/* --- lists -------------------------------------------------------------------------------------
 */

static void assert_left_out(const struct config *config, const char *host, const char *model,
                            const char *expected)
{
    char found[200] = "";
    struct span name;

    for (unsigned i = 0; config_left_out(config, span_str(host), span_str(model), i, &name); i++) {
        assert_true(strlen(found) + name.len + 3 < sizeof found);
        strcat(found, i ? ", " : "");
        strncat(found, name.ptr, name.len);
    }
    assert_string_equal(found, expected);
}

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
        {6, "a [fallback NAME], found \"nowhere\", and no such section"},
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
    assert_left_out(config, "x", NULL, "nowhere");
    assert_left_out(config, "a", "m", "opnrouter, locale");
    assert_left_out(config, "b", NULL, "none");
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
    assert_left_out(config, "h", "m", "g");
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
                                         "[target c]\nbase = HTTPS://C:443//\n"
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
    assert_string_equal(policy.base, "HTTPS://C:443");
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
static const char all[] = "[target *.z]\nfallback = a, a-model, a80, b, c\n";

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
        snprintf(text, sizeof text, "%s%s%s", places, ways[i].targets, all);
        struct config *config = load_checked(text);
        assert_told(text, ways[i].line, "fallback", ways[i].message);
        assert_true(ways[i].line == 0 || problems[0].skipped);
        config_free(config);
    }
    snprintf(text, sizeof text, "%s%s", places, ways[7].targets);
    struct config *config = load_checked(text);
    assert_string_equal(policy_of(config, "a.example", NULL).fallback, "c");
    assert_left_out(config, "a.example", NULL, "b");
    assert_string_equal(policy_of(config, "b.example:444", NULL).fallback, "a");
    config_free(config);
}

/* --- sizes -------------------------------------------------------------------------------------
 */

static char big[1 << 16];

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

/* Whatever the file says, what is there is whole, and lists name only that. */
static void assert_whole(const struct config *config)
{
    const struct config_fallback *fallback;
    struct config_target_info target;
    char names[512];

    for (unsigned i = 0; (fallback = config_fallback_at(config, i)); i++) {
        assert_ptr_equal(find(config, fallback->name), fallback);
        assert_int_equal(strncmp(fallback->base, "http", 4), 0);
        assert_true(fallback->scheme.len > 0 && fallback->host.len > 0 && fallback->port > 0);
        for (unsigned h = 0; h < fallback->header_count; h++)
            assert_non_null(strstr(fallback->headers[h], ": "));
    }
    for (unsigned i = 0; config_target(config, i, &target); i++) {
        snprintf(names, sizeof names, "%s", policy_of(config, target.pattern, NULL).fallback);
        for (char *rest, *name = strtok_r(names, ", ", &rest); name;
             name = strtok_r(NULL, ", ", &rest))
            assert_non_null(find(config, name));
    }
}

static void lines_in_any_order(void **state)
{
    (void)state;
    static const char *const lines[] = {"[fallback a]\nbase = https://a.example",
                                        "[fallback b]\nbase = http://b.example:81/v1/",
                                        "[fallback c]\nbase = https://c",
                                        "[fallback d]",
                                        "[fallback ,]",
                                        "[target a.example]",
                                        "[target b.example:81]",
                                        "[target c]",
                                        "[target *.example/m]",
                                        "[breaker]",
                                        "base = https://a.example",
                                        "base = http://b.example:81/v1/",
                                        "base = https://c/v1",
                                        "base = https://[::1",
                                        "base = http://u:p@h",
                                        "fallback = a",
                                        "fallback = b, c",
                                        "fallback = c a d",
                                        "fallback = ,",
                                        "model = *:{model}",
                                        "model = a:b, c",
                                        "auth = A: ${KEY}",
                                        "auth = A: ${GONE}",
                                        "auth = $",
                                        "header = X: y",
                                        "header = X",
                                        "fallback_address = a:443",
                                        "fallback_address = [::1]:80",
                                        "fallback_address = a"};
    const size_t count = sizeof lines / sizeof *lines;
    uint32_t random = 1;
    unsigned good = 0, whole = 0;

    for (unsigned round = 0; round < 2000; round++) {
        size_t len = 0;
        for (unsigned i = 0; i < 2 + round % 20; i++) {
            random = random * 1664525 + 1013904223;
            size_t line = i == 0 ? 0 : random >> 16;
            len += (size_t)snprintf(big + len, sizeof big - len, "%s\n", lines[line % count]);
        }
        struct config *config;
        struct config_source source = {.path = fixture_path, .variable = variable};
        write_bytes(big, len);
        if ((config = load_source(&source))) {
            assert_whole(config);
            good++;
            whole += config_fallback_at(config, 0) != NULL;
        } else {
            assert_true(problem_count > 0);
        }
        config_free(config);
    }
    assert_true(good > 400 && whole > 200); /* else nothing was tried */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_that_lead_nowhere),
        cmocka_unit_test(the_environment_and_set_name_them_too),
        cmocka_unit_test(lists_that_cannot_be_read),
        cmocka_unit_test(bases_and_addresses_of_targets),
        cmocka_unit_test(no_way_leads_back),
        cmocka_unit_test(fallbacks_are_bounded),
        cmocka_unit_test(lines_in_any_order),
    };

    return cmocka_run_group_tests_name("config_names", tests, fixture_make, fixture_remove);
}
