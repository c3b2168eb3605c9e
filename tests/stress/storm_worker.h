/*
 * storm_worker.h - a process of the kill storm: it makes calls until it is told to stop, or killed,
 * and says of each in a book what it is about to do and what it has done.
 */
#ifndef BREAKER_TESTS_STORM_WORKER_H
#define BREAKER_TESTS_STORM_WORKER_H

#include "crowd.h"

#include "table/slot.h"
#include "table/table.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>

enum { STORM_KEYS = 6, STORM_PROBES = 2, STORM_LEASES = 64 };

static const struct breaker_policy STORM_POLICY = {
    .failure_threshold = 4,
    .degrade_threshold = 2,
    .half_open_probes = STORM_PROBES,
    .success_threshold = 2,
    .backoff_q8 = 512,
    .jitter_q16 = 6553,
    .open_ticks = 40,
    .open_max_ticks = 100,
    .lease_ticks = 40,
    .failure_rate = RATE_ONE * 9 / 10,
    .window_ms = 60000,
    .min_calls = 40,
};
/* No wait is longer: open_max_ticks and its jitter. */
enum { STORM_WAIT_TICKS = 110 };

/* A lease by all that names it, and its grants that are out: time << 34 | generation << 23 |
 * lease << 16 | count. The last 64 of a key; who is late with an old one leaves it alone. */
typedef _Atomic uint64_t storm_lease;

/* What was said of a key. Each only grows. */
struct storm_page {
    _Atomic uint64_t begun, ended; /* settles: before and after they are counted */
    storm_lease leases[STORM_LEASES];
};

static struct {
    struct storm_page pages[STORM_KEYS];
    _Atomic uint64_t calls; /* how often a worker came round */
    _Atomic uint32_t now;   /* ticks: time is made by the calls */
    _Atomic unsigned stop;
    _Atomic unsigned too_many; /* grants of one lease beyond its probes */
    char path[96];
} * storm;

static inline void storm_key(unsigned key, char name[16])
{
    snprintf(name, 16, "key%u", key);
}

static inline uint64_t lease_name(uint64_t word)
{
    struct breaker_view view = breaker_decode(word);

    return (uint64_t)view.time << 34 | (uint64_t)view.generation << 23 | (uint64_t)view.lease << 16;
}

/* Granted: noted when it is there. Given back: noted before it is not. So of no lease more are
 * noted than it may have out. */
static inline void note_grant(unsigned key, uint64_t word, int change)
{
    storm_lease *lease = &storm->pages[key].leases[breaker_decode(word).lease & (STORM_LEASES - 1)];
    uint64_t name = lease_name(word), noted = atomic_load(lease), next;

    do {
        bool same = noted >> 16 == name >> 16;
        if (!same && (change < 0 || noted > name))
            return; /* an old one */
        next = same ? noted + (uint64_t)(int64_t)change : name | 1;
        if (same && change < 0 && (noted & 0xffff) == 0)
            return; /* whoever was granted it was killed before noting it */
    } while (!atomic_compare_exchange_weak(lease, &noted, next));
    if ((next & 0xffff) > STORM_PROBES)
        atomic_fetch_add(&storm->too_many, 1);
}

static inline void storm_call(const struct table *t, uint64_t *seed)
{
    unsigned key = crowd_random(seed, STORM_KEYS);
    char name[16];

    storm_key(key, name);
    struct span text = span_str(name);
    struct slot *s = table_claim(t, table_identity(t, text), text, true);
    struct breaker_admission admission =
        slot_admit(s, atomic_load(&storm->now), &STORM_POLICY, NULL);
    if (admission.verdict == BREAKER_REFUSE)
        return;
    if (admission.verdict == BREAKER_GRANT)
        note_grant(key, admission.next, 1);
    if (crowd_random(seed, 3) == 0)
        sched_yield(); /* the call takes its time */
    enum breaker_outcome outcome = (enum breaker_outcome)crowd_random(seed, 3);
    const struct breaker_extra extra = {.random = (uint16_t)crowd_random(seed, 65536),
                                        .provisional = outcome == BREAKER_SUCCESS &&
                                                       crowd_random(seed, 4) == 0};
    if (outcome == BREAKER_FAILURE && crowd_random(seed, 2)) /* quick enough to close again */
        outcome = BREAKER_SUCCESS;
    if (admission.verdict == BREAKER_GRANT && outcome != BREAKER_FAILURE)
        note_grant(key, admission.next, -1);
    atomic_fetch_add(&storm->pages[key].begun, 1);
    slot_settle(s, &admission.ticket, outcome, atomic_load(&storm->now), &STORM_POLICY, &extra);
    slot_count(s, outcome, (unsigned)getpid());
    atomic_fetch_add(&storm->pages[key].ended, 1);
}

/* Attaches like any program that starts, and creates the table if it is the first. */
static inline int storm_worker(unsigned index)
{
    uint64_t seed = (index + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)getpid() << 17;
    struct table t;

    if (table_open(&t, storm->path, false) != TABLE_OK)
        return 1;
    while (!atomic_load(&storm->stop)) {
        storm_call(&t, &seed);
        atomic_fetch_add(&storm->calls, 1);
        if (crowd_random(&seed, 8) == 0)
            atomic_fetch_add(&storm->now, 1);
    }
    return 0;
}

#endif
