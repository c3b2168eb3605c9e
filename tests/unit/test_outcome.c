/* Every rule of DESIGN, Outcomes, that the end of a call can show. */
#include "http/outcome.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define SECONDS(n) ((uint64_t)(n)*UINT64_C(1000000000))

static struct outcome_policy policy = {
    .timeout_after_ns = SECONDS(5),
    .hang_after_ns = SECONDS(30),
    .connect_hang_after_ns = SECONDS(3),
};

static int fill_policy(void **state)
{
    static const unsigned single[] = {408, 424, 498, 500, 502, 503, 504};

    (void)state;
    for (size_t i = 0; i < sizeof single / sizeof *single; i++)
        status_set_add(&policy.failure_status, single[i]);
    for (unsigned status = 520; status <= 530; status++)
        status_set_add(&policy.failure_status, status);
    return 0;
}

#define assert_outcome(end, host, model, cause)                                                    \
    expect_outcome((end), BREAKER_##host, BREAKER_##model, CAUSE_##cause, __LINE__)

static void expect_outcome(struct call_end end, enum breaker_outcome host,
                           enum breaker_outcome model, enum outcome_cause cause, int line)
{
    struct outcome got = outcome_of(&end, &policy);

    if (got.host != host || got.model != model || got.cause != cause)
        fail_msg("line %d: host %d, model %d, cause %s", line, got.host, got.model,
                 outcome_cause_name(got.cause));
}

static struct call_end complete(unsigned status)
{
    return (struct call_end){.kind = END_COMPLETE,
                             .phase = PHASE_BODY,
                             .status = (uint16_t)status,
                             .byte_received = true,
                             .age_ns = SECONDS(1)};
}

/* An end of `kind` after `age`; bytes were received from the body on. */
static struct call_end ended(enum call_end_kind kind, enum call_phase phase, unsigned status,
                             uint64_t age)
{
    return (struct call_end){.kind = kind,
                             .phase = phase,
                             .status = (uint16_t)status,
                             .byte_received = phase == PHASE_BODY,
                             .age_ns = age};
}

static void test_statuses(void **state)
{
    static const unsigned failures[] = {408, 424, 498, 500, 502, 503, 504, 520, 525, 530};
    static const unsigned neutrals[] = {400, 401, 402, 403, 404, 407, 409, 413, 422,  429,
                                        499, 501, 505, 507, 519, 531, 599, 600, 1023, 65535};
    static const unsigned successes[] = {101, 200, 201, 202, 204, 206,
                                         299, 300, 301, 302, 304, 308};

    (void)state;
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++)
        assert_outcome(complete(failures[i]), SUCCESS, FAILURE, STATUS);
    for (size_t i = 0; i < sizeof neutrals / sizeof *neutrals; i++)
        assert_outcome(complete(neutrals[i]), SUCCESS, NEUTRAL, NONE);
    for (size_t i = 0; i < sizeof successes / sizeof *successes; i++)
        assert_outcome(complete(successes[i]), SUCCESS, SUCCESS, NONE);
}

static void test_the_list_of_statuses_is_the_policy(void **state)
{
    struct outcome_policy own = {0};
    struct call_end end = complete(500);

    (void)state;
    assert_int_equal(outcome_of(&end, &own).model, BREAKER_NEUTRAL);
    status_set_add(&own.failure_status, 200);
    end = complete(200);
    assert_int_equal(outcome_of(&end, &own).model, BREAKER_FAILURE);
    static const unsigned outside[] = {0, 99, 612, 1024, UINT32_MAX}; /* no harm */
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        status_set_add(&own.failure_status, outside[i]);
        assert_false(status_set_has(&own.failure_status, outside[i]));
    }
    assert_int_equal(own.timeout_after_ns, 0);
    assert_true(status_set_has(&own.failure_status, 200));
}

/* A status that is neutral by the settings says so whatever else is set, and however the body ends;
 * what the host is told by it stays. */
static void test_neutral_statuses_win(void **state)
{
    struct outcome_policy before = policy;

    (void)state;
    status_set_add(&policy.neutral_status, 500);
    status_set_add(&policy.neutral_status, 201);
    status_set_add(&policy.neutral_status, 101);
    assert_outcome(complete(500), SUCCESS, NEUTRAL, NONE);
    assert_outcome(complete(201), SUCCESS, NEUTRAL, NONE);
    assert_outcome(complete(101), SUCCESS, NEUTRAL, NONE);
    assert_outcome(complete(502), SUCCESS, FAILURE, STATUS);
    assert_outcome(complete(200), SUCCESS, SUCCESS, NONE);
    assert_outcome(ended(END_BROKEN, PHASE_BODY, 500, 1), SUCCESS, NEUTRAL, NONE);
    assert_outcome(ended(END_TIMEOUT, PHASE_BODY, 500, SECONDS(100)), SUCCESS, NEUTRAL, NONE);
    assert_outcome(ended(END_ABORTED, PHASE_BODY, 500, SECONDS(100)), SUCCESS, NEUTRAL, NONE);
    policy = before;
    assert_outcome(ended(END_BROKEN, PHASE_BODY, 500, 1), SUCCESS, FAILURE, STATUS);
}

/* neutral_body takes back what the status alone said, and nothing else. */
static void test_an_excused_answer(void **state)
{
    struct call_end end = ended(END_BROKEN, PHASE_BODY, 500, 1);
    struct outcome outcome = outcome_of(&end, &policy);

    (void)state;
    outcome_excuse(&outcome);
    assert_int_equal(outcome.host, BREAKER_SUCCESS);
    assert_int_equal(outcome.model, BREAKER_NEUTRAL);
    assert_int_equal(outcome.cause, CAUSE_NONE);
    end = ended(END_BROKEN, PHASE_BODY, 200, 1);
    outcome = outcome_of(&end, &policy);
    outcome_excuse(&outcome);
    assert_int_equal(outcome.model, BREAKER_FAILURE);
    end = ended(END_CONNECT, PHASE_CONNECTING, 0, 1);
    outcome = outcome_of(&end, &policy);
    outcome_excuse(&outcome);
    assert_int_equal(outcome.host, BREAKER_FAILURE);
}

static void test_no_connection(void **state)
{
    (void)state;
    assert_outcome(ended(END_CONNECT, PHASE_CONNECTING, 0, 1), FAILURE, NEUTRAL, CONNECT);
    assert_outcome(ended(END_HANDSHAKE, PHASE_HANDSHAKE, 0, 1), FAILURE, NEUTRAL, HANDSHAKE);
}

static void test_broken(void **state)
{
    (void)state;
    assert_outcome(ended(END_BROKEN, PHASE_WAITING, 0, 1), NEUTRAL, FAILURE, BROKEN);
    struct call_end half_a_head = ended(END_BROKEN, PHASE_WAITING, 0, 1);
    half_a_head.byte_received = true;
    assert_outcome(half_a_head, SUCCESS, FAILURE, BROKEN);
    assert_outcome(ended(END_BROKEN, PHASE_BODY, 200, 1), SUCCESS, FAILURE, BROKEN);
    assert_outcome(ended(END_BROKEN, PHASE_BODY, 500, 1), SUCCESS, FAILURE, STATUS);
    assert_outcome(ended(END_BROKEN, PHASE_BODY, 404, 1), SUCCESS, NEUTRAL, NONE);
    assert_outcome(ended(END_BROKEN, PHASE_BODY, 429, 1), SUCCESS, NEUTRAL, NONE);
    assert_outcome(ended(END_BROKEN, PHASE_BODY, 101, 1), SUCCESS, SUCCESS, NONE);
}

static void test_timeout(void **state)
{
    (void)state;
    for (enum call_phase phase = PHASE_CONNECTING; phase <= PHASE_HANDSHAKE; phase++) {
        assert_outcome(ended(END_TIMEOUT, phase, 0, SECONDS(3)), NEUTRAL, NEUTRAL, NONE);
        assert_outcome(ended(END_TIMEOUT, phase, 0, SECONDS(3) + 1), FAILURE, NEUTRAL,
                       CONNECT_HANG);
    }
    assert_outcome(ended(END_TIMEOUT, PHASE_WAITING, 0, SECONDS(5)), NEUTRAL, NEUTRAL, NONE);
    assert_outcome(ended(END_TIMEOUT, PHASE_WAITING, 0, SECONDS(5) + 1), NEUTRAL, FAILURE, TIMEOUT);
    assert_outcome(ended(END_TIMEOUT, PHASE_BODY, 200, SECONDS(5)), SUCCESS, NEUTRAL, NONE);
    assert_outcome(ended(END_TIMEOUT, PHASE_BODY, 200, SECONDS(6)), SUCCESS, FAILURE, TIMEOUT);
    assert_outcome(ended(END_TIMEOUT, PHASE_BODY, 503, 1), SUCCESS, FAILURE, STATUS);
    assert_outcome(ended(END_TIMEOUT, PHASE_BODY, 404, SECONDS(60)), SUCCESS, NEUTRAL, NONE);
    assert_outcome(ended(END_TIMEOUT, PHASE_BODY, 101, SECONDS(60)), SUCCESS, SUCCESS, NONE);
}

static void test_aborted(void **state)
{
    (void)state;
    for (enum call_phase phase = PHASE_CONNECTING; phase <= PHASE_HANDSHAKE; phase++) {
        assert_outcome(ended(END_ABORTED, phase, 0, SECONDS(3)), NEUTRAL, NEUTRAL, NONE);
        assert_outcome(ended(END_ABORTED, phase, 0, SECONDS(4)), FAILURE, NEUTRAL, CONNECT_HANG);
    }
    assert_outcome(ended(END_ABORTED, PHASE_WAITING, 0, SECONDS(30)), NEUTRAL, NEUTRAL, NONE);
    assert_outcome(ended(END_ABORTED, PHASE_WAITING, 0, SECONDS(31)), NEUTRAL, FAILURE, HANG);
    assert_outcome(ended(END_ABORTED, PHASE_BODY, 200, SECONDS(600)), SUCCESS, NEUTRAL, NONE);
    assert_outcome(ended(END_ABORTED, PHASE_BODY, 404, 1), SUCCESS, NEUTRAL, NONE);
    assert_outcome(ended(END_ABORTED, PHASE_BODY, 500, 1), SUCCESS, FAILURE, STATUS);
}

static void test_paused_is_neither_stall_nor_hang(void **state)
{
    struct call_end timeout = ended(END_TIMEOUT, PHASE_BODY, 200, SECONDS(60));
    struct call_end hang = ended(END_ABORTED, PHASE_WAITING, 0, SECONDS(60));

    (void)state;
    timeout.paused = hang.paused = true;
    assert_outcome(timeout, SUCCESS, NEUTRAL, NONE);
    assert_outcome(hang, NEUTRAL, NEUTRAL, NONE);
    timeout.phase = PHASE_WAITING;
    timeout.status = 0;
    assert_outcome(timeout, SUCCESS, NEUTRAL, NONE);
}

/* --- slow ones, where the settings ask for it ------------------------------------------------ */

static void expect_slow(struct call_end end, enum breaker_outcome model, enum outcome_cause cause,
                        int line)
{
    struct outcome_policy before = policy;

    policy.slow_first_byte_ns = SECONDS(2);
    policy.stall_after_ns = SECONDS(4);
    expect_outcome(end, end.byte_received ? BREAKER_SUCCESS : BREAKER_NEUTRAL, model, cause, line);
    policy = before;
}

#define assert_slow(end, model, cause) expect_slow((end), BREAKER_##model, CAUSE_##cause, __LINE__)

static struct call_end begun(struct call_end end, uint64_t first_byte_ns)
{
    end.first_byte_ns = first_byte_ns;
    return end;
}

static struct call_end silent(struct call_end end, uint64_t silent_ns)
{
    end.silent_ns = silent_ns;
    return end;
}

static void test_a_late_first_byte(void **state)
{
    static const unsigned good[] = {101, 200, 206, 302};
    static const unsigned neutral[] = {400, 404, 429, 501};

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_slow(complete(good[i]), SUCCESS, NONE);
        assert_slow(begun(complete(good[i]), SECONDS(2)), SUCCESS, NONE);
        assert_slow(begun(complete(good[i]), SECONDS(2) + 1), FAILURE, SLOW_FIRST_BYTE);
        assert_outcome(begun(complete(good[i]), SECONDS(60)), SUCCESS, SUCCESS, NONE);
    }
    for (size_t i = 0; i < sizeof neutral / sizeof *neutral; i++) {
        assert_slow(begun(complete(neutral[i]), SECONDS(3)), NEUTRAL, NONE);
        assert_slow(begun(ended(END_ABORTED, PHASE_BODY, neutral[i], 1), SECONDS(3)), NEUTRAL,
                    NONE);
    }
    assert_slow(begun(complete(500), SECONDS(3)), FAILURE, STATUS);
    assert_slow(begun(ended(END_BROKEN, PHASE_BODY, 200, 1), SECONDS(3)), FAILURE, BROKEN);
    assert_slow(begun(ended(END_LOCAL, PHASE_BODY, 200, 1), SECONDS(3)), NEUTRAL, NONE);
    struct call_end away = begun(complete(200), SECONDS(3));
    away.redirected_away = true;
    assert_slow(away, NEUTRAL, NONE);
}

/* Whatever timeout_after and hang_after say. */
static void test_a_first_byte_that_was_not_waited_for(void **state)
{
    struct call_end paused = begun(ended(END_TIMEOUT, PHASE_WAITING, 0, SECONDS(3)), SECONDS(3));

    (void)state;
    for (enum call_end_kind kind = END_TIMEOUT; kind <= END_ABORTED; kind++) {
        assert_slow(begun(ended(kind, PHASE_WAITING, 0, SECONDS(3)), SECONDS(2)), NEUTRAL, NONE);
        assert_slow(begun(ended(kind, PHASE_WAITING, 0, SECONDS(3)), SECONDS(3)), FAILURE,
                    SLOW_FIRST_BYTE);
        assert_slow(begun(ended(kind, PHASE_BODY, 200, SECONDS(3)), SECONDS(3)), FAILURE,
                    SLOW_FIRST_BYTE);
        assert_slow(begun(ended(kind, PHASE_CONNECTING, 0, SECONDS(3)), SECONDS(3)), NEUTRAL, NONE);
    }
    assert_slow(begun(ended(END_TIMEOUT, PHASE_WAITING, 0, SECONDS(6)), SECONDS(1)), FAILURE,
                TIMEOUT);
    paused.paused = true;
    assert_slow(paused, NEUTRAL, NONE);
}

static void test_a_stall(void **state)
{
    (void)state;
    for (enum call_end_kind kind = END_TIMEOUT; kind <= END_ABORTED; kind++) {
        const struct call_end given_up = ended(kind, PHASE_BODY, 200, SECONDS(5));
        struct call_end paused = silent(given_up, SECONDS(5));

        assert_slow(silent(given_up, SECONDS(4)), NEUTRAL, NONE);
        assert_slow(silent(given_up, SECONDS(4) + 1), FAILURE, STALL);
        assert_outcome(silent(given_up, SECONDS(5)), SUCCESS, NEUTRAL, NONE);
        paused.paused = true;
        assert_slow(paused, NEUTRAL, NONE);
        assert_slow(silent(ended(kind, PHASE_BODY, 404, 1), SECONDS(5)), NEUTRAL, NONE);
        assert_slow(silent(ended(kind, PHASE_BODY, 500, 1), SECONDS(5)), FAILURE, STATUS);
        assert_slow(silent(ended(kind, PHASE_WAITING, 0, 1), SECONDS(5)), NEUTRAL, NONE);
    }
    assert_slow(silent(ended(END_TIMEOUT, PHASE_BODY, 200, SECONDS(60)), SECONDS(5)), FAILURE,
                STALL);
    assert_slow(silent(ended(END_TIMEOUT, PHASE_BODY, 200, SECONDS(60)), SECONDS(1)), FAILURE,
                TIMEOUT);
    assert_slow(silent(complete(200), SECONDS(5)), SUCCESS, NONE);
}

/* What the body says comes first, but for an end that only came too late. */
static void test_slow_bodies(void **state)
{
    static const struct {
        enum stream_state said;
        enum breaker_outcome model, stalled;
        enum outcome_cause cause, stall;
    } cases[] = {
        {STREAM_OVER, BREAKER_FAILURE, BREAKER_SUCCESS, CAUSE_SLOW_FIRST_BYTE, CAUSE_NONE},
        {STREAM_RUNNING, BREAKER_FAILURE, BREAKER_FAILURE, CAUSE_SLOW_FIRST_BYTE, CAUSE_STALL},
        {STREAM_BLIND, BREAKER_FAILURE, BREAKER_FAILURE, CAUSE_SLOW_FIRST_BYTE, CAUSE_STALL},
        {STREAM_FAILURE, BREAKER_FAILURE, BREAKER_FAILURE, CAUSE_STREAM, CAUSE_STREAM},
        {STREAM_CALLER, BREAKER_NEUTRAL, BREAKER_NEUTRAL, CAUSE_NONE, CAUSE_NONE},
    };
    const struct call_end given_up = ended(END_ABORTED, PHASE_BODY, 200, SECONDS(9));
    struct outcome_policy before = policy;

    (void)state;
    policy.slow_first_byte_ns = SECONDS(2);
    policy.stall_after_ns = SECONDS(4);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct call_end end = begun(given_up, SECONDS(3));
        struct outcome got = outcome_of(&end, &policy);
        outcome_heed_body(&got, &end, cases[i].said, &policy);
        assert_int_equal(got.model, cases[i].model);
        assert_int_equal(got.cause, cases[i].cause);
        end = silent(given_up, SECONDS(5));
        got = outcome_of(&end, &policy);
        outcome_heed_body(&got, &end, cases[i].said, &policy);
        assert_int_equal(got.model, cases[i].stalled);
        assert_int_equal(got.cause, cases[i].stall);
        assert_int_equal(got.host, BREAKER_SUCCESS);
    }
    policy = before;
}

/* Of another host, or under a status that says enough. */
static void test_bodies_that_have_no_say(void **state)
{
    static const enum stream_state said[] = {STREAM_OVER, STREAM_FAILURE, STREAM_CALLER,
                                             STREAM_RATE};
    static const uint16_t statuses[] = {200, 404, 500};

    (void)state;
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        for (size_t j = 0; j < sizeof statuses / sizeof *statuses; j++) {
            struct call_end end = ended(END_BROKEN, PHASE_BODY, statuses[j], 1);
            end.redirected_away = statuses[j] == 200;
            struct outcome told = outcome_of(&end, &policy), got = told;
            outcome_heed_body(&got, &end, said[i], &policy);
            assert_int_equal(got.model, told.model);
            assert_int_equal(got.host, told.host);
            assert_int_equal(got.cause, told.cause);
        }
}

static void test_local_trouble(void **state)
{
    (void)state;
    for (enum call_phase phase = PHASE_CONNECTING; phase <= PHASE_WAITING; phase++) {
        assert_outcome(ended(END_LOCAL, phase, 0, SECONDS(600)), NEUTRAL, NEUTRAL, NONE);
        assert_outcome(ended(END_UNSENT, phase, 0, SECONDS(600)), NEUTRAL, NEUTRAL, NONE);
    }
    assert_outcome(ended(END_LOCAL, PHASE_BODY, 500, 1), SUCCESS, NEUTRAL, NONE);
    assert_outcome(ended(END_LOCAL, PHASE_BODY, 200, 1), SUCCESS, NEUTRAL, NONE);
}

static void test_redirected_away(void **state)
{
    struct call_end end = complete(500);

    (void)state;
    end.redirected_away = true;
    assert_outcome(end, SUCCESS, NEUTRAL, NONE);
    end.status = 200;
    assert_outcome(end, SUCCESS, NEUTRAL, NONE);
    end.kind = END_CONNECT; /* of the other host */
    assert_outcome(end, SUCCESS, NEUTRAL, NONE);
}

/* No combination is undefined, and what counts for the host is neutral for the model. */
static void test_total(void **state)
{
    static const uint16_t statuses[] = {0, 100, 101, 200, 302, 404, 429, 500, 65535};

    (void)state;
    struct outcome_policy before = policy;
    policy.slow_first_byte_ns = policy.stall_after_ns = 1;
    for (unsigned bits = 0; bits < 8 * 4 * 8 * 9 * 2 * 2; bits++) {
        unsigned rest = bits / 8;
        struct call_end end = {
            .kind = bits % 8,
            .phase = rest % 4,
            .byte_received = rest / 4 & 1,
            .paused = rest / 8 & 1,
            .redirected_away = rest / 16 & 1,
            .status = statuses[rest / 32 % 9],
            .age_ns = rest / 288 & 1 ? UINT64_MAX : 0,
            .first_byte_ns = rest / 576 ? UINT64_MAX : 0,
            .silent_ns = rest / 576 ? UINT64_MAX : 0,
        };
        struct outcome got = outcome_of(&end, &policy);
        bool failed = got.host == BREAKER_FAILURE || got.model == BREAKER_FAILURE;
        assert_true(got.host != BREAKER_FAILURE || got.model == BREAKER_NEUTRAL);
        assert_true(failed == (got.cause != CAUSE_NONE));
        if (got.host != BREAKER_FAILURE)
            assert_int_equal(got.host, end.byte_received ? BREAKER_SUCCESS : BREAKER_NEUTRAL);
    }
    policy = before;
}

static void test_cause_names(void **state)
{
    (void)state;
    assert_string_equal(outcome_cause_name(CAUSE_NONE), "none");
    assert_string_equal(outcome_cause_name(CAUSE_STATUS), "status");
    assert_string_equal(outcome_cause_name(CAUSE_CONNECT), "connect");
    assert_string_equal(outcome_cause_name(CAUSE_HANDSHAKE), "handshake");
    assert_string_equal(outcome_cause_name(CAUSE_BROKEN), "broken");
    assert_string_equal(outcome_cause_name(CAUSE_TIMEOUT), "timeout");
    assert_string_equal(outcome_cause_name(CAUSE_HANG), "hang");
    assert_string_equal(outcome_cause_name(CAUSE_CONNECT_HANG), "connect_hang");
    assert_string_equal(outcome_cause_name(CAUSE_MANUAL), "manual");
    assert_string_equal(outcome_cause_name(CAUSE_STREAM), "stream");
    assert_string_equal(outcome_cause_name(CAUSE_SLOW_FIRST_BYTE), "slow_first_byte");
    assert_string_equal(outcome_cause_name(CAUSE_STALL), "stall");
    assert_string_equal(outcome_cause_name((enum outcome_cause)12), "unknown");
    assert_string_equal(outcome_cause_name((enum outcome_cause)200), "unknown");
    assert_string_equal(outcome_cause_name((enum outcome_cause) - 1), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statuses),
        cmocka_unit_test(test_the_list_of_statuses_is_the_policy),
        cmocka_unit_test(test_neutral_statuses_win),
        cmocka_unit_test(test_an_excused_answer),
        cmocka_unit_test(test_no_connection),
        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_aborted),
        cmocka_unit_test(test_paused_is_neither_stall_nor_hang),
        cmocka_unit_test(test_a_late_first_byte),
        cmocka_unit_test(test_a_first_byte_that_was_not_waited_for),
        cmocka_unit_test(test_a_stall),
        cmocka_unit_test(test_slow_bodies),
        cmocka_unit_test(test_bodies_that_have_no_say),
        cmocka_unit_test(test_local_trouble),
        cmocka_unit_test(test_redirected_away),
        cmocka_unit_test(test_total),
        cmocka_unit_test(test_cause_names),
    };

    return cmocka_run_group_tests(tests, fill_policy, NULL);
}
