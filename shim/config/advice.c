/*
 * advice.c - what is in force as it is written and can never do what it looks like: told of a
 * configuration that is otherwise good, since only the whole shows it.
 */
#include "config/load.h"
#include "config/place.h"
#include "http/url.h"

#include <stdio.h>

/* --- bases -------------------------------------------------------------------------------------
 */

/* A base is compared with URLs: one of another host begins none of the target's. */
static void advise_on_base(struct load *load, const struct target *target)
{
    struct span host = config_literal_host(target);
    char key[CONFIG_PATTERN_MAX], expected[180], found[120];
    struct place_base base;

    if (!host.ptr || !layer_has(&target->layer, OPTION_base))
        return;
    const struct setting *setting = target->layer.setting[OPTION_base];
    if (place_base_parse(span_str(setting->value.text), &base))
        return;
    size_t len = url_host_key(base.host, base.port, key, sizeof key);
    if (span_eq(span_of(key, len), host))
        return;
    snprintf(expected, sizeof expected, "a URL of %.*s", (int)host.len, host.ptr);
    snprintf(found, sizeof found, "\"%.60s\": none of its calls goes to a fallback",
             setting->value.text);
    load_warn(load, load->config->file, setting->line, SPAN_LIT("base"), expected, found);
}

/* --- clear text --------------------------------------------------------------------------------
 */

/* Where it stands in the list that is in force there; told once. */
static struct load_name *untold_name(struct load *load, struct span host, struct span model,
                                     struct span name)
{
    const struct layer *layer = config_layer(load->config, OPTION_fallback, host, model);

    for (struct load_name *entry = load->names; entry; entry = entry->next)
        if (entry->layer == layer && !entry->told && span_eq(entry->name, name))
            return entry;
    return NULL;
}

static void advise_on_clear_text(struct load *load, struct span host, struct span model)
{
    struct policy policy;
    struct span name;
    struct load_name *entry;
    char found[120];

    config_policy(load->config, host, model, &policy);
    struct span names = span_str(policy.fallback), base = span_str(policy.base);
    if (!span_istarts(base, SPAN_LIT("https:")) || policy.allow_cleartext ||
        !policy.allow_fallbacks || load->others >= LOAD_PROBLEMS_MAX)
        return;
    while (config_next_name(&names, &name)) {
        const struct config_fallback *fallback = config_fallback(load->config, name);
        if (!fallback || fallback->loopback || !span_eq(fallback->scheme, SPAN_LIT("http")) ||
            !(entry = untold_name(load, host, model, name)))
            continue;
        entry->told = true;
        snprintf(found, sizeof found, "\"%s\", which is clear text to another machine",
                 fallback->name);
        load_warn(load, names_file(load, entry), entry->line, SPAN_LIT("fallback"),
                  "https, this machine, or allow_cleartext = true", found);
    }
}

/* --- hard stops --------------------------------------------------------------------------------
 */

/* A connect is made before its call's model is known: it stays where all of its calls may go. */
static void advise_on_hard_stop(struct load *load, const struct target *target)
{
    struct policy policy;
    char expected[120], found[120];

    if (!target_model(target).ptr || !layer_has(&target->layer, OPTION_allow_fallbacks))
        return;
    const struct setting *setting = target->layer.setting[OPTION_allow_fallbacks];
    config_policy(load->config, target_host(target), SPAN_NONE, &policy);
    if (setting->value.number != 0 || !policy.holds_models || !policy.allow_fallbacks ||
        !*policy.fallback_address)
        return;
    snprintf(expected, sizeof expected, "no fallback_address for %.*s",
             (int)(target->host_len < 80 ? target->host_len : 80), target->pattern);
    snprintf(found, sizeof found,
             "\"%.45s\": connects do not go to it, since calls of that model may not",
             policy.fallback_address);
    load_warn(load, load->config->file, setting->line, SPAN_LIT("allow_fallbacks"), expected,
              found);
}

/* --- sections ----------------------------------------------------------------------------------
 */

static bool is_named(const struct load *load, const struct fallback *fallback)
{
    for (const struct load_name *entry = load->names; entry; entry = entry->next)
        if (entry->layer && span_eq(entry->name, span_str(fallback->name)))
            return true;
    return false;
}

/* Of one that is left out worse was told. */
static void advise_on_section(struct load *load, const struct fallback *fallback)
{
    char shown[CONFIG_NAME_MAX + 12];

    if (fallback->left_out || is_named(load, fallback))
        return;
    snprintf(shown, sizeof shown, "[fallback %s]", fallback->name);
    load_warn(load, load->config->file, fallback->seen.line, span_str(shown),
              "its name in a `fallback` key", "none");
}

void advice_give(struct load *load)
{
    const struct config *config = load->config;

    if (!load->report)
        return;
    for (unsigned i = 0; i < config->target_count; i++)
        advise_on_base(load, config->targets[i]);
    /* A host that no target names, then a pattern for what it matches: its glob matches itself, and
     * so does each wider one. */
    advise_on_clear_text(load, SPAN_LIT("-"), SPAN_NONE);
    for (unsigned i = 0; i < config->target_count; i++)
        advise_on_clear_text(load, target_host(config->targets[i]),
                             target_model(config->targets[i]));
    for (unsigned i = 0; i < config->target_count; i++)
        advise_on_hard_stop(load, config->targets[i]);
    for (unsigned i = 0; i < config->fallback_count; i++)
        advise_on_section(load, config->fallbacks[i]);
}
