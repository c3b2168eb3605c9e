/* Streams, operators, times and display; the rest of the rules is in test_breaker.c. */
#include "breaker_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static const struct breaker_extra HEAD_ONLY = {.provisional = true};

static uint64_t half_open(unsigned step, struct breaker_ticket *probe)
{
    struct breaker_view view = {.phase = BREAKER_OPEN,
                                .step = (uint8_t)step,
                                .generation = 2047,
                                .lease = 127,
                                .time = NOW};
    struct breaker_admission admission = breaker_admit(breaker_encode(&view), NOW, &POLICY);
    assert_int_equal(admission.verdict, BREAKER_GRANT);
    *probe = admission.ticket;
    return admission.next;
}

static void test_numbers_wrap(void **state)
{
    (void)state;
    struct breaker_ticket probe;
    uint64_t word = half_open(0, &probe);

    assert_int_equal(at(word).lease, 0);
    assert_int_equal(probe.lease, 0);
    struct breaker_result result =
        breaker_settle(word, &probe, BREAKER_FAILURE, NOW, &POLICY, NULL);
    assert_int_equal(result.change, BREAKER_REOPENED);
    assert_int_equal(at(result.next).generation, 0);
}

static void test_provisional_close_is_proved_by_a_clean_end(void **state)
{
    (void)state;
    struct breaker_ticket probe;
    uint64_t word = half_open(4, &probe);
    struct breaker_result closed =
        breaker_settle(word, &probe, BREAKER_SUCCESS, NOW + 50, &POLICY, &HEAD_ONLY);

    assert_int_equal(closed.change, BREAKER_CLOSED_AGAIN);
    assert_int_equal(at(closed.next).streak, 4);
    assert_int_equal(at(closed.next).step, 4);
    assert_int_equal(at(closed.next).time, NOW); /* when the probe was admitted */
    breaker_follow(&probe, closed.next);
    assert_true(probe.counted && !probe.probe);
    assert_int_equal(probe.generation, at(closed.next).generation);
    struct breaker_result clean =
        breaker_settle(closed.next, &probe, BREAKER_SUCCESS, NOW + 99, &POLICY, NULL);
    assert_int_equal(at(clean.next).streak + at(clean.next).step + at(clean.next).time, 0);
    struct breaker_result broken =
        breaker_settle(closed.next, &probe, BREAKER_FAILURE, NOW + 99, &POLICY, NULL);
    assert_int_equal(broken.change, BREAKER_TRIPPED);
    assert_int_equal(at(broken.next).step, 4);
    /* Without the provisional mark the same end closes for good. */
    closed = breaker_settle(word, &probe, BREAKER_NEUTRAL, NOW + 50, &POLICY, NULL);
    assert_true(closed.next == word); /* the ticket has moved on */
}

static void test_provisional_close_with_small_thresholds(void **state)
{
    (void)state;
    for (unsigned threshold = 0; threshold < 2; threshold++) {
        struct breaker_policy policy = POLICY;
        struct breaker_ticket probe;
        uint64_t word = half_open(1, &probe);
        policy.failure_threshold = (uint16_t)threshold;
        word = breaker_settle(word, &probe, BREAKER_SUCCESS, NOW, &policy, &HEAD_ONLY).next;
        assert_int_equal(at(word).phase, BREAKER_CLOSED);
        assert_int_equal(at(word).streak, threshold == 0 ? 1 : 0);
        assert_int_equal(at(word).step, 1);
        /* The probe's own failure opens again, where no other one does. */
        breaker_follow(&probe, word);
        assert_int_equal(breaker_settle(word, &probe, BREAKER_FAILURE, NOW, &policy, NULL).change,
                         BREAKER_TRIPPED);
        probe.on_trial = false;
        assert_int_equal(breaker_settle(word, &probe, BREAKER_FAILURE, NOW, &policy, NULL).change,
                         threshold == 0 ? BREAKER_NO_CHANGE : BREAKER_TRIPPED);
        probe.on_trial = true;
        /* One clean success clears the step, the next writes nothing. */
        struct breaker_ticket ticket = breaker_admit(word, NOW, &policy).ticket;
        word = breaker_settle(word, &ticket, BREAKER_SUCCESS, NOW, &policy, NULL).next;
        assert_int_equal(at(word).step, 0);
        assert_true(breaker_settle(word, &ticket, BREAKER_SUCCESS, NOW, &policy, NULL).next ==
                    word);
        assert_int_equal(breaker_settle(word, &probe, BREAKER_FAILURE, NOW, &policy, NULL).change,
                         threshold == 0 ? BREAKER_NO_CHANGE : BREAKER_TRIPPED);
    }
}

static void test_slow_probe_closes_even_an_open_word(void **state)
{
    (void)state;
    struct breaker_view view = {.phase = BREAKER_OPEN, .generation = 3, .time = NOW + 10};
    struct breaker_ticket ticket = {.generation = 3, .probe = true, .counted = true};
    uint64_t word = breaker_encode(&view);
    struct breaker_result result =
        breaker_settle(word, &ticket, BREAKER_SUCCESS, NOW, &POLICY, NULL);

    assert_int_equal(result.change, BREAKER_CLOSED_AGAIN);
    assert_int_equal(at(result.next).generation, 4);
    assert_true(breaker_settle(word, &ticket, BREAKER_FAILURE, NOW, &POLICY, NULL).next == word);
    ticket.probe = false;
    assert_true(breaker_settle(word, &ticket, BREAKER_SUCCESS, NOW, &POLICY, NULL).next == word);
}

/* --- the share of failures -------------------------------------------------------------------- */

static const struct breaker_extra EXCEEDED = {.rate_exceeded = true};

static void test_a_failure_trips_by_the_share_whatever_the_streak(void **state)
{
    (void)state;
    for (unsigned threshold = 0; threshold <= 5; threshold += 5)
        for (unsigned streak = 0; streak < 4; streak++) {
            struct breaker_policy policy = POLICY;
            struct breaker_view view = {.generation = 7, .streak = (uint16_t)streak, .step = 2};
            policy.failure_threshold = (uint16_t)threshold;
            view.time = streak ? NOW - 10 : 0;
            uint64_t word = breaker_encode(&view);
            struct breaker_ticket ticket = breaker_admit(word, NOW, &policy).ticket;
            struct breaker_result result =
                breaker_settle(word, &ticket, BREAKER_FAILURE, NOW, &policy, &EXCEEDED);
            assert_int_equal(result.change, BREAKER_TRIPPED);
            assert_true(result.must_land);
            assert_int_equal(at(result.next).phase, BREAKER_OPEN);
            assert_int_equal(at(result.next).generation, 8);
            assert_int_equal(at(result.next).step, 2);
            assert_int_equal(at(result.next).time, NOW + 1000);
        }
}

/* Only a failure trips, and only one that counts. */
static void test_the_share_alone_trips_nothing(void **state)
{
    (void)state;
    struct breaker_view view = {.generation = 7};
    uint64_t word = breaker_encode(&view);
    struct breaker_ticket ticket = breaker_admit(word, NOW, &POLICY).ticket;

    assert_true(breaker_settle(word, &ticket, BREAKER_SUCCESS, NOW, &POLICY, &EXCEEDED).next ==
                word);
    assert_true(breaker_settle(word, &ticket, BREAKER_NEUTRAL, NOW, &POLICY, &EXCEEDED).next ==
                word);
    assert_true(breaker_is_counting(word, &ticket));
    ticket.generation = 6;
    assert_false(breaker_is_counting(word, &ticket));
    assert_true(breaker_settle(word, &ticket, BREAKER_FAILURE, NOW, &POLICY, &EXCEEDED).next ==
                word);
    ticket = (struct breaker_ticket){.generation = 7};
    assert_false(breaker_is_counting(word, &ticket));
    assert_true(breaker_settle(word, &ticket, BREAKER_FAILURE, NOW, &POLICY, &EXCEEDED).next ==
                word);
    ticket.counted = ticket.probe = true;
    assert_false(breaker_is_counting(word, &ticket));
    for (unsigned phase = BREAKER_OPEN; phase <= BREAKER_FORCED_CLOSED; phase++) {
        view.phase = (enum breaker_phase)phase;
        ticket.probe = false;
        assert_false(breaker_is_counting(breaker_encode(&view), &ticket));
    }
    /* A probe that fails opens by itself, and one time. */
    word = half_open(3, &ticket);
    struct breaker_result result =
        breaker_settle(word, &ticket, BREAKER_FAILURE, NOW, &POLICY, &EXCEEDED);
    assert_int_equal(result.change, BREAKER_REOPENED);
    assert_int_equal(at(result.next).step, 4);
}

static uint32_t length_of_trip(struct breaker_policy policy, struct breaker_extra extra)
{
    struct breaker_ticket ticket = {.counted = true};
    policy.failure_threshold = 1;
    struct breaker_result result =
        breaker_settle(0, &ticket, BREAKER_FAILURE, NOW, &policy, &extra);
    assert_int_equal(result.change, BREAKER_TRIPPED);
    return at(result.next).time - NOW;
}

static void test_open_times(void **state)
{
    (void)state;
    struct breaker_policy policy = POLICY;
    struct breaker_extra extra = {0};

    assert_int_equal(length_of_trip(policy, extra), 1000);
    extra.retry_after_ticks = 999;
    assert_int_equal(length_of_trip(policy, extra), 1000);
    extra.retry_after_ticks = 5000;
    assert_int_equal(length_of_trip(policy, extra), 5000);
    extra.retry_after_ticks = UINT32_MAX;
    assert_int_equal(length_of_trip(policy, extra), BREAKER_HORIZON_TICKS);
    policy.jitter_q16 = 32768;
    extra = (struct breaker_extra){.random = 32768};
    assert_int_equal(length_of_trip(policy, extra), 1250);
    extra.random = 65535;
    assert_in_range(length_of_trip(policy, extra), 1498, 1500);
    policy.jitter_q16 = 65535;
    policy.open_ticks = UINT32_MAX;
    assert_int_equal(length_of_trip(policy, extra), BREAKER_HORIZON_TICKS);
    policy.open_ticks = 0;
    policy.jitter_q16 = 0;
    assert_int_equal(length_of_trip(policy, extra), 1);
    /* A ceiling below the open time does not shorten it; a factor below one does not either. */
    policy.open_ticks = 1000;
    policy.open_max_ticks = 1;
    policy.backoff_q8 = 1;
    assert_int_equal(length_of_trip(policy, extra), 1000);
    struct breaker_ticket probe;
    policy.open_max_ticks = 8000;
    uint64_t word = half_open(3, &probe);
    word = breaker_settle(word, &probe, BREAKER_FAILURE, NOW, &policy, NULL).next;
    assert_int_equal(at(word).time, NOW + 1000);
}

static void test_lease_is_never_empty_nor_beyond_the_horizon(void **state)
{
    (void)state;
    static const uint32_t lengths[] = {0, UINT32_MAX};
    for (unsigned i = 0; i < 2; i++) {
        struct breaker_policy policy = POLICY;
        struct breaker_view view = {.phase = BREAKER_OPEN, .time = NOW};
        policy.lease_ticks = lengths[i];
        policy.half_open_probes = 0;
        struct breaker_admission probe = breaker_admit(breaker_encode(&view), NOW, &policy);
        assert_int_equal(breaker_admit(probe.next, NOW, &policy).verdict, BREAKER_REFUSE);
        assert_int_equal(
            breaker_settle(probe.next, &probe.ticket, BREAKER_FAILURE, NOW, &policy, NULL).change,
            BREAKER_REOPENED);
    }
}

static void test_operators_move_the_generation(void **state)
{
    (void)state;
    struct breaker_ticket before = breaker_admit(0, NOW, &POLICY).ticket;
    uint64_t words[] = {breaker_trip(0, NOW, &POLICY, 0), breaker_force_open(0),
                        breaker_force_closed(0), breaker_reset(0)};
    static const enum breaker_phase phases[] = {BREAKER_OPEN, BREAKER_FORCED_OPEN,
                                                BREAKER_FORCED_CLOSED, BREAKER_CLOSED};

    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(at(words[i]).phase, phases[i]);
        assert_int_equal(at(words[i]).generation, 1);
        for (int outcome = 0; outcome < 3; outcome++)
            assert_true(
                breaker_settle(words[i], &before, (enum breaker_outcome)outcome, NOW, &POLICY, NULL)
                    .next == words[i]);
    }
    struct breaker_admission forced = breaker_admit(words[1], NOW, &POLICY);
    assert_int_equal(forced.verdict, BREAKER_REFUSE);
    assert_int_equal(forced.wait_ticks, 0);
    forced = breaker_admit(words[2], NOW, &POLICY);
    assert_int_equal(forced.verdict, BREAKER_ADMIT);
    assert_false(forced.ticket.counted);
    assert_int_equal(at(breaker_reset(words[1])).streak, 0);
    assert_int_equal(at(breaker_reset(words[1])).generation, 2);
}

static void test_trip_never_shortens(void **state)
{
    (void)state;
    uint64_t word = breaker_trip(0, NOW, &POLICY, 0);

    assert_int_equal(at(word).time, NOW + 1000);
    struct breaker_policy brief = POLICY;
    brief.open_ticks = 10;
    assert_int_equal(at(breaker_trip(word, NOW + 1, &brief, 0)).time, NOW + 1000);
    assert_int_equal(at(breaker_trip(word, NOW + 995, &brief, 0)).time, NOW + 1005);
    assert_int_equal(at(breaker_trip(word, NOW + 2000, &brief, 0)).time, NOW + 2010);
    /* The end of a lease is no deadline. */
    struct breaker_ticket probe;
    word = half_open(0, &probe);
    assert_int_equal(at(breaker_trip(word, NOW, &brief, 0)).time, NOW + 10);
}

static void test_display_computes_only(void **state)
{
    (void)state;
    struct breaker_ticket ticket = {.counted = true};
    uint64_t word = 0;
    struct breaker_effective shown;

    for (unsigned i = 0; i < 4; i++) {
        shown = breaker_effective(word, NOW, &POLICY);
        assert_int_equal(shown.streak, i);
        assert_int_equal(shown.state, i < 3 ? BREAKER_SHOW_CLOSED : BREAKER_SHOW_DEGRADED);
        word = breaker_settle(word, &ticket, BREAKER_FAILURE, NOW, &POLICY, NULL).next;
    }
    word = breaker_settle(word, &ticket, BREAKER_FAILURE, NOW, &POLICY, NULL).next;
    shown = breaker_effective(word, NOW + 1, &POLICY);
    assert_int_equal(shown.state, BREAKER_SHOW_OPEN);
    assert_int_equal(shown.wait_ticks, 999);
    assert_int_equal(shown.generation, 1);
    shown = breaker_effective(word, NOW + 1000, &POLICY);
    assert_int_equal(shown.state, BREAKER_SHOW_OPEN);
    assert_int_equal(shown.wait_ticks, 0);
    word = breaker_admit(word, NOW + 1000, &POLICY).next;
    shown = breaker_effective(word, NOW + 1001, &POLICY);
    assert_int_equal(shown.state, BREAKER_SHOW_HALF_OPEN);
    assert_int_equal(shown.wait_ticks, 899);
    assert_int_equal(breaker_effective(breaker_force_open(word), NOW, &POLICY).state,
                     BREAKER_SHOW_FORCED_OPEN);
    assert_int_equal(breaker_effective(breaker_force_closed(word), NOW, &POLICY).state,
                     BREAKER_SHOW_FORCED_CLOSED);
    struct breaker_policy never = POLICY;
    never.degrade_threshold = 0;
    struct breaker_view view = {.streak = 400};
    assert_int_equal(breaker_effective(breaker_encode(&view), NOW, &never).state,
                     BREAKER_SHOW_CLOSED);
}

static void test_names_and_ticks(void **state)
{
    (void)state;
    static const char *const names[] = {"closed",    "degraded",    "open",
                                        "half_open", "forced_open", "forced_closed"};
    for (int i = 0; i < 6; i++)
        assert_string_equal(breaker_state_name((enum breaker_state)i), names[i]);
    assert_non_null(breaker_state_name((enum breaker_state)99));
    assert_int_equal(breaker_ticks_of(0), 0);
    assert_int_equal(breaker_ticks_of(1), 1);
    assert_int_equal(breaker_ticks_of(UINT64_C(1) << 25), 1);
    assert_int_equal(breaker_ticks_of((UINT64_C(1) << 25) + 1), 2);
    assert_int_equal(breaker_ticks_of(UINT64_MAX), BREAKER_HORIZON_TICKS);
    assert_int_equal(breaker_tick(UINT64_MAX), (1u << 30) - 1);
    assert_true(breaker_tick_ns(3) == UINT64_C(3) << 25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_wrap),
        cmocka_unit_test(test_provisional_close_is_proved_by_a_clean_end),
        cmocka_unit_test(test_provisional_close_with_small_thresholds),
        cmocka_unit_test(test_slow_probe_closes_even_an_open_word),
        cmocka_unit_test(test_a_failure_trips_by_the_share_whatever_the_streak),
        cmocka_unit_test(test_the_share_alone_trips_nothing),
        cmocka_unit_test(test_open_times),
        cmocka_unit_test(test_lease_is_never_empty_nor_beyond_the_horizon),
        cmocka_unit_test(test_operators_move_the_generation),
        cmocka_unit_test(test_trip_never_shortens),
        cmocka_unit_test(test_display_computes_only),
        cmocka_unit_test(test_names_and_ticks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
