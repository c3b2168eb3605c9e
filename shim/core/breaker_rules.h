/*
 * breaker_rules.h - the few rules that deciding and showing must read alike. Private to core/.
 */
#ifndef BREAKER_CORE_BREAKER_RULES_H
#define BREAKER_CORE_BREAKER_RULES_H

#include "core/breaker.h"

#define BREAKER_TIME_MASK ((UINT32_C(1) << BREAKER_TIME_BITS) - 1)

_Static_assert(BREAKER_HORIZON_TICKS < BREAKER_TIME_MASK / 2, "a fraction of the circle of ticks");

static inline uint32_t breaker_ticks_until(uint32_t deadline, uint32_t now)
{
    return (deadline - now) & BREAKER_TIME_MASK;
}

/* Beyond the horizon counts as over: a clock or a bit that went wrong blocks nobody for ever. */
static inline bool breaker_is_pending(uint32_t deadline, uint32_t now)
{
    uint32_t left = breaker_ticks_until(deadline, now);

    return left > 0 && left <= BREAKER_HORIZON_TICKS;
}

/* On the circle of ticks, "at or after" means less than half a turn ahead. */
static inline bool breaker_at_or_after(uint32_t tick, uint32_t reference)
{
    return breaker_ticks_until(tick, reference) <= BREAKER_TIME_MASK / 2;
}

static inline bool breaker_shows_degraded(unsigned streak, const struct breaker_policy *policy)
{
    return policy->degrade_threshold > 0 && streak >= policy->degrade_threshold;
}

#endif
