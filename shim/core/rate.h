/*
 * rate.h - the share of calls that failed within the last so many seconds, as a pure function over
 * eight words.
 *
 * Each word is a bucket: it takes the calls that are settled within an eighth of the window from
 * its first one on. It says itself when it began and for which generation of the breaker it counts,
 * so it needs no upkeep while nothing happens: one that is too old, or of another generation, is
 * empty to whoever reads it, and the first to be used again. All functions are total, whatever the
 * words: none counts for longer than the window and one bucket.
 *
 * The word, from the high bits down:
 *
 *   63..34 begin       tick of its first call, modulo 2^30 (core/breaker.h)
 *   33..28 generation  the low bits of the breaker's
 *   27..14 calls       successes and failures; 0: an empty bucket, whatever else it says
 *   13..0  failures    of those
 *
 * A bucket that is full goes on with half of both, so that the share stays as it is.
 */
#ifndef BREAKER_CORE_RATE_H
#define BREAKER_CORE_RATE_H

#include "core/breaker.h"

#define RATE_BUCKETS          8
#define RATE_BEGIN_SHIFT      34
#define RATE_GENERATION_SHIFT 28
#define RATE_GENERATION_MASK  63
#define RATE_CALLS_SHIFT      14
#define RATE_COUNT_MAX        ((1 << 14) - 1) /* of one bucket */
#define RATE_ONE              1000000         /* breaker_policy.failure_rate of 1 */

static inline bool rate_is_on(const struct breaker_policy *policy)
{
    return policy->failure_rate > 0;
}

/* Ticks of one bucket: an eighth of the window, rounded up; at least 1. */
uint32_t rate_bucket_ticks(const struct breaker_policy *policy);

/* Where a settled call belongs, and what that word is then. */
struct rate_place {
    unsigned bucket; /* below RATE_BUCKETS */
    uint64_t next;
};
struct rate_place rate_add(const uint64_t words[RATE_BUCKETS], unsigned generation, bool failed,
                           uint32_t now, const struct breaker_policy *policy);

/* What the window that ends at `now` holds. Never a call older than it, always those of its later
 * seven eighths (unless the clocks of who wrote them differ). failures <= calls. */
struct rate_sum {
    uint32_t calls, failures;
};
struct rate_sum rate_sum(const uint64_t words[RATE_BUCKETS], unsigned generation, uint32_t now,
                         const struct breaker_policy *policy);

/* At least min_calls, and of them at least failure_rate failed. False while no rate is set. */
bool rate_exceeded(const struct rate_sum *sum, const struct breaker_policy *policy);

#endif
