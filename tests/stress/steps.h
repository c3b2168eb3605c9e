/*
 * steps.h - table/slot.c itself, one access to the word at a time, so that a test decides what
 * happens between two of them. What a caller keeps between its accesses is the word that it found:
 * all else is computed again from it, so a caller is stopped by letting it run to its next swap and
 * throwing that run away.
 */
#ifndef BREAKER_TESTS_STEPS_H
#define BREAKER_TESTS_STEPS_H

#include "core/breaker.h"
#include "table/layout.h"

#include <stdbool.h>
#include <stdint.h>

enum { STEPS_TRIES = 8 }; /* lost races after which a streak update is dropped (slot.h) */

enum steps_until {
    STEPS_LOAD, /* load, and stop before the first swap */
    STEPS_SWAP, /* one swap; if that loses, stop before the next */
    STEPS_LOSE, /* every swap is lost to somebody who wrote the same word */
};

static struct {
    enum steps_until until;
    uint64_t found; /* what the load finds */
    uint64_t word;  /* what stands in the slot */
    unsigned swaps;
    bool overtaken; /* the first swap loses */
    bool landed;    /* the swap won: `word` is the new one */
    bool stopped;   /* before a swap of `expected` against `desired`; the results mean nothing */
    uint64_t expected, desired;
} steps;

static inline uint64_t steps_load(void)
{
    return steps.found;
}

static inline bool steps_swap(uint64_t *expected, uint64_t desired)
{
    unsigned lost = steps.until == STEPS_LOSE ? STEPS_TRIES : steps.until == STEPS_SWAP ? 1 : 0;

    if (steps.until == STEPS_SWAP && steps.swaps == 0 && !steps.overtaken &&
        *expected == steps.word) {
        steps.word = desired;
        steps.landed = true;
        return true;
    }
    if (steps.swaps++ < lost) {
        *expected = steps.word;
        return false;
    }
    steps.stopped = true;
    steps.expected = *expected;
    steps.desired = desired;
    return true;
}

#undef atomic_load_explicit
#undef atomic_compare_exchange_strong_explicit
#define atomic_load_explicit(address, order) ((void)(address), steps_load())
#define atomic_compare_exchange_strong_explicit(address, expected, desired, won, lost)             \
    ((void)(address), steps_swap(expected, desired))
#include "table/slot.c"

static struct slot steps_slot; /* never read: both accesses are ours */

/* Who was overtaken had found another word, but which is not kept: its swap loses. Should the word
 * that it had found stand there again, its swap would win and do what it now does by the next. */
static inline void steps_begin(enum steps_until until, uint64_t found, bool overtaken,
                               uint64_t word)
{
    steps.overtaken = overtaken;
    steps.until = until;
    steps.found = overtaken ? word : found;
    steps.word = word;
    steps.swaps = 0;
    steps.landed = steps.stopped = false;
}

static inline struct breaker_admission
steps_admit(uint32_t now, const struct breaker_policy *policy, enum breaker_change *change)
{
    return slot_admit(&steps_slot, now, policy, change);
}

static inline enum breaker_change steps_settle(struct breaker_ticket *ticket,
                                               enum breaker_outcome outcome, uint32_t now,
                                               const struct breaker_policy *policy,
                                               const struct breaker_extra *extra)
{
    return slot_settle(&steps_slot, ticket, outcome, now, policy, extra);
}

#endif
