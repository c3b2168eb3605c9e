/*
 * slow_fixture.h - settings that count what is slow, and the bodies and the count that tell; on
 * shim_fixture.h.
 */
#ifndef BREAKER_TESTS_SLOW_FIXTURE_H
#define BREAKER_TESTS_SLOW_FIXTURE_H

#include "shim_fixture.h"

#define SLOW  "slow_first_byte=2\nstall_after=2"
#define DELTA "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"
#define DONE  "data: [DONE]\n\n"

static inline uint32_t last_failure(const char *key)
{
    return atomic_load(&slot_of(key)->last_failure);
}

#endif
