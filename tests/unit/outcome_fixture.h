/* outcome_fixture.h - ends of calls, and what they are by a policy of the default times. */
#ifndef BREAKER_TESTS_OUTCOME_FIXTURE_H
#define BREAKER_TESTS_OUTCOME_FIXTURE_H

#include "http/outcome.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define SECONDS(n) ((uint64_t)(n)*UINT64_C(1000000000))

static struct outcome_policy policy = {
    .timeout_after_ns = SECONDS(5),
    .hang_after_ns = SECONDS(30),
    .connect_hang_after_ns = SECONDS(3),
};

static inline int fill_policy(void **state)
{
    static const unsigned single[] = {408, 424, 498, 500, 502, 503, 504};

    (void)state;
    for (size_t i = 0; i < sizeof single / sizeof *single; i++)
        status_set_add(&policy.failure_status, single[i]);
    for (unsigned status = 520; status <= 530; status++)
        status_set_add(&policy.failure_status, status);
    return 0;
}

#define assert_outcome(end, host, model, cause)                                                    \
    expect_outcome((end), BREAKER_##host, BREAKER_##model, CAUSE_##cause, __LINE__)

static inline void expect_outcome(struct call_end end, enum breaker_outcome host,
                                  enum breaker_outcome model, enum outcome_cause cause, int line)
{
    struct outcome got = outcome_of(&end, &policy);

    if (got.host != host || got.model != model || got.cause != cause)
        fail_msg("line %d: host %d, model %d, cause %s", line, got.host, got.model,
                 outcome_cause_name(got.cause));
}

static inline struct call_end complete(unsigned status)
{
    return (struct call_end){.kind = END_COMPLETE,
                             .phase = PHASE_BODY,
                             .status = (uint16_t)status,
                             .byte_received = true,
                             .age_ns = SECONDS(1)};
}

/* An end of `kind` after `age`; bytes were received from the body on. */
static inline struct call_end ended(enum call_end_kind kind, enum call_phase phase, unsigned status,
                                    uint64_t age)
{
    return (struct call_end){.kind = kind,
                             .phase = phase,
                             .status = (uint16_t)status,
                             .byte_received = phase == PHASE_BODY,
                             .age_ns = age};
}

#endif
