/* What a slot keeps for a while: the share of failures, and cool-downs. */
#include "table/slot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

static const struct breaker_policy RATED = {
    .failure_threshold = 5,
    .half_open_probes = 1,
    .success_threshold = 1,
    .backoff_q8 = 256,
    .open_ticks = 100,
    .open_max_ticks = 100,
    .lease_ticks = 100,
    .failure_rate = RATE_ONE / 2,
    .window_ms = 60000, /* 8 times 224 ticks */
    .min_calls = 10,
};

static struct slot *new_slot(void)
{
    static struct slot slot;

    memset((void *)&slot, 0, sizeof slot);
    return &slot;
}

static enum breaker_change call(struct slot *s, enum breaker_outcome outcome, uint32_t now,
                                const struct breaker_policy *policy)
{
    struct breaker_admission admission = slot_admit(s, now, policy, NULL);
    assert_int_not_equal(admission.verdict, BREAKER_REFUSE);
    return slot_settle(s, &admission.ticket, outcome, now, policy, NULL);
}

static struct rate_sum rate_of(const struct slot *s, uint32_t now,
                               const struct breaker_policy *policy)
{
    return slot_rate(s, breaker_decode(slot_word(s)).generation, now, policy);
}

static enum breaker_outcome every_other(unsigned i)
{
    return i % 2 ? BREAKER_FAILURE : BREAKER_SUCCESS;
}

/* --- the share of failures -------------------------------------------------------------------- */

static void test_every_other_call_fails_and_it_trips(void **state)
{
    (void)state;
    struct slot *s = new_slot();

    for (unsigned i = 0; i < 9; i++)
        assert_int_equal(call(s, every_other(i), i, &RATED), BREAKER_NO_CHANGE);
    assert_int_equal(breaker_decode(slot_word(s)).streak, 0);
    struct rate_sum sum = rate_of(s, 9, &RATED);
    assert_true(sum.calls == 9 && sum.failures == 4);
    assert_int_equal(call(s, BREAKER_FAILURE, 9, &RATED), BREAKER_TRIPPED);
    assert_int_equal(rate_of(s, 9, &RATED).calls, 0); /* of the generation before */
}

static void test_a_success_trips_nothing(void **state)
{
    (void)state;
    struct slot *s = new_slot();

    for (unsigned i = 0; i < 9; i++)
        call(s, every_other(i + 1), i, &RATED);
    assert_int_equal(call(s, BREAKER_SUCCESS, 9, &RATED), BREAKER_NO_CHANGE);
    assert_int_equal(call(s, BREAKER_SUCCESS, 9, &RATED), BREAKER_NO_CHANGE);
    assert_int_equal(call(s, BREAKER_NEUTRAL, 9, &RATED), BREAKER_NO_CHANGE);
    struct rate_sum sum = rate_of(s, 9, &RATED);
    assert_true(sum.calls == 11 && sum.failures == 5); /* neutral is not counted */
    assert_int_equal(call(s, BREAKER_FAILURE, 9, &RATED), BREAKER_TRIPPED);
}

static void test_failures_out_of_the_window_are_forgotten(void **state)
{
    (void)state;
    struct slot *s = new_slot();

    for (unsigned i = 0; i < 9; i++)
        call(s, every_other(i), i, &RATED);
    for (unsigned i = 0; i < 9; i++)
        assert_int_equal(call(s, every_other(i), 8 * 224 + i, &RATED), BREAKER_NO_CHANGE);
    assert_int_equal(rate_of(s, 8 * 224 + 8, &RATED).calls, 9);
}

static void test_a_streak_trips_below_min_calls(void **state)
{
    (void)state;
    struct slot *s = new_slot();

    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(call(s, BREAKER_FAILURE, i, &RATED), BREAKER_NO_CHANGE);
    assert_int_equal(call(s, BREAKER_FAILURE, 4, &RATED), BREAKER_TRIPPED);
}

/* Only what a closed breaker counts: no probe, nothing of before the trip, nothing uncounted. */
static void test_what_is_not_in_the_share(void **state)
{
    (void)state;
    struct slot *s = new_slot();
    struct breaker_ticket old = slot_admit(s, 1, &RATED, NULL).ticket;
    struct breaker_ticket uncounted = {.admitted = 1, .generation = 2};
    uint64_t before[RATE_BUCKETS];

    for (unsigned i = 0; i < 5; i++)
        call(s, BREAKER_FAILURE, 1, &RATED);
    slot_settle(s, &old, BREAKER_FAILURE, 2, &RATED, NULL);
    struct breaker_admission probe = slot_admit(s, 101, &RATED, NULL);
    assert_int_equal(slot_settle(s, &probe.ticket, BREAKER_SUCCESS, 101, &RATED, NULL),
                     BREAKER_CLOSED_AGAIN);
    memcpy(before, (const void *)s->rate, sizeof before);
    slot_settle(s, &old, BREAKER_FAILURE, 102, &RATED, NULL);
    slot_settle(s, &old, BREAKER_SUCCESS, 102, &RATED, NULL);
    slot_settle(s, &uncounted, BREAKER_FAILURE, 102, &RATED, NULL);
    assert_memory_equal(before, (const void *)s->rate, sizeof before);
    assert_int_equal(breaker_decode(slot_word(s)).generation, 2);
    call(s, BREAKER_SUCCESS, 102, &RATED);
    assert_int_equal(rate_of(s, 102, &RATED).calls, 1);
}

static void test_without_a_rate_no_bucket_is_touched(void **state)
{
    (void)state;
    struct slot *s = new_slot();
    struct breaker_policy plain = RATED;
    uint64_t before[RATE_BUCKETS];

    plain.failure_rate = 0;
    for (unsigned i = 0; i < 20; i++) /* what another program, with a rate, counted */
        slot_rate_add(s, 0, true, 1, &RATED);
    memcpy(before, (const void *)s->rate, sizeof before);
    for (unsigned i = 0; i < 40; i++)
        assert_int_equal(call(s, every_other(i), 1, &plain), BREAKER_NO_CHANGE);
    assert_memory_equal(before, (const void *)s->rate, sizeof before);
}

/* Nor is the word, or anything else, where the word is clean and a rate is set. */
static void test_a_success_with_a_rate_writes_its_bucket_only(void **state)
{
    (void)state;
    struct slot *s = new_slot();
    struct slot before;

    memcpy(&before, (const void *)s, sizeof before);
    call(s, BREAKER_SUCCESS, 5, &RATED);
    assert_int_not_equal(s->rate[0], 0);
    before.rate[0] = s->rate[0];
    assert_memory_equal(&before, (const void *)s, sizeof before);
}

/* --- cool-downs ------------------------------------------------------------------------------- */

static void test_cooldowns_of_two_applications(void **state)
{
    (void)state;
    struct slot *s = new_slot();

    assert_int_equal(slot_cooldown_left(s, 7, 100), 0);
    slot_cooldown_set(s, 7, 50, 100);
    assert_int_equal(slot_cooldown_left(s, 7, 100), 50);
    assert_int_equal(slot_cooldown_left(s, 8, 100), 0);
    slot_cooldown_set(s, 8, 10, 100);
    assert_int_equal(slot_cooldown_left(s, 7, 120), 30);
    assert_int_equal(slot_cooldown_left(s, 8, 120), 0);
    slot_cooldown_set(s, 7, 10, 120);
    assert_int_equal(slot_cooldown_left(s, 7, 149), 1);
    assert_int_equal(slot_cooldown_left(s, 7, 150), 0);
    assert_int_equal(slot_word(s), 0);
}

static void test_a_reset_parks_nobody(void **state)
{
    (void)state;
    struct slot *s = new_slot();

    for (uint64_t credential = 1; credential <= 4; credential++)
        slot_cooldown_set(s, credential, 50, 100);
    slot_cooldown_clear(s);
    for (uint64_t credential = 1; credential <= 4; credential++)
        assert_int_equal(slot_cooldown_left(s, credential, 100), 0);
    slot_cooldown_set(s, 2, 20, 100);
    assert_int_equal(slot_cooldown_left(s, 2, 100), 20);
}

static void test_while_nobody_is_parked_line_0_says_so(void **state)
{
    (void)state;
    struct slot *s = new_slot();

    s->cooldown[0] = UINT64_C(7) << BREAKER_TIME_BITS | 150;
    assert_int_equal(slot_cooldown_left(s, 7, 100), 0); /* not looked at */
    s->parked_until = 90;
    assert_int_equal(slot_cooldown_left(s, 7, 100), 0);
    s->parked_until = 101;
    assert_int_equal(slot_cooldown_left(s, 7, 100), 50);
    s->parked_until = UINT64_MAX; /* nonsense: over */
    assert_int_equal(slot_cooldown_left(s, 7, 100), 0);
    slot_cooldown_set(s, 7, 60, 100);
    assert_int_equal(slot_cooldown_left(s, 7, 100), 60);
    assert_true(s->parked_until == 160);
    slot_cooldown_set(s, 8, 20, 100);
    assert_true(s->parked_until == 160);
}

static void test_no_slot(void **state)
{
    (void)state;
    slot_cooldown_set(NULL, 7, 50, 100);
    slot_cooldown_clear(NULL);
    assert_int_equal(slot_cooldown_left(NULL, 7, 100), 0);
    assert_int_equal(rate_of(NULL, 100, &RATED).calls, 0);
}

/* --- threads --------------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 20000 };

static struct {
    struct slot *slot;
    pthread_barrier_t barrier;
    _Atomic unsigned trips, arrived, lost;
} race;

static void *count_together(void *data)
{
    unsigned mine = (unsigned)(uintptr_t)data;

    pthread_barrier_wait(&race.barrier);
    for (unsigned i = 0; i < ROUNDS; i++) {
        slot_rate_add(race.slot, 0, i % 2, i / 1000, &RATED);
        slot_cooldown_set(race.slot, mine + 1, i % 900 + 1, i);
    }
    return NULL;
}

/* Few are lost, though all are of one bucket. */
static void *count_in_one_bucket(void *unused)
{
    pthread_barrier_wait(&race.barrier);
    for (unsigned i = 0; i < RATE_COUNT_MAX / THREADS; i++)
        slot_rate_add(race.slot, 0, true, 1, &RATED);
    return unused;
}

/* As closely together as can be: a barrier that sleeps lets them start one after the other. */
static void meet(unsigned times)
{
    atomic_fetch_add(&race.arrived, 1);
    for (unsigned spins = 0; atomic_load(&race.arrived) < 2 * times; spins++)
        if (spins > 10000)
            sched_yield();
}

/* Two at once, of which each finds a word, round after round. */
static void *park_together(void *data)
{
    for (unsigned round = 1; round <= ROUNDS; round++) {
        uint64_t mine = 2 * round + (uintptr_t)data; /* with no word of its own from before */
        meet(2 * round - 1);
        slot_cooldown_set(race.slot, mine, 5, round * 10);
        meet(2 * round);
        race.lost += slot_cooldown_left(race.slot, mine, round * 10) != 5;
    }
    return NULL;
}

static void *fail_together(void *unused)
{
    pthread_barrier_wait(&race.barrier);
    for (unsigned i = 0; i < 200; i++) {
        struct breaker_admission admission = slot_admit(race.slot, 1, &RATED, NULL);
        race.trips += slot_settle(race.slot, &admission.ticket, every_other(i), 1, &RATED, NULL) ==
                      BREAKER_TRIPPED;
    }
    return unused;
}

static void run_threads(void *(*body)(void *), unsigned count)
{
    pthread_t threads[THREADS];

    race.slot = new_slot();
    pthread_barrier_init(&race.barrier, NULL, count);
    for (uintptr_t i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, body, (void *)i);
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&race.barrier);
}

static void test_threads_count_together(void **state)
{
    (void)state;
    run_threads(count_together, THREADS);
    struct rate_sum sum = rate_of(race.slot, ROUNDS / 1000, &RATED);
    assert_in_range(sum.calls, 1, RATE_COUNT_MAX);
    assert_in_range(sum.failures * 100 / sum.calls, 40, 60);
    /* The latest deadline of each, set in round 19799. */
    for (uint64_t credential = 1; credential <= THREADS; credential++)
        assert_int_equal(slot_cooldown_left(race.slot, credential, ROUNDS), 699);
}

static void test_threads_lose_few_counts_and_no_cooldown(void **state)
{
    (void)state;
    run_threads(count_in_one_bucket, THREADS);
    assert_in_range(rate_of(race.slot, 1, &RATED).calls, RATE_COUNT_MAX * 8 / 10, RATE_COUNT_MAX);
    run_threads(park_together, 2);
    assert_int_equal(race.lost, 0);
}

/* Many see the share exceeded at once: one of them trips. */
static void test_threads_trip_once(void **state)
{
    (void)state;
    race.trips = 0;
    run_threads(fail_together, THREADS);
    assert_int_equal(race.trips, 1);
    assert_int_equal(breaker_decode(slot_word(race.slot)).generation, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_other_call_fails_and_it_trips),
        cmocka_unit_test(test_a_success_trips_nothing),
        cmocka_unit_test(test_failures_out_of_the_window_are_forgotten),
        cmocka_unit_test(test_a_streak_trips_below_min_calls),
        cmocka_unit_test(test_what_is_not_in_the_share),
        cmocka_unit_test(test_without_a_rate_no_bucket_is_touched),
        cmocka_unit_test(test_a_success_with_a_rate_writes_its_bucket_only),
        cmocka_unit_test(test_cooldowns_of_two_applications),
        cmocka_unit_test(test_a_reset_parks_nobody),
        cmocka_unit_test(test_while_nobody_is_parked_line_0_says_so),
        cmocka_unit_test(test_no_slot),
        cmocka_unit_test(test_threads_count_together),
        cmocka_unit_test(test_threads_lose_few_counts_and_no_cooldown),
        cmocka_unit_test(test_threads_trip_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
