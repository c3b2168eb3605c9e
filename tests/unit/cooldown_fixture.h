/*
 * cooldown_fixture.h - calls of a credential, how they end, and the answer of ours to those that
 * are told to wait; on detour_fixture.h.
 */
#ifndef BREAKER_TESTS_COOLDOWN_FIXTURE_H
#define BREAKER_TESTS_COOLDOWN_FIXTURE_H

#include "detour_fixture.h"

#define KEY   HOST "/m"
#define PLAIN "[target " HOST "]\n"

/* Opens and admits a call of that credential; "" has none, NULL: the layer does not know. */
static inline enum shim_verdict ask_as(const char *credential, const char *model)
{
    struct shim_request request = request_to(URL, true);

    CHECK(shim_open(&call, &request) == SHIM_NEEDS_BODY);
    if (credential)
        shim_credential(&call, span_str(credential));
    CHECK(shim_body(&call, body_of(model), true));
    return shim_admit(&call);
}

static inline void end_with(unsigned status, uint32_t retry_after_ms)
{
    const struct call_end end = {.kind = END_COMPLETE,
                                 .phase = PHASE_BODY,
                                 .status = (uint16_t)status,
                                 .byte_received = true,
                                 .retry_after_ms = retry_after_ms};

    shim_settle(&call, &end);
}

static inline void limit(const char *credential, uint32_t retry_after_ms)
{
    CHECK(ask_as(credential, "m") == SHIM_ADMITTED);
    end_with(429, retry_after_ms);
}

static inline bool flows(const char *credential)
{
    if (ask_as(credential, "m") != SHIM_ADMITTED)
        return false;
    end_with(200, 0);
    return true;
}

static inline const char *answer(void)
{
    static char text[SHIM_RESPONSE_MAX];

    CHECK(shim_response(&call, text, sizeof text, false) > 0);
    return text;
}

/* In whole seconds, rounded up; deadlines are of ticks of 34 ms, rounded up too. */
static inline bool says_to_wait(unsigned seconds)
{
    const char *found = strstr(answer(), "\r\nRetry-After: ");
    unsigned long said = found ? strtoul(found + 15, NULL, 10) : 0;

    return said == seconds || said == seconds + 1;
}

#endif
