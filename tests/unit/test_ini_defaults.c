/* The shipped breaker.ini against options.def, both ways: every key once, with its default and its
 * text; nothing else; and the examples in it are right. Reads ./breaker.ini, or the file given. */
#include "config_fixture.h"

static const char *shipped = "breaker.ini";
static char ini[1 << 16];

/* Copies the shipped file, as a file that may be trusted whatever the checkout's umask was, without
 * the ';' of its examples if `uncomment`. */
static void copy_shipped(bool uncomment)
{
    char line[512], *copy = ini;
    FILE *file = fopen(shipped, "r");

    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        bool example = line[0] == ';' && line[1] != ' ' && line[1] != '\n';
        copy = stpcpy(copy, line + (example && uncomment));
        assert_true(copy < ini + sizeof ini - sizeof line);
    }
    fclose(file);
}

/* The remark right above the line, its lines joined by blanks. */
static void remark_above(unsigned line, char *buf, size_t size)
{
    const char *text = ini, *start = ini;
    size_t len = 0;

    for (unsigned i = 1; i < line; i++) {
        if (*text == '\n')
            start = text + 1; /* a remark ends at an empty line */
        text = strchr(text, '\n') + 1;
    }
    for (; start < text; start = strchr(start, '\n') + 1) {
        assert_memory_equal(start, "; ", 2);
        size_t n = strcspn(start + 2, "\n");
        len += (size_t)snprintf(buf + len, size - len, "%s%.*s", len ? " " : "", (int)n, start + 2);
        assert_true(len < size);
    }
}

static void each_key_stands_once_with_default_and_text(void **state)
{
    (void)state;
    struct config_value value;
    char remark[512];

    copy_shipped(false);
    struct config *config = load_good(ini); /* a key that stood twice, or is none, is a problem */
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        const struct config_option_info *info = config_option_info((enum config_option)i);
        assert_true(config_explain(config, (enum config_option)i, SPAN_NONE, SPAN_NONE, &value));
        assert_string_equal(value.text, info->fallback);
        const char *line = strstr(value.origin, "breaker.ini:");
        if (!line)
            fail_msg("%s is missing", info->key);
        remark_above((unsigned)atoi(line + strlen("breaker.ini:")), remark, sizeof remark);
        assert_string_equal(remark, info->text);
    }
    struct config_target_info target;
    assert_false(config_target(config, 0, &target));
    config_free(config);
}

/* Lists may repeat: the loader would not tell. */
static void no_key_repeats(void **state)
{
    (void)state;
    copy_shipped(false);
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        char start[80];
        unsigned times = 0;
        snprintf(start, sizeof start, "\n%s =", config_option_info((enum config_option)i)->key);
        for (const char *at = ini; (at = strstr(at, start)); at++)
            times++;
        assert_int_equal(times, 1);
    }
}

static void examples_are_right(void **state)
{
    (void)state;
    struct config_target_info target;

    copy_shipped(true);
    struct config *config = load_good(ini);
    assert_true(config_target(config, 0, &target));
    assert_int_equal(policy_of(config, "api.anthropic.com", "claude-x").breaker.failure_threshold,
                     8);
    assert_string_equal(policy_of(config, "gateway.internal", NULL).outcome.neutral_body,
                        "context_length_exceeded, maximum context length");
    assert_string_equal(policy_of(config, "api.openai.com", "gpt-4o").fallback,
                        "openrouter, local");
    assert_string_equal(config_fallback(config, SPAN_LIT("openrouter"))->headers[0],
                        "Authorization: Bearer ${OPENROUTER_API_KEY}");
    assert_string_equal(config_fallback(config, SPAN_LIT("local"))->models, "*:llama3.2");
    assert_string_equal(policy_of(config, "gpu2.internal:8000", NULL).fallback_address,
                        "gpu3.internal:8000");
    assert_false(policy_of(config, "a.bank.example", NULL).allow_fallbacks);
    config_free(config);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_key_stands_once_with_default_and_text),
        cmocka_unit_test(no_key_repeats),
        cmocka_unit_test(examples_are_right),
    };

    if (argc > 1)
        shipped = argv[1];
    return cmocka_run_group_tests_name("ini_defaults", tests, fixture_make, fixture_remove);
}
