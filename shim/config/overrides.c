/*
 * overrides.c - what stands above the file: BREAKER_<KEY> and --set.
 */
#include "config/load.h"

#include <stdio.h>

/* "OPEN_SECONDS" to "open_seconds"; OPTION_COUNT when it is no option's name. */
static enum config_option option_of_name(struct span name, char *key, size_t size)
{
    if (name.len >= size)
        return OPTION_COUNT;
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] >= 'a' && name.ptr[i] <= 'z')
            return OPTION_COUNT;
        key[i] = span_lower(name.ptr[i]);
    }
    return option_find(span_of(key, name.len));
}

/* Names that are no options are somebody else's. Of a name that stands twice the first counts, as
 * for getenv(). */
static void load_environment(struct load *load, const char *const *environment)
{
    struct layer *layer = &load->config->environment;

    for (; environment && *environment; environment++) {
        struct span entry = span_str(*environment);
        char key[64], file[80];
        const char *equals = strchr(*environment, '=');
        if (!equals || !span_starts(entry, SPAN_LIT("BREAKER_")))
            continue;
        struct span name = span_of(entry.ptr + 8, (size_t)(equals - entry.ptr) - 8);
        enum config_option option = option_of_name(name, key, sizeof key);
        if (option == OPTION_COUNT || layer_has(layer, option))
            continue;
        snprintf(file, sizeof file, "BREAKER_%.*s", (int)name.len, name.ptr);
        load_value(load, layer, file, 0, span_of(key, name.len), span_str(equals + 1));
    }
}

/* A wrapper script adds its --set behind those that it was given: the last of a key counts. */
static void load_set(struct load *load, struct span lines)
{
    struct layer *layer = &load->config->set;

    while (lines.len > 0) {
        struct span line = span_take(&lines, '\n');
        const char *equals = line.len ? memchr(line.ptr, '=', line.len) : NULL;
        if (line.len == 0)
            continue;
        if (!equals) {
            load_problem(load, "BREAKER_SET", 0, line, "KEY=VALUE", "no '='");
            continue;
        }
        struct span key = span_trim(span_of(line.ptr, (size_t)(equals - line.ptr)));
        load_unset(load, layer, key);
        load_value(load, layer, "BREAKER_SET", 0, key,
                   span_trim(span_skip(line, (size_t)(equals + 1 - line.ptr))));
    }
}

void overrides_load(struct load *load, const struct config_source *source)
{
    load->layer = NULL;
    load->target = NULL;
    load->fallback = NULL;
    load_environment(load, source->environ);
    load_set(load, span_str(source->set));
}
