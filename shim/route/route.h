/*
 * route.h - from the facts of a call to its keys and to whether they count: the rules that the
 * library goes by, and that `breaker explain` tells of. Pure.
 */
#ifndef BREAKER_ROUTE_ROUTE_H
#define BREAKER_ROUTE_ROUTE_H

#include "config/config.h"
#include "http/model_scan.h"
#include "http/shape.h"

#define ROUTE_HOST_MAX 262 /* a DNS name, a colon, a port */

/* A request with its key H. */
struct route_key {
    char text[ROUTE_HOST_MAX]; /* H; no NUL */
    size_t len;
    size_t name_len; /* without the port */
    struct shape shape;
};

/* Only http and https are covered. */
bool route_is_http(struct span scheme);

/* `method` SPAN_NONE: GET. `path` must outlive *out. False: no key can be made of the host. */
bool route_key_of(struct span method, struct span host, uint16_t port, struct span path,
                  struct route_key *out);

/* Why the calls of a key count, or do not, as long as no `mode = off` says otherwise; in the order
 * in which it is asked. */
enum route_cover {
    ROUTE_MATCH_ALL,   /* match = all */
    ROUTE_LISTED,      /* a target is for the host */
    ROUTE_LLM_SHAPE,   /* match = llm, and the request looks like an LLM call */
    ROUTE_KNOWN_HOST,  /* match = llm, and the host is a shipped provider */
    ROUTE_NOT_LISTED,  /* match = listed, and no target is for the host */
    ROUTE_NO_LLM_CALL, /* match = llm, and nothing of it says so */
};
enum route_cover route_cover(const struct config *config, const struct route_key *key);

static inline bool route_is_covered(enum route_cover cover)
{
    return cover < ROUTE_NOT_LISTED;
}

/* scope = host: has an LLM call the host's breaker alone? `policy` is that of H. */
static inline bool route_host_alone(const struct policy *policy, enum model_place place)
{
    return place != MODEL_NONE && policy->scope == SCOPE_HOST;
}

/* The member or form field of the body that names the model; SPAN_NONE: it is not there. */
static inline struct span route_model_member(enum model_place place)
{
    return place == MODEL_IN_BODY           ? SPAN_LIT("model")
           : place == MODEL_IN_BODY_VERSION ? SPAN_LIT("version")
                                            : SPAN_NONE;
}

/* The model of a MODEL_IN_PATH, decoded into `buf` and not yet judged. */
struct span route_model_in_path(const struct shape *shape, char buf[MODEL_MAX]);

/* The model part of key M: SPAN_NONE, and a model that cannot be a key, are "-". */
static inline struct span route_model(struct span model)
{
    bool good = model.len > 0 && model.len <= MODEL_MAX && !span_has_control(model);

    return good ? model : SPAN_LIT("-");
}

/* Is there another place for a call of that shape? A fallback is for LLM calls only (fallback.h).
 * `policy`: of M where it is known and counts, else of H. */
static inline bool route_has_chain(const struct policy *policy, enum model_place place)
{
    return policy->allow_fallbacks && policy->mode != MODE_OBSERVE &&
           (*policy->fallback_address || (*policy->fallback && place != MODEL_NONE));
}

/* Does this keep the call from its own host? Who only observes keeps nobody. */
static inline bool route_turns_away(const struct policy *policy,
                                    const struct breaker_admission *admission)
{
    return admission->verdict == BREAKER_REFUSE && policy->mode != MODE_OBSERVE;
}

/* Does this keep the call from going, where no fallback takes it? What the breaker refuses passes,
 * uncounted, when the policy says so; but without fallbacks by order it is a hard stop. */
static inline bool route_refuses(const struct policy *policy,
                                 const struct breaker_admission *admission)
{
    return route_turns_away(policy, admission) &&
           (policy->when_exhausted == EXHAUSTED_503 || !policy->allow_fallbacks);
}

/* How long the caller of a refused call is told to wait, in ms. 0: soon, since another holds the
 * grant; then it is 1 to 3 s at random (DESIGN), ROUTE_SOON_MS + 0..ROUTE_SOON_SPREAD_MS. */
#define ROUTE_SOON_MS        1000u
#define ROUTE_SOON_SPREAD_MS 2000u
static inline uint32_t route_wait_ms(const struct policy *policy,
                                     const struct breaker_admission *admission,
                                     enum breaker_state state)
{
    uint32_t ticks = state == BREAKER_SHOW_FORCED_OPEN ? policy->breaker.open_ticks
                     : state == BREAKER_SHOW_OPEN      ? admission->wait_ticks
                                                       : 0;

    return (uint32_t)(breaker_tick_ns(ticks) / 1000000);
}

#endif
