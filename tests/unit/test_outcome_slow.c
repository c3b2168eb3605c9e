/* Slow first bytes and stalls, where the settings ask for them, and the bodies of both. */
#include "outcome_fixture.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_late_first_byte),
        cmocka_unit_test(test_a_first_byte_that_was_not_waited_for),
        cmocka_unit_test(test_a_stall),
        cmocka_unit_test(test_slow_bodies),
    };

    return cmocka_run_group_tests(tests, fill_policy, NULL);
}
