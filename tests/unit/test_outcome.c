/* Every rule of DESIGN, Outcomes, that the end of a call can show; slow ones are in
 * test_outcome_slow.c. */
#include "outcome_fixture.h"

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
        cmocka_unit_test(test_bodies_that_have_no_say),
        cmocka_unit_test(test_local_trouble),
        cmocka_unit_test(test_redirected_away),
        cmocka_unit_test(test_total),
        cmocka_unit_test(test_cause_names),
    };

    return cmocka_run_group_tests(tests, fill_policy, NULL);
}
