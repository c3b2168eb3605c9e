/* The breaker's rules one by one, each on words built by hand. */
#include "breaker_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static uint64_t word_of(enum breaker_phase phase, uint32_t time)
{
    struct breaker_view view = {.phase = phase, .generation = 7, .lease = 9, .time = time};
    return breaker_encode(&view);
}

static struct breaker_result settle(uint64_t word, struct breaker_ticket ticket,
                                    enum breaker_outcome outcome, uint32_t now,
                                    const struct breaker_policy *policy)
{
    return breaker_settle(word, &ticket, outcome, now, policy, NULL);
}

static uint64_t fail_times(uint64_t word, int times, const struct breaker_policy *policy)
{
    for (int i = 0; i < times; i++)
        word = settle(word, breaker_admit(word, NOW, policy).ticket, BREAKER_FAILURE, NOW, policy)
                   .next;
    return word;
}

static struct breaker_admission grant(uint64_t word, uint32_t now,
                                      const struct breaker_policy *policy)
{
    struct breaker_admission admission = breaker_admit(word, now, policy);
    assert_int_equal(admission.verdict, BREAKER_GRANT);
    assert_true(admission.ticket.probe && admission.ticket.counted);
    return admission;
}

static void test_zero_is_closed(void **state)
{
    (void)state;
    struct breaker_view view = at(0);
    struct breaker_admission admission = breaker_admit(0, NOW, &POLICY);

    assert_int_equal(view.phase, BREAKER_CLOSED);
    assert_int_equal(view.streak + view.step + view.generation + view.lease + view.time, 0);
    assert_int_equal(admission.verdict, BREAKER_ADMIT);
    assert_int_equal(admission.next, 0);
    assert_true(admission.ticket.counted && !admission.ticket.probe);
    assert_int_equal(admission.ticket.admitted, NOW);
    assert_int_equal(settle(0, admission.ticket, BREAKER_SUCCESS, NOW, &POLICY).next, 0);
    assert_int_equal(settle(0, admission.ticket, BREAKER_NEUTRAL, NOW, &POLICY).next, 0);
}

static void test_bits_are_where_the_header_says(void **state)
{
    (void)state;
    struct breaker_view view = {.phase = BREAKER_CLOSED,
                                .step = 10,
                                .generation = 0x5a5,
                                .lease = 0x55,
                                .streak = 300,
                                .time = 0x2aaaaaaa};
    uint64_t word = breaker_encode(&view);

    assert_int_equal(word >> 61, 0);
    assert_int_equal(word >> 57 & 15, 10);
    assert_int_equal(word >> 46 & 2047, 0x5a5);
    assert_int_equal(word >> 39 & 127, 0x55);
    assert_int_equal(word >> 30 & 511, 300);
    assert_int_equal(word & 0x3fffffff, 0x2aaaaaaa);
    view = (struct breaker_view){.phase = BREAKER_HALF_OPEN, .granted = 11, .successes = 21};
    word = breaker_encode(&view);
    assert_int_equal(word >> 61, 2);
    assert_int_equal(word >> 30 & 15, 11);
    assert_int_equal(word >> 34 & 31, 21);
}

static void test_unknown_phase_is_closed_with_nothing_counted(void **state)
{
    (void)state;
    for (uint64_t phase = 5; phase < 8; phase++) {
        uint64_t word = phase << 61 | UINT64_C(0x1fffffffffffffff);
        struct breaker_view view = at(word);
        assert_int_equal(view.phase, BREAKER_CLOSED);
        assert_int_equal(view.streak + view.time + view.step, 0);
        assert_int_equal(view.generation, 2047);
        struct breaker_admission admission = breaker_admit(word, NOW, &POLICY);
        assert_int_equal(admission.verdict, BREAKER_ADMIT);
        assert_true(settle(word, admission.ticket, BREAKER_SUCCESS, NOW, &POLICY).next == word);
        word = settle(word, admission.ticket, BREAKER_FAILURE, NOW, &POLICY).next;
        assert_int_equal(word >> 61, BREAKER_CLOSED);
        assert_int_equal(at(word).streak, 1);
    }
}

static void test_streak_trips_at_the_threshold(void **state)
{
    (void)state;
    uint64_t word = 0;

    for (unsigned i = 1; i <= 5; i++) {
        struct breaker_result result = settle(word, breaker_admit(word, NOW, &POLICY).ticket,
                                              BREAKER_FAILURE, NOW + i, &POLICY);
        enum breaker_change expected = i == 3   ? BREAKER_DEGRADED
                                       : i == 5 ? BREAKER_TRIPPED
                                                : BREAKER_NO_CHANGE;
        assert_int_equal(result.change, expected);
        assert_int_equal(result.must_land, i == 5);
        word = result.next;
        assert_int_equal(at(word).phase, i == 5 ? BREAKER_OPEN : BREAKER_CLOSED);
        if (i < 5)
            assert_int_equal(at(word).time, NOW + 1); /* of the first failure, not the last */
    }
    assert_int_equal(at(word).generation, 1);
    assert_int_equal(at(word).step, 0);
    assert_int_equal(at(word).time, NOW + 5 + 1000);
}

static void test_threshold_zero_never_trips_and_the_streak_saturates(void **state)
{
    (void)state;
    struct breaker_policy policy = POLICY;
    policy.failure_threshold = 0;
    uint64_t word = fail_times(0, 600, &policy);

    assert_int_equal(at(word).phase, BREAKER_CLOSED);
    assert_int_equal(at(word).streak, BREAKER_COUNT_MAX);
    policy.failure_threshold = 60000; /* out of the word's range: clamped, not unreachable */
    assert_int_equal(at(fail_times(word, 1, &policy)).phase, BREAKER_OPEN);
    /* A lowered threshold trips nothing by itself. */
    assert_int_equal(breaker_admit(word, NOW, &POLICY).verdict, BREAKER_ADMIT);
}

static void test_success_resets_only_streaks_that_it_saw_begin(void **state)
{
    (void)state;
    struct breaker_ticket old = breaker_admit(0, NOW - 1, &POLICY).ticket;
    struct breaker_ticket same = breaker_admit(0, NOW, &POLICY).ticket;
    uint64_t word = fail_times(0, 3, &POLICY);
    struct breaker_result result = settle(word, old, BREAKER_SUCCESS, NOW + 9, &POLICY);

    assert_true(result.next == word);
    assert_int_equal(result.change, BREAKER_NO_CHANGE);
    result = settle(word, same, BREAKER_SUCCESS, NOW + 9, &POLICY);
    assert_int_equal(result.change, BREAKER_RECOVERED);
    assert_int_equal(result.next, 0);
    assert_false(result.must_land);
    word = fail_times(0, 2, &POLICY); /* below the degraded mark */
    assert_int_equal(settle(word, same, BREAKER_SUCCESS, NOW, &POLICY).change, BREAKER_NO_CHANGE);
    /* Over the wrap of the clock. */
    uint32_t end = (UINT32_C(1) << 30) - 1;
    struct breaker_ticket before = breaker_admit(0, end - 1, &POLICY).ticket;
    struct breaker_ticket after = breaker_admit(0, 3, &POLICY).ticket;
    word = settle(0, before, BREAKER_FAILURE, end, &POLICY).next;
    assert_true(settle(word, before, BREAKER_SUCCESS, 4, &POLICY).next == word);
    assert_int_equal(settle(word, after, BREAKER_SUCCESS, 4, &POLICY).next, 0);
}

static void test_open_refuses_until_its_deadline(void **state)
{
    (void)state;
    uint64_t word = word_of(BREAKER_OPEN, NOW + 10);
    struct breaker_admission admission = breaker_admit(word, NOW, &POLICY);

    assert_int_equal(admission.verdict, BREAKER_REFUSE);
    assert_int_equal(admission.wait_ticks, 10);
    assert_true(admission.next == word);
    assert_false(admission.ticket.counted || admission.ticket.probe);
    assert_int_equal(breaker_admit(word, NOW + 9, &POLICY).wait_ticks, 1);
    admission = grant(word, NOW + 10, &POLICY);
    assert_int_equal(at(admission.next).phase, BREAKER_HALF_OPEN);
    assert_int_equal(at(admission.next).generation, 7);
    assert_int_equal(at(admission.next).time, NOW + 10 + 900);
    assert_int_equal(at(admission.next).granted, 1);
    assert_int_equal(admission.ticket.lease, at(admission.next).lease);
    /* Over the wrap, and a deadline beyond the horizon. */
    assert_int_equal(breaker_admit(word_of(BREAKER_OPEN, 5), (1u << 30) - 5, &POLICY).wait_ticks,
                     10);
    word = word_of(BREAKER_OPEN, NOW + BREAKER_HORIZON_TICKS);
    assert_int_equal(breaker_admit(word, NOW, &POLICY).verdict, BREAKER_REFUSE);
    grant(word_of(BREAKER_OPEN, NOW + BREAKER_HORIZON_TICKS + 1), NOW, &POLICY);
}

static void test_one_probe_per_lease(void **state)
{
    (void)state;
    struct breaker_admission first = grant(word_of(BREAKER_OPEN, NOW), NOW, &POLICY);
    struct breaker_admission second = breaker_admit(first.next, NOW + 899, &POLICY);

    assert_int_equal(second.verdict, BREAKER_REFUSE);
    assert_int_equal(second.wait_ticks, 0);
    second = grant(first.next, NOW + 900, &POLICY);
    assert_int_not_equal(second.ticket.lease, first.ticket.lease);
    assert_int_equal(at(second.next).granted, 1);
    /* The late probe cannot re-open or hand back what another holds, but its success closes. */
    assert_true(settle(second.next, first.ticket, BREAKER_FAILURE, NOW, &POLICY).next ==
                second.next);
    assert_true(settle(second.next, first.ticket, BREAKER_NEUTRAL, NOW, &POLICY).next ==
                second.next);
    struct breaker_result closed = settle(second.next, first.ticket, BREAKER_SUCCESS, NOW, &POLICY);
    assert_int_equal(closed.change, BREAKER_CLOSED_AGAIN);
    assert_true(closed.must_land);
    assert_int_equal(at(closed.next).phase, BREAKER_CLOSED);
    assert_int_equal(at(closed.next).generation, 8);
    assert_int_equal(at(closed.next).lease, at(second.next).lease); /* never goes back */
    assert_int_equal(at(closed.next).streak + at(closed.next).step + at(closed.next).time, 0);
    /* And the other probe's end then means nothing. */
    assert_true(settle(closed.next, second.ticket, BREAKER_FAILURE, NOW, &POLICY).next ==
                closed.next);
}

static void test_probe_failure_reopens_longer(void **state)
{
    (void)state;
    struct breaker_policy policy = POLICY;
    policy.backoff_q8 = 512;
    static const uint32_t lengths[] = {2000, 4000, 8000, 8000, 8000};
    uint64_t word = fail_times(0, 5, &policy);
    uint32_t now = at(word).time;

    for (unsigned i = 0; i < 20; i++) {
        struct breaker_admission probe = grant(word, now, &policy);
        struct breaker_result result =
            settle(probe.next, probe.ticket, BREAKER_FAILURE, now, &policy);
        assert_int_equal(result.change, BREAKER_REOPENED);
        assert_true(result.must_land);
        word = result.next;
        assert_int_equal(at(word).phase, BREAKER_OPEN);
        assert_int_equal(at(word).generation, 2 + i);
        assert_int_equal(at(word).step, i + 1 < 15 ? i + 1 : 15);
        assert_int_equal(at(word).time - now, lengths[i < 5 ? i : 4]);
        now = at(word).time;
    }
    struct breaker_admission probe = grant(word, now, &policy);
    word = settle(probe.next, probe.ticket, BREAKER_SUCCESS, now, &policy).next;
    assert_int_equal(at(word).step, 0);
}

static void test_handback_ends_the_lease(void **state)
{
    (void)state;
    struct breaker_admission first = grant(word_of(BREAKER_OPEN, NOW), NOW, &POLICY);
    struct breaker_result back =
        settle(first.next, first.ticket, BREAKER_NEUTRAL, NOW + 5, &POLICY);

    assert_true(back.must_land);
    assert_int_equal(back.change, BREAKER_NO_CHANGE);
    assert_int_equal(at(back.next).phase, BREAKER_HALF_OPEN);
    assert_int_equal(at(back.next).granted, 0);
    assert_int_equal(at(back.next).generation, 7);
    assert_int_equal(at(back.next).time, NOW + 5);
    struct breaker_admission second = grant(back.next, NOW + 5, &POLICY);
    assert_int_not_equal(second.ticket.lease, first.ticket.lease);
    assert_int_equal(at(second.next).time, NOW + 5 + 900);
    /* Handed back twice: the second holder keeps its grant. */
    assert_true(settle(second.next, first.ticket, BREAKER_NEUTRAL, NOW + 6, &POLICY).next ==
                second.next);
}

/* Its clock is as it was when the call was opened: maybe before the hand-back. */
static void test_who_comes_after_a_handback_has_a_whole_lease(void **state)
{
    (void)state;
    struct breaker_admission first = grant(word_of(BREAKER_OPEN, NOW), NOW, &POLICY);
    struct breaker_result back =
        settle(first.next, first.ticket, BREAKER_NEUTRAL, NOW + 5, &POLICY);
    struct breaker_admission second = grant(back.next, NOW + 4, &POLICY);

    assert_int_not_equal(second.ticket.lease, first.ticket.lease);
    assert_int_equal(at(second.next).time, NOW + 4 + 900);
    assert_int_equal(breaker_admit(second.next, NOW + 5, &POLICY).verdict, BREAKER_REFUSE);
}

static void test_several_probes_and_successes(void **state)
{
    (void)state;
    struct breaker_policy policy = POLICY;
    policy.half_open_probes = 3;
    policy.success_threshold = 2;
    struct breaker_admission a = grant(word_of(BREAKER_OPEN, NOW), NOW, &policy);
    struct breaker_admission b = grant(a.next, NOW + 1, &policy);
    struct breaker_admission c = grant(b.next, NOW + 2, &policy);

    assert_int_equal(at(c.next).granted, 3);
    assert_int_equal(at(c.next).time, NOW + 900); /* the lease is the first one's */
    assert_int_equal(breaker_admit(c.next, NOW + 3, &policy).verdict, BREAKER_REFUSE);
    struct breaker_result one = settle(c.next, a.ticket, BREAKER_SUCCESS, NOW + 4, &policy);
    assert_int_equal(one.change, BREAKER_NO_CHANGE);
    assert_true(one.must_land);
    assert_int_equal(at(one.next).phase, BREAKER_HALF_OPEN);
    assert_int_equal(at(one.next).successes, 1);
    assert_int_equal(at(one.next).granted, 2);
    assert_int_equal(at(one.next).time, NOW + 900);
    grant(one.next, NOW + 5, &policy);
    /* A hand-back that is not the last leaves the lease running. */
    struct breaker_result back = settle(one.next, b.ticket, BREAKER_NEUTRAL, NOW + 6, &policy);
    assert_int_equal(at(back.next).granted, 1);
    assert_int_equal(at(back.next).time, NOW + 900);
    assert_int_equal(at(back.next).successes, 1);
    struct breaker_result two = settle(back.next, c.ticket, BREAKER_SUCCESS, NOW + 7, &policy);
    assert_int_equal(two.change, BREAKER_CLOSED_AGAIN);
    /* Successes outlive a lease; its grants do not. */
    struct breaker_admission d = grant(one.next, NOW + 900, &policy);
    assert_int_equal(at(d.next).successes, 1);
    assert_int_equal(at(d.next).granted, 1);
    assert_true(settle(d.next, c.ticket, BREAKER_FAILURE, NOW, &policy).next == d.next);
    assert_int_equal(settle(d.next, c.ticket, BREAKER_SUCCESS, NOW, &policy).change,
                     BREAKER_CLOSED_AGAIN);
}

/* However often the others give theirs back. */
static void test_a_grant_stays_its_holders(void **state)
{
    (void)state;
    struct breaker_policy policy = POLICY;
    policy.half_open_probes = 2;
    struct breaker_admission slow = grant(word_of(BREAKER_OPEN, NOW), NOW, &policy);
    uint64_t word = slow.next;

    for (unsigned i = 0; i < 300; i++) {
        struct breaker_admission other = grant(word, NOW, &policy);
        word = settle(other.next, other.ticket, BREAKER_NEUTRAL, NOW, &policy).next;
    }
    assert_int_equal(at(word).granted, 1);
    assert_int_equal(at(settle(word, slow.ticket, BREAKER_NEUTRAL, NOW, &policy).next).granted, 0);
    assert_int_equal(settle(word, slow.ticket, BREAKER_FAILURE, NOW, &policy).change,
                     BREAKER_REOPENED);
    /* Not with what another process is configured for either. */
    struct breaker_admission next = grant(word, NOW + 900, &policy);
    policy.half_open_probes = 15;
    assert_true(settle(next.next, slow.ticket, BREAKER_FAILURE, NOW, &policy).next == next.next);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zero_is_closed),
        cmocka_unit_test(test_bits_are_where_the_header_says),
        cmocka_unit_test(test_unknown_phase_is_closed_with_nothing_counted),
        cmocka_unit_test(test_streak_trips_at_the_threshold),
        cmocka_unit_test(test_threshold_zero_never_trips_and_the_streak_saturates),
        cmocka_unit_test(test_success_resets_only_streaks_that_it_saw_begin),
        cmocka_unit_test(test_open_refuses_until_its_deadline),
        cmocka_unit_test(test_one_probe_per_lease),
        cmocka_unit_test(test_probe_failure_reopens_longer),
        cmocka_unit_test(test_handback_ends_the_lease),
        cmocka_unit_test(test_who_comes_after_a_handback_has_a_whole_lease),
        cmocka_unit_test(test_several_probes_and_successes),
        cmocka_unit_test(test_a_grant_stays_its_holders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
