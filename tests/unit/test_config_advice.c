/* What a configuration is told of that holds all right and can never do what it looks like:
 * settings of fallbacks that no call meets. */
#include "fallback_fixture.h"

#define FALLBACKS                                                                                  \
    "[fallback plain]\nbase = http://plain.example/v1\n"                                           \
    "[fallback local]\nbase = http://127.0.0.1:1/v1\n"                                             \
    "[fallback safe]\nbase = https://safe.example/v1\n"                                            \
    "[target any]\nmatch = any*\nbase = http://any\nfallback = plain, local, safe\n"

/* Each below the ten lines above. */
static const struct {
    const char *text;
    unsigned line; /* of what is told; 0: nothing is */
    const char *key, *message;
    bool skipped; /* else a warning */
} told[] = {
    /* a base that no URL of the host begins with */
    {"[target h:8000]\nbase = https://h/v1\n", 12, "base",
     "expected a URL of h:8000, found \"https://h/v1\": none of its calls goes to a fallback",
     false},
    {"[target h/m*]\nbase = http://h/v1\n", 12, "base", "expected a URL of h, found", false},
    {"[target h]\nbase = https://api.h/v1\n", 12, "base", "a URL of h, found", false},
    {"[target h]\nbase = HTTPS://H.:443/v1\n", 0, NULL, NULL, false},
    {"[target h:80]\nbase = http://h/v1\n", 0, NULL, NULL, false},
    {"[target h*]\nbase = https://g/v1\n", 0, NULL, NULL, false},
    {"[target h]\nbase =\n", 0, NULL, NULL, false},
    /* clear text */
    {"[target h]\nbase = https://h\nfallback = local,safe\nfallback = plain\n", 14, "fallback",
     "expected https, this machine, or allow_cleartext = true, found \"plain\", which is clear "
     "text",
     false},
    {"[target h/m]\nbase = https://h\nfallback = plain\n", 13, "fallback", "\"plain\"", false},
    {"[target *.h]\nbase = https://a.h\nfallback = plain\n", 13, "fallback", "\"plain\"", false},
    {"[target h]\nbase = https://h\n[breaker]\nfallback = plain\n", 14, "fallback", "\"plain\"",
     false},
    {"[breaker]\nfallback = plain\nbase = https://h\n", 12, "fallback", "\"plain\"", false},
    {"[breaker]\nfallback = plain\n[target h]\nbase = https://h\n[target g]\nbase = https://g\n",
     12, "fallback", "\"plain\"", false},
    {"[target h]\nbase = https://h\nfallback = plain\nallow_cleartext = true\n", 0, NULL, NULL,
     false},
    {"[target h]\nbase = https://h\nfallback = plain\n[breaker]\nallow_cleartext = true\n", 0, NULL,
     NULL, false},
    {"[target h]\nbase = https://h\nfallback = plain\nallow_fallbacks = false\n", 0, NULL, NULL,
     false},
    {"[target h:80]\nbase = http://h\nfallback = plain\n", 0, NULL, NULL, false},
    {"[target h]\nfallback = plain\n", 0, NULL, NULL, false},
    /* an address that is the host itself, or of a model */
    {"[target h]\nfallback_address = H.:443\n", 12, "fallback_address",
     "expected another HOST:PORT than the target's own, found \"h:443\"", true},
    {"[target x]\nfallback_address = h:8000\nmatch = H:8000\n", 12, "fallback_address",
     "found \"h:8000\"", true},
    {"[target h]\nfallback_address = h:8000\n", 0, NULL, NULL, false},
    {"[target h*]\nfallback_address = h:443\n", 0, NULL, NULL, false},
    {"[target h/m]\nfallback_address = h:443\n", 12, "fallback_address",
     "expected it in [breaker] or a target without a model, found one for h/m", true},
    /* a hard stop for a model alone */
    {"[target h/s*]\nallow_fallbacks = false\n[target h]\nfallback_address = g:443\n", 12,
     "allow_fallbacks",
     "found \"g:443\": connects do not go to it, since calls of that model may not", false},
    {"[target h/s*]\nallow_fallbacks = false\n[breaker]\nfallback_address = g:443\n", 12,
     "allow_fallbacks", "found \"g:443\"", false},
    {"[target *.h/s]\nallow_fallbacks = false\n[target *.h]\nfallback_address = g:443\n", 12,
     "allow_fallbacks", "found \"g:443\"", false},
    {"[target h/s]\nallow_fallbacks = false\n[target h*]\nfallback_address = g:443\n[target h]\n"
     "fallback_address =\n",
     0, NULL, NULL, false},
    {"[target h/s]\nallow_fallbacks = false\n[target h]\nfallback_address = g:443\n"
     "allow_fallbacks = false\n",
     0, NULL, NULL, false},
    {"[target h/s]\nallow_fallbacks = false\n[target h]\nfallback_address = g:443\n"
     "scope = host\n",
     0, NULL, NULL, false},
    {"[target h/s]\nallow_fallbacks = true\n[target h]\nfallback_address = g:443\n", 0, NULL, NULL,
     false},
    {"[target h]\nallow_fallbacks = false\nfallback_address = g:443\n", 0, NULL, NULL, false},
    /* what nobody names */
    {"[fallback x]\nbase = https://x\n", 11, "[fallback x]",
     "expected its name in a `fallback` key, found none", false},
    {"[fallback x]\nbase = https://x.example\n[target x.example]\nfallback = x\n", 14, "fallback",
     "the target itself", true},
};

static void what_no_call_ever_meets_is_told(void **state)
{
    (void)state;
    char text[1024];

    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        snprintf(text, sizeof text, "%s%s", FALLBACKS, told[i].text);
        struct config *config = load_checked(text);
        assert_told(text, told[i].line, told[i].key, told[i].message);
        if (told[i].line) {
            assert_int_equal(problems[0].skipped, told[i].skipped);
            assert_int_equal(problems[0].warning, !told[i].skipped);
        }
        config_free(config);
    }
}

static void an_address_that_is_dropped_leaves_the_wider_one_of_the_host(void **state)
{
    (void)state;
    struct config *config = load_checked("[breaker]\nfallback_address = w:1\n"
                                         "[target h]\nfallback_address = h:443\n"
                                         "[target g]\nfallback_address = x:443\n"
                                         "[target g/m]\nfallback_address = y:443\n");

    assert_int_equal(problem_count, 2);
    assert_string_equal(policy_of(config, "h", NULL).fallback_address, ""); /* as a broken one */
    assert_string_equal(policy_of(config, "g", "m").fallback_address, "x:443");
    assert_string_equal(policy_of(config, "i", "m").fallback_address, "w:1");
    config_free(config);
}

static void what_the_environment_says_counts(void **state)
{
    (void)state;
    static const char *const environment[] = {"BREAKER_FALLBACK=plain", NULL};
    struct config_source source = {.path = fixture_path, .environ = environment};
    static const char text[] = "[fallback plain]\nbase = http://plain.example\n"
                               "[target h/m]\nallow_fallbacks = false\n"
                               "[target g]\nbase = https://g\n"
                               "[breaker]\nfallback_address = x:1\n";

    write_bytes(text, strlen(text));
    struct config *config = load_source(&source);
    assert_int_equal(problem_count, 2);
    assert_string_equal(problems[0].file, "BREAKER_FALLBACK");
    assert_int_equal(problems[0].line, 0);
    assert_int_equal(problems[1].line, 4);
    config_free(config);
    source.set = "allow_cleartext=true\nallow_fallbacks=true";
    config = load_source(&source);
    assert_int_equal(problem_count, 0);
    config_free(config);
    source = (struct config_source){.path = fixture_path, .set = "fallback=x\nfallback="};
    config = load_source(&source); /* what was overruled names nobody */
    assert_int_equal(problem_count, 2);
    assert_string_equal(problems[1].key, "[fallback plain]");
    config_free(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_no_call_ever_meets_is_told),
        cmocka_unit_test(an_address_that_is_dropped_leaves_the_wider_one_of_the_host),
        cmocka_unit_test(what_the_environment_says_counts),
    };

    return cmocka_run_group_tests_name("config_advice", tests, fixture_make, fixture_remove);
}
