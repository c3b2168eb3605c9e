/*
 * cmd_explain_text.c - the explanation for people. No URL's userinfo is shown, and no query but
 * without its credentials.
 */
#include "cli/cmd_explain.h"

#define SAFE_SIZE 8192

static void put(const char *label, const char *text)
{
    char safe[SAFE_SIZE];

    cli_text_safe(span_str(text), safe, sizeof safe);
    printf("%s%s\n", label, safe);
}

static void put_request(const struct explanation *explanation)
{
    const struct url *url = &explanation->url;
    char method[256], scheme[256], host[4 * ROUTE_HOST_MAX], path[SAFE_SIZE];

    cli_text_safe(explanation->method, method, sizeof method);
    cli_text_safe(url->scheme, scheme, sizeof scheme);
    cli_text_safe(span_of(explanation->key.text, explanation->key.len), host, sizeof host);
    cli_text_safe(url->path, path, sizeof path);
    printf("%s%s %s://%s%s\n", method, explanation->method_assumed ? " (assumed)" : "", scheme,
           host, path);
}

static void put_coverage(const struct cli_context *context, const char *own,
                         const struct explanation *explanation)
{
    const struct explain_stop *stop = &explanation->chain[0];
    struct span host = span_str(stop->host.key);
    char why[EXPLAIN_WHY_SIZE];
    struct config_target_info target;
    struct config_value match;
    char name[512], ini[4 * PATH_MAX];

    if (explanation->covered)
        put("covered: ", cli_text_cover(explanation->cover));
    else
        put("", explain_why(explanation, stop, why));
    printf("  known provider: %s; path of an LLM call: %s\n",
           explanation->known_host ? "yes" : "no",
           explanation->key.shape.place != MODEL_NONE ? "yes" : "no");
    if (cli_settings_explain(context->config, OPTION_match, SPAN_NONE, SPAN_NONE, own, &match))
        cli_text_setting("  ", "match", &match);
    cli_text_safe(span_str(context->ini), ini, sizeof ini);
    for (unsigned i = 0; config_target(context->config, i, &target); i++) {
        if (!config_target_lists(context->config, i, host))
            continue;
        cli_text_safe(span_str(target.name), name, sizeof name);
        printf("  target %s # %s:%u\n", name, ini, target.line);
    }
}

static void put_model(const struct explanation *explanation)
{
    struct span member = route_model_member(explanation->key.shape.place);
    const char *alone =
        explanation->host_alone ? "; scope = host: it has no breaker of its own" : "";
    char model[4 * MODEL_MAX + 1];

    cli_text_safe(span_str(explanation->model), model, sizeof model);
    printf("dialect: %s\nmodel: ", explain_dialect_name(explanation->key.shape.api));
    if (explanation->place == EXPLAIN_NONE)
        printf("none: only the host's breaker has a say\n");
    else if (explanation->place == EXPLAIN_PATH)
        printf("%s (of the path)%s\n", model, alone);
    else
        printf("%s (%s %.*s of the body)%s\n", explanation->model_known ? model : "not known here",
               explanation->place == EXPLAIN_FIELD ? "form field" : "member", (int)member.len,
               member.ptr, alone);
}

static void put_layers(const struct explanation *explanation)
{
    struct explain_layer layers[EXPLAIN_LAYERS];
    unsigned count = explain_layers(explanation, layers);
    char now[SAFE_SIZE];

    if (count == 0)
        return;
    printf("what sees it, and what happens there now:\n");
    for (unsigned i = 0; i < count; i++) {
        bool same = strcmp(layers[i].now, explanation->verdict) == 0;
        cli_text_safe(span_str(same ? "as said above" : layers[i].now), now, sizeof now);
        printf("  %s: %s; %s\n", layers[i].name, layers[i].sees, now);
    }
}

static void put_state(const struct explain_side *side)
{
    const struct cli_row *row = &side->row;
    char left[32], rate[64], longest[32], failure[64], who[16];

    printf("  state: %s%s, streak %u", breaker_state_name(row->effective.state),
           cli_row_is_due(row) ? ", probe due" : "", row->effective.streak);
    if (row->retry_in_ms)
        printf(", retry in %s", cli_text_duration(row->retry_in_ms, left, sizeof left));
    if (row->rated)
        printf(", failed %s", cli_row_rate(row, rate, sizeof rate));
    if (row->parked)
        printf(", %s cooling down for up to %s", cli_row_parked(row, who, sizeof who),
               cli_text_duration(row->parked_ms, longest, sizeof longest));
    printf(", last failure: %s%s\n", cli_row_failure(row, failure, sizeof failure),
           side->seen ? "" : " (no call has been counted for it yet)");
}

/* Is it of the host `other` as it is of the key? */
static bool is_of_host(const struct cli_context *context, const char *own,
                       enum config_option option, struct span other,
                       const struct config_value *value)
{
    struct config_value there;

    return cli_settings_explain(context->config, option, other, SPAN_NONE, own, &there) &&
           strcmp(value->text, there.text) == 0 && strcmp(value->origin, there.origin) == 0;
}

/* Of the first host all; of another key only what differs from those of the host `as` (SPAN_NONE:
 * there is none), which is called `title`: most of it is the same. */
static void put_policy(const struct cli_context *context, const char *own,
                       const struct explain_side *side, struct span as, const char *title)
{
    struct span host, model;
    struct config_value value;
    unsigned shown = 0;

    cli_key_split(span_str(side->key), &host, &model);
    for (int i = 0; i < OPTION_COUNT; i++) {
        enum config_option option = (enum config_option)i;
        const struct config_option_info *info = config_option_info(option);
        if (info->global ||
            !cli_settings_explain(context->config, option, host, model, own, &value) ||
            (as.ptr && is_of_host(context, own, option, as, &value)))
            continue;
        if (as.ptr && shown++ == 0)
            printf("  settings: as of the %s, but\n", title);
        cli_text_setting("  ", info->key, &value);
    }
    if (as.ptr && !shown)
        printf("  settings: as of the %s\n", title);
}

static void put_side(const struct cli_context *context, const char *own,
                     const struct explain_side *side, struct span as, const char *title)
{
    if (!side->exists)
        return;
    put("key ", side->key);
    put_state(side);
    put_policy(context, own, side, as, title);
}

/* --- the chain -------------------------------------------------------------------------------- */

/* Its origin is that of the setting which names the place: the section of a fallback. */
static void put_stop(const struct cli_context *context, const char *own,
                     const struct explanation *explanation, const struct explain_stop *stop)
{
    static char line[FALLBACK_URL_MAX + EXPLAIN_WHY_SIZE + SAFE_SIZE], safe[4 * sizeof line];
    char title[EXPLAIN_NAME_MAX], why[EXPLAIN_WHY_SIZE], ini[4 * PATH_MAX];
    struct config_value address = {0};
    const char *where = stop->url;

    if (stop->kind == EXPLAIN_ADDRESS &&
        explain_address_setting(context, own, explanation, &address))
        where = address.text; /* the URL stays */
    snprintf(line, sizeof line, "%s%s%s: %s: %s", explain_stop_title(stop, title),
             *where ? " " : "", where, explain_action_name(stop->action),
             explain_why(explanation, stop, why));
    cli_text_safe(span_str(line), safe, sizeof safe);
    printf("  %s", safe);
    cli_text_safe(span_str(*address.origin ? address.origin : context->ini), ini, sizeof ini);
    if (*address.origin)
        printf(" # %s", ini);
    else if (stop->line)
        printf(" # %s:%u", ini, stop->line);
    putchar('\n');
}

/* In the order in which they are tried; of a host alone there is nothing more to say. */
static void put_chain(const struct cli_context *context, const char *own,
                      const struct explanation *explanation)
{
    char safe[512];
    struct span name;
    unsigned left_out = 0;

    if (explanation->chain_len < 2 && !explain_left_out(context, explanation, 0, &name))
        return;
    printf("where it may go, in this order:\n");
    for (unsigned i = 0; i < explanation->chain_len; i++)
        put_stop(context, own, explanation, &explanation->chain[i]);
    for (; explain_left_out(context, explanation, left_out, &name); left_out++) {
        cli_text_safe(name, safe, sizeof safe);
        printf("%s%s", left_out ? ", " : "  left out: ", safe);
    }
    if (left_out)
        printf(" (see the warnings)\n");
}

void explain_print_text(const struct cli_context *context, const char *own,
                        const struct explanation *explanation)
{
    put_request(explanation);
    put("now: ", explanation->verdict);
    for (unsigned i = 0; i < explanation->remark_count; i++)
        put("note: ", explanation->remarks[i]);
    put_chain(context, own, explanation);
    put_coverage(context, own, explanation);
    put_model(explanation);
    put_layers(explanation);
    put(explanation->table_error == TABLE_E_ABSENT ? "no table yet: " : "table: ", context->path);
    for (unsigned i = 0; i < explanation->chain_len; i++) {
        const struct explain_stop *stop = &explanation->chain[i];
        struct span first = i > 0 ? span_str(explanation->chain[0].host.key) : SPAN_NONE;
        put_side(context, own, &stop->host, first, "first host");
        put_side(context, own, &stop->model, span_str(stop->host.key), "host");
    }
}
