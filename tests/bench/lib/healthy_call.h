/*
 * healthy_call.h - what a healthy call asks for, and how it ends.
 */
#ifndef BREAKER_BENCH_HEALTHY_CALL_H
#define BREAKER_BENCH_HEALTHY_CALL_H

#include "shim.h"

static const struct shim_request request = {
    .method = {"POST", 4},
    .scheme = {"https", 5},
    .host = {"api.openai.com", 14},
    .port = 443,
    .path = {"/v1/chat/completions", 20},
};

static const struct call_end good = {.kind = END_COMPLETE,
                                     .phase = PHASE_BODY,
                                     .status = 200,
                                     .byte_received = true,
                                     .age_ns = CLOCK_NS_PER_MS};

#endif
