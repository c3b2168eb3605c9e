#include "route/fallback.h"

#include "config/variable.h"
#include "http/secret.h"
#include "http/splice.h"

const char *fallback_misfit_text(enum fallback_misfit misfit)
{
    switch (misfit) {
    case FALLBACK_FITS:
        return "it fits";
    case FALLBACK_UNKNOWN:
        return "there is no [fallback] of that name, or it is left out";
    case FALLBACK_ITSELF:
        return "it is where the call was going";
    case FALLBACK_NO_LLM_CALL:
        return "the call is no LLM call";
    case FALLBACK_HELD:
        return "its model is not known, and one of its host's may go nowhere";
    case FALLBACK_BASE:
        return "its URL does not begin with the target's base";
    case FALLBACK_CLEAR_TEXT:
        return "it would take a call over https to clear text on another machine";
    case FALLBACK_MODEL:
        return "its model is not in `model`";
    case FALLBACK_MODEL_UNKNOWN:
        return "its model would change, and is not known";
    case FALLBACK_VARIABLE:
        return "a variable of its headers is not set";
    case FALLBACK_TOO_LONG:
        return "its URL or a header would be too long";
    }
    return "";
}

/* --- the model ------------------------------------------------------------------------------- */

/* Can it be a model? Then it is its own in key M, too. */
static bool is_model(struct span model)
{
    return model.len > 0 && route_model(model).ptr == model.ptr;
}

/* `name` with the model in the place of each {model}. */
static bool name_model(struct span name, struct span model, char buf[MODEL_MAX], size_t *len)
{
    struct text text = {.buf = buf, .size = MODEL_MAX};
    struct span mark = SPAN_LIT("{model}");

    while (name.len > 0) {
        bool here = span_starts(name, mark);
        text_append(&text, here ? model : span_of(name.ptr, 1));
        name = span_skip(name, here ? mark.len : 1);
    }
    *len = text.len;
    return !text.is_cut && is_model(span_of(buf, text.len));
}

bool fallback_model(const struct config_fallback *fallback, struct span model, char buf[MODEL_MAX],
                    size_t *len)
{
    struct span items = span_str(fallback->models);

    if (!is_model(model))
        return false;
    if (items.len == 0)
        return name_model(SPAN_LIT("{model}"), model, buf, len);
    while (items.len > 0) {
        struct span name = span_take(&items, ',');
        struct span glob = span_take(&name, ':');
        if (config_glob(span_trim(glob), model))
            return name_model(span_trim(name), model, buf, len);
    }
    return false;
}

/* Fills in what the plan says of the model; the misfit is that of the model alone. */
static enum fallback_misfit plan_model(const struct fallback_call *call, struct fallback_plan *plan)
{
    plan->model_in_path = call->key->shape.place == MODEL_IN_PATH;
    plan->replaces_model = false;
    plan->model_len = 0;
    if (!is_model(call->model))
        return *plan->fallback->models ? FALLBACK_MODEL_UNKNOWN : FALLBACK_FITS;
    if (!fallback_model(plan->fallback, call->model, plan->model, &plan->model_len))
        return FALLBACK_MODEL;
    plan->replaces_model = !span_eq(span_of(plan->model, plan->model_len), call->model);
    return FALLBACK_FITS;
}

/* --- the base -------------------------------------------------------------------------------- */

/* Is that URL's (host, port) the call's? */
static bool has_key(struct span host, uint16_t port, const struct route_key *key)
{
    char text[ROUTE_HOST_MAX];
    size_t len = url_host_key(host, port, text, sizeof text);

    return len > 0 && span_eq(span_of(text, len), span_of(key->text, key->len));
}

size_t fallback_base_len(struct span path, const struct shape *shape)
{
    /* What providers mount below their bases (shape.c); the longer of two that end alike first. */
    static const struct span tails[] = {
        SPAN_LIT("/chat/completions"),
        SPAN_LIT("/fim/completions"),
        SPAN_LIT("/agents/completions"),
        SPAN_LIT("/completions"),
        SPAN_LIT("/responses"),
        SPAN_LIT("/responses/input_tokens"),
        SPAN_LIT("/responses/compact"),
        SPAN_LIT("/embeddings"),
        SPAN_LIT("/moderations"),
        SPAN_LIT("/images/generations"),
        SPAN_LIT("/images/edits"),
        SPAN_LIT("/images/variations"),
        SPAN_LIT("/audio/transcriptions"),
        SPAN_LIT("/audio/translations"),
        SPAN_LIT("/audio/speech"),
        SPAN_LIT("/messages"),
        SPAN_LIT("/messages/count_tokens"),
        SPAN_LIT("/complete"),
        SPAN_LIT("/chat"),
        SPAN_LIT("/embed"),
        SPAN_LIT("/rerank"),
        SPAN_LIT("/predictions"),
    };

    if (shape->place == MODEL_NONE || shape->api == API_OLLAMA)
        return 0;
    if (shape->place == MODEL_IN_PATH) {
        size_t at = (size_t)(shape->model.ptr - path.ptr) - 1; /* of the slash before the model */
        while (at > 0 && path.ptr[--at] != '/')
            ;
        return at; /* of the one before "models", "deployments", ... */
    }
    while (path.len > 1 && path.ptr[path.len - 1] == '/')
        path.len--;
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++)
        if (span_ends(path, tails[i]))
            return path.len - tails[i].len;
    return 0;
}

/* The length of the part of the URL's path that is in the base which the target names; false: the
 * URL does not begin with that. */
static bool named_base_len(const struct fallback_call *call, size_t *len)
{
    struct span path = call->url.path;
    struct url base;

    if (!url_parse(span_str(call->policy->base), &base) ||
        !span_ieq(base.scheme, call->url.scheme) || !has_key(base.host, base.port, call->key))
        return false;
    while (base.path.len > 0 && base.path.ptr[base.path.len - 1] == '/')
        base.path.len--;
    *len = base.path.len;
    return span_starts(path, base.path) && (path.len == *len || path.ptr[*len] == '/');
}

/* The call's path behind its base, and where the model stands in it. */
struct suffix {
    struct span text;
    struct span model; /* percent-encoded; SPAN_NONE: it does not */
};

static bool split_path(const struct fallback_call *call, struct suffix *suffix)
{
    struct span path = call->url.path;
    /* The key's own shape may point into another copy of the URL. */
    struct shape shape =
        shape_of(SPAN_LIT("POST"), span_of(call->key->text, call->key->name_len), path);
    size_t base_len = 0;

    if (shape.place != call->key->shape.place)
        return false;
    if (!*call->policy->base)
        base_len = fallback_base_len(path, &shape);
    else if (!named_base_len(call, &base_len))
        return false;
    suffix->text = span_skip(path, base_len);
    suffix->model = SPAN_NONE;
    if (shape.place == MODEL_IN_PATH && shape.model.ptr >= suffix->text.ptr)
        suffix->model = shape.model;
    return true;
}

/* --- the URL --------------------------------------------------------------------------------- */

static void append_suffix(struct text *url, const struct suffix *suffix,
                          const struct fallback_plan *plan)
{
    char model[3 * MODEL_MAX];
    struct span old = suffix->model, text = suffix->text;

    if (!plan->replaces_model || !old.ptr) {
        text_append(url, text);
        return;
    }
    bool slashes = memchr(old.ptr, '/', old.len);
    size_t len = splice_path(span_of(plan->model, plan->model_len), slashes, model);
    size_t before = (size_t)(old.ptr - text.ptr);
    text_append(url, span_of(text.ptr, before));
    text_append(url, span_of(model, len));
    text_append(url, span_skip(text, before + old.len));
}

void fallback_append_query(struct text *url, struct span query, bool foreign)
{
    size_t before = url->len;

    if (query.len == 0)
        return;
    text_append(url, SPAN_LIT("?"));
    if (!foreign) {
        text_append(url, query);
        return;
    }
    url->is_cut |= query.len > url->size - url->len; /* asked of the whole: stripped in place */
    if (url->is_cut)
        return;
    size_t len = secret_strip_query(query, url->buf + url->len);
    url->len = len > 0 ? url->len + len : before;
}

static enum fallback_misfit plan_url(const struct fallback_call *call, const struct suffix *suffix,
                                     struct fallback_plan *plan)
{
    struct text url = {.buf = plan->url, .size = sizeof plan->url - 1};

    text_append(&url, span_str(plan->fallback->base));
    append_suffix(&url, suffix, plan);
    fallback_append_query(&url, call->url.query, plan->foreign);
    plan->url_len = url.len;
    plan->url[url.len] = '\0';
    if (url.is_cut)
        return FALLBACK_TOO_LONG;
    return url_parse(span_of(plan->url, url.len), &plan->there) ? FALLBACK_FITS : FALLBACK_UNKNOWN;
}

/* --- the plan -------------------------------------------------------------------------------- */

/* From https to where others on the way may read it. */
static bool gives_away(const struct fallback_call *call, const struct config_fallback *fallback)
{
    return span_ieq(call->url.scheme, SPAN_LIT("https")) &&
           span_eq(fallback->scheme, SPAN_LIT("http")) && !fallback->loopback &&
           !call->policy->allow_cleartext;
}

enum fallback_misfit fallback_plan(const struct fallback_call *call,
                                   const struct config_fallback *fallback,
                                   struct fallback_plan *plan)
{
    struct suffix suffix;

    if (!fallback)
        return FALLBACK_UNKNOWN;
    bool same_host = has_key(fallback->host, fallback->port, call->key);
    plan->fallback = fallback;
    plan->foreign = !same_host || !span_ieq(fallback->scheme, call->url.scheme);
    enum fallback_misfit model_misfit = plan_model(call, plan);
    if (same_host && model_misfit == FALLBACK_FITS && !plan->replaces_model)
        return FALLBACK_ITSELF;
    if (call->key->shape.place == MODEL_NONE)
        return FALLBACK_NO_LLM_CALL;
    if (call->policy->holds_models && !is_model(call->model))
        return FALLBACK_HELD;
    if (!split_path(call, &suffix))
        return FALLBACK_BASE;
    if (plan->replaces_model && plan->model_in_path && !suffix.model.ptr)
        return FALLBACK_BASE;
    if (gives_away(call, fallback))
        return FALLBACK_CLEAR_TEXT;
    if (model_misfit != FALLBACK_FITS)
        return model_misfit;
    return plan_url(call, &suffix, plan);
}

bool fallback_address(const struct policy *policy, struct span key, struct span *host,
                      uint16_t *port)
{
    char there[ROUTE_HOST_MAX];
    struct url url;

    if (!policy->allow_fallbacks || policy->mode == MODE_OBSERVE || policy->holds_models ||
        !*policy->fallback_address || !url_parse(span_str(policy->fallback_address), &url))
        return false;
    *host = url.host;
    *port = url.port;
    size_t len = url_host_key(url.host, url.port, there, sizeof there);
    return len > 0 && !span_eq(key, span_of(there, len));
}

/* --- the headers ----------------------------------------------------------------------------- */

enum fallback_misfit fallback_header(const struct config_fallback *fallback, unsigned n,
                                     const char *(*look_up)(const char *name),
                                     char buf[FALLBACK_HEADER_MAX], struct span *culprit)
{
    switch (variable_expand(fallback->headers[n], look_up, buf, FALLBACK_HEADER_MAX, culprit)) {
    case VARIABLE_GOOD:
        return FALLBACK_FITS;
    case VARIABLE_TOO_LONG:
        return FALLBACK_TOO_LONG;
    case VARIABLE_UNSET:
    case VARIABLE_BROKEN:
        break;
    }
    return FALLBACK_VARIABLE;
}
