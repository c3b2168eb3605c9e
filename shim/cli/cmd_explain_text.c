/*
 * cmd_explain_text.c - the explanation for people. The URL's userinfo and query are not shown: keys
 * stand there.
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
    struct config_target_info target;
    struct config_value match;
    char name[512], ini[4 * PATH_MAX];

    if (explanation->covered)
        put("covered: ", explain_cover_text(explanation->cover));
    else
        put("", explanation->why);
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
    char now[SAFE_SIZE];

    if (!explain_layers(explanation, layers))
        return;
    printf("what sees it, and what happens there now:\n");
    for (unsigned i = 0; i < EXPLAIN_LAYERS; i++) {
        bool same = layers[i].now == explanation->verdict;
        cli_text_safe(span_str(same ? "as said above" : layers[i].now), now, sizeof now);
        printf("  %s: %s; %s\n", layers[i].name, layers[i].sees, now);
    }
}

static void put_state(const struct explain_side *side)
{
    const struct cli_row *row = &side->row;
    char left[32], failure[64];

    printf("  state: %s%s, streak %u", breaker_state_name(row->effective.state),
           cli_row_is_due(row) ? ", probe due" : "", row->effective.streak);
    if (row->retry_in_ms)
        printf(", retry in %s", cli_text_duration(row->retry_in_ms, left, sizeof left));
    printf(", last failure: %s%s\n", cli_row_failure(row, failure, sizeof failure),
           side->seen ? "" : " (no call has been counted for it yet)");
}

/* Is it of the host's breaker as it is of the model's? */
static bool is_of_host(const struct cli_context *context, const char *own,
                       enum config_option option, struct span host,
                       const struct config_value *value)
{
    struct config_value other;

    return cli_settings_explain(context->config, option, host, SPAN_NONE, own, &other) &&
           strcmp(value->text, other.text) == 0 && strcmp(value->origin, other.origin) == 0;
}

/* Of M only what differs from H: most of it is the same. */
static void put_policy(const struct cli_context *context, const char *own,
                       const struct explain_side *side)
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
            (model.ptr && is_of_host(context, own, option, host, &value)))
            continue;
        if (model.ptr && shown++ == 0)
            printf("  settings: as of the host, but\n");
        cli_text_setting("  ", info->key, &value);
    }
    if (model.ptr && !shown)
        printf("  settings: as of the host\n");
}

static void put_side(const struct cli_context *context, const char *own,
                     const struct explain_side *side)
{
    if (!side->exists)
        return;
    put("key ", side->key);
    put_state(side);
    put_policy(context, own, side);
}

void explain_print_text(const struct cli_context *context, const char *own,
                        const struct explanation *explanation)
{
    put_request(explanation);
    put("now: ", explanation->verdict);
    for (unsigned i = 0; i < explanation->remark_count; i++)
        put("note: ", explanation->remarks[i]);
    put_coverage(context, own, explanation);
    put_model(explanation);
    put_layers(explanation);
    put(explanation->table_error == TABLE_E_ABSENT ? "no table yet: " : "table: ", context->path);
    for (unsigned i = 0; i < explanation->chain_len; i++) {
        const struct explain_stop *stop = &explanation->chain[i];
        put_side(context, own, &stop->host);
        put_side(context, own, &stop->model);
    }
}
