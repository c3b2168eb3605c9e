/*
 * breaker_word.h - the word taken apart and put together, inlined into who decides: a call and a
 * struct through memory cost more than the decision. Private to core/; others: breaker_decode(),
 * breaker_encode().
 */
#ifndef BREAKER_CORE_BREAKER_WORD_H
#define BREAKER_CORE_BREAKER_WORD_H

#include "core/breaker.h"

/* The widths; the shifts are in breaker.h. */
enum {
    BREAKER_PHASE_BITS = 3,
    BREAKER_STEP_BITS = 4,
    BREAKER_GENERATION_BITS = 11,
    BREAKER_LEASE_BITS = 7,
    BREAKER_COUNT_BITS = 9,
    BREAKER_GRANTED_BITS = 4,
};

_Static_assert(BREAKER_COUNT_SHIFT == BREAKER_TIME_BITS, "time is the lowest field");
_Static_assert(BREAKER_LEASE_SHIFT == BREAKER_COUNT_SHIFT + BREAKER_COUNT_BITS, "no gap");
_Static_assert(BREAKER_GENERATION_SHIFT == BREAKER_LEASE_SHIFT + BREAKER_LEASE_BITS, "no gap");
_Static_assert(BREAKER_STEP_SHIFT == BREAKER_GENERATION_SHIFT + BREAKER_GENERATION_BITS, "no gap");
_Static_assert(BREAKER_PHASE_SHIFT == BREAKER_STEP_SHIFT + BREAKER_STEP_BITS, "no gap");
_Static_assert(BREAKER_PHASE_SHIFT + BREAKER_PHASE_BITS == 64, "phase is the highest field");
_Static_assert(BREAKER_STEP_MAX == (1 << BREAKER_STEP_BITS) - 1, "steps fit");
_Static_assert(BREAKER_GENERATION_MAX == (1 << BREAKER_GENERATION_BITS) - 1, "generations fit");
_Static_assert(BREAKER_LEASE_MAX == (1 << BREAKER_LEASE_BITS) - 1, "lease numbers fit");
_Static_assert(BREAKER_COUNT_MAX == (1 << BREAKER_COUNT_BITS) - 1, "streak fits");
_Static_assert(BREAKER_PROBES_MAX == (1 << BREAKER_GRANTED_BITS) - 1, "grants fit");
_Static_assert(BREAKER_SUCCESS_MAX == (1 << (BREAKER_COUNT_BITS - BREAKER_GRANTED_BITS)) - 1,
               "successes fit");

static inline uint64_t breaker_field_get(uint64_t word, unsigned shift, unsigned bits)
{
    return (word >> shift) & ((UINT64_C(1) << bits) - 1);
}

static inline uint64_t breaker_field_put(uint64_t value, unsigned shift, unsigned bits)
{
    return (value & ((UINT64_C(1) << bits) - 1)) << shift;
}

static inline struct breaker_view breaker_word_decode(uint64_t word)
{
    unsigned phase = (unsigned)breaker_field_get(word, BREAKER_PHASE_SHIFT, BREAKER_PHASE_BITS);
    unsigned count = (unsigned)breaker_field_get(word, BREAKER_COUNT_SHIFT, BREAKER_COUNT_BITS);
    struct breaker_view view = {
        .phase = BREAKER_CLOSED,
        .generation =
            (uint16_t)breaker_field_get(word, BREAKER_GENERATION_SHIFT, BREAKER_GENERATION_BITS),
        .lease = (uint8_t)breaker_field_get(word, BREAKER_LEASE_SHIFT, BREAKER_LEASE_BITS),
    };

    /* Of a phase that a later build may have written only the identities are kept, so that its
     * tickets stay told apart. */
    if (phase > BREAKER_FORCED_CLOSED)
        return view;
    view.phase = (enum breaker_phase)phase;
    view.step = (uint8_t)breaker_field_get(word, BREAKER_STEP_SHIFT, BREAKER_STEP_BITS);
    if (phase == BREAKER_CLOSED)
        view.streak = (uint16_t)count;
    if (phase == BREAKER_HALF_OPEN) {
        view.granted = (uint8_t)(count & BREAKER_PROBES_MAX);
        view.successes = (uint8_t)(count >> BREAKER_GRANTED_BITS);
    }
    if (phase == BREAKER_OPEN || phase == BREAKER_HALF_OPEN || view.streak > 0)
        view.time = (uint32_t)breaker_field_get(word, 0, BREAKER_TIME_BITS);
    return view;
}

static inline unsigned breaker_count_of(const struct breaker_view *view)
{
    if (view->phase == BREAKER_CLOSED)
        return view->streak > BREAKER_COUNT_MAX ? BREAKER_COUNT_MAX : view->streak;
    if (view->phase == BREAKER_HALF_OPEN)
        return (unsigned)view->successes << BREAKER_GRANTED_BITS |
               (view->granted & BREAKER_PROBES_MAX);
    return 0;
}

static inline uint64_t breaker_word_encode(const struct breaker_view *view)
{
    return breaker_field_put(view->phase, BREAKER_PHASE_SHIFT, BREAKER_PHASE_BITS) |
           breaker_field_put(view->step, BREAKER_STEP_SHIFT, BREAKER_STEP_BITS) |
           breaker_field_put(view->generation, BREAKER_GENERATION_SHIFT, BREAKER_GENERATION_BITS) |
           breaker_field_put(view->lease, BREAKER_LEASE_SHIFT, BREAKER_LEASE_BITS) |
           breaker_field_put(breaker_count_of(view), BREAKER_COUNT_SHIFT, BREAKER_COUNT_BITS) |
           breaker_field_put(view->time, 0, BREAKER_TIME_BITS);
}

#endif
