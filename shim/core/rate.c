#include "core/rate.h"
#include "core/breaker_rules.h"

_Static_assert(RATE_BEGIN_SHIFT + BREAKER_TIME_BITS == 64, "begin is the highest field");
_Static_assert(RATE_GENERATION_MASK == (1 << (RATE_BEGIN_SHIFT - RATE_GENERATION_SHIFT)) - 1,
               "no gap");
_Static_assert(RATE_COUNT_MAX == (1 << RATE_CALLS_SHIFT) - 1, "failures are the lowest field");
_Static_assert(RATE_GENERATION_SHIFT == 2 * RATE_CALLS_SHIFT, "as wide as the calls");

#define NS_PER_MS UINT64_C(1000000)

uint32_t rate_bucket_ticks(const struct breaker_policy *policy)
{
    uint32_t ticks = breaker_ticks_of(policy->window_ms * NS_PER_MS / RATE_BUCKETS);

    return ticks > 0 ? ticks : 1;
}

static uint32_t begin_of(uint64_t word)
{
    return (uint32_t)(word >> RATE_BEGIN_SHIFT);
}

static uint32_t calls_of(uint64_t word)
{
    return (uint32_t)(word >> RATE_CALLS_SHIFT) & RATE_COUNT_MAX;
}

static uint32_t failures_of(uint64_t word)
{
    uint32_t failures = (uint32_t)word & RATE_COUNT_MAX;

    return failures < calls_of(word) ? failures : calls_of(word);
}

static bool holds(uint64_t word, unsigned generation)
{
    return calls_of(word) > 0 && (word >> RATE_GENERATION_SHIFT & RATE_GENERATION_MASK) ==
                                     (generation & RATE_GENERATION_MASK);
}

/* Since it began. Of one that begins in a moment, by the word of a caller that looked at the clock
 * after us, none; further ahead is nonsense, and older than any. */
static uint32_t age_of(uint64_t word, uint32_t now, uint32_t bucket_ticks)
{
    uint32_t ahead = breaker_ticks_until(begin_of(word), now);

    return ahead < bucket_ticks ? 0 : breaker_ticks_until(now, begin_of(word));
}

/* Empty ones first, then those that no window of this generation holds, then the oldest. */
static uint64_t staleness(uint64_t word, unsigned generation, uint32_t now, uint32_t bucket_ticks)
{
    uint64_t age = age_of(word, now, bucket_ticks);

    if (calls_of(word) == 0)
        return UINT64_MAX;
    return holds(word, generation) ? age : age + BREAKER_TIME_MASK + 1;
}

static uint64_t counted(uint64_t word, bool failed)
{
    uint32_t calls = calls_of(word), failures = failures_of(word);

    if (calls == RATE_COUNT_MAX) {
        calls /= 2;
        failures /= 2;
    }
    calls++;
    failures += failed;
    return word >> RATE_GENERATION_SHIFT << RATE_GENERATION_SHIFT |
           (uint64_t)calls << RATE_CALLS_SHIFT | failures;
}

static uint64_t fresh(unsigned generation, uint32_t now)
{
    return (uint64_t)now << RATE_BEGIN_SHIFT | (uint64_t)(generation & RATE_GENERATION_MASK)
                                                   << RATE_GENERATION_SHIFT;
}

struct rate_place rate_add(const uint64_t words[RATE_BUCKETS], unsigned generation, bool failed,
                           uint32_t now, const struct breaker_policy *policy)
{
    uint32_t bucket_ticks = rate_bucket_ticks(policy);
    unsigned stalest = 0;

    for (unsigned i = 0; i < RATE_BUCKETS; i++) {
        if (holds(words[i], generation) && age_of(words[i], now, bucket_ticks) < bucket_ticks)
            return (struct rate_place){i, counted(words[i], failed)};
        if (staleness(words[i], generation, now, bucket_ticks) >
            staleness(words[stalest], generation, now, bucket_ticks))
            stalest = i;
    }
    return (struct rate_place){stalest, counted(fresh(generation, now), failed)};
}

struct rate_sum rate_sum(const uint64_t words[RATE_BUCKETS], unsigned generation, uint32_t now,
                         const struct breaker_policy *policy)
{
    uint32_t bucket_ticks = rate_bucket_ticks(policy);
    struct rate_sum sum = {0};

    for (unsigned i = 0; i < RATE_BUCKETS; i++) {
        if (!holds(words[i], generation) ||
            age_of(words[i], now, bucket_ticks) >= RATE_BUCKETS * bucket_ticks)
            continue;
        sum.calls += calls_of(words[i]);
        sum.failures += failures_of(words[i]);
    }
    return sum;
}

bool rate_exceeded(const struct rate_sum *sum, const struct breaker_policy *policy)
{
    return rate_is_on(policy) && sum->calls > 0 && sum->calls >= policy->min_calls &&
           (uint64_t)sum->failures * RATE_ONE >= (uint64_t)policy->failure_rate * sum->calls;
}
