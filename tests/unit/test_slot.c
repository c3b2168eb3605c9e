/* The core's decisions carried into a slot: what is written, what is not, and by how many at once.
 */
#include "table/slot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

static const struct breaker_policy POLICY = {
    .failure_threshold = 5,
    .degrade_threshold = 3,
    .half_open_probes = 1,
    .success_threshold = 1,
    .backoff_q8 = 256,
    .open_ticks = 100,
    .open_max_ticks = 100,
    .lease_ticks = 100,
};

static struct slot *new_slot(void)
{
    struct slot *s = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(s != MAP_FAILED);
    return s;
}

static void free_slot(struct slot *s)
{
    munmap(s, 4096);
}

static enum breaker_change call(struct slot *s, enum breaker_outcome outcome, uint32_t now)
{
    struct breaker_admission admission = slot_admit(s, now, &POLICY, NULL);
    assert_int_not_equal(admission.verdict, BREAKER_REFUSE);
    return slot_settle(s, &admission.ticket, outcome, now, &POLICY, NULL);
}

static void test_no_slot_admits_and_counts_nothing(void **state)
{
    (void)state;
    enum breaker_change change = BREAKER_PROBING;
    struct breaker_admission admission = slot_admit(NULL, 7, &POLICY, &change);

    assert_int_equal(admission.verdict, BREAKER_ADMIT);
    assert_false(admission.ticket.counted);
    assert_int_equal(change, BREAKER_NO_CHANGE);
    assert_int_equal(slot_peek(NULL, 7, &POLICY).verdict, BREAKER_ADMIT);
    assert_int_equal(slot_settle(NULL, &admission.ticket, BREAKER_FAILURE, 7, &POLICY, NULL),
                     BREAKER_NO_CHANGE);
    assert_int_equal(slot_word(NULL), 0);
    slot_count(NULL, BREAKER_FAILURE, 0);
    slot_count_refused(NULL, 0);
    slot_note_failure(NULL, 1, 1, 1);
    slot_note_opened(NULL);
    assert_int_equal(slot_totals(NULL).failure, 0);
}

static void test_healthy_calls_store_nothing(void **state)
{
    (void)state;
    struct slot *s = new_slot();

    /* A store would be a SIGSEGV here. */
    assert_int_equal(mprotect(s, 4096, PROT_READ), 0);
    for (uint32_t now = 0; now < 100; now++) {
        assert_int_equal(call(s, BREAKER_SUCCESS, now), BREAKER_NO_CHANGE);
        assert_int_equal(call(s, BREAKER_NEUTRAL, now), BREAKER_NO_CHANGE);
        assert_int_equal(slot_peek(s, now, &POLICY).verdict, BREAKER_ADMIT);
    }
    free_slot(s);
}

static void test_refusal_and_peek_store_nothing(void **state)
{
    (void)state;
    struct slot *s = new_slot();

    for (int i = 0; i < 4; i++)
        call(s, BREAKER_FAILURE, 10);
    assert_int_equal(call(s, BREAKER_FAILURE, 10), BREAKER_TRIPPED);
    assert_int_equal(mprotect(s, 4096, PROT_READ), 0);
    struct breaker_admission admission = slot_admit(s, 11, &POLICY, NULL);
    assert_int_equal(admission.verdict, BREAKER_REFUSE);
    assert_int_equal(admission.wait_ticks, 99);
    assert_int_equal(slot_peek(s, 200, &POLICY).verdict, BREAKER_GRANT);
    free_slot(s);
}

static void test_a_whole_life(void **state)
{
    (void)state;
    struct slot *s = new_slot();
    enum breaker_change change;

    assert_int_equal(call(s, BREAKER_FAILURE, 1), BREAKER_NO_CHANGE);
    assert_int_equal(call(s, BREAKER_FAILURE, 1), BREAKER_NO_CHANGE);
    assert_int_equal(call(s, BREAKER_FAILURE, 1), BREAKER_DEGRADED);
    assert_int_equal(call(s, BREAKER_SUCCESS, 2), BREAKER_RECOVERED);
    for (int i = 0; i < 5; i++)
        change = call(s, BREAKER_FAILURE, 3);
    assert_int_equal(change, BREAKER_TRIPPED);
    struct breaker_admission probe = slot_admit(s, 103, &POLICY, &change);
    assert_int_equal(probe.verdict, BREAKER_GRANT);
    assert_int_equal(change, BREAKER_PROBING);
    assert_int_equal(slot_admit(s, 103, &POLICY, &change).verdict, BREAKER_REFUSE);
    assert_int_equal(change, BREAKER_NO_CHANGE);
    assert_int_equal(slot_settle(s, &probe.ticket, BREAKER_FAILURE, 104, &POLICY, NULL),
                     BREAKER_REOPENED);
    probe = slot_admit(s, 204, &POLICY, &change);
    assert_int_equal(slot_settle(s, &probe.ticket, BREAKER_NEUTRAL, 204, &POLICY, NULL),
                     BREAKER_NO_CHANGE);
    probe = slot_admit(s, 205, &POLICY, &change); /* a second lease is no second transition */
    assert_int_equal(probe.verdict, BREAKER_GRANT);
    assert_int_equal(change, BREAKER_NO_CHANGE);
    assert_int_equal(slot_settle(s, &probe.ticket, BREAKER_SUCCESS, 206, &POLICY, NULL),
                     BREAKER_CLOSED_AGAIN);
    free_slot(s);
}

static void trip(struct slot *s)
{
    for (int i = 0; i < 5; i++)
        call(s, BREAKER_FAILURE, 1);
}

static void test_provisional_close_moves_the_ticket_on(void **state)
{
    (void)state;
    struct slot *s = new_slot();
    struct breaker_extra head = {.provisional = true};

    trip(s);
    struct breaker_admission probe = slot_admit(s, 101, &POLICY, NULL);
    assert_int_equal(slot_settle(s, &probe.ticket, BREAKER_SUCCESS, 102, &POLICY, &head),
                     BREAKER_CLOSED_AGAIN);
    assert_int_equal(slot_settle(s, &probe.ticket, BREAKER_FAILURE, 103, &POLICY, NULL),
                     BREAKER_TRIPPED);
    /* One probe is one success, though head and end both settle. */
    struct breaker_policy two = POLICY;
    two.success_threshold = 2;
    probe = slot_admit(s, 203, &two, NULL);
    slot_settle(s, &probe.ticket, BREAKER_SUCCESS, 204, &two, &head);
    assert_int_equal(slot_settle(s, &probe.ticket, BREAKER_SUCCESS, 205, &two, NULL),
                     BREAKER_NO_CHANGE);
    assert_int_equal(breaker_decode(slot_word(s)).phase, BREAKER_HALF_OPEN);
    free_slot(s);
}

/* Two destinations have a place and a quiet time each; others are counted in all only, and their
 * lines are due each time. */
static void test_where_calls_were_rerouted(void **state)
{
    (void)state;
    struct slot *s = new_slot();
    const uint64_t quiet = 1000;

    assert_true(slot_count_rerouted(s, 11, 0, 5000, quiet));
    assert_false(slot_count_rerouted(s, 11, 1, 5999, quiet));
    assert_true(slot_count_rerouted(s, 22, 0, 5999, quiet));
    assert_false(slot_count_rerouted(s, 22, 0, 5500, quiet)); /* began earlier, ended later */
    assert_true(slot_count_rerouted(s, 11, 1, 6000, quiet));
    assert_true(slot_count_rerouted(s, 33, 0, 6000, quiet));
    assert_true(slot_count_rerouted(s, 33, 0, 6000, quiet));
    assert_int_equal(slot_totals(s).rerouted, 7);
    assert_int_equal(s->stats[0].to.identity, 11);
    assert_int_equal(s->stats[0].to.count, 3);
    assert_int_equal(s->stats[1].to.identity, 22);
    assert_int_equal(s->stats[1].to.count, 2);
    assert_true(slot_count_rerouted(NULL, 11, 0, 1, quiet));
    free_slot(s);
}

static void test_statistics(void **state)
{
    (void)state;
    struct slot *s = new_slot();

    for (unsigned shard = 0; shard < 9; shard++)
        slot_count(s, (enum breaker_outcome)(shard % 3), shard);
    slot_count_refused(s, 12345);
    slot_note_failure(s, 3, 503, 777);
    slot_note_opened(s);
    struct slot_totals totals = slot_totals(s);
    assert_int_equal(totals.neutral, 3);
    assert_int_equal(totals.success, 3);
    assert_int_equal(totals.failure, 3);
    assert_int_equal(totals.refused, 1);
    assert_int_equal(s->last_failure, 3 << 16 | 503);
    assert_int_equal(s->last_failure_ns, 777);
    assert_int_equal(s->opened, 1);
    assert_int_equal(slot_word(s), 0);
    free_slot(s);
}

/* --- threads --------------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 200 };

static struct {
    struct slot *slot;
    pthread_barrier_t barrier;
    _Atomic unsigned grants[ROUNDS];
    _Atomic unsigned changes[ROUNDS];
} race;

static void *race_for_the_probe(void *unused)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        enum breaker_change change;
        pthread_barrier_wait(&race.barrier);
        struct breaker_admission admission =
            slot_admit(race.slot, (round + 1) * 200, &POLICY, &change);
        race.grants[round] += admission.verdict == BREAKER_GRANT;
        race.changes[round] += change == BREAKER_PROBING;
        pthread_barrier_wait(&race.barrier);
        /* The failure of the holder opens it for the next round. */
        if (admission.verdict == BREAKER_GRANT)
            slot_settle(race.slot, &admission.ticket, BREAKER_FAILURE, (round + 1) * 200, &POLICY,
                        NULL);
    }
    return unused;
}

static void test_one_thread_wins_the_grant(void **state)
{
    (void)state;
    pthread_t threads[THREADS];

    race.slot = new_slot();
    trip(race.slot);
    pthread_barrier_init(&race.barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, race_for_the_probe, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned round = 0; round < ROUNDS; round++) {
        assert_int_equal(race.grants[round], 1);
        assert_int_equal(race.changes[round], 1);
    }
    pthread_barrier_destroy(&race.barrier);
    free_slot(race.slot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_slot_admits_and_counts_nothing),
        cmocka_unit_test(test_healthy_calls_store_nothing),
        cmocka_unit_test(test_refusal_and_peek_store_nothing),
        cmocka_unit_test(test_a_whole_life),
        cmocka_unit_test(test_provisional_close_moves_the_ticket_on),
        cmocka_unit_test(test_where_calls_were_rerouted),
        cmocka_unit_test(test_statistics),
        cmocka_unit_test(test_one_thread_wins_the_grant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
