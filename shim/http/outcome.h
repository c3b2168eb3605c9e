/*
 * outcome.h - what an ended call says of the host and of the model: failure, success or neutral.
 *
 * The interposing layers describe an end in the words below, which are theirs in common; the rules
 * (DESIGN, Outcomes) are here and nowhere else. Pure.
 */
#ifndef BREAKER_HTTP_OUTCOME_H
#define BREAKER_HTTP_OUTCOME_H

#include "core/breaker.h"
#include "http/stream_state.h"

#include <stdbool.h>
#include <stdint.h>

/* How a call ended, as the layer saw it. */
enum call_end_kind {
    END_COMPLETE,  /* a final head and its whole message arrived; `status` tells */
    END_CONNECT,   /* the peer refused or did not answer the connect (by the system's word) */
    END_HANDSHAKE, /* connected, but TLS was reset or closed by the peer before it was up */
    END_BROKEN,    /* the peer closed, reset or garbled the exchange before its end */
    END_TIMEOUT,   /* the caller's own time-out, known as one (libcurl 28) */
    END_ABORTED,   /* the caller ended it: callback abort, remove_handle, close */
    END_LOCAL,     /* local trouble: descriptors, memory, routes, DNS, certificates, proxies */
    END_UNSENT,    /* never got a socket */
};

/* How far it had come. */
enum call_phase {
    PHASE_CONNECTING, /* no connection yet */
    PHASE_HANDSHAKE,  /* TCP up, TLS not */
    PHASE_WAITING,    /* request under way or sent, no final head */
    PHASE_BODY,       /* final head seen */
};

struct call_end {
    enum call_end_kind kind;
    enum call_phase phase;
    uint16_t status;      /* of the last final head; 0 = none */
    bool byte_received;   /* any byte from the peer itself (not from a proxy) */
    bool paused;          /* the application held the transfer paused at the end */
    bool redirected_away; /* the final head came from another host than the first request's */
    uint64_t age_ns; /* CLOCK_MONOTONIC, from the connect (or the send, on a kept connection) */
    uint32_t retry_after_ms; /* of the final head, 0 = none */
    bool quota_spent;        /* of a 429: its body says so (quota.h) */
    uint64_t first_byte_ns;  /* from when the request could go to its answer's first byte (not a
                                1xx's), or to the end where none came; 0: not told */
    uint64_t silent_ns;      /* PHASE_BODY: from the peer's last byte to the end; 0: not told */
};

/* Why, for the log, `last_failure.class` of the status and the slot. Values are part of the table's
 * ABI: append only. */
enum outcome_cause {
    CAUSE_NONE = 0,
    CAUSE_STATUS = 1,           /* "status" */
    CAUSE_CONNECT = 2,          /* "connect" */
    CAUSE_HANDSHAKE = 3,        /* "handshake" */
    CAUSE_BROKEN = 4,           /* "broken" */
    CAUSE_TIMEOUT = 5,          /* "timeout" */
    CAUSE_HANG = 6,             /* "hang" */
    CAUSE_CONNECT_HANG = 7,     /* "connect_hang" */
    CAUSE_MANUAL = 8,           /* "manual" */
    CAUSE_STREAM = 9,           /* "stream": an error inside the body of a good answer */
    CAUSE_SLOW_FIRST_BYTE = 10, /* "slow_first_byte" */
    CAUSE_STALL = 11,           /* "stall": given up in the body of a good answer, after silence */
};
const char *outcome_cause_name(enum outcome_cause cause); /* static; "unknown" for others */

/* No connection came to be, by the peer's doing: what H's failures are. */
static inline bool outcome_cause_is_connect(enum outcome_cause cause)
{
    return cause == CAUSE_CONNECT || cause == CAUSE_HANDSHAKE || cause == CAUSE_CONNECT_HANG;
}

/* A set of HTTP statuses, one bit each, of those from 100 on that settings may name: each call
 * carries some. Others are in no set. */
#define STATUS_SET_FIRST 100
#define STATUS_SET_COUNT 512
struct status_set {
    uint64_t bits[STATUS_SET_COUNT / 64];
};
static inline bool status_set_has(const struct status_set *set, unsigned status)
{
    unsigned bit = status - STATUS_SET_FIRST;

    return bit < STATUS_SET_COUNT && (set->bits[bit / 64] >> (bit % 64) & 1);
}
static inline void status_set_add(struct status_set *set, unsigned status)
{
    unsigned bit = status - STATUS_SET_FIRST;

    if (bit < STATUS_SET_COUNT)
        set->bits[bit / 64] |= UINT64_C(1) << (bit % 64);
}

/* The part of a policy that judges outcomes. */
struct outcome_policy {
    struct status_set failure_status;
    struct status_set neutral_status; /* wins over failure_status */
    const char *neutral_body;         /* texts, as the configuration lists them; "": none */
    uint64_t timeout_after_ns;
    uint64_t hang_after_ns;
    uint64_t connect_hang_after_ns;
    uint64_t slow_first_byte_ns; /* 0: never */
    uint64_t stall_after_ns;     /* 0: never */
};

/* H takes connect, refusal, handshake; the first byte received is its success. M takes statuses,
 * slow heads, broken messages. What counts for H is neutral for M. */
struct outcome {
    enum breaker_outcome host;
    enum breaker_outcome model;
    enum outcome_cause cause; /* of whichever failed, else CAUSE_NONE */
    enum stream_state body;   /* that decided (outcome_heed_body); STREAM_BLIND: it did not */
};
struct outcome outcome_of(const struct call_end *end, const struct outcome_policy *policy);

/* What a final head says of the model. */
enum breaker_outcome outcome_of_status(unsigned status, const struct outcome_policy *policy);
/* Did it come so late that its call fails, however good it is? */
static inline bool outcome_is_late(uint64_t first_byte_ns, const struct outcome_policy *policy)
{
    return policy->slow_first_byte_ns > 0 && first_byte_ns > policy->slow_first_byte_ns;
}

/* The body of a good answer has the last word: however its connection ended, an error in it is the
 * provider's failure, the caller's own (neutral) or a rate limit (what a 429 is: neutral, but for
 * rate_limit = count), and a stream that said its end is a success, unless it began too late.
 * *outcome is of outcome_of(). */
void outcome_heed_body(struct outcome *outcome, const struct call_end *end, enum stream_state said,
                       const struct outcome_policy *policy);

/* One of neutral_body was in the body of an answer whose status is a failure: that one conversation
 * is at fault (FIELD-NOTES 7.13). *outcome is of outcome_of(). */
void outcome_excuse(struct outcome *outcome);

/* H's where it is the one breaker of an LLM call (scope = host): what either failed by is its
 * failure, the model's success its success. A first byte alone is none: it comes before a 500, too.
 */
static inline enum breaker_outcome outcome_of_host_alone(const struct outcome *outcome)
{
    return outcome->host == BREAKER_FAILURE ? BREAKER_FAILURE : outcome->model;
}

#endif
