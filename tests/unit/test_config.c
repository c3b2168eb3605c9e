/* What is in force: defaults, each key, the environment, --set, and how values become a policy;
 * targets are in test_config_targets.c. */
#include "config_fixture.h"

#include <errno.h>

static void assert_explained(const struct config *config, enum config_option option,
                             const char *host, const char *model, const char *text,
                             const char *origin)
{
    struct config_value value;

    assert_true(config_explain(config, option, span_str(host), span_str(model), &value));
    assert_string_equal(value.text, text);
    assert_string_equal(value.origin, origin);
}

static void defaults_without_a_file(void **state)
{
    (void)state;
    struct config_source source = {0};
    struct config *config = load_source(&source);
    struct policy policy;

    assert_non_null(config);
    assert_false(config_policy(config, SPAN_LIT("h.example"), SPAN_LIT("m"), &policy));
    assert_int_equal(policy.mode, MODE_ENFORCE);
    assert_int_equal(policy.scope, SCOPE_MODEL);
    assert_int_equal(policy.when_exhausted, EXHAUSTED_503);
    assert_false(policy.should_retry);
    assert_string_equal(policy.error_code, "circuit_open");
    assert_int_equal(policy.breaker.failure_threshold, 5);
    assert_int_equal(policy.breaker.degrade_threshold, 3);
    assert_int_equal(policy.breaker.failure_rate, 0);
    assert_int_equal(policy.breaker.window_ms, 60000);
    assert_int_equal(policy.breaker.min_calls, 20);
    assert_int_equal(policy.breaker.half_open_probes, 1);
    assert_int_equal(policy.breaker.success_threshold, 1);
    assert_int_equal(policy.breaker.backoff_q8, 512);
    assert_int_equal(policy.breaker.jitter_q16, 6553);
    assert_int_equal(policy.breaker.open_ticks, breaker_ticks_of(UINT64_C(30000000000)));
    assert_int_equal(policy.breaker.open_max_ticks, breaker_ticks_of(UINT64_C(300000000000)));
    assert_int_equal(policy.breaker.lease_ticks, policy.breaker.open_ticks);
    assert_false(policy.lease_of_call);
    assert_int_equal(policy.outcome.timeout_after_ns, UINT64_C(5000000000));
    assert_int_equal(policy.outcome.hang_after_ns, UINT64_C(30000000000));
    assert_int_equal(policy.outcome.connect_hang_after_ns, UINT64_C(3000000000));
    assert_int_equal(policy.outcome.slow_first_byte_ns, 0);
    assert_int_equal(policy.outcome.stall_after_ns, 0);
    for (unsigned status = 0; status < 1024; status++) {
        bool failure = status == 408 || status == 424 || status == 498 || status == 500 ||
                       (status >= 502 && status <= 504) || (status >= 520 && status <= 530);
        assert_int_equal(status_set_has(&policy.outcome.failure_status, status), failure);
        assert_false(status_set_has(&policy.outcome.neutral_status, status));
        bool brief =
            status == 429 || status == 500 || (status >= 502 && status <= 504) || status == 529;
        assert_int_equal(status_set_has(&policy.cooldown.on, status), brief);
    }
    assert_string_equal(policy.outcome.neutral_body, "");
    assert_true(policy.cooldown.on_connect);
    assert_int_equal(policy.cooldown.rate_limit, RATE_LIMIT_COOLDOWN);
    assert_int_equal(policy.cooldown.max_ms, 300000);
    assert_int_equal(policy.cooldown.quota_ms, 60000);
    assert_int_equal(policy.cooldown.brief_ms, 0);
    assert_int_equal(config_match(config), MATCH_LLM);
    assert_int_equal(config_deepbind(config), DEEPBIND_MASK);
    assert_string_equal(config_table_path(config), "");
    assert_string_equal(config_log_path(config), "");
    assert_explained(config, OPTION_open_seconds, "h.example", NULL, "30", "default");
    config_free(config);
    config_free(NULL);
}

static const char every_key[] =
    "[breaker]\nmatch = listed\ntable = /t/a b\nlog = /l\ndeepbind = keep\nmode = OFF\n"
    "scope = HOST\nfailure_threshold = 7\ndegrade_threshold = 0\nopen_seconds = 0.5\nbackoff = "
    "1.5\n"
    "open_max = 60\njitter = 1\nhalf_open_probes = 2\nsuccess_threshold = 3\nprobe_lease = 2\n"
    "timeout_after = 0\nhang_after = 1.25\nconnect_hang_after = 0.000001\n"
    "failure_status = 500\nfailure_status = 501,503-504\nwhen_exhausted = pass\n"
    "should_retry = yes\nfailure_rate = 0.25\nwindow = 1.5\nmin_calls = 8000\n"
    "neutral_status = 500-502\nneutral_status = 404\n"
    "neutral_body = too long,b\nneutral_body = \"code\": 1\n"
    "rate_limit = count\ncooldown_max = 2.5\nquota_cooldown = 600\ncooldown_seconds = 0.5\n"
    "cooldown_on = 401, CONNECT\ncooldown_on = 502\nerror_code = no-go\n"
    "slow_first_byte = 0.75\nstall_after = 20\n";

static void every_key_reaches_its_place(void **state)
{
    (void)state;
    struct config *config = load_good(every_key);
    struct policy policy = policy_of(config, "h", NULL);

    assert_int_equal(config_match(config), MATCH_LISTED);
    assert_int_equal(config_deepbind(config), DEEPBIND_KEEP);
    assert_string_equal(config_table_path(config), "/t/a b");
    assert_string_equal(config_log_path(config), "/l");
    assert_int_equal(policy.mode, MODE_OFF);
    assert_int_equal(policy.scope, SCOPE_HOST);
    assert_int_equal(policy.when_exhausted, EXHAUSTED_PASS);
    assert_true(policy.should_retry);
    assert_string_equal(policy.error_code, "no-go");
    assert_int_equal(policy.breaker.failure_threshold, 7);
    assert_int_equal(policy.breaker.degrade_threshold, 0);
    assert_int_equal(policy.breaker.open_ticks, breaker_ticks_of(500000000));
    assert_int_equal(policy.breaker.open_max_ticks, breaker_ticks_of(UINT64_C(60000000000)));
    assert_int_equal(policy.breaker.lease_ticks, breaker_ticks_of(UINT64_C(2000000000)));
    assert_int_equal(policy.breaker.backoff_q8, 384);
    assert_int_equal(policy.breaker.jitter_q16, 65535);
    assert_int_equal(policy.breaker.half_open_probes, 2);
    assert_int_equal(policy.breaker.success_threshold, 3);
    assert_int_equal(policy.outcome.timeout_after_ns, 0);
    assert_int_equal(policy.outcome.hang_after_ns, 1250000000);
    assert_int_equal(policy.outcome.connect_hang_after_ns, 1000);
    assert_int_equal(policy.outcome.slow_first_byte_ns, 750000000);
    assert_int_equal(policy.outcome.stall_after_ns, UINT64_C(20000000000));
    assert_true(status_set_has(&policy.outcome.failure_status, 501));
    assert_true(status_set_has(&policy.outcome.failure_status, 504));
    assert_false(status_set_has(&policy.outcome.failure_status, 502));
    assert_int_equal(policy.breaker.failure_rate, 250000);
    assert_int_equal(policy.breaker.window_ms, 1500);
    assert_int_equal(policy.breaker.min_calls, 8000);
    assert_true(status_set_has(&policy.outcome.neutral_status, 404));
    assert_true(status_set_has(&policy.outcome.neutral_status, 501));
    assert_false(status_set_has(&policy.outcome.neutral_status, 503));
    assert_string_equal(policy.outcome.neutral_body, "too long, b, \"code\": 1");
    assert_int_equal(policy.cooldown.rate_limit, RATE_LIMIT_COUNT);
    assert_int_equal(policy.cooldown.max_ms, 2500);
    assert_int_equal(policy.cooldown.quota_ms, 600000);
    assert_int_equal(policy.cooldown.brief_ms, 500);
    assert_true(status_set_has(&policy.cooldown.on, 401));
    assert_true(status_set_has(&policy.cooldown.on, 502));
    assert_false(status_set_has(&policy.cooldown.on, 429));
    assert_true(policy.cooldown.on_connect);
    assert_true(status_set_has(&policy.outcome.failure_status, 429));
    assert_explained(config, OPTION_failure_status, NULL, NULL, "500, 501,503-504",
                     (snprintf(problems[0].file, 256, "%s:20", fixture_path), problems[0].file));
    config_free(config);
}

/* With rate_limit = count a 429 is a failure like those of failure_status; else it is none. */
static void a_rate_limit_is_any_of_its_words(void **state)
{
    (void)state;
    struct config *config = load_good("[target a]\nrate_limit = cooldown, count\n"
                                      "[target b]\nrate_limit = count cooldown\n"
                                      "[target c]\nrate_limit = ignore\n"
                                      "[target d]\nrate_limit = Cooldown\n");
    static const struct {
        const char *host;
        unsigned bits;
    } wanted[] = {{"a", 3}, {"b", 3}, {"c", RATE_LIMIT_IGNORE}, {"d", RATE_LIMIT_COOLDOWN}};

    for (unsigned i = 0; i < 4; i++) {
        struct policy policy = policy_of(config, wanted[i].host, NULL);
        assert_int_equal(policy.cooldown.rate_limit, wanted[i].bits);
        assert_int_equal(status_set_has(&policy.outcome.failure_status, 429), wanted[i].bits == 3);
    }
    config_free(config);
}

/* The longer of open_seconds and probe_lease, after all layers. */
static void lease_is_never_shorter_than_the_open_time(void **state)
{
    (void)state;
    struct config *config = load_good("[breaker]\nprobe_lease = 10\nopen_seconds = 5\n"
                                      "[target slow.example]\nopen_seconds = 100\n");

    assert_int_equal(policy_of(config, "h", NULL).breaker.lease_ticks,
                     breaker_ticks_of(UINT64_C(10000000000)));
    assert_int_equal(policy_of(config, "slow.example", NULL).breaker.lease_ticks,
                     breaker_ticks_of(UINT64_C(100000000000)));
    config_free(config);
}

/* `call` is one more word that a layer has: its floor stands in for the number, and is taken back
 * with it. */
static void a_lease_may_be_the_calls(void **state)
{
    (void)state;
    struct config *config = load_good("[breaker]\nprobe_lease = call\n"
                                      "[target slow.example]\nopen_seconds = 100\n"
                                      "[target short.example]\nprobe_lease = 40\n"
                                      "[target short.example/m]\nprobe_lease = CALL\n");
    static const struct {
        const char *host, *model;
        bool of_call;
        unsigned seconds;
    } wanted[] = {{"h", NULL, true, 30},
                  {"slow.example", NULL, true, 100},
                  {"short.example", NULL, false, 40},
                  {"short.example", "m", true, 30}};

    for (unsigned i = 0; i < 4; i++) {
        struct policy policy = policy_of(config, wanted[i].host, wanted[i].model);
        assert_int_equal(policy.lease_of_call, wanted[i].of_call);
        assert_int_equal(policy.breaker.lease_ticks,
                         breaker_ticks_of(wanted[i].seconds * UINT64_C(1000000000)));
    }
    assert_explained(config, OPTION_probe_lease, "short.example", "m", "CALL",
                     (snprintf(problems[0].file, 256, "%s:8", fixture_path), problems[0].file));
    config_free(config);
}

static void set_stands_above_environment_above_target(void **state)
{
    (void)state;
    static const char *const environment[] = {"BREAKER_OPEN_SECONDS=8",
                                              "BREAKER_OPEN_SECONDS=soon",
                                              "BREAKER_BACKOFF=4",
                                              "BREAKER_open_max=nought",
                                              "BREAKER_LIB=/x",
                                              "BREAKER_=",
                                              "BREAKER_CONFIG=match",
                                              "BREAKER_SET=x",
                                              "BREAKER_DISABLED=0",
                                              "BREAKERJITTER=x",
                                              "BREAKER_JITTER",
                                              "BREAKER_TABLE=/from/environment",
                                              "OTHER=1",
                                              NULL};
    struct config_source source = {.path = fixture_path,
                                   .environ = environment,
                                   .set = "\n backoff = 5 \nfailure_status=500\nfailure_status="
                                          "501\n"};
    write_bytes("[breaker]\ntable = /from/file\n[target h]\nbackoff = 3\nopen_seconds = 7\n"
                "jitter = 0\n",
                strlen("[breaker]\ntable = /from/file\n[target h]\nbackoff = 3\nopen_seconds = 7\n"
                       "jitter = 0\n"));
    struct config *config = load_source(&source);
    assert_non_null(config);
    struct policy policy = policy_of(config, "h", NULL);
    char origin[128];

    assert_int_equal(policy.breaker.backoff_q8, 5 * 256);
    assert_int_equal(policy.breaker.open_ticks, breaker_ticks_of(UINT64_C(8000000000)));
    assert_int_equal(policy.breaker.jitter_q16, 0);
    assert_true(status_set_has(&policy.outcome.failure_status, 501));
    assert_false(status_set_has(&policy.outcome.failure_status, 502));
    assert_string_equal(config_table_path(config), "/from/environment");
    assert_explained(config, OPTION_backoff, "h", NULL, "5", "BREAKER_SET");
    assert_explained(config, OPTION_open_seconds, "h", NULL, "8", "BREAKER_OPEN_SECONDS");
    snprintf(origin, sizeof origin, "%s:6", fixture_path);
    assert_explained(config, OPTION_jitter, "h", "m", "0", origin);
    assert_explained(config, OPTION_jitter, NULL, NULL, "0.1", "default");
    struct config_value value;
    assert_false(config_explain(config, OPTION_COUNT, SPAN_NONE, SPAN_NONE, &value));
    config_free(config);
}

static void the_last_set_of_a_key_wins(void **state)
{
    (void)state;
    struct config_source source = {
        .set = "backoff=5\nfailure_status=500\nmode=off\nbackoff=3\nfailure_status=501\n"};
    struct config *config = load_source(&source);
    assert_non_null(config);
    struct policy policy = policy_of(config, "h", NULL);

    assert_int_equal(policy.breaker.backoff_q8, 3 * 256);
    assert_false(status_set_has(&policy.outcome.failure_status, 500));
    assert_int_equal(policy.mode, MODE_OFF);
    config_free(config);
    source.set = "backoff=nonsense\nbackoff=3";
    assert_null(load_source(&source)); /* what is overridden must make sense, too */
}

static void errno_is_kept(void **state)
{
    (void)state;
    struct config_source missing = {.path = "/nowhere/breaker.ini"};
    char buf[256];
    bool named;

    errno = 77;
    assert_null(load_source(&missing));
    assert_int_equal(errno, 77);
    config_find(NULL, "/nowhere", buf, sizeof buf, &named);
    assert_int_equal(errno, 77);
    config_free(load_good("[breaker]\n"));
    errno = 77;
    config_free(load_source(&(struct config_source){0}));
    assert_int_equal(errno, 77);
}

static void finds_the_file(void **state)
{
    (void)state;
    char home[64], dir[512], path[160], buf[256];
    bool named;

    snprintf(home, sizeof home, "%s/home", fixture_dir);
    assert_string_equal(config_find("/nowhere/x.ini", home, buf, sizeof buf, &named),
                        "/nowhere/x.ini");
    assert_true(named);
    snprintf(path, sizeof path, "%s/.config/breaker/breaker.ini", home);
    const char *found = config_find(NULL, home, buf, sizeof buf, &named);
    assert_false(named);
    assert_true(!found || strcmp(found, "/etc/breaker/breaker.ini") == 0);
    snprintf(dir, sizeof dir, "mkdir -p %s/.config/breaker && : > %s", home, path);
    assert_int_equal(system(dir), 0);
    assert_string_equal(config_find("", home, buf, sizeof buf, &named), path);
    assert_false(named);
    /* A relative HOME would be the working directory by another name; no room is no file. */
    found = config_find(NULL, "home", buf, sizeof buf, &named);
    assert_true(!found || strcmp(found, "/etc/breaker/breaker.ini") == 0);
    assert_null(config_find(NULL, home, buf, 10, &named));
    snprintf(dir, sizeof dir, "rm -r %s", home);
    assert_int_equal(system(dir), 0);
}

static void options_tell_of_themselves(void **state)
{
    (void)state;
    const struct config_option_info *info = config_option_info(OPTION_backoff);

    assert_string_equal(info->key, "backoff");
    assert_string_equal(info->type, "FACTOR");
    assert_string_equal(info->fallback, "2");
    assert_false(info->global);
    assert_true(config_option_info(OPTION_table)->global);
    assert_null(config_option_info(OPTION_COUNT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_without_a_file),
        cmocka_unit_test(every_key_reaches_its_place),
        cmocka_unit_test(a_rate_limit_is_any_of_its_words),
        cmocka_unit_test(lease_is_never_shorter_than_the_open_time),
        cmocka_unit_test(a_lease_may_be_the_calls),
        cmocka_unit_test(set_stands_above_environment_above_target),
        cmocka_unit_test(the_last_set_of_a_key_wins),
        cmocka_unit_test(errno_is_kept),
        cmocka_unit_test(finds_the_file),
        cmocka_unit_test(options_tell_of_themselves),
    };

    return cmocka_run_group_tests_name("config", tests, fixture_make, fixture_remove);
}
