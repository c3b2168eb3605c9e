/*
 * names.c - what the lists of `fallback` keys name: judged when all sections are known.
 */
#include "base/distance.h"
#include "config/load.h"

#include <stdio.h>

bool names_add(struct load *load, struct layer *layer, unsigned line, struct span names)
{
    struct span name;

    while (config_next_name(&names, &name)) {
        struct load_name *entry = arena_alloc(&load->config->memory, sizeof *entry + name.len);
        if (!entry)
            return false;
        memcpy(entry + 1, name.ptr, name.len);
        *entry = (struct load_name){.layer = layer,
                                    .target = load->target,
                                    .line = line,
                                    .name = span_of((char *)(entry + 1), name.len)};
        *(load->names_last ? &load->names_last->next : &load->names) = entry;
        load->names_last = entry;
    }
    return true;
}

void names_forget(struct load *load, const struct layer *layer)
{
    for (struct load_name *entry = load->names; entry; entry = entry->next)
        if (entry->layer == layer)
            entry->layer = NULL;
}

/* --- one name ----------------------------------------------------------------------------------
 */

const char *names_file(const struct load *load, const struct load_name *entry)
{
    const struct config *config = load->config;

    return entry->layer == &config->environment ? "BREAKER_FALLBACK"
           : entry->layer == &config->set       ? "BREAKER_SET"
                                                : config->file;
}

static void skip(struct load *load, const struct load_name *entry, const char *expected,
                 const char *found)
{
    load_skip(load, names_file(load, entry), entry->line, SPAN_LIT("fallback"), expected, found);
}

static void skip_unknown(struct load *load, const struct load_name *entry)
{
    const struct config *config = load->config;
    unsigned best = DISTANCE_FAR;
    const char *nearest = NULL;
    char expected[120], found[120];

    /* Only as long as somebody reads it: lists and names may be many. */
    bool told = load->report && load->others < LOAD_PROBLEMS_MAX;
    for (unsigned i = 0; told && i < config->fallback_count; i++) {
        unsigned distance = distance_if_near(entry->name, span_str(config->fallbacks[i]->name));
        if (distance < best) {
            best = distance;
            nearest = config->fallbacks[i]->name;
        }
    }
    snprintf(expected, sizeof expected, "the NAME of a [fallback NAME]%s%s",
             nearest ? " such as " : "", nearest ? nearest : "");
    snprintf(found, sizeof found, "\"%.*s\"%s", (int)(entry->name.len < 60 ? entry->name.len : 60),
             entry->name.ptr, nearest ? "" : ", and no such section");
    skip(load, entry, expected, found);
}

static bool is_listed(const struct value *value, struct span wanted)
{
    struct span rest = span_str(value->text), name;

    while (config_next_name(&rest, &name))
        if (span_eq(name, wanted))
            return true;
    return false;
}

/* --- cycles ------------------------------------------------------------------------------------
 */

/* Where the hosts of fallbacks lead to by the targets that are for them, one bit per fallback. */
struct ways {
    const struct config *config;
    uint64_t from[CONFIG_FALLBACKS_MAX];
};

/* The fallbacks on this host. */
static uint64_t fallbacks_on(const struct config *config, struct span host)
{
    uint64_t bits = 0;

    for (unsigned i = 0; i < config->fallback_count; i++)
        if (!config->fallbacks[i]->left_out && span_eq(config->fallbacks[i]->key, host))
            bits |= UINT64_C(1) << i;
    return bits;
}

/* All that can be reached from these, themselves included. */
static uint64_t reach(const struct ways *ways, uint64_t bits)
{
    uint64_t reached = bits;

    while (bits) {
        uint64_t next = ways->from[__builtin_ctzll(bits)] & ~reached;
        reached |= next;
        bits = (bits & (bits - 1)) | next;
    }
    return reached;
}

/* Adds the way from a host to a fallback's; false: it would lead back. */
static bool add_way(struct ways *ways, struct span host, const struct fallback *fallback)
{
    uint64_t from = fallbacks_on(ways->config, host);
    uint64_t to = fallbacks_on(ways->config, fallback->key);

    if (from & reach(ways, to))
        return false;
    for (; from; from &= from - 1)
        ways->from[__builtin_ctzll(from)] |= to;
    return true;
}

/* --- all names ---------------------------------------------------------------------------------
 */

/* False: the name is to be left out, and that was told. */
static bool judge(struct load *load, struct ways *ways, const struct load_name *entry,
                  const struct value *value)
{
    const struct fallback *fallback = fallbacks_find(load->config, entry->name);
    struct span host = entry->target ? config_literal_host(entry->target) : SPAN_NONE;
    char found[120];

    if (!fallback) {
        skip_unknown(load, entry);
        return false;
    }
    if (fallback->left_out)
        return false;
    if (is_listed(value, entry->name)) {
        snprintf(found, sizeof found, "\"%s\" again", fallback->name);
        skip(load, entry, "each name once", found);
        return false;
    }
    if (!host.ptr)
        return true;
    bool same_host = span_eq(host, fallback->key);
    if (same_host && *fallback->seen.models)
        return true; /* another model there */
    if (!same_host && add_way(ways, host, fallback))
        return true;
    snprintf(found, sizeof found,
             same_host ? "\"%s\", which is the target itself"
                       : "\"%s\", whose host's own fallbacks lead back",
             fallback->name);
    skip(load, entry, same_host ? "a fallback elsewhere, or with model =" : "no cycle", found);
    return false;
}

/* Was the same name before it, in the list that begins at `list`? */
static bool was_left_out(const struct load_name *list, const struct load_name *wanted)
{
    for (; list != wanted; list = list->next)
        if (list->left_out && span_eq(list->name, wanted->name))
            return true;
    return false;
}

void names_check(struct load *load)
{
    struct ways ways = {.config = load->config};
    struct load_name *entry, *list = load->names;

    /* The lists are made again of the names that stay. */
    for (entry = load->names; entry; entry = entry->next)
        if (entry->layer)
            entry->layer->setting[OPTION_fallback]->value.text[0] = '\0';
    for (entry = load->names; entry; entry = entry->next) {
        if (!entry->layer)
            continue;
        struct value *value = &entry->layer->setting[OPTION_fallback]->value;
        if (list->layer != entry->layer)
            list = entry; /* of one layer they stand together */
        if (judge(load, &ways, entry, value))
            value_add_item(value->text, sizeof value->text, entry->name);
        else
            entry->left_out = !is_listed(value, entry->name) && !was_left_out(list, entry);
    }
    load->config->names = load->names;
}

/* --- public ------------------------------------------------------------------------------------
 */

bool config_left_out(const struct config *config, struct span host, struct span model,
                     unsigned index, struct span *name)
{
    const struct layer *layer = config_layer(config, OPTION_fallback, host, model);

    for (const struct load_name *entry = config->names; layer && entry; entry = entry->next)
        if (entry->layer == layer && entry->left_out && index-- == 0) {
            *name = entry->name;
            return true;
        }
    return false;
}
