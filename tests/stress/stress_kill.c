/* Processes hammering one table while others are killed at any instruction (kill -9): grants stay
 * within their lease, no failure gets lost, no key stands twice, nothing waits. */
#include "table/slot.h"
#include "table/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

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

/* --- free running, with a killer ---------------------------------------------------------------
 */

enum { WORKERS = 4, KEYS = 6, VICTIMS = 300, WORK_BETWEEN = 400, LOG_MAX = 1 << 20, WINDOW = 50 };

/* What was granted, and what is about to be given back. */
struct grant_entry {
    _Atomic uint32_t key_and_lease; /* 1 + key << 20 | generation << 7 | lease; 0: never written */
    _Atomic uint32_t returned;
};

static struct {
    _Atomic uint64_t *ops;
    _Atomic uint32_t *now, *logged;
    _Atomic uint32_t *stop;
    struct grant_entry *log;
} hammer;

static void log_grant(unsigned key, const struct breaker_ticket *ticket, bool returned)
{
    uint32_t at = atomic_fetch_add(hammer.logged, 1);
    if (at >= LOG_MAX)
        return;
    atomic_store(&hammer.log[at].returned, returned);
    atomic_store(&hammer.log[at].key_and_lease,
                 (key + 1) << 20 | (uint32_t)ticket->generation << 7 | ticket->lease);
}

static int hammer_one(uint64_t *seed)
{
    unsigned key = crowd_random(seed, KEYS);
    char name[16];
    snprintf(name, sizeof name, "key%u", key);
    struct slot *s = slot_named(name);
    uint32_t now = atomic_load(hammer.now);

    if (!s)
        return 1;
    if (crowd_random(seed, 40) == 0) {
        uint64_t word = slot_word(s);
        while (
            !atomic_compare_exchange_strong(&s->word, &word, breaker_trip(word, now, &POLICY, 0)))
            ;
    }
    struct breaker_admission admission = slot_admit(s, now, &POLICY, NULL);
    if (admission.verdict == BREAKER_REFUSE)
        return 0;
    if (admission.verdict == BREAKER_GRANT) {
        if (breaker_decode(admission.next).granted > PROBES)
            return 2;
        log_grant(key, &admission.ticket, false);
    }
    if (crowd_random(seed, 3) == 0)
        sched_yield(); /* the call takes its time */
    enum breaker_outcome outcome = (enum breaker_outcome)crowd_random(seed, 3);
    if (outcome == BREAKER_NEUTRAL && admission.ticket.probe)
        log_grant(key, &admission.ticket, true);
    slot_settle(s, &admission.ticket, outcome, atomic_load(hammer.now), &POLICY, NULL);
    struct breaker_view view = breaker_decode(slot_word(s));
    return view.phase == BREAKER_HALF_OPEN && view.granted > PROBES ? 3 : 0;
}

static int hammer_until_stopped(unsigned index)
{
    uint64_t seed = (index + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)getpid();

    while (!atomic_load(hammer.stop)) {
        int bad = hammer_one(&seed);
        if (bad)
            return bad;
        atomic_fetch_add(hammer.ops, 1);
        atomic_fetch_add(hammer.now, crowd_random(&seed, 2));
    }
    return 0;
}

/* Grants are logged when they are there, and returned before they are not: of no lease are more in
 * the log than it may have out. The numbers wrap, so only near neighbours are compared. */
static void assert_leases_kept(void)
{
    uint32_t count = *hammer.logged < LOG_MAX ? *hammer.logged : LOG_MAX, returned = 0;

    for (uint32_t i = 0; i < count; i++) {
        int out = 0;
        returned += hammer.log[i].returned;
        if (hammer.log[i].key_and_lease == 0)
            continue;
        for (uint32_t j = i < WINDOW ? 0 : i - WINDOW; j <= i; j++)
            if (hammer.log[j].key_and_lease == hammer.log[i].key_and_lease)
                out += hammer.log[j].returned ? -1 : 1;
        assert_true(out <= PROBES);
    }
    assert_true(count > 1000 && returned > 100);
}

static void assert_no_key_twice(void)
{
    for (unsigned a = 0; a < TABLE_CAPACITY; a++)
        for (unsigned b = a + 1; b < TABLE_CAPACITY; b++)
            assert_true(table.slots[a].identity == 0 ||
                        table.slots[a].identity != table.slots[b].identity);
}

static void assert_all_recover(void)
{
    for (unsigned key = 0; key < KEYS; key++) {
        char name[16], text[TABLE_KEY_TEXT_SIZE];
        snprintf(name, sizeof name, "key%u", key);
        struct slot *s = slot_named(name);
        assert_true(table_key_read(s, text, sizeof text) > 0);
        assert_string_equal(text, name);
        struct breaker_admission admission = slot_admit(s, *hammer.now + 100, &POLICY, NULL);
        assert_int_not_equal(admission.verdict, BREAKER_REFUSE);
    }
}

static void test_killed_at_any_instruction(void **state)
{
    (void)state;
    pid_t pids[WORKERS];
    unsigned killed = 0;
    uint64_t seed = 4711;

    hammer.ops = crowd_shared(sizeof *hammer.ops);
    hammer.now = crowd_shared(sizeof *hammer.now);
    hammer.logged = crowd_shared(sizeof *hammer.logged);
    hammer.stop = crowd_shared(sizeof *hammer.stop);
    hammer.log = crowd_shared(sizeof *hammer.log * LOG_MAX);
    crowd_start(pids, WORKERS, hammer_until_stopped);
    for (unsigned victim = 0; victim < VICTIMS; victim++) {
        uint64_t until = atomic_load(hammer.ops) + WORK_BETWEEN;
        while (atomic_load(hammer.ops) < until)
            sched_yield();
        unsigned index = crowd_random(&seed, WORKERS);
        kill(pids[index], SIGKILL);
        assert_int_equal(crowd_wait(&pids[index], 1, &killed), 0);
        crowd_start(&pids[index], 1, hammer_until_stopped);
    }
    atomic_store(hammer.stop, 1);
    assert_int_equal(crowd_wait(pids, WORKERS, NULL), 0);
    assert_int_equal(killed, VICTIMS);
    assert_leases_kept();
    assert_no_key_twice();
    assert_all_recover();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_lease_grants_its_number),
        cmocka_unit_test(test_no_failure_is_lost),
        cmocka_unit_test(test_killed_at_any_instruction),
    };
    if (table_open_private(&table) != TABLE_OK)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    table_close(&table);
    return failed;
}
