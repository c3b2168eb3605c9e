/*
 * fallback.h - one call on its way to one fallback: does it fit there, and what is its URL and its
 * model then? The rules that the library goes by and that `breaker explain` tells of. Pure.
 *
 * A base replaces a base: the fallback's URL is its `base`, then what stood behind the target's
 * base (the path suffix, with another model in it where the path names one), then the query
 * without credentials. Only LLM calls go to a fallback: what else a host has (files, batches,
 * lists) is there and nowhere else.
 */
#ifndef BREAKER_ROUTE_FALLBACK_H
#define BREAKER_ROUTE_FALLBACK_H

#include "base/text.h"
#include "config/config.h"
#include "http/model_scan.h"
#include "http/url.h"
#include "route/route.h"

#define FALLBACK_URL_MAX    8192 /* longer URLs go to no fallback */
#define FALLBACK_HEADER_MAX 8192 /* of a header, its variables put in, and a NUL */

/* Why a call cannot go to a fallback, apart from what its breakers say. */
enum fallback_misfit {
    FALLBACK_FITS,
    FALLBACK_UNKNOWN,       /* there is no whole [fallback] of that name */
    FALLBACK_ITSELF,        /* it is where the call was going: same H, same M */
    FALLBACK_NO_LLM_CALL,   /* the call has no LLM shape */
    FALLBACK_HELD,          /* its model is not known, and one of its host's may go nowhere */
    FALLBACK_BASE,          /* its URL does not begin with the target's base, or that base has the
                               path's model in it, which is to be replaced */
    FALLBACK_CLEAR_TEXT,    /* https to clear text on another machine, without allow_cleartext */
    FALLBACK_MODEL,         /* no item of `model` is for the call's */
    FALLBACK_MODEL_UNKNOWN, /* it would change, and is not known (yet, or at all) */
    FALLBACK_VARIABLE,      /* a ${VAR} of its headers is not set */
    FALLBACK_TOO_LONG,      /* URL (with its whole query), or header line */
};
/* For the log and for people, as in "its model is not in `model`". Static storage. */
const char *fallback_misfit_text(enum fallback_misfit misfit);

/* The call as it would have gone. */
struct fallback_call {
    struct url url;
    const struct route_key *key; /* of it, with its shape */
    const struct policy *policy; /* of M where the model is known, else of H */
    struct span model;           /* decoded; SPAN_NONE: not known, or there is none. One that can
                                    be no key (route_model) counts as not known */
};

struct fallback_plan {
    const struct config_fallback *fallback;
    bool foreign;        /* another (scheme, host, port): no credential goes along */
    bool replaces_model; /* `model` is to be put in the old one's place: in the body, or, done
                            already, in the path of `url` */
    bool model_in_path;
    size_t model_len; /* of the model there; 0: not known yet (and not replaced) */
    size_t url_len;
    char model[MODEL_MAX];
    char url[FALLBACK_URL_MAX]; /* NUL-terminated */
    struct url there;           /* the same taken apart; points into it */
};

/* The plan to take the call to `fallback`; *plan is complete only where it fits. Variables are not
 * looked at (fallback_header). */
enum fallback_misfit fallback_plan(const struct fallback_call *call,
                                   const struct config_fallback *fallback,
                                   struct fallback_plan *plan);

/* Appends '?' and the query, if there is one. `foreign`: without its credentials, and nothing where
 * no more is left; cut where there is no room for the whole. */
void fallback_append_query(struct text *url, struct span query, bool foreign);

/* The n-th of the fallback's headers (n < header_count) with its variables put in, a secret; or why
 * not, and `buf` is empty: FALLBACK_VARIABLE, *culprit (may be NULL) is its name in the header, or
 * FALLBACK_TOO_LONG. `look_up` is getenv() or the like. */
enum fallback_misfit fallback_header(const struct config_fallback *fallback, unsigned n,
                                     const char *(*look_up)(const char *name),
                                     char buf[FALLBACK_HEADER_MAX], struct span *culprit);

/* The name that `fallback` has for a model, by the first item whose glob matches; false: none, or
 * what comes out can be no model. Without `models` it is the same. */
bool fallback_model(const struct config_fallback *fallback, struct span model, char buf[MODEL_MAX],
                    size_t *len);

/* The length of the path's base where the target has none of its own: what stands before the part
 * that all providers of its API share, as in "/v1" of "/v1/chat/completions" and "/openai" of
 * "/openai/deployments/MODEL/embeddings". `shape` is that of this very path: its model points into
 * it. 0: the host alone is the base (Ollama's /api/…, Bedrock's /model/…). */
size_t fallback_base_len(struct span path, const struct shape *shape);

/* Where connects to `key` (H) may go instead: the policy's fallback_address, unless that is `key`
 * itself (a target's glob may match it), or fallbacks are not allowed, or not for a model of the
 * host that may be this one. `host` is borrowed from the configuration. */
bool fallback_address(const struct policy *policy, struct span key, struct span *host,
                      uint16_t *port);

#endif
