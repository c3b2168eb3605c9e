/*
 * test_shim.c - the door as a layer uses it: real table file, real configuration, fake clock.
 *
 * Each test runs in a child process with its own table, since the configuration and the table of
 * a process are fixed at its first covered call.
 */
#include "shim.h"

#include "table/slot.h"
#include "table/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static uint64_t boot = UINT64_C(1000) * CLOCK_NS_PER_S;
static uint64_t slept; /* time that the machine was suspended */

static uint64_t fake_boot(void)
{
    return boot;
}

static uint64_t fake_mono(void)
{
    return boot - slept;
}

static int64_t fake_wall(void)
{
    return 0;
}

static const struct clock_ops fake = {fake_boot, fake_mono, fake_wall};

static void advance(double seconds)
{
    boot += (uint64_t)(seconds * 1e9);
}

/* Runs `body` in a child with a table of its own; an assertion that fails makes it exit 1. */
static void in_child(void (*body)(void), const char *settings)
{
    char dir[] = "/tmp/test-shim-XXXXXX";
    char table[64];
    int status = -1;

    assert_non_null(mkdtemp(dir));
    snprintf(table, sizeof table, "%s/table", dir);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        setenv("BREAKER_TABLE", table, 1);
        setenv("BREAKER_JITTER", "0", 1);
        setenv("BREAKER_SET", settings, 1);
        setenv("HOME", dir, 1);
        shim_set_clock(&fake);
        body();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    unlink(table);
    rmdir(dir);
    if (status != 0)
        fail_msg("the child ended with wait status %#x", (unsigned)status);
}

/* Not cmocka's: a failure in a child must end that child. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static enum shim_need open_path(struct shim_call *call, const char *path)
{
    struct shim_request request = {
        .method = SPAN_LIT("POST"),
        .scheme = SPAN_LIT("https"),
        .host = SPAN_LIT("api.openai.com"),
        .port = 443,
        .path = span_str(path),
    };

    return shim_open(call, &request);
}

/* Opens and admits a chat call of `model`. */
static enum shim_verdict chat(struct shim_call *call, const char *model)
{
    char body[256];
    int len =
        snprintf(body, sizeof body, "{\"messages\":[{\"model\":\"x\"}],\"model\":\"%s\"}", model);

    CHECK(open_path(call, "/v1/chat/completions") == SHIM_NEEDS_BODY);
    CHECK(shim_body(call, span_of(body, (size_t)len), true));
    return shim_admit(call);
}

static void end_status(struct shim_call *call, unsigned status)
{
    struct call_end end = {.kind = END_COMPLETE,
                           .phase = PHASE_BODY,
                           .status = (uint16_t)status,
                           .byte_received = true,
                           .age_ns = CLOCK_NS_PER_MS};
    shim_settle(call, &end);
}

static void end_kind(struct shim_call *call, enum call_end_kind kind, enum call_phase phase,
                     double age)
{
    struct call_end end = {.kind = kind, .phase = phase, .age_ns = (uint64_t)(age * 1e9)};
    shim_settle(call, &end);
}

/* One whole call; returns the verdict. */
static enum shim_verdict call_status(const char *model, unsigned status)
{
    static struct shim_call call;
    enum shim_verdict verdict = chat(&call, model);

    if (verdict == SHIM_ADMITTED)
        end_status(&call, status);
    return verdict;
}

static void trip(const char *model)
{
    for (int i = 0; i < 5; i++)
        CHECK(call_status(model, 500) == SHIM_ADMITTED);
    CHECK(call_status(model, 500) == SHIM_REFUSED);
}

static void body_five_failures_open_one_model_only(void)
{
    trip("m");
    CHECK(call_status("other", 200) == SHIM_ADMITTED);
    advance(29);
    CHECK(call_status("m", 200) == SHIM_REFUSED);
    advance(2);
    CHECK(call_status("m", 200) == SHIM_ADMITTED);
    for (int i = 0; i < 4; i++)
        CHECK(call_status("m", 503) == SHIM_ADMITTED);
    CHECK(call_status("m", 200) == SHIM_ADMITTED); /* ends the streak */
    trip("m");
}

static void body_refused_port_stops_every_model(void)
{
    static struct shim_call call;

    for (int i = 0; i < 5; i++) {
        CHECK(chat(&call, i % 2 ? "a" : "b") == SHIM_ADMITTED);
        end_kind(&call, END_CONNECT, PHASE_CONNECTING, 0.001);
    }
    CHECK(chat(&call, "c") == SHIM_REFUSED);
    CHECK(open_path(&call, "/v1/files") == SHIM_READY);
    CHECK(shim_admit(&call) == SHIM_REFUSED);
    char text[SHIM_RESPONSE_MAX + 1];
    size_t len = shim_response(&call, text, SHIM_RESPONSE_MAX, false);
    text[len] = '\0';
    CHECK(strstr(text, "HTTP/1.1 503 ") == text);
    CHECK(strcasestr(text, "X-Breaker-Key: api.openai.com\r\n"));
    CHECK(strcasestr(text, "Retry-After: 3")); /* 30 or 31 s */
}

static void body_old_success_leaves_the_streak(void)
{
    static struct shim_call old;

    CHECK(chat(&old, "m") == SHIM_ADMITTED);
    advance(1);
    for (int i = 0; i < 4; i++)
        CHECK(call_status("m", 500) == SHIM_ADMITTED);
    end_status(&old, 200);
    CHECK(call_status("m", 500) == SHIM_ADMITTED);
    CHECK(call_status("m", 500) == SHIM_REFUSED);
}

static void body_slow_probe_closes_after_its_lease(void)
{
    static struct shim_call slow, second;

    trip("m");
    advance(31);
    CHECK(chat(&slow, "m") == SHIM_ADMITTED);
    CHECK(chat(&second, "m") == SHIM_REFUSED);
    advance(31); /* the lease is over, another probe goes out and hangs as well */
    CHECK(chat(&second, "m") == SHIM_ADMITTED);
    end_status(&slow, 200);
    CHECK(call_status("m", 200) == SHIM_ADMITTED);
    end_status(&second, 500); /* of an older generation: statistics only */
    CHECK(call_status("m", 200) == SHIM_ADMITTED);
}

static void body_neutral_probe_returns_its_grant(void)
{
    static struct shim_call probe;

    trip("m");
    advance(31);
    CHECK(chat(&probe, "m") == SHIM_ADMITTED);
    end_status(&probe, 400);
    CHECK(chat(&probe, "m") == SHIM_ADMITTED);
    shim_drop(&probe);
    CHECK(chat(&probe, "m") == SHIM_ADMITTED);
    end_status(&probe, 500);
    CHECK(call_status("m", 200) == SHIM_REFUSED);
}

/* M refuses after H granted its probe: H's grant goes back. */
static void body_lost_model_returns_the_hosts_grant(void)
{
    static struct shim_call call;

    trip("m");
    for (int i = 0; i < 5; i++) {
        CHECK(chat(&call, "n") == SHIM_ADMITTED);
        end_kind(&call, END_CONNECT, PHASE_CONNECTING, 0.001);
    }
    advance(31); /* both are due; M is tripped again by a late model decision below */
    CHECK(open_path(&call, "/v1/chat/completions") == SHIM_NEEDS_BODY);
    CHECK(shim_admit(&call) == SHIM_ADMITTED); /* H's probe; the model is pending */
    CHECK(shim_model_pending(&call));
    static struct shim_call other;
    CHECK(chat(&other, "n") == SHIM_REFUSED); /* the host's only grant is taken */
    shim_drop(&call);
    CHECK(chat(&other, "n") == SHIM_ADMITTED);
    end_status(&other, 200);
}

static void body_pending_model_is_refused_late(void)
{
    static struct shim_call call;

    trip("m");
    CHECK(open_path(&call, "/v1/chat/completions") == SHIM_NEEDS_BODY);
    CHECK(shim_admit(&call) == SHIM_ADMITTED);
    CHECK(!shim_body(&call, SPAN_LIT("{\"mod"), false));
    CHECK(shim_body(&call, SPAN_LIT("el\":\"m\""), false));
    CHECK(shim_admit_model(&call) == SHIM_REFUSED);
    CHECK(!shim_admitted(&call));
}

static void body_no_model_is_the_dash(void)
{
    static struct shim_call call;
    char text[SHIM_RESPONSE_MAX + 1];

    for (int i = 0; i < 5; i++) {
        CHECK(open_path(&call, "/v1/chat/completions") == SHIM_NEEDS_BODY);
        CHECK(shim_body(&call, SPAN_LIT("not json"), true));
        CHECK(shim_admit(&call) == SHIM_ADMITTED);
        end_status(&call, 500);
    }
    CHECK(open_path(&call, "/v1/chat/completions") == SHIM_NEEDS_BODY);
    CHECK(shim_body(&call, SPAN_NONE, true));
    CHECK(shim_admit(&call) == SHIM_REFUSED);
    text[shim_response(&call, text, SHIM_RESPONSE_MAX, false)] = '\0';
    CHECK(strcasestr(text, "X-Breaker-Key: api.openai.com/-\r\n"));
}

static void body_suspend_is_neutral(void)
{
    static struct shim_call call;

    for (int i = 0; i < 8; i++) {
        CHECK(chat(&call, "m") == SHIM_ADMITTED);
        advance(40);
        slept += UINT64_C(20) * CLOCK_NS_PER_S;
        end_kind(&call, END_TIMEOUT, PHASE_WAITING, 20);
    }
    for (int i = 0; i < 5; i++) {
        CHECK(chat(&call, "m") == SHIM_ADMITTED);
        advance(20);
        end_kind(&call, END_TIMEOUT, PHASE_WAITING, 20);
    }
    CHECK(chat(&call, "m") == SHIM_REFUSED);
}

static void body_fork_settles_in_the_parent_only(void)
{
    static struct shim_call call;
    int status = -1;

    for (int i = 0; i < 4; i++)
        CHECK(call_status("m", 500) == SHIM_ADMITTED);
    CHECK(chat(&call, "m") == SHIM_ADMITTED);
    pid_t pid = fork();
    if (pid == 0) {
        end_status(&call, 500);
        _exit(call_status("m", 400) == SHIM_ADMITTED ? 0 : 1);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    end_status(&call, 500);
    CHECK(call_status("m", 500) == SHIM_REFUSED);
}

static void body_pass_lets_through_uncounted(void)
{
    for (int i = 0; i < 8; i++)
        CHECK(call_status("m", 500) == SHIM_ADMITTED);
    struct table table;
    CHECK(table_attach(&table, getenv("BREAKER_TABLE"), true) == TABLE_OK);
    struct slot *slot = table_lookup_text(&table, SPAN_LIT("api.openai.com/m"));
    CHECK(slot && slot_totals(slot).failure == 8);
    CHECK(breaker_decode(slot_word(slot)).phase == BREAKER_OPEN);
    CHECK(call_status("m", 200) == SHIM_ADMITTED);
    CHECK(breaker_decode(slot_word(slot)).phase == BREAKER_OPEN);
}

static void body_replaced_table_is_found(void)
{
    trip("m");
    advance(2);
    CHECK(table_replace(getenv("BREAKER_TABLE"), true) == TABLE_OK);
    CHECK(call_status("m", 200) == SHIM_ADMITTED);
}

static void body_other_traffic_is_uncovered(void)
{
    static struct shim_call call;
    struct shim_request request = {
        .method = SPAN_LIT("POST"),
        .scheme = SPAN_LIT("https"),
        .host = SPAN_LIT("example.org"),
        .port = 443,
        .path = SPAN_LIT("/api/orders"),
    };

    CHECK(shim_open(&call, &request) == SHIM_UNCOVERED);
    CHECK(shim_admit(&call) == SHIM_ADMITTED);
    end_status(&call, 500);
    CHECK(access(getenv("BREAKER_TABLE"), F_OK) != 0); /* no call was covered: no table was made */
    request.path = SPAN_LIT("/v1/chat/completions");
    CHECK(shim_open(&call, &request) == SHIM_NEEDS_BODY);
    request.method = SPAN_LIT("GET");
    CHECK(shim_open(&call, &request) == SHIM_UNCOVERED);
    request.scheme = SPAN_LIT("ftp");
    CHECK(shim_open(&call, &request) == SHIM_UNCOVERED);
}

/* Whoever chose the URL chose the lengths of its parts: no sum of them may leave what we keep them
 * in. */
static void body_every_length_of_each_part(void)
{
    enum { LONGEST = 600 };
    static struct shim_call call;
    static char text[3][LONGEST + 4000];

    memset(text, 'a', sizeof text);
    text[2][0] = '/';
    for (size_t len = 1; len < LONGEST; len++)
        for (unsigned which = 0; which < 3; which++)
            for (unsigned again = 0; again < 2; again++) {
                struct shim_request request = {
                    .method = span_of(text[0], which == 0 ? len : 4),
                    .scheme = SPAN_LIT("http"),
                    .host = span_of(text[1], which == 1 ? len : 9),
                    .port = 80,
                    .path = span_of(text[2], which == 2 ? len : 4000),
                };
                CHECK(shim_open(&call, &request) == SHIM_UNCOVERED);
                CHECK(shim_admit(&call) == SHIM_ADMITTED);
            }
}

static void body_the_same_request_is_opened_again(void)
{
    static struct shim_call call;
    const struct shim_request other = {.method = SPAN_LIT("POST"),
                                       .scheme = SPAN_LIT("http"),
                                       .host = SPAN_LIT("example.org"),
                                       .port = 80,
                                       .path = SPAN_LIT("/")};
    enum shim_need need = SHIM_READY;

    CHECK(!shim_open_again(&call, &need));
    CHECK(open_path(&call, "/v1/chat/completions") == SHIM_NEEDS_BODY);
    CHECK(shim_open_again(&call, &need) && need == SHIM_NEEDS_BODY);
    CHECK(shim_body(&call, SPAN_LIT("{\"model\":\"m\"}"), true));
    CHECK(shim_admit(&call) == SHIM_ADMITTED);
    end_status(&call, 200);
    CHECK(shim_open(&call, &other) == SHIM_UNCOVERED);
    CHECK(shim_open_again(&call, &need) && need == SHIM_UNCOVERED);
    CHECK(open_path(&call, "/openai/deployments/d1/chat/completions") != SHIM_UNCOVERED);
    CHECK(shim_open_again(&call, &need) && need != SHIM_UNCOVERED);
}

/* The log's n-th line (from 0) into `line`; false: there are fewer. */
static bool read_log(unsigned n, char *line, int size)
{
    FILE *file = fopen(getenv("BREAKER_LOG"), "r");
    bool found = file != NULL;

    for (unsigned i = 0; found && i <= n; i++)
        found = fgets(line, size, file) != NULL;
    if (file)
        fclose(file);
    return found;
}

static void log_beside_the_table(void)
{
    static char path[128];

    snprintf(path, sizeof path, "%.*s/log", (int)strlen(getenv("BREAKER_TABLE")) - 6,
             getenv("BREAKER_TABLE"));
    setenv("BREAKER_LOG", path, 1);
}

static void body_the_log_tells_of_states_as_shown(void)
{
    char line[2048];

    log_beside_the_table();
    trip("m");
    CHECK(read_log(0, line, sizeof line));
    CHECK(strstr(line, "\"from\":\"closed\",\"to\":\"degraded\""));
    CHECK(read_log(1, line, sizeof line));
    CHECK(strstr(line, "\"from\":\"degraded\",\"to\":\"open\",\"cause\":\"status 500\""));
    unlink(getenv("BREAKER_LOG"));
}

static void body_a_trip_from_closed_is_told_so(void)
{
    char line[2048];

    log_beside_the_table();
    trip("m");
    CHECK(read_log(0, line, sizeof line));
    CHECK(strstr(line, "\"from\":\"closed\",\"to\":\"open\""));
    unlink(getenv("BREAKER_LOG"));
}

/* The first refusal, then one line in ten seconds, each with the total so far. */
static void body_refusals_are_told_by_their_total(void)
{
    char line[2048];

    log_beside_the_table();
    trip("m");
    for (int i = 0; i < 7; i++)
        CHECK(call_status("m", 200) == SHIM_REFUSED);
    CHECK(read_log(2, line, sizeof line) && strstr(line, "\"refused_total\":1,"));
    CHECK(!read_log(3, line, sizeof line));
    advance(10);
    CHECK(call_status("m", 200) == SHIM_REFUSED);
    CHECK(read_log(3, line, sizeof line) && strstr(line, "\"refused_total\":9,"));
    unlink(getenv("BREAKER_LOG"));
}

static void body_forced_open_promises_no_time(void)
{
    static struct shim_call call;
    struct table table;
    char text[SHIM_RESPONSE_MAX + 1];

    CHECK(call_status("m", 200) == SHIM_ADMITTED);
    CHECK(table_attach(&table, getenv("BREAKER_TABLE"), true) == TABLE_OK);
    struct slot *slot = table_lookup_text(&table, SPAN_LIT("api.openai.com/m"));
    CHECK(slot);
    atomic_store(&slot->word, breaker_force_open(slot_word(slot)));
    CHECK(chat(&call, "m") == SHIM_REFUSED);
    text[shim_response(&call, text, SHIM_RESPONSE_MAX, false)] = '\0';
    CHECK(strstr(text, "held open by hand") && !strstr(text, "Retry in"));
    CHECK(strcasestr(text, "\nRetry-After: "));
}

#define IN_CHILD(name, settings)                                                                   \
    static void test_##name(void **state)                                                          \
    {                                                                                              \
        (void)state;                                                                               \
        in_child(body_##name, settings);                                                           \
    }

IN_CHILD(five_failures_open_one_model_only, "")
IN_CHILD(refused_port_stops_every_model, "")
IN_CHILD(old_success_leaves_the_streak, "")
IN_CHILD(slow_probe_closes_after_its_lease, "")
IN_CHILD(neutral_probe_returns_its_grant, "")
IN_CHILD(lost_model_returns_the_hosts_grant, "")
IN_CHILD(pending_model_is_refused_late, "")
IN_CHILD(no_model_is_the_dash, "")
IN_CHILD(suspend_is_neutral, "")
IN_CHILD(fork_settles_in_the_parent_only, "")
IN_CHILD(pass_lets_through_uncounted, "when_exhausted=pass")
IN_CHILD(replaced_table_is_found, "")
IN_CHILD(other_traffic_is_uncovered, "")
IN_CHILD(every_length_of_each_part, "")
IN_CHILD(the_same_request_is_opened_again, "")
IN_CHILD(the_log_tells_of_states_as_shown, "")
IN_CHILD(a_trip_from_closed_is_told_so, "degrade_threshold=5")
IN_CHILD(refusals_are_told_by_their_total, "")
IN_CHILD(forced_open_promises_no_time, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_five_failures_open_one_model_only),
        cmocka_unit_test(test_refused_port_stops_every_model),
        cmocka_unit_test(test_old_success_leaves_the_streak),
        cmocka_unit_test(test_slow_probe_closes_after_its_lease),
        cmocka_unit_test(test_neutral_probe_returns_its_grant),
        cmocka_unit_test(test_lost_model_returns_the_hosts_grant),
        cmocka_unit_test(test_pending_model_is_refused_late),
        cmocka_unit_test(test_no_model_is_the_dash),
        cmocka_unit_test(test_suspend_is_neutral),
        cmocka_unit_test(test_fork_settles_in_the_parent_only),
        cmocka_unit_test(test_pass_lets_through_uncounted),
        cmocka_unit_test(test_replaced_table_is_found),
        cmocka_unit_test(test_other_traffic_is_uncovered),
        cmocka_unit_test(test_every_length_of_each_part),
        cmocka_unit_test(test_the_same_request_is_opened_again),
        cmocka_unit_test(test_the_log_tells_of_states_as_shown),
        cmocka_unit_test(test_a_trip_from_closed_is_told_so),
        cmocka_unit_test(test_refusals_are_told_by_their_total),
        cmocka_unit_test(test_forced_open_promises_no_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
