/* Processes that do the same at once: each lease grants its number, whoever dies holding a grant,
 * and no failure of many gets lost. Killed at any moment they are in stress_storm.c. */
#include "table/slot.h"
#include "table/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>
#include <signal.h>

#include "crowd.h"

enum { PROBES = 2 };

static const struct breaker_policy POLICY = {
    .failure_threshold = 5,
    .half_open_probes = PROBES,
    .success_threshold = 1,
    .backoff_q8 = 256,
    .open_ticks = 10,
    .open_max_ticks = 10,
    .lease_ticks = 10,
};

static struct table table;

static struct slot *slot_named(const char *key)
{
    return table_claim(&table, table_identity(&table, span_str(key)), span_str(key), true);
}

/* --- every lease grants exactly half_open_probes, whoever dies holding one ---------------------
 */

enum { CALLERS = 8, LEASES = 60 };

static struct {
    pthread_barrier_t *barrier;
    _Atomic unsigned *grants;
    struct slot *slot;
    uint32_t now;
} lease;

static int call_once(unsigned index)
{
    uint64_t seed = (index + 1) * UINT64_C(0x9e3779b97f4a7c15) + lease.now;

    pthread_barrier_wait(lease.barrier);
    struct breaker_admission admission = slot_admit(lease.slot, lease.now, &POLICY, NULL);
    if (admission.verdict != BREAKER_GRANT)
        return admission.verdict != BREAKER_REFUSE;
    atomic_fetch_add(lease.grants, 1);
    if (crowd_random(&seed, 2))
        raise(SIGKILL);
    return 0; /* the others forget it: the lease ends by itself all the same */
}

static void test_each_lease_grants_its_number(void **state)
{
    (void)state;
    unsigned killed = 0;
    pid_t pids[CALLERS];

    lease.barrier = crowd_barrier(CALLERS);
    lease.grants = crowd_shared(sizeof *lease.grants);
    lease.slot = slot_named("lease");
    lease.slot->word = breaker_trip(0, 0, &POLICY, 0);
    for (unsigned i = 1; i <= LEASES; i++) {
        lease.now = i * 10;
        *lease.grants = 0;
        crowd_start(pids, CALLERS, call_once);
        assert_int_equal(crowd_wait(pids, CALLERS, &killed), 0);
        assert_int_equal(*lease.grants, PROBES);
    }
    assert_true(killed > 0);
}

/* --- failures one after another, by many processes ---------------------------------------------
 */

enum { FAILERS = 4, FAILURES = 480 };

static struct {
    _Atomic unsigned *turn;
    struct slot *slot;
} streak;

static int fail_in_turn(unsigned index)
{
    struct breaker_policy policy = POLICY;
    policy.failure_threshold = FAILURES;

    for (unsigned i = index; i < FAILURES; i += FAILERS) {
        while (atomic_load(streak.turn) != i)
            sched_yield();
        struct breaker_admission admission = slot_admit(streak.slot, i, &policy, NULL);
        enum breaker_change change =
            slot_settle(streak.slot, &admission.ticket, BREAKER_FAILURE, i, &policy, NULL);
        slot_count(streak.slot, BREAKER_FAILURE, index);
        if ((change == BREAKER_TRIPPED) != (i + 1 == FAILURES))
            return 1;
        if (i + 1 < FAILURES && breaker_decode(slot_word(streak.slot)).streak != i + 1)
            return 2;
        atomic_store(streak.turn, i + 1);
    }
    return 0;
}

static void test_no_failure_is_lost(void **state)
{
    (void)state;
    pid_t pids[FAILERS];

    streak.turn = crowd_shared(sizeof *streak.turn);
    streak.slot = slot_named("streak");
    crowd_start(pids, FAILERS, fail_in_turn);
    assert_int_equal(crowd_wait(pids, FAILERS, NULL), 0);
    assert_int_equal(breaker_decode(slot_word(streak.slot)).phase, BREAKER_OPEN);
    assert_int_equal(slot_totals(streak.slot).failure, FAILURES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_lease_grants_its_number),
        cmocka_unit_test(test_no_failure_is_lost),
    };
    if (table_open_private(&table) != TABLE_OK)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    table_close(&table);
    return failed;
}
