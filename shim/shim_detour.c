/*
 * shim_detour.c - the way of one call to a fallback: the chain's candidates one after the other,
 * and what of the request has to change for each.
 */
#include "call.h"

#include "http/secret.h"
#include "http/splice.h"
#include "route/fallback.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define TOLD_MAX 512

struct detour {
    struct call *from;
    const struct policy *policy; /* that has the chain: one of `from`'s, or `own` */
    struct policy own;           /* of the model, which `from` did not know */
    const struct config *config;
    bool failover;       /* `from` failed; else it was refused */
    bool address_passed; /* fallback_address was a candidate, or is none */
    struct span names;   /* what is left of the chain */
    struct span method;
    struct route_key key;       /* of the call as it would have gone */
    struct fallback_call asked; /* points to `key` and `model` */
    bool body_known;            /* and so is the model, or that there is none */
    struct span body;           /* SPAN_NONE: not known, or no JSON */
    struct span old_model;      /* in `body`, with its quotes; SPAN_NONE: not looked for, or none */
    struct url there;           /* of the candidate; into plan.url or the configuration */
    uint64_t timeout_ms;        /* that the caller gives the candidate; 0: no limit is known */
    size_t told_len;
    char model[MODEL_MAX]; /* of `asked` */
    char told[TOLD_MAX];   /* "NAME: why not; ..." of those that did not take it */
    struct fallback_plan plan;
    char header[FALLBACK_HEADER_MAX];
};

_Static_assert(sizeof(struct detour) <= SHIM_DETOUR_SIZE, "struct shim_detour is too small");

static struct detour *inside(struct shim_detour *detour)
{
    return (struct detour *)(void *)detour->opaque;
}

/* --- the call that is to go elsewhere ------------------------------------------------------- */

bool shim_detour_possible(const struct shim_call *shim_call)
{
    const struct call *call = call_of_const(shim_call);

    return call->config && call_has_chain(call);
}

bool shim_detour_on_failure(const struct shim_call *shim_call)
{
    const struct call *call = call_of_const(shim_call);

    return shim_detour_possible(shim_call) && call_chain_policy(call)->failover == FAILOVER_CONNECT;
}

/* The model that the call's key has; "-" stands for none. */
static struct span known_model(const struct call *call)
{
    struct span model = span_skip(call_model_key(call), (size_t)call->host_len + 1);

    return call_knows_model(call) && !span_eq(model, SPAN_LIT("-")) ? model : SPAN_NONE;
}

static void go_by(struct detour *d, const struct policy *policy)
{
    d->policy = d->asked.policy = policy;
    d->names = policy->allow_fallbacks ? span_str(policy->fallback) : SPAN_NONE;
}

/* Once; the chain is the model's from then on, if a model has a say (DESIGN, scope). */
static void know_model(struct detour *d, struct span model)
{
    if (d->asked.model.ptr || !model.ptr || model.len == 0 || model.len > sizeof d->model)
        return;
    memcpy(d->model, model.ptr, model.len);
    d->asked.model = span_of(d->model, model.len);
    if (call_knows_model(d->from) || d->from->host_alone)
        return;
    config_policy(d->config, span_of(d->key.text, d->key.len), d->asked.model, &d->own);
    go_by(d, &d->own);
}

/* With scope = host the key does not tell it. */
static void know_model_in_path(struct detour *d)
{
    char decoded[MODEL_MAX];

    if (d->key.shape.place == MODEL_IN_PATH)
        know_model(d, route_model_in_path(&d->key.shape, decoded));
}

bool shim_detour_begin(struct shim_detour *detour, struct shim_call *from, struct span method,
                       struct span url, uint16_t port)
{
    struct call *call = call_of(from);
    struct detour *d = inside(detour);

    if (!shim_detour_possible(from))
        return false;
    d->from = call;
    d->config = call->config;
    d->failover = call->state != CALL_REFUSED;
    d->method = method;
    d->asked = (struct fallback_call){.key = &d->key, .model = SPAN_NONE};
    go_by(d, call_chain_policy(call));
    bool good = url_parse(url, &d->asked.url);
    if (port > 0)
        d->asked.url.port = port;
    if (!good ||
        !route_key_of(method, d->asked.url.host, d->asked.url.port, d->asked.url.path, &d->key))
        return false;
    know_model(d, known_model(call));
    know_model_in_path(d);
    call_of(&detour->call)->detour = true;
    return true;
}

void shim_detour_model(struct shim_detour *detour, struct span model)
{
    inside(detour)->body_known = true;
    know_model(inside(detour), model);
}

bool shim_detour_wants_model(const struct shim_detour *detour)
{
    const struct detour *d = (const struct detour *)(const void *)detour->opaque;
    struct span names = d->names, name;

    if (d->asked.model.ptr || d->key.shape.place == MODEL_NONE)
        return false;
    while (config_next_name(&names, &name)) {
        const struct config_fallback *fallback = config_fallback(d->config, name);
        if (fallback && (*fallback->models || d->policy->holds_models))
            return true;
    }
    return false;
}

void shim_detour_body(struct shim_detour *detour, struct span body)
{
    struct detour *d = inside(detour);
    struct span member = route_model_member(d->key.shape.place);
    struct model_scan scan;

    d->body = body;
    d->body_known = true;
    d->old_model = SPAN_NONE;
    if (!member.ptr || d->asked.model.ptr)
        return;
    model_scan_init(&scan, member);
    if (model_scan_feed(&scan, body) == MODEL_SCAN_FOUND)
        know_model(d, model_scan_value(&scan));
}

/* --- one candidate after the other ---------------------------------------------------------- */

static void tell(struct detour *d, struct span name, const char *why)
{
    size_t room = sizeof d->told - d->told_len;
    int len = snprintf(d->told + d->told_len, room, "%s%.*s: %s", d->told_len ? "; " : "",
                       (int)name.len, name.ptr, why);

    if (len > 0)
        d->told_len += (size_t)len < room ? (size_t)len : room - 1;
}

/* The address serves the same name: all that is in the request is meant for it, too. */
static bool offer_address(struct shim_detour *detour, struct detour *d)
{
    if (d->address_passed)
        return false;
    d->address_passed = true;
    if (!fallback_address(d->policy, span_of(d->key.text, d->key.len), &d->there.host,
                          &d->there.port))
        return false;
    d->there.scheme = d->asked.url.scheme;
    d->there.path = d->asked.url.path;
    detour->name = "fallback_address";
    detour->url = NULL;
    detour->address = d->policy->fallback_address;
    detour->model = SPAN_NONE;
    detour->foreign = detour->loopback = false;
    return true;
}

static void offer_fallback(struct shim_detour *detour, struct detour *d)
{
    const struct fallback_plan *plan = &d->plan;

    d->there = plan->there;
    detour->name = plan->fallback->name;
    detour->url = plan->url;
    detour->address = NULL;
    detour->model = plan->replaces_model && !plan->model_in_path
                        ? span_of(plan->model, plan->model_len)
                        : SPAN_NONE;
    detour->foreign = plan->foreign;
    detour->loopback = plan->fallback->loopback;
}

bool shim_detour_next(struct shim_detour *detour)
{
    struct detour *d = inside(detour);
    struct span name;

    shim_drop(&detour->call);
    if (offer_address(detour, d))
        return true;
    while (config_next_name(&d->names, &name)) {
        enum fallback_misfit misfit =
            fallback_plan(&d->asked, config_fallback(d->config, name), &d->plan);
        if (misfit == FALLBACK_FITS) {
            offer_fallback(detour, d);
            return true;
        }
        tell(d, name, fallback_misfit_text(misfit));
    }
    if (d->failover)
        call_log_reroute(d->from, SPAN_NONE, true, d->told);
    else
        d->from->refusal.why_not = d->told;
    return false;
}

void shim_detour_skip(struct shim_detour *detour, const char *why)
{
    shim_drop(&detour->call);
    tell(inside(detour), span_str(detour->name), why ? why : "its breaker refuses");
}

/* Programs may set their variables for themselves, after we read the configuration: they are looked
 * up now, as libcurl looks up its own (http_proxy) in every call. */
static const char *variable(const char *name)
{
    return getenv(name);
}

const char *shim_detour_header(struct shim_detour *detour, unsigned n, const char **why_not)
{
    struct detour *d = inside(detour);
    const struct config_fallback *fallback = detour->address ? NULL : d->plan.fallback;

    *why_not = NULL;
    if (!fallback || n >= fallback->header_count)
        return NULL;
    enum fallback_misfit misfit = fallback_header(fallback, n, variable, d->header, NULL);
    if (misfit == FALLBACK_FITS)
        return d->header;
    *why_not = fallback_misfit_text(misfit);
    return NULL;
}

bool shim_detour_withholds(const struct shim_detour *detour, struct span header)
{
    return detour->foreign && secret_is_header(header);
}

/* --- the body with another model in it ------------------------------------------------------ */

size_t shim_detour_body_len(struct shim_detour *detour)
{
    struct detour *d = inside(detour);
    struct span member = route_model_member(d->key.shape.place);
    char json[SPLICE_JSON_MAX(MODEL_MAX)];

    if (!detour->model.ptr || !d->body.ptr || !member.ptr)
        return 0;
    if (!d->old_model.ptr && !splice_find(d->body, member, &d->old_model))
        return 0;
    return d->body.len - d->old_model.len + splice_json(detour->model, json);
}

void shim_detour_write_body(struct shim_detour *detour, char *buf)
{
    const struct detour *d = inside(detour);
    size_t before = (size_t)(d->old_model.ptr - d->body.ptr);
    struct span behind = span_skip(d->body, before + d->old_model.len);

    buf = mempcpy(buf, d->body.ptr, before);
    buf += splice_json(detour->model, buf);
    memcpy(buf, behind.ptr, behind.len);
}

/* --- going there ---------------------------------------------------------------------------- */

/* That of the fallback's own lines; where the call may take its own along, and has to, that one. */
static void tell_credential(struct shim_detour *detour, struct detour *d)
{
    struct call *to = call_of(&detour->call);
    const char *line, *why_not;

    for (unsigned n = 0; (line = shim_detour_header(detour, n, &why_not)); n++)
        if (shim_credential_header(&detour->call, span_str(line), NULL))
            return;
    to->credential_known = detour->foreign || call_knows_credential(d->from);
    to->credential = detour->foreign ? 0 : d->from->credential;
}

void shim_detour_timeout(struct shim_detour *detour, uint64_t ms)
{
    inside(detour)->timeout_ms = ms;
}

enum shim_verdict shim_detour_admit(struct shim_detour *detour)
{
    struct detour *d = inside(detour);
    const struct shim_request request = {
        .method = d->method,
        .scheme = d->there.scheme,
        .host = d->there.host,
        .port = d->there.port,
        .path = d->there.path,
        .is_fallback = true,
    };
    struct span model =
        detour->address ? d->asked.model : span_of(d->plan.model, d->plan.model_len);

    if (shim_open(&detour->call, &request) == SHIM_NEEDS_BODY && (d->body_known || model.len > 0))
        shim_model(&detour->call, model);
    tell_credential(detour, d);
    shim_timeout(&detour->call, d->timeout_ms);
    if (shim_admit(&detour->call) == SHIM_ADMITTED)
        return SHIM_ADMITTED;
    const struct call *refused = call_of_const(&detour->call);
    shim_detour_skip(detour, !refused->refusal.parked    ? NULL
                             : refused->refusal.with_all ? "it is cooling down"
                                                         : "its credential was told to wait");
    return SHIM_REFUSED;
}

/* As it would be in the log: NAME, then those that did not take the call. */
static void log_taken(const struct shim_detour *detour, struct detour *d, struct span to)
{
    char detail[TOLD_MAX + 128];

    snprintf(detail, sizeof detail, "%s%s%s%s", detour->address ? "" : "fallback ", detour->name,
             d->told_len ? "; not " : "", d->told);
    call_log_reroute(d->from, to, d->failover, detail);
}

/* Counted where the call was refused; where it failed, with its model, or with its host if that
 * model never failed and has no slot. */
void shim_detour_taken(struct shim_detour *detour)
{
    struct detour *d = inside(detour);
    const struct call *to = call_of(&detour->call), *from = d->from;
    struct span key = call_has_model(to) ? call_model_key(to) : call_host_key(to);
    const struct call_side *side = !d->failover                                 ? call_refuser(from)
                                   : call_knows_model(from) && from->model.slot ? &from->model
                                                                                : &from->host;
    uint64_t now = process_clock->boot_ns();
    int saved = errno;

    if (!from->table || slot_count_rerouted(side->slot, table_identity(from->table, key),
                                            call_stat_shard(), now, CALL_LOG_QUIET_NS))
        log_taken(detour, d, key);
    errno = saved;
}

void shim_detour_end(struct shim_detour *detour)
{
    shim_drop(&detour->call);
    inside(detour)->from->refusal.why_not = NULL;
}
