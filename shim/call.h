/*
 * call.h - the inside of a struct shim_call. Private to shim.c and its parts.
 */
#ifndef BREAKER_CALL_H
#define BREAKER_CALL_H

#include "base/hash.h"
#include "http/model_scan.h"
#include "http/shape.h"
#include "http/quota.h"
#include "http/stream.h"
#include "process.h"
#include "route/route.h"
#include "shim.h"
#include "table/slot.h"

#define CALL_KEY_MAX (ROUTE_HOST_MAX + 1 + MODEL_MAX)

#define CALL_TEXTS      4   /* scheme, method, host, path */
#define CALL_JUDGED_MAX 384 /* a longer request is judged each time */

/* What reads the body of an answer: of a good one for an error in it; of a bad one for a quota that
 * is spent, and for what neutral_body names. */
union call_body {
    struct stream stream;
    struct {
        struct quota quota;        /* if call->limited */
        struct body_search excuse; /* if call->excusable */
    };
};

enum call_state {
    CALL_IDLE,     /* nothing open */
    CALL_OPEN,     /* covered, not yet admitted */
    CALL_ADMITTED, /* H (and M, unless pending) admitted, to be settled */
    CALL_REFUSED,  /* shim_response() may be asked */
};

/* One of the two breakers of a call. */
struct call_side {
    struct policy policy;
    struct slot *slot; /* in call->table; NULL: not claimed yet, or no room */
    uint64_t identity;
    const struct table *named_in; /* whose identity of the key that is; NULL: none's */
    struct breaker_ticket ticket;
    bool admitted;
};

struct call {
    enum call_state state;
    enum model_place place;
    enum api api;
    bool model_decided;          /* found, named, absent, in the path, or not needed */
    bool host_alone;             /* scope = host: an LLM call whose one breaker is H */
    bool reroutes;               /* shim_request.reroutes */
    bool exhausted;              /* no fallback took it: when_exhausted decides now */
    bool detour;                 /* of a shim_detour: refused whatever when_exhausted says */
    bool model_policy_valid;     /* side[M].policy is of key[0..key_len) under `config` */
    uint16_t host_len;           /* key H is key[0..host_len) */
    uint16_t key_len;            /* key M is key[0..key_len); host_len when there is none */
    bool credential_asked;       /* credential_tell was asked, or must not be any more */
    bool credential_known;       /* `credential` was told */
    uint32_t timeout_ticks;      /* its own time-out; 0: not told, or none */
    unsigned epoch;              /* process_epoch() of the admission */
    uint64_t admitted_ns;        /* CLOCK_BOOTTIME, when it was opened */
    uint64_t suspended_ns;       /* process_suspended_known() of the admission */
    const struct config *config; /* that opened it */
    const struct table *table;   /* that admitted it */
    struct call_side host, model;
    struct {
        bool model; /* M refused, else H */
        enum breaker_state state;
        bool parked;         /* by a cool-down, whatever the breaker says */
        bool with_all;       /* parked: and so is everybody, not its credential alone */
        bool obeyed;         /* counted */
        const char *why_not; /* why no fallback took it; NULL: none was asked. The detour's */
        uint32_t wait_ms;
        uint64_t now_ns; /* CLOCK_BOOTTIME */
    } refusal;
    uint64_t credential; /* if known: its hash, without the table's seed; 0: it has none */
    shim_credential_tell *credential_tell; /* NULL: the layer tells it by itself */
    void *credential_data;
    /* What the last shim_open found, for shim_open_again; under judged_config, NULL: nothing. */
    const struct config *judged_config;
    struct shape judged_shape;
    bool judged_covered;
    /* And the request itself, so that shim_open, too, knows it again: its texts one after the
     * other. Calls are moved: nothing points into them. */
    bool judged_known;
    bool judged_fallback; /* shim_request.is_fallback */
    uint16_t judged_port;
    uint16_t judged_model; /* where in them judged_shape.model stands, if there is one */
    uint16_t judged_len[CALL_TEXTS];
    char judged_text[CALL_JUDGED_MAX];
    bool limited;         /* the answer is a 429 */
    bool excusable;       /* its status is a failure, and neutral_body may say that it is none */
    union call_body body; /* neither: a stream; STREAM_BLIND until shim_head */
    struct model_scan scan;
    char key[CALL_KEY_MAX];
};

_Static_assert(sizeof(struct call) <= SHIM_CALL_SIZE, "struct shim_call is too small");

static inline struct call *call_of(struct shim_call *call)
{
    return (struct call *)(void *)call->opaque;
}

static inline const struct call *call_of_const(const struct shim_call *call)
{
    return (const struct call *)(const void *)call->opaque;
}

static inline bool call_has_model(const struct call *call)
{
    return call->key_len > call->host_len;
}

static inline struct span call_host_key(const struct call *call)
{
    return span_of(call->key, call->host_len);
}

static inline struct span call_model_key(const struct call *call)
{
    return span_of(call->key, call->key_len);
}

/* The key that a side of the call is of. */
static inline struct span call_side_key(const struct call *call, const struct call_side *side)
{
    return side == &call->model ? call_model_key(call) : call_host_key(call);
}

/* What the side's breaker shows at `now`. */
static inline struct breaker_effective call_shown(const struct call_side *side, uint64_t now)
{
    return breaker_effective(slot_word(side->slot), breaker_tick(now), &side->policy.breaker);
}

/* The side that refused the call. */
static inline const struct call_side *call_refuser(const struct call *call)
{
    return call->refusal.model ? &call->model : &call->host;
}

/* Spreads two cores over the shards of the statistics: stacks of threads and of processes differ.
 */
static inline unsigned call_stat_shard(void)
{
    return (unsigned)((uintptr_t)__builtin_frame_address(0) >> 16);
}

/* By one multiplication, whose high bits depend on all of both: each failure takes one, in case
 * that it trips. */
static inline uint16_t call_random(uint64_t now, uint64_t salt)
{
    return (uint16_t)((now ^ salt) * UINT64_C(0x9e3779b97f4a7c15) >> 48);
}

/* Is there a key M of this call? Until the model is decided it is that of the call before. */
static inline bool call_knows_model(const struct call *call)
{
    return call->model_decided && call_has_model(call);
}

/* The policy that says where else the call may go: M's, which knows more, or H's. */
static inline const struct policy *call_chain_policy(const struct call *call)
{
    return call_knows_model(call) ? &call->model.policy : &call->host.policy;
}

static inline bool call_has_chain(const struct call *call)
{
    return route_has_chain(call_chain_policy(call), call->judged_shape.place);
}

/* The breaker at whose key credentials are parked: M, or H where it stands alone; NULL: of what is
 * no LLM call, or whose model is not known. At H everybody may be, by a failed connect. */
static inline struct call_side *call_parking_side(struct call *call)
{
    return call->host_alone ? &call->host : call_knows_model(call) ? &call->model : NULL;
}

/* --- call_cooldown.c */

/* Is it known whose quota the call draws on? The first to want to know asks for it. */
bool call_knows_credential(struct call *call);

/* Ticks for which the call is to wait there, 0: it is not. The side's slot has been looked up. */
uint32_t call_parked(const struct call *call, const struct call_side *side, uint64_t now);
/* And so is everybody. */
bool call_parked_with_all(const struct call_side *side, uint64_t now);
/* What the end of an admitted call has to do with cool-downs. `outcome`: as it was judged. */
void call_park(struct call *call, const struct call_end *end, const struct outcome *outcome);

/* What keeps a refused call: a name of a state, or "cooling_down". */
const char *call_refusal_name(const struct call *call);

/* shim_watch.c: shim_head, where what its lines say is known already. */
struct call_head {
    unsigned status;
    enum content_kind kind;
    bool encoded;
    uint64_t first_byte_ns;
};
bool call_head(struct shim_call *call, const struct call_head *head);

/* At the end of the body, whatever that was: what it said as a stream, STREAM_BLIND of a bad
 * answer; did that of a 429 say that a quota is spent; had that of a failure a text of
 * neutral_body? */
enum stream_state call_body_said(struct call *call);
bool call_quota_is_spent(struct call *call);
bool call_is_excused(const struct call *call);

/* shim_settle.c: the probe is settled as a success by its stream's head; its end is still to be
 * settled. */
void call_settle_provisionally(struct call *call, struct call_side *side);
/* The policy that judges how the call ends. */
const struct outcome_policy *call_outcome_policy(const struct call *call);
/* Hands a held grant back; no statistics: the call never went out. */
void call_return_side(struct call_side *side, uint64_t now);
/* Gives the side a slot, and that its key, where they are missing; false: there is no room.
 * `failure`: as table_claim(). */
bool call_claim(const struct call *call, struct call_side *side, bool failure);

/* call_events.c: what the log is told. */
struct call_change {
    enum breaker_change change;
    enum outcome_cause cause; /* CAUSE_NONE: it was no failure */
    unsigned status;
    uint64_t before; /* of a trip: the word and the tick at which the failure met it */
    uint32_t now;
};
void call_log_change(const struct call *call, const struct call_side *side,
                     const struct call_change *change);
/* `passes`: no fallback took it, and it goes past the breaker. */
void call_log_refusal(const struct call *call, uint64_t now, bool passes);
/* Of one that would have been, had it not been for mode = observe; `parked`: by a cool-down. */
void call_log_observed(const struct call *call, const struct call_side *side, bool parked,
                       uint64_t now);
/* A credential that was not parked is, from now on, for so many ms; COOLDOWN_ALL: each is.
 * `status`: of CAUSE_STATUS. */
void call_log_cooldown(const struct call *call, const struct call_side *side, uint64_t credential,
                       enum outcome_cause cause, unsigned status, uint32_t ms);
/* Of a call that goes to the key `to` instead, or, SPAN_NONE, that found no fallback when its
 * connect had failed. `failover`: it was not refused. */
void call_log_reroute(const struct call *call, struct span to, bool failover, const char *detail);

#define CALL_LOG_QUIET_NS (UINT64_C(10) * CLOCK_NS_PER_S)

#endif
