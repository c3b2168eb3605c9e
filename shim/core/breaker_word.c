#include "core/breaker.h"
#include "core/breaker_rules.h"

/* One place that knows the bits: the shift and the width of each field. */
enum {
    PHASE_SHIFT = 61,
    PHASE_BITS = 3,
    STEP_SHIFT = 57,
    STEP_BITS = 4,
    GENERATION_SHIFT = 46,
    GENERATION_BITS = 11,
    LEASE_SHIFT = 39,
    LEASE_BITS = 7,
    COUNT_SHIFT = 30,
    COUNT_BITS = 9,
    GRANTED_BITS = 4,
};

_Static_assert(COUNT_SHIFT == BREAKER_TIME_BITS, "time is the lowest field");
_Static_assert(LEASE_SHIFT == COUNT_SHIFT + COUNT_BITS, "no gap");
_Static_assert(GENERATION_SHIFT == LEASE_SHIFT + LEASE_BITS, "no gap");
_Static_assert(STEP_SHIFT == GENERATION_SHIFT + GENERATION_BITS, "no gap");
_Static_assert(PHASE_SHIFT == STEP_SHIFT + STEP_BITS && PHASE_SHIFT + PHASE_BITS == 64, "no gap");
_Static_assert(BREAKER_COUNT_MAX == (1 << COUNT_BITS) - 1, "streak fits");
_Static_assert(BREAKER_PROBES_MAX == (1 << GRANTED_BITS) - 1, "grants fit");
_Static_assert(BREAKER_SUCCESS_MAX == (1 << (COUNT_BITS - GRANTED_BITS)) - 1, "successes fit");
_Static_assert(BREAKER_LEASE_MASK == (1 << LEASE_BITS) - 1, "lease numbers fit");
_Static_assert(BREAKER_STEP_MAX == (1 << STEP_BITS) - 1, "steps fit");

static uint64_t field_get(uint64_t word, unsigned shift, unsigned bits)
{
    return (word >> shift) & ((UINT64_C(1) << bits) - 1);
}

static uint64_t field_put(uint64_t value, unsigned shift, unsigned bits)
{
    return (value & ((UINT64_C(1) << bits) - 1)) << shift;
}

struct breaker_view breaker_decode(uint64_t word)
{
    unsigned phase = (unsigned)field_get(word, PHASE_SHIFT, PHASE_BITS);
    unsigned count = (unsigned)field_get(word, COUNT_SHIFT, COUNT_BITS);
    struct breaker_view view = {
        .phase = BREAKER_CLOSED,
        .generation = (uint16_t)field_get(word, GENERATION_SHIFT, GENERATION_BITS),
        .lease = (uint8_t)field_get(word, LEASE_SHIFT, LEASE_BITS),
    };

    /* Of a phase that a later build may have written only the identities are kept, so that its
     * tickets stay told apart. */
    if (phase > BREAKER_FORCED_CLOSED)
        return view;
    view.phase = (enum breaker_phase)phase;
    view.step = (uint8_t)field_get(word, STEP_SHIFT, STEP_BITS);
    if (phase == BREAKER_CLOSED)
        view.streak = (uint16_t)count;
    if (phase == BREAKER_HALF_OPEN) {
        view.granted = (uint8_t)(count & BREAKER_PROBES_MAX);
        view.successes = (uint8_t)(count >> GRANTED_BITS);
    }
    if (phase == BREAKER_OPEN || phase == BREAKER_HALF_OPEN || view.streak > 0)
        view.time = (uint32_t)field_get(word, 0, BREAKER_TIME_BITS);
    return view;
}

static unsigned count_of(const struct breaker_view *view)
{
    if (view->phase == BREAKER_CLOSED)
        return view->streak > BREAKER_COUNT_MAX ? BREAKER_COUNT_MAX : view->streak;
    if (view->phase == BREAKER_HALF_OPEN)
        return (unsigned)view->successes << GRANTED_BITS | (view->granted & BREAKER_PROBES_MAX);
    return 0;
}

uint64_t breaker_encode(const struct breaker_view *view)
{
    return field_put(view->phase, PHASE_SHIFT, PHASE_BITS) |
           field_put(view->step, STEP_SHIFT, STEP_BITS) |
           field_put(view->generation, GENERATION_SHIFT, GENERATION_BITS) |
           field_put(view->lease, LEASE_SHIFT, LEASE_BITS) |
           field_put(count_of(view), COUNT_SHIFT, COUNT_BITS) |
           field_put(view->time, 0, BREAKER_TIME_BITS);
}
