#include "table/slot.h"

_Static_assert(RATE_BUCKETS == sizeof((struct slot *)0)->rate / sizeof(uint64_t), "a line of them");

/* What so many others did to the same bucket meanwhile says enough. */
#define RATE_TRIES 8

static void read_words(const struct slot *s, uint64_t words[RATE_BUCKETS])
{
    for (unsigned i = 0; i < RATE_BUCKETS; i++)
        words[i] = atomic_load_explicit(&s->rate[i], memory_order_relaxed);
}

struct rate_sum slot_rate_add(struct slot *s, unsigned generation, bool failed, uint32_t now,
                              const struct breaker_policy *policy)
{
    uint64_t words[RATE_BUCKETS];

    for (unsigned tries = 0; tries < RATE_TRIES; tries++) {
        read_words(s, words);
        struct rate_place place = rate_add(words, generation, failed, now, policy);
        uint64_t *found = &words[place.bucket];
        if (atomic_compare_exchange_strong_explicit(&s->rate[place.bucket], found, place.next,
                                                    memory_order_relaxed, memory_order_relaxed)) {
            *found = place.next;
            break;
        }
    }
    return rate_sum(words, generation, now, policy);
}

struct rate_sum slot_rate(const struct slot *s, unsigned generation, uint32_t now,
                          const struct breaker_policy *policy)
{
    uint64_t words[RATE_BUCKETS] = {0};

    if (s)
        read_words(s, words);
    return rate_sum(words, generation, now, policy);
}
