/* What `breaker check` is told of settings that are legal and have no effect, or say the contrary
 * of one beside them; and that nothing is told of a setting that has one on any call. */
#include "fallback_fixture.h"

#define F "[fallback f]\nbase = https://f.example/v1\n"

static void advise(const struct config *config)
{
    config_advise(config, keep_problem, &problem_count);
}

/* The text of a file that is good but for what is told here. */
static void assert_advised(const char *text, unsigned line, const char *key, const char *message)
{
    struct config *config = load_good(text);

    advise(config);
    assert_told(text, line, key, message);
    if (line)
        assert_true(problems[0].warning && !problems[0].skipped && !problems[0].passing);
    config_free(config);
}

struct advised {
    const char *text;
    unsigned line; /* of what is told */
    const char *key, *message;
};

static void assert_all(const struct advised *advised, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_advised(advised[i].text, advised[i].line, advised[i].key, advised[i].message);
}

/* Each is told of once, alone. */
static const struct advised idle[] = {
    {"[breaker]\nwindow = 30\n", 2, "window",
     "expected failure_rate above 0, found 0: no share of failures opens"},
    {"[breaker]\nfailure_rate = 0\n\nmin_calls = 5\n", 4, "min_calls", "failure_rate above 0"},
    {"[breaker]\nfailure_threshold = 4\ndegrade_threshold = 6\n", 3, "degrade_threshold",
     "expected less than failure_threshold = 4, found 6: it opens before it is degraded"},
    {"[breaker]\ndegrade_threshold = 2\nfailure_threshold = 2\n", 2, "degrade_threshold",
     "less than failure_threshold = 2"},
    {"[breaker]\nfailure_threshold = 1\nfailure_rate = 0.5\ndegrade_threshold = 0\n", 3,
     "failure_rate", "failure_threshold above 1, or 0, found 1: when 0.5 of 20 calls fail"},
    {"[breaker]\nfailure_rate = 0.9\n", 2, "failure_rate", "so many fail in a row"},
    {"[breaker]\nopen_seconds = 60\nopen_max = 30\n", 3, "open_max",
     "expected open_seconds = 60 or more, found 30: it stays open for open_seconds"},
    {"[breaker]\nopen_max = 20\n", 2, "open_max", "open_seconds = 30 or more"},
    {"[breaker]\nbackoff = 1\nopen_max = 600\n", 3, "open_max",
     "expected backoff above 1, found 1: the open time never grows"},
    {"[breaker]\nopen_seconds = 600\nbackoff = 3\n", 3, "backoff",
     "expected open_max above open_seconds = 600, found 300: the open time never grows"},
    {"[breaker]\nbackoff = 3\nopen_max = 30\n", 2, "backoff", "open_max above open_seconds = 30"},
    {"[breaker]\nprobe_lease = 10\n", 2, "probe_lease",
     "expected open_seconds = 30 or more, found 10: the longer of the two counts"},
    {"[breaker]\nfailure_status = 500\nneutral_status = 500-599\n", 2, "failure_status",
     "expected one that is not in neutral_status, found all of them there: they are neutral"},
    {"[breaker]\nneutral_status = 404\nneutral_status = 429\n", 2, "neutral_status",
     "found \"404, 429\": neutral anyway"},
    {"[breaker]\nfailure_status =\nneutral_body = too long\n", 3, "neutral_body",
     "expected a status that is a failure, found none"},
    {"[breaker]\nrate_limit = count, cooldown\nneutral_status = 429\n", 2, "rate_limit",
     "expected 429 not in neutral_status, found it there: count has no effect"},
    {"[breaker]\nrate_limit = ignore\ncooldown_max = 20\n", 3, "cooldown_max",
     "expected cooldown in rate_limit, found ignore: no 429 parks anybody"},
    {"[breaker]\nrate_limit = count\nquota_cooldown = 20\n", 3, "quota_cooldown", "count: no 429"},
    {"[breaker]\ncooldown_on = 500\n", 2, "cooldown_on",
     "expected cooldown_seconds above 0, found 0: nobody is parked"},
    {"[breaker]\ncooldown_seconds = 5\ncooldown_on = 429\nrate_limit = ignore\n", 2,
     "cooldown_seconds", "something in cooldown_on that parks"},
    {"[breaker]\ncooldown_seconds = 5\ncooldown_on = 200-399\n", 2, "cooldown_seconds", "nothing"},
    {"[target h]\nallow_fallbacks = false\nwhen_exhausted = pass\n", 3, "when_exhausted",
     "expected allow_fallbacks = true, found false: a refused call gets the 503"},
    {"[target h]\nwhen_exhausted = pass\nshould_retry = true\n", 3, "should_retry",
     "expected when_exhausted = 503, found pass: no call gets an answer of ours"},
    {"[target h]\nwhen_exhausted = pass\nerror_code = down\n", 3, "error_code", "found pass"},
    {F "[target h]\nallow_fallbacks = false\nfallback = f\n", 5, "fallback",
     "expected allow_fallbacks = true, found false: no call goes elsewhere"},
    {"[target h]\nallow_fallbacks = no\nfallback_address = g:1\n", 3, "fallback_address", "false"},
    {"[target h]\nbase = https://h\n", 2, "base",
     "expected a fallback whose base replaces it, found none"},
    {F "[breaker]\nfallback = f\n[target h]\nallow_fallbacks = false\nbase = https://h\n", 7,
     "base", "allow_fallbacks = true"},
    {F "[target h]\nfallback = f\nallow_cleartext = true\n", 5, "allow_cleartext",
     "expected a fallback over http on another machine, found none"},
    {F "model = gpt-4o:a, gpt-*:b\nmodel = gpt-5*:c\n[target h]\nfallback = f\n", 3, "model",
     "expected \"gpt-5*:c\" before \"gpt-*:b\", found it behind: its models are taken there"},
    {F "model = *:{model}, x:y\n[breaker]\nfallback = f\n", 3, "model", "\"x:y\" before"},
    {"[breaker]\nmatch = listed\n", 2, "match", "expected a [target NAME] beside listed, found no"},
    {"[target h]\nmode = off\nfailure_threshold = 2\n", 3, "failure_threshold",
     "expected mode = enforce or observe, found off: its calls are not covered"},
    {"[target h]\nscope = host\n[target h/m]\nopen_seconds = 2\njitter = 0\n", 3, "[target h/m]",
     "expected scope = model for its host, found host: no target of a model has a say"},
    {"[target a]\nmatch = h/m\njitter = 0\n[target b]\nmatch = h/m\njitter = 0.2\n", 3, "jitter",
     "found [target b] with it, for all of them, in line 6"},
};

static void what_has_no_effect_is_told(void **state)
{
    (void)state;
    assert_all(idle, sizeof idle / sizeof *idle);
}

/* The section that judges is the one in which it is in force. */
static const struct advised inherited[] = {
    /* no target makes it of use, or one does */
    {"[breaker]\nmin_calls = 5\n[target h]\nopen_seconds = 5\n", 2, "min_calls", "failure_rate"},
    {"[breaker]\nmin_calls = 5\n[target h]\nfailure_rate = 0.5\n", 0, NULL, NULL},
    {"[breaker]\nmin_calls = 5\n[target h*/m]\nfailure_rate = 0.5\n", 0, NULL, NULL},
    {"[breaker]\nmin_calls = 5\n[target h]\nfailure_rate = 0.5\nmin_calls = 9\n", 2, "min_calls",
     "failure_rate"},
    /* what a target has from [breaker], or from a wider target */
    {"[breaker]\nfailure_rate = 0.5\n[target h]\nmin_calls = 5\n", 0, NULL, NULL},
    {"[breaker]\nfailure_rate = 0.5\n[target h]\nfailure_rate = 0\nmin_calls = 5\n", 5, "min_calls",
     "failure_rate"},
    {"[target *.h]\nfailure_rate = 0.5\n[target a.h]\nmin_calls = 5\n", 0, NULL, NULL},
    {"[target *.h]\nfailure_threshold = 2\n[target a.h/m]\ndegrade_threshold = 4\n", 4,
     "degrade_threshold", "failure_threshold = 2"},
    {"[breaker]\ndegrade_threshold = 4\n[target h]\nfailure_threshold = 2\n", 0, NULL, NULL},
    {"[breaker]\nopen_seconds = 600\n[target h]\nopen_max = 400\n", 4, "open_max", "600"},
    {"[breaker]\nopen_seconds = 600\n[target h]\nopen_max = 400\nopen_seconds = 9\n", 0, NULL,
     NULL},
    /* it takes back what a wider one says */
    {"[breaker]\nprobe_lease = 90\n[target h]\nopen_seconds = 60\nprobe_lease = 1\n", 0, NULL,
     NULL},
    {"[breaker]\nprobe_lease = call\n[target h]\nprobe_lease = 1\n", 0, NULL, NULL},
    {"[breaker]\nprobe_lease = 50\n[target h]\nopen_seconds = 60\nprobe_lease = 1\n", 5,
     "probe_lease", "open_seconds = 60"},
    {"[breaker]\nneutral_status = 500\n[target h]\nneutral_status = 404\n", 0, NULL, NULL},
    {"[breaker]\nneutral_status = 400\n[target h]\nneutral_status = 404\n[target g]\n"
     "failure_status = 400, 500\n",
     4, "neutral_status", "404"},
    /* a narrower target makes it of use */
    {"[target h]\nmin_calls = 5\n[target h/m]\nfailure_rate = 0.5\n", 0, NULL, NULL},
    {"[target h]\nmode = off\njitter = 0\n[target h/m]\nmode = enforce\n", 0, NULL, NULL},
    {F "[breaker]\nfallback = f\n[target h]\nallow_fallbacks = false\n", 0, NULL, NULL},
    /* one that is for some of the same calls may */
    {"[target *.h]\nmin_calls = 5\n[target a.*]\nfailure_rate = 0.5\n", 0, NULL, NULL},
    {"[target *.h]\nmin_calls = 5\n[target a.*]\njitter = 0\n", 2, "min_calls", "failure_rate"},
    {"[target *.h]\nmin_calls = 5\n[target *.g]\nfailure_rate = 0.5\n", 2, "min_calls", "rate"},
    {"[target h*]\nmin_calls = 5\n[target g*]\nfailure_rate = 0.5\n", 2, "min_calls", "rate"},
    {"[target h*/m]\nmin_calls = 5\n[target h]\nfailure_rate = 0.5\n", 0, NULL, NULL},
    {"[target *.h]\nmin_calls = 5\n[target a*.h]\njitter = 0\n[target *b.h]\nfailure_rate = 0.5\n",
     0, NULL, NULL},
    {"[target ?.h]\nmatch = ??.h\njitter = 0\n[target x]\nmatch = *.h\njitter = 1\n", 0, NULL,
     NULL},
    {"[target a]\nmatch = *.h\njitter = 0\n[target b]\nmatch = ?.h\njitter = 1\n", 0, NULL, NULL},
    /* a model's target has a say where the host's scope lets it */
    {"[breaker]\nscope = host\n[target *.h/m]\njitter = 0\n", 3, "[target *.h/m]", "scope = model"},
    {"[breaker]\nscope = host\n[target *.h/m]\njitter = 0\n[target a.h]\nscope = model\n", 0, NULL,
     NULL},
    {"[target a.h]\nscope = host\n[target *.h/m]\njitter = 0\n", 0, NULL, NULL},
    {"[target h]\nscope = host\nmin_calls = 5\n[target h/m]\nfailure_rate = 0.5\n[target g]\n"
     "scope = model\n",
     3, "min_calls", "failure_rate"},
};

static void what_is_in_force_for_the_section_decides(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof inherited / sizeof *inherited; i++) {
        struct config *config = load_good(inherited[i].text);
        bool two = strstr(inherited[i].text, "scope = host\nmin_calls");
        advise(config);
        if (two) { /* the model's target is told of, too */
            assert_int_equal(problem_count--, 2);
            assert_string_equal(problems[1].key, "[target h/m]");
        }
        assert_told(inherited[i].text, inherited[i].line, inherited[i].key, inherited[i].message);
        config_free(config);
    }
}

/* A file in which all keys stand, of which the user changed one: nobody said the others. */
static const char *const nothing_told[] = {
    "",
    "[breaker]\n",
    "[breaker]\nfailure_threshold = 2\n",
    "[breaker]\nfailure_threshold = 0\n",
    "[breaker]\nwindow = 60.0\nmin_calls = 20\n",
    "[breaker]\nfailure_rate = 0.5\nwindow = 5\n",
    "[breaker]\nopen_seconds = 600\n",
    "[breaker]\nopen_seconds = 300\nopen_max = 300\n",
    "[breaker]\nbackoff = 1\nopen_max = 300\n",
    "[breaker]\nopen_seconds = 60\nprobe_lease = 30\n",
    "[breaker]\nopen_seconds = 60\nprobe_lease = call\n",
    "[breaker]\nopen_seconds = 5\nprobe_lease = 1\n",
    "[breaker]\nneutral_status =\n",
    "[breaker]\nrate_limit = ignore\ncooldown_max = 300\nquota_cooldown = 60\n",
    "[breaker]\ncooldown_on = 429, 500, 502-504, 529, connect\ncooldown_seconds = 0\n",
    "[breaker]\ncooldown_seconds = 3\ncooldown_on = connect\n",
    "[breaker]\ncooldown_seconds = 3\ncooldown_on = 500\n",
    "[breaker]\nfailure_threshold = 0\ndegrade_threshold = 7\n",
    "[breaker]\ndegrade_threshold = 0\nfailure_threshold = 1\n",
    "[breaker]\nfailure_status = 500-599\nneutral_status = 501\n",
    "[breaker]\nneutral_status = 404, 204\n",
    "[breaker]\nwhen_exhausted = pass\nerror_code = circuit_open\nshould_retry = false\n",
    "[breaker]\nwhen_exhausted = pass\n[target h]\nallow_fallbacks = false\nerror_code = gone\n",
    "[target h]\nallow_fallbacks = false\nfallback =\nbase =\nfallback_address =\n",
    "[target h]\nfailover = off\nallow_fallbacks = false\n",
    "[target h]\nmode = observe\njitter = 0\n",
    "[target h]\nmode = off\n",
    "[breaker]\nmatch = listed\n[target h]\n",
    F "model = gpt-4o:a, gpt-?:b, gpt-*:c, o*:d, *:e\n[target h]\nfallback = f\n",
    "[fallback f]\nbase = http://f.example\n[target h]\nfallback = f\nallow_cleartext = true\n",
};

static void what_has_an_effect_or_was_not_chosen_is_not_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof nothing_told / sizeof *nothing_told; i++)
        assert_advised(nothing_told[i], 0, "", "");
}

static void what_is_contrary_is_told_of_a_default_that_stands_there(void **state)
{
    (void)state;
    assert_advised("[breaker]\nfailure_threshold = 2\ndegrade_threshold = 3\n", 3,
                   "degrade_threshold", "failure_threshold = 2");
    assert_advised("[breaker]\nopen_seconds = 600\nopen_max = 300\n", 3, "open_max", "600");
}

static void of_what_is_wrong_no_more_is_told(void **state)
{
    (void)state;
    static const char text[] = "[target h]\nbase = h/v1\n";
    struct config *config = load_checked(text);

    advise(config);
    assert_told(text, 2, "base", "expected http://HOST");
    config_free(config);
}

static void advise_source(const struct config_source *source)
{
    struct config *config = assert_loaded(load_source(source));

    assert_int_equal(problem_count, 0);
    advise(config);
    config_free(config);
}

/* What a program is run with is judged beside the file; what stands in the file is not blamed for
 * it, and may live from it. */
static void the_environment_and_set_are_judged_beside_the_file(void **state)
{
    (void)state;
    const char *environment[] = {"BREAKER_MIN_CALLS=5", NULL};
    struct config_source source = {.path = fixture_path, .environ = environment};
    static const char text[] = "[breaker]\nwindow = 30\n[target h]\nfailure_threshold = 3\n";

    write_bytes(text, strlen(text));
    advise_source(&source);
    assert_int_equal(problem_count, 2);
    assert_int_equal(problems[0].line, 2);
    assert_string_equal(problems[1].file, "BREAKER_MIN_CALLS");
    assert_int_equal(problems[1].line, 0);
    assert_string_equal(problems[1].key, "min_calls");
    source.set = "failure_rate=0.5\n";
    advise_source(&source);
    assert_int_equal(problem_count, 0);
    source.set = "failure_rate=0.5\nopen_max=20\nmode=enforce\n";
    advise_source(&source);
    assert_int_equal(problem_count, 1);
    assert_string_equal(problems[0].file, "BREAKER_SET");
    assert_string_equal(problems[0].key, "open_max");

    static const char good[] = F "[target h]\nfallback = f\njitter = 0\nfailure_rate = 0.5\n"
                                 "min_calls = 9\ndegrade_threshold = 4\n";
    environment[0] = "BREAKER_ALLOW_FALLBACKS=false";
    write_bytes(good, strlen(good));
    source.set = "mode=off\nfailure_rate=0\nfailure_threshold=3\n";
    advise_source(&source);
    assert_int_equal(problem_count, 2); /* what stands beside mode = off in the same breath */
    assert_string_equal(problems[0].file, "BREAKER_ALLOW_FALLBACKS");
    assert_string_equal(problems[1].key, "failure_threshold");
}

static void no_more_is_told_than_somebody_reads(void **state)
{
    (void)state;
    static char text[32768];
    size_t len = 0;

    for (unsigned i = 0; i < 256; i++)
        len += (size_t)sprintf(text + len, "[target h%u]\nmin_calls = 5\nopen_max = 5\n", i);
    struct config *config = load_good(text);
    advise(config);
    assert_int_equal(problem_count, 100);
    config_free(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_has_no_effect_is_told),
        cmocka_unit_test(what_is_in_force_for_the_section_decides),
        cmocka_unit_test(what_has_an_effect_or_was_not_chosen_is_not_told),
        cmocka_unit_test(what_is_contrary_is_told_of_a_default_that_stands_there),
        cmocka_unit_test(of_what_is_wrong_no_more_is_told),
        cmocka_unit_test(the_environment_and_set_are_judged_beside_the_file),
        cmocka_unit_test(no_more_is_told_than_somebody_reads),
    };

    return cmocka_run_group_tests_name("config_idle", tests, fixture_make, fixture_remove);
}
