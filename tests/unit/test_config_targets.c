/* Which target's value is in force: precedence, and what patterns match. */
#include "config_fixture.h"

static unsigned threshold(const struct config *config, const char *host, const char *model)
{
    return policy_of(config, host, model).breaker.failure_threshold;
}

static void scope_is_the_hosts(void **state)
{
    (void)state;
    struct config *config = load_good("[target h*]\nscope = host\n[target h1]\nscope = model\n"
                                      "[target h2/m]\nfailure_threshold = 2\n");

    assert_int_equal(policy_of(config, "h2", NULL).scope, SCOPE_HOST);
    assert_int_equal(policy_of(config, "h2", NULL).breaker.failure_threshold, 5);
    assert_int_equal(policy_of(config, "h1", NULL).scope, SCOPE_MODEL);
    assert_int_equal(policy_of(config, "g", NULL).scope, SCOPE_MODEL);
    config_free(config);
}

static void most_specific_target_wins(void **state)
{
    (void)state;
    /* Written so that order in the file never gives the right answer by chance. */
    struct config *config =
        load_good("[target api.example/claude-3-opus]\nfailure_threshold = 6\n"
                  "[target api.example/claude-3*]\nfailure_threshold = 5\n"
                  "[target api.example/claude*]\nfailure_threshold = 4\n"
                  "[target api.example]\nfailure_threshold = 3\nopen_seconds = 3\n"
                  "[target api.*/claude-3-opus]\nfailure_threshold = 2\n"
                  "[target *]\nfailure_threshold = 1\nopen_seconds = 1\nbackoff = 3\n");

    assert_int_equal(threshold(config, "api.example", "claude-3-opus"), 6);
    assert_int_equal(threshold(config, "api.example", "claude-3-haiku"), 5);
    assert_int_equal(threshold(config, "api.example", "claude-2"), 4);
    assert_int_equal(threshold(config, "api.example", "gpt"), 3);
    assert_int_equal(threshold(config, "api.example", NULL), 3);
    assert_int_equal(threshold(config, "api.other", "claude-3-opus"), 2);
    assert_int_equal(threshold(config, "api.other", NULL), 1);
    assert_int_equal(threshold(config, "api.example:8443", "claude-3-opus"), 2);
    /* What a target leaves open comes from the next. */
    struct policy policy = policy_of(config, "api.example", "claude-3-opus");
    assert_int_equal(policy.breaker.open_ticks, breaker_ticks_of(UINT64_C(3000000000)));
    assert_int_equal(policy.breaker.backoff_q8, 768);
    config_free(config);
}

static void later_target_wins_among_equals(void **state)
{
    (void)state;
    struct config *config =
        load_good("[target one]\nmatch = *.a.example\nfailure_threshold = 1\nopen_seconds = 9\n"
                  "[target two]\nmatch = h.*.example\nfailure_threshold = 2\n");

    assert_int_equal(threshold(config, "h.a.example", NULL), 2);
    assert_int_equal(policy_of(config, "h.a.example", NULL).breaker.open_ticks,
                     breaker_ticks_of(UINT64_C(9000000000)));
    config_free(config);
}

static void patterns_are_keys(void **state)
{
    (void)state;
    struct config *config =
        load_good("[target API.Example:443/Model]\nfailure_threshold = 1\n"
                  "[target  port.example:8000 ]\n"
                  "[target dot.example.]\n"
                  "[target six]\nmatch = [::1]:8080/a/b?\nfailure_threshold = 2\n");
    struct config_target_info info;

    assert_int_equal(threshold(config, "api.example", "Model"), 1);
    assert_int_equal(threshold(config, "api.example", "model"), 5);
    assert_int_equal(threshold(config, "[::1]:8080", "a/bc"), 2);
    assert_true(config_lists_host(config, SPAN_LIT("api.example")));
    assert_true(config_lists_host(config, SPAN_LIT("port.example:8000")));
    assert_true(config_lists_host(config, SPAN_LIT("dot.example")));
    assert_false(config_lists_host(config, SPAN_LIT("port.example")));
    struct policy policy;
    assert_true(config_policy(config, SPAN_LIT("port.example:8000"), SPAN_NONE, &policy));
    assert_false(config_policy(config, SPAN_LIT("api.example"), SPAN_NONE, &policy));
    assert_true(config_target(config, 0, &info));
    assert_string_equal(info.name, "API.Example:443/Model");
    assert_string_equal(info.pattern, "api.example/Model");
    assert_int_equal(info.line, 1);
    assert_true(config_target(config, 3, &info));
    assert_string_equal(info.name, "six");
    assert_int_equal(info.line, 5);
    assert_false(config_target(config, 4, &info));
    config_free(config);
}

static void globs(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *text;
        bool matches;
    } cases[] = {
        {"", "", true},           {"", "a", false},          {"*", "", true},
        {"*", "abc", true},       {"a*c", "abbc", true},     {"a*c", "abcd", false},
        {"?", "", false},         {"?", "a", true},          {"a?c", "abc", true},
        {"*a*b", "xxaxxb", true}, {"*a*b", "xxbxxa", false}, {"**", "x", true},
        {"[a]", "a", false},      {"[a]", "[a]", true},      {"a\\*", "a\\x", true},
        {"abc", "ab", false},     {"ab", "abc", false},      {"*ab", "aab", true},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(config_glob(span_str(cases[i].pattern), span_str(cases[i].text)),
                         cases[i].matches);
    /* Backtracks to the last star only: quadratic at worst. */
    char text[4096], pattern[64];
    memset(text, 'a', sizeof text);
    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = i % 2 ? 'a' : '*';
    pattern[63] = 'b';
    assert_false(config_glob(span_of(pattern, sizeof pattern), span_of(text, sizeof text)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scope_is_the_hosts),
        cmocka_unit_test(most_specific_target_wins),
        cmocka_unit_test(later_target_wins_among_equals),
        cmocka_unit_test(patterns_are_keys),
        cmocka_unit_test(globs),
    };

    return cmocka_run_group_tests_name("config_targets", tests, fixture_make, fixture_remove);
}
