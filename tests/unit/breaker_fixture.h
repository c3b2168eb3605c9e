/*
 * breaker_fixture.h - the policy and the time that the tests of the core share.
 */
#ifndef BREAKER_TESTS_BREAKER_FIXTURE_H
#define BREAKER_TESTS_BREAKER_FIXTURE_H

#include "core/breaker.h"

static const struct breaker_policy POLICY = {
    .failure_threshold = 5,
    .degrade_threshold = 3,
    .half_open_probes = 1,
    .success_threshold = 1,
    .backoff_q8 = 256,
    .open_ticks = 1000,
    .open_max_ticks = 8000,
    .lease_ticks = 900,
};

enum { NOW = 5000 };

static inline struct breaker_view at(uint64_t word)
{
    return breaker_decode(word);
}

#endif
