#include "shim.h"

#include "call.h"
#include "http/credential.h"
#include "http/synthetic.h"
#include "http/url.h"

/* --- process-wide ---------------------------------------------------------------------------- */

void shim_capture_environment(void)
{
    process_capture_environment();
}

bool shim_disabled(void)
{
    return process_disabled() || process_fenced();
}

void shim_fence(void)
{
    process_fence();
}

void shim_unfence(void)
{
    process_unfence();
}

bool shim_fenced(void)
{
    return process_fenced();
}

void shim_set_clock(const struct clock_ops *ops)
{
    process_clock = ops ? ops : &clock_system;
}

uint64_t shim_mono_ns(void)
{
    return process_clock->mono_ns();
}

bool shim_mask_deepbind(void)
{
    return process_mask_deepbind();
}

/* --- what is this request? -------------------------------------------------------------------- */

/* Takes over key H and its policy, unless they are still those of the last call. */
static void set_host(struct call *call, const struct config *config,
                     const struct route_key *request)
{
    if (call->config == config &&
        span_eq(call_host_key(call), span_of(request->text, request->len)))
        return;
    memcpy(call->key, request->text, request->len);
    call->host_len = call->key_len = (uint16_t)request->len;
    call->config = config;
    call->host.named_in = call->model.named_in = NULL;
    call->model_policy_valid = false;
    config_policy(config, call_host_key(call), SPAN_NONE, &call->host.policy);
}

static bool is_model(const struct call *call, struct span model)
{
    return call->model_policy_valid &&
           span_eq(model, span_skip(call_model_key(call), (size_t)call->host_len + 1));
}

/* Decides the model; one that is the last one again was judged then. */
static void set_model(struct call *call, struct span model)
{
    char *text = call->key + call->host_len + 1;

    call->model_decided = true;
    if (is_model(call, model))
        return;
    model = route_model(model);
    if (is_model(call, model))
        return;
    call->key[call->host_len] = '/';
    memcpy(text, model.ptr, model.len);
    call->key_len = (uint16_t)(call->host_len + 1 + model.len);
    call->model.named_in = NULL;
    config_policy(call->config, call_host_key(call), span_of(text, model.len), &call->model.policy);
    call->model_policy_valid = true;
}

/* What the path says of the model, if it matters. */
static void start_model(struct call *call, const struct shape *shape)
{
    char decoded[MODEL_MAX];

    call->host_alone = route_host_alone(&call->host.policy, shape->place);
    call->place = call->host_alone ? MODEL_NONE : shape->place;
    call->api = shape->api;
    call->model_decided = false;
    switch (call->place) {
    case MODEL_NONE:
        call->model_decided = true;
        call->key_len = call->host_len;
        call->model_policy_valid = false;
        break;
    case MODEL_IN_PATH:
        set_model(call, route_model_in_path(shape, decoded));
        break;
    case MODEL_IN_BODY:
    case MODEL_IN_BODY_VERSION:
        model_scan_init(&call->scan, route_model_member(shape->place));
        break;
    }
}

static bool judge_request(struct call *call, const struct config *config,
                          const struct shim_request *request)
{
    struct route_key key;

    if (!route_key_of(request->method, request->host, request->port, request->path, &key) ||
        !(request->is_fallback || route_is_covered(route_cover(config, &key))))
        return false;
    set_host(call, config, &key);
    call->judged_shape = key.shape;
    return call->host.policy.mode != MODE_OFF;
}

/* --- the same request again --------------------------------------------------------------------
 */

static struct span judged_by(const struct shim_request *request, unsigned text)
{
    const struct span texts[CALL_TEXTS] = {request->scheme, request->method, request->host,
                                           request->path};

    return texts[text];
}

/* No method is a GET; it is not told apart from an empty one, which nobody sends. */
static bool is_judged(const struct call *call, const struct shim_request *request)
{
    const char *at = call->judged_text;

    if (!call->judged_known || call->judged_port != request->port ||
        call->judged_fallback != request->is_fallback)
        return false;
    for (unsigned i = 0; i < CALL_TEXTS; at += call->judged_len[i++])
        if (!span_eq(judged_by(request, i), span_of(at, call->judged_len[i])))
            return false;
    return true;
}

static void remember(struct call *call, const struct shim_request *request)
{
    const char *model = call->judged_shape.model.ptr;
    size_t len = 0;

    call->judged_known = false;
    for (unsigned i = 0; i < CALL_TEXTS; i++) {
        struct span text = judged_by(request, i);
        if (text.len > sizeof call->judged_text - len)
            return;
        if (text.len > 0)
            memcpy(call->judged_text + len, text.ptr, text.len);
        call->judged_len[i] = (uint16_t)text.len;
        len += text.len;
    }
    if (model) /* it is of the path, which is the last text */
        call->judged_model =
            (uint16_t)(len - request->path.len + (size_t)(model - request->path.ptr));
    call->judged_port = request->port;
    call->judged_fallback = request->is_fallback;
    call->judged_known = true;
}

/* --- open ---------------------------------------------------------------------------------------
 */

/* The configuration to open under; NULL: nothing is covered. */
static const struct config *begin_open(struct shim_call *shim_call)
{
    struct call *call = call_of(shim_call);

    shim_drop(shim_call);
    call->state = CALL_IDLE;
    call->exhausted = false;
    call->credential_asked = call->credential_known = false;
    call->timeout_ticks = 0;
    if (process_disabled() || process_fenced())
        return NULL;
    call->admitted_ns = process_clock->boot_ns();
    return process_config(call->admitted_ns);
}

static enum shim_need open_judged(struct call *call)
{
    if (!call->judged_covered)
        return SHIM_UNCOVERED;
    struct shape shape = call->judged_shape;
    if (call->judged_known && shape.model.ptr)
        shape.model.ptr = call->judged_text + call->judged_model;
    start_model(call, &shape);
    call->state = CALL_OPEN;
    return call->model_decided ? SHIM_READY : SHIM_NEEDS_BODY;
}

enum shim_need shim_open(struct shim_call *shim_call, const struct shim_request *request)
{
    struct call *call = call_of(shim_call);
    const struct config *config = begin_open(shim_call);

    call->reroutes = request->reroutes;
    if (config && config == call->judged_config && is_judged(call, request))
        return open_judged(call);
    call->judged_config = config;
    call->judged_known = false;
    if (!config)
        return SHIM_UNCOVERED;
    call->judged_shape.model = SPAN_NONE;
    call->judged_covered = route_is_http(request->scheme) && judge_request(call, config, request);
    remember(call, request);
    return open_judged(call);
}

bool shim_open_again(struct shim_call *shim_call, enum shim_need *need)
{
    struct call *call = call_of(shim_call);

    if (!call->judged_config || begin_open(shim_call) != call->judged_config)
        return false;
    *need = open_judged(call);
    return true;
}

/* --- whose quota? ------------------------------------------------------------------------------
 */

void shim_credential_later(struct shim_call *shim_call, shim_credential_tell *tell, void *data)
{
    struct call *call = call_of(shim_call);

    call->credential_tell = tell;
    call->credential_data = data;
}

void shim_credential_now(struct shim_call *shim_call)
{
    struct call *call = call_of(shim_call);

    if (call->state != CALL_IDLE && call->judged_shape.place != MODEL_NONE)
        call_knows_credential(call);
}

void shim_credential_lost(struct shim_call *shim_call)
{
    call_of(shim_call)->credential_asked = true;
}

void shim_credential(struct shim_call *shim_call, struct span credential)
{
    struct call *call = call_of(shim_call);

    if (!call->credential_known)
        call->credential = 0;
    call->credential_known = true;
    if (credential.len > 0)
        call->credential = credential_hash(call->credential, credential);
}

bool shim_credential_header(struct shim_call *call, struct span line, bool *other)
{
    struct span key;
    enum credential_kind kind = credential_in_header(line, &key);

    if (kind == CREDENTIAL_PROVIDERS)
        shim_credential(call, key);
    else if (kind == CREDENTIAL_OTHER && other)
        *other = true;
    return kind == CREDENTIAL_PROVIDERS;
}

bool shim_credential_other_header(struct shim_call *call, struct span line)
{
    struct span key;

    if (credential_in_header(line, &key) != CREDENTIAL_OTHER)
        return false;
    shim_credential(call, key);
    return true;
}

bool shim_credential_url(struct shim_call *shim_call, struct span text)
{
    struct url url;
    struct span key;

    if (!url_parse(text, &url))
        return false;
    if (!credential_in_query(url.query, &key))
        key = url_userinfo(text, &url);
    if (key.len == 0)
        return false;
    shim_credential(shim_call, key);
    return true;
}

/* --- how long does its caller wait? ------------------------------------------------------------
 */

bool shim_wants_timeout(const struct shim_call *shim_call)
{
    const struct call *call = call_of_const(shim_call);

    return call->state == CALL_OPEN && (call->host.policy.lease_of_call || !call->model_decided ||
                                        call_chain_policy(call)->lease_of_call);
}

void shim_timeout(struct shim_call *shim_call, uint64_t ms)
{
    uint64_t known = ms < UINT32_MAX ? ms : UINT32_MAX; /* beyond the horizon anyway */

    call_of(shim_call)->timeout_ticks = breaker_ticks_of(known * CLOCK_NS_PER_MS);
}

bool shim_request_of_url(struct span text, struct shim_request *request)
{
    struct url url;

    if (!url_parse(text, &url))
        return false;
    request->scheme = url.scheme;
    request->host = url.host;
    request->port = url.port;
    request->path = url.path;
    return true;
}

bool shim_body(struct shim_call *shim_call, struct span bytes, bool last)
{
    struct call *call = call_of(shim_call);

    if (call->model_decided || (call->state != CALL_OPEN && call->state != CALL_ADMITTED))
        return true;
    enum model_scan_state state = model_scan_feed(&call->scan, bytes);
    if (state == MODEL_SCAN_MORE && last)
        state = model_scan_end(&call->scan);
    if (state == MODEL_SCAN_MORE)
        return false;
    set_model(call, state == MODEL_SCAN_FOUND ? model_scan_value(&call->scan) : SPAN_NONE);
    return true;
}

void shim_model(struct shim_call *shim_call, struct span model)
{
    struct call *call = call_of(shim_call);

    if (!call->model_decided && (call->state == CALL_OPEN || call->state == CALL_ADMITTED))
        set_model(call, model);
}

/* --- when not ------------------------------------------------------------------------------- */

_Static_assert(CONFIG_CODE_MAX <= SYNTHETIC_CODE_MAX, "whatever error_code, a response fits");

size_t shim_response(const struct shim_call *shim_call, char *buf, size_t size, bool head_only)
{
    const struct call *call = call_of_const(shim_call);
    const struct call_side *side = call_refuser(call);
    struct synthetic answer = {
        .api = call->api,
        .key = call_side_key(call, side),
        .code = side->policy.error_code,
        .state = call_refusal_name(call),
        .by_hand = !call->refusal.parked && call->refusal.state == BREAKER_SHOW_FORCED_OPEN,
        .rate_limited = call->refusal.parked,
        .with_all = call->refusal.with_all,
        .retry_after_ms = call->refusal.wait_ms,
        .should_retry = side->policy.should_retry,
        .head_only = head_only,
    };

    return synthetic_render(&answer, buf, size);
}
