/*
 * cmd_explain_json.c - the explanation as one JSON object. Its shape is in the man page: members
 * are only ever added.
 */
#include "cli/cmd_explain.h"

#include <inttypes.h>

static const char *boolean(bool value)
{
    return value ? "true" : "false";
}

static struct span or_null(const char *text)
{
    return *text ? span_str(text) : SPAN_NONE;
}

static void put_request(const struct explanation *explanation)
{
    fputs("{\"version\":\"" BREAKER_VERSION "\",\n \"request\":{", stdout);
    cli_text_json_member("method", explanation->method);
    printf(",\"method_assumed\":%s,", boolean(explanation->method_assumed));
    cli_text_json_member("scheme", explanation->url.scheme);
    putchar(',');
    cli_text_json_member("host", span_of(explanation->key.text, explanation->key.len));
    putchar(',');
    cli_text_json_member("path", explanation->url.path);
    fputs("},\n ", stdout);
}

/* The options of the process, or of a key, each with its origin. */
static void put_settings(const struct cli_context *context, const char *own, const char *key)
{
    struct span host = SPAN_NONE, model = SPAN_NONE;
    struct config_value value;
    bool first = true;

    if (key)
        cli_key_split(span_str(key), &host, &model);
    putchar('{');
    for (int i = 0; i < OPTION_COUNT; i++) {
        enum config_option option = (enum config_option)i;
        const struct config_option_info *info = config_option_info(option);
        if (info->global != !key ||
            !cli_settings_explain(context->config, option, host, model, own, &value))
            continue;
        fputs(first ? "\n    " : ",\n    ", stdout);
        cli_text_json_setting(info->key, &value);
        first = false;
    }
    putchar('}');
}

static void put_targets(const struct cli_context *context, const struct explanation *explanation)
{
    struct span host = span_of(explanation->key.text, explanation->key.len);
    struct config_target_info target;
    bool first = true;

    fputs("\"targets\":[", stdout);
    for (unsigned i = 0; config_target(context->config, i, &target); i++) {
        if (!config_target_lists(context->config, i, host))
            continue;
        fputs(first ? "{" : ",{", stdout);
        cli_text_json_member("name", span_str(target.name));
        putchar(',');
        cli_text_json_member("match", span_str(target.pattern));
        printf(",\"line\":%u}", target.line);
        first = false;
    }
    fputs("]},\n ", stdout);
}

static void put_coverage(const struct cli_context *context, const struct explanation *explanation)
{
    const struct explain_stop *stop = &explanation->chain[0];

    printf("\"coverage\":{\"covered\":%s,", boolean(explanation->covered));
    cli_text_json_member("reason",
                         span_str(explanation->covered ? explain_cover_name(explanation->cover)
                                                       : explain_reason_name(stop->reason)));
    printf(",\"known_host\":%s,\"llm_shape\":%s,\"at_connect\":%s,",
           boolean(explanation->known_host), boolean(explanation->key.shape.place != MODEL_NONE),
           boolean(explanation->at_connect));
    cli_text_json_member("disabled", span_str(explanation->disabled));
    putchar(',');
    put_targets(context, explanation);
}

static void put_model(const struct explanation *explanation)
{
    cli_text_json_member("dialect", span_str(explain_dialect_name(explanation->key.shape.api)));
    fputs(",\n \"model\":{", stdout);
    cli_text_json_member("place", span_str(explain_place_name(explanation->place)));
    putchar(',');
    cli_text_json_member("member", route_model_member(explanation->key.shape.place));
    printf(",\"counts\":%s,\"known\":%s,",
           boolean(explanation->place != EXPLAIN_NONE && !explanation->host_alone),
           boolean(explanation->model_known));
    cli_text_json_member("name", or_null(explanation->model));
    fputs("},\n ", stdout);
}

static void put_layers(const struct explanation *explanation)
{
    struct explain_layer layers[EXPLAIN_LAYERS];
    unsigned count = explain_layers(explanation, layers);

    fputs("\"layers\":[", stdout);
    for (unsigned i = 0; i < count; i++) {
        fputs(i ? ",\n  {" : "\n  {", stdout);
        cli_text_json_member("layer", span_str(layers[i].name));
        putchar(',');
        cli_text_json_member("sees", span_str(layers[i].sees));
        putchar(',');
        cli_text_json_member("now", span_str(layers[i].now));
        putchar('}');
    }
    fputs("],\n ", stdout);
}

static void put_waiting(const struct explanation *explanation)
{
    const struct explain_side *at = explanation->waiting.at;
    const struct explain_stop *taken = explanation->waiting.taken;

    if (!at) {
        fputs("\"waiting\":null,", stdout);
        return;
    }
    fputs("\"waiting\":{", stdout);
    cli_text_json_member("key", span_str(at->key));
    printf(",\"credentials\":%u,\"longest_ms\":%" PRIu64 ",", at->row.parked, at->row.parked_ms);
    cli_text_json_member("action",
                         span_str(explain_action_name(taken ? EXPLAIN_REROUTED : EXPLAIN_REFUSED)));
    putchar(',');
    cli_text_json_member("fallback", taken ? taken->name : SPAN_NONE);
    fputs("},", stdout);
}

static void put_verdict(const struct explanation *explanation)
{
    const struct explain_stop *stop = &explanation->chain[0];

    const struct explain_stop *taken = explanation->taken ? explanation->taken : stop;
    const struct explain_stop *failover = explanation->failover;

    fputs("\"verdict\":{", stdout);
    cli_text_json_member("action", span_str(explain_action_name(
                                       explanation->taken ? EXPLAIN_REROUTED : stop->action)));
    putchar(',');
    cli_text_json_member("reason", span_str(explain_reason_name(stop->reason)));
    putchar(',');
    cli_text_json_member("key", stop->by ? span_str(stop->by->key) : SPAN_NONE);
    putchar(',');
    cli_text_json_member("to", explain_takes(taken) ? span_str(taken->host.key) : SPAN_NONE);
    putchar(',');
    cli_text_json_member("fallback", explanation->taken ? taken->name : SPAN_NONE);
    putchar(',');
    cli_text_json_member("failover", failover ? failover->name : SPAN_NONE);
    if (stop->waits && !explanation->taken)
        printf(",\"status\":%u,\"retry_after\":{\"min\":%u,\"max\":%u},", explain_status(stop),
               stop->wait_min, stop->wait_max);
    else
        fputs(",\"status\":null,\"retry_after\":null,", stdout);
    put_waiting(explanation);
    cli_text_json_member("text", span_str(explanation->verdict));
    fputs("},\n \"remarks\":[", stdout);
    for (unsigned i = 0; i < explanation->remark_count; i++) {
        if (i)
            putchar(',');
        cli_text_json(stdout, span_str(explanation->remarks[i]));
    }
    fputs("],\n ", stdout);
}

static void put_side(const struct cli_context *context, const char *own, const char *name,
                     const struct explain_side *side)
{
    printf("\"%s\":", name);
    if (!side->exists) {
        fputs("null", stdout);
        return;
    }
    putchar('{');
    cli_row_json_key(span_str(side->key));
    printf(",\"seen\":%s,", boolean(side->seen));
    cli_row_json_state(&context->table, &side->row);
    fputs(",\n   \"settings\":", stdout);
    put_settings(context, own, side->key);
    putchar('}');
}

static void put_stop(const struct cli_context *context, const char *own,
                     const struct explanation *explanation, const struct explain_stop *stop)
{
    char why[EXPLAIN_WHY_SIZE];
    struct config_value address;
    char origin[PATH_MAX + 16] = "";

    if (stop->line)
        snprintf(origin, sizeof origin, "%s:%u", context->ini, stop->line);
    else if (stop->kind == EXPLAIN_ADDRESS &&
             explain_address_setting(context, own, explanation, &address))
        snprintf(origin, sizeof origin, "%s", address.origin);
    cli_text_json_member("kind", span_str(explain_kind_name(stop->kind)));
    putchar(',');
    cli_text_json_member("name", stop->name);
    putchar(',');
    cli_text_json_member("origin", or_null(origin));
    putchar(',');
    cli_text_json_member("url", or_null(stop->url));
    putchar(',');
    cli_text_json_member("action", span_str(explain_action_name(stop->action)));
    putchar(',');
    cli_text_json_member("reason", span_str(explain_stop_reason(stop)));
    putchar(',');
    cli_text_json_member("variable", stop->culprit);
    putchar(',');
    cli_text_json_member("text", span_str(explain_why(explanation, stop, why)));
    fputs(",\n  ", stdout);
    put_side(context, own, "host", &stop->host);
    fputs(",\n  ", stdout);
    put_side(context, own, "model", &stop->model);
}

static void put_left_out(const struct cli_context *context, const struct explanation *explanation)
{
    struct span name;

    fputs("\"left_out\":[", stdout);
    for (unsigned i = 0; explain_left_out(context, explanation, i, &name); i++) {
        if (i)
            putchar(',');
        cli_text_json(stdout, name);
    }
    putchar(']');
}

void explain_print_json(const struct cli_context *context, const char *own,
                        const struct explanation *explanation)
{
    put_request(explanation);
    put_coverage(context, explanation);
    put_model(explanation);
    put_verdict(explanation);
    put_layers(explanation);
    cli_text_json_member("config", or_null(context->ini));
    fputs(",\n \"table\":{", stdout);
    cli_text_json_member("path", span_str(context->path));
    printf(",\"attached\":%s},\n \"settings\":", boolean(explanation->table_error == TABLE_OK));
    put_settings(context, own, NULL);
    fputs(",\n \"chain\":[", stdout);
    for (unsigned i = 0; i < explanation->chain_len; i++) {
        fputs(i ? ",\n  {" : "\n  {", stdout);
        put_stop(context, own, explanation, &explanation->chain[i]);
        putchar('}');
    }
    fputs("],\n ", stdout);
    put_left_out(context, explanation);
    puts("}");
}
