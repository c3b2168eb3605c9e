/*
 * synthetic.h - the answer in place of a provider whose breaker is open: one whole HTTP/1.1
 * response in the provider's own error shape (FIELD-NOTES 6). Pure, no allocation.
 */
#ifndef BREAKER_HTTP_SYNTHETIC_H
#define BREAKER_HTTP_SYNTHETIC_H

#include "base/span.h"
#include "http/shape.h"

#include <stdint.h>

struct synthetic {
    enum api api;
    struct span key;         /* printable key; control and non-ASCII bytes are %XX in the header,
                                JSON-escaped in the body */
    const char *code;        /* of the 503: 1..SYNTHETIC_CODE_MAX bytes that JSON
                                takes as they are */
    const char *state;       /* "open", "half_open", "forced_open", "cooling_down" */
    bool by_hand;            /* held open: the words say so, and no time at which it is retried */
    uint32_t retry_after_ms; /* sent as whole seconds, rounded up, never 0. `by_hand`: when to ask
                                again, nothing is due then */
    bool should_retry;       /* false: x-should-retry: false, of Cohere's retry-after-ms: 1 besides;
                                true: both are left out */
    bool rate_limited;       /* 429 of a credential that was told to wait, in place of the 503; SDKs
                                may try again: no x-should-retry at all, and retry-after-ms */
    bool with_all;           /* rate_limited: everybody is to wait there */
    bool head_only;          /* HEAD: the same head, no body */
};

#define SYNTHETIC_MAX      4096 /* no response is longer */
#define SYNTHETIC_CODE_MAX 64

/* What Retry-After says of so many milliseconds. */
static inline unsigned synthetic_seconds(uint32_t retry_after_ms)
{
    unsigned seconds = retry_after_ms / 1000 + (retry_after_ms % 1000 != 0);

    return seconds > 0 ? seconds : 1;
}

/* Writes the response and a NUL into `buf`; returns its length, 0 when `size` is below
 * SYNTHETIC_MAX. HTTP/1.1 503 Service Unavailable, or 429 Too Many Requests; Content-Type:
 * application/json; exact Content-Length; Connection: close; Retry-After; x-should-retry;
 * X-Breaker-State; X-Breaker-Key; for Bedrock x-amzn-errortype. The marker code, `code` or of a
 * 429 "cooling_down", is in the body too. */
size_t synthetic_render(const struct synthetic *s, char *buf, size_t size);

#endif
