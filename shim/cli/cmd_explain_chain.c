/*
 * cmd_explain_chain.c - the places that a call could go to instead of its own host, by the rules
 * that the library goes by (route/fallback.h, shim_detour.c). Variables are those of this command:
 * a program may have others, and may set them for itself.
 */
#include "cli/cmd_explain.h"

#include "http/credential.h"

/* --- URLs, to be shown ------------------------------------------------------------------------ */

/* The parts one after the other and the query without its credentials, or "" when that does not
 * fit. */
static void write_url(char buf[FALLBACK_URL_MAX], const struct span *parts, unsigned count,
                      struct span query)
{
    struct text url = {.buf = buf, .size = FALLBACK_URL_MAX - 1};

    for (unsigned i = 0; i < count; i++)
        text_append(&url, parts[i]);
    fallback_append_query(&url, query, true);
    buf[url.is_cut ? 0 : url.len] = '\0';
}

void explain_own_url(const struct explanation *explanation, char buf[FALLBACK_URL_MAX])
{
    const struct url *url = &explanation->url;
    char port[8] = "";

    if (url->port != explain_usual_port(url->scheme))
        snprintf(port, sizeof port, ":%u", url->port);
    const struct span parts[] = {
        url->scheme,    SPAN_LIT("://"), span_of(explanation->key.text, explanation->key.name_len),
        span_str(port), url->path,
    };
    write_url(buf, parts, sizeof parts / sizeof *parts, url->query);
}

/* To the same (scheme, host, port) all of the query goes; it is not shown all the same. */
static void show_plan(const struct fallback_plan *plan, char buf[FALLBACK_URL_MAX])
{
    struct span url = span_of(plan->url, plan->url_len), query = plan->there.query;

    if (query.ptr) /* and the '?' */
        url.len -= query.len + 1;
    write_url(buf, &url, 1, query);
}

/* --- one place -------------------------------------------------------------------------------- */

const struct policy *explain_chain_policy(const struct explanation *explanation)
{
    const struct explain_stop *own = &explanation->chain[0];

    return own->model.exists ? &own->model.policy : &own->host.policy;
}

/* The model as a plan takes it. */
static struct span asked_model(const struct explanation *explanation)
{
    return explanation->model_known && strcmp(explanation->model, "-") != 0
               ? span_str(explanation->model)
               : SPAN_NONE;
}

/* What the breakers there say of the request; `model`: of its body. */
static void ask(const struct cli_context *context, const struct explanation *explanation,
                const struct url *there, struct span model, uint64_t now, struct explain_stop *stop)
{
    struct route_key key;
    char in_path[MODEL_MAX];

    if (!route_key_of(explanation->method, there->host, there->port, there->path, &key))
        return;
    if (key.shape.place == MODEL_IN_PATH)
        model = route_model_in_path(&key.shape, in_path);
    else if (!model.ptr && explanation->model_known)
        model = SPAN_LIT("-");
    explain_read_stop(context, &key, model, now, stop);
    if (!explain_is_off(stop))
        explain_ask_breakers(stop, true);
}

static void misfit(struct explain_stop *stop, enum fallback_misfit why)
{
    stop->misfit = why;
    explain_decide(stop, EXPLAIN_UNFIT, EXPLAIN_MISFIT, NULL);
}

/* --- the chain -------------------------------------------------------------------------------- */

static struct explain_stop *add(struct explanation *out, enum explain_kind kind, struct span name)
{
    if (out->chain_len == EXPLAIN_CHAIN_MAX)
        return NULL;
    struct explain_stop *stop = &out->chain[out->chain_len++];
    stop->kind = kind;
    stop->name = name;
    return stop;
}

static void add_address(const struct cli_context *context, struct explanation *out,
                        const struct fallback_call *call, uint64_t now)
{
    struct explain_stop *stop = add(out, EXPLAIN_ADDRESS, SPAN_LIT("fallback_address"));
    struct url there = call->url;

    if (!stop)
        return;
    if (!fallback_address(call->policy, span_of(call->key->text, call->key->len), &there.host,
                          &there.port)) {
        misfit(stop, call->policy->holds_models ? FALLBACK_HELD : FALLBACK_ITSELF);
        return;
    }
    explain_own_url(out, stop->url);
    stop->credential_known = out->chain[0].credential_known;
    stop->credential = out->chain[0].credential;
    ask(context, out, &there, call->model, now, stop);
}

/* Its first credential is that of the calls there. */
static enum fallback_misfit judge_headers(const struct config_fallback *fallback,
                                          struct explain_stop *stop)
{
    static char header[FALLBACK_HEADER_MAX];
    enum fallback_misfit why = FALLBACK_FITS;
    struct span key;

    for (unsigned i = 0; i < fallback->header_count && why == FALLBACK_FITS; i++) {
        why = fallback_header(fallback, i, cli_settings_variable, header, &stop->culprit);
        if (why == FALLBACK_FITS && !stop->credential_known &&
            credential_in_header(span_str(header), &key) == CREDENTIAL_PROVIDERS) {
            stop->credential_known = true;
            stop->credential = credential_hash(0, key);
        }
    }
    explicit_bzero(header, sizeof header);
    return why;
}

/* Where it has none of its own: none to another place, and to the same the call's. */
static void judge_credential(const struct explanation *explanation,
                             const struct fallback_plan *plan, struct explain_stop *stop)
{
    const struct explain_stop *own = &explanation->chain[0];

    if (stop->credential_known)
        return;
    stop->credential_known = plan->foreign || own->credential_known;
    stop->credential = plan->foreign ? 0 : own->credential;
}

static void add_fallback(const struct cli_context *context, struct explanation *out,
                         const struct fallback_call *call, struct span name, uint64_t now)
{
    static struct fallback_plan plan;
    const struct config_fallback *fallback = config_fallback(context->config, name);
    struct explain_stop *stop = add(out, EXPLAIN_FALLBACK, name);

    if (!stop)
        return;
    stop->line = fallback ? fallback->line : 0;
    enum fallback_misfit why = fallback_plan(call, fallback, &plan);
    if (why == FALLBACK_FITS) {
        show_plan(&plan, stop->url);
        why = judge_headers(plan.fallback, stop);
        judge_credential(out, &plan, stop);
    }
    if (why == FALLBACK_FITS)
        ask(context, out, &plan.there,
            plan.model_len ? span_of(plan.model, plan.model_len) : SPAN_NONE, now, stop);
    else
        misfit(stop, why);
}

bool explain_list_chain(const struct cli_context *context, struct explanation *out, uint64_t now)
{
    struct fallback_call call = {
        .url = out->url,
        .key = &out->key,
        .policy = explain_chain_policy(out),
        .model = asked_model(out),
    };
    struct span names = span_str(call.policy->fallback), name;

    if (!route_has_chain(call.policy, out->key.shape.place))
        return false;
    if (*call.policy->fallback_address)
        add_address(context, out, &call, now);
    while (config_next_name(&names, &name))
        add_fallback(context, out, &call, name, now);
    return true;
}

/* The key whose policy has the chain, in two parts. */
static void chain_key(const struct explanation *explanation, struct span *host, struct span *model)
{
    const struct explain_stop *own = &explanation->chain[0];

    cli_key_split(span_str(own->model.exists ? own->model.key : own->host.key), host, model);
}

bool explain_left_out(const struct cli_context *context, const struct explanation *explanation,
                      unsigned n, struct span *name)
{
    struct span host, model;

    if (explanation->chain[0].action == EXPLAIN_UNCOUNTED ||
        explanation->key.shape.place == MODEL_NONE ||
        !explain_chain_policy(explanation)->allow_fallbacks)
        return false;
    chain_key(explanation, &host, &model);
    return config_left_out(context->config, host, model, n, name);
}

bool explain_address_setting(const struct cli_context *context, const char *own,
                             const struct explanation *explanation, struct config_value *out)
{
    struct span host, model;

    chain_key(explanation, &host, &model);
    return cli_settings_explain(context->config, OPTION_fallback_address, host, model, own, out);
}

/* A connect is judged by H alone, and so is where it goes. */
void explain_read_address(const struct cli_context *context, struct explanation *out, uint64_t now)
{
    const struct explain_side *host = &out->chain[0].host;
    struct span there;
    uint16_t port;
    struct route_key key;

    if (!out->at_connect || !explain_refuses_connect(host, true) ||
        !fallback_address(&host->policy, span_str(host->key), &there, &port) ||
        !route_key_of(SPAN_NONE, there, port, SPAN_LIT(""), &key))
        return;
    explain_read_stop(context, &key, SPAN_NONE, now, &out->address);
    if (!explain_is_off(&out->address))
        explain_ask_breakers(&out->address, true);
    out->connects_elsewhere = explain_takes(&out->address);
}
