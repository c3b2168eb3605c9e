/*
 * overrides.c - what stands above the file: BREAKER_<KEY> and --set.
 */
#include "config/load.h"

#include <stdio.h>

static bool is_reserved(struct span name)
{
    return span_eq(name, SPAN_LIT("CONFIG")) || span_eq(name, SPAN_LIT("SET")) ||
           span_eq(name, SPAN_LIT("DISABLED"));
}

static void load_environment(struct load *load, const char *const *environment)
{
    for (; environment && *environment; environment++) {
        struct span entry = span_str(*environment);
        char key[64], file[80];
        if (!span_starts(entry, SPAN_LIT("BREAKER_")))
            continue;
        entry = span_skip(entry, 8);
        const char *equals = memchr(entry.ptr, '=', entry.len);
        size_t len = equals ? (size_t)(equals - entry.ptr) : 0;
        if (len == 0 || len >= sizeof key || is_reserved(span_of(entry.ptr, len)))
            continue;
        for (size_t i = 0; i < len; i++)
            key[i] = span_lower(entry.ptr[i]);
        if (option_find(span_of(key, len)) == OPTION_COUNT)
            continue; /* a name of somebody else's */
        snprintf(file, sizeof file, "BREAKER_%.*s", (int)len, entry.ptr);
        load_value(load, &load->config->environment, file, 0, span_of(key, len),
                   span_str(equals + 1));
    }
}

static struct span trim(struct span text)
{
    while (text.len > 0 && text.ptr[0] == ' ')
        text = span_skip(text, 1);
    while (text.len > 0 && text.ptr[text.len - 1] == ' ')
        text.len--;
    return text;
}

static void load_set(struct load *load, struct span lines)
{
    while (lines.len > 0) {
        const char *end = memchr(lines.ptr, '\n', lines.len);
        struct span line = span_of(lines.ptr, end ? (size_t)(end - lines.ptr) : lines.len);
        lines = span_skip(lines, line.len + 1);
        const char *equals = line.len ? memchr(line.ptr, '=', line.len) : NULL;
        if (line.len == 0)
            continue;
        if (!equals) {
            load_problem(load, "--set", 0, line, "KEY=VALUE", "no '='");
            continue;
        }
        struct span key = trim(span_of(line.ptr, (size_t)(equals - line.ptr)));
        load_value(load, &load->config->set, "--set", 0, key,
                   trim(span_skip(line, (size_t)(equals + 1 - line.ptr))));
    }
}

void load_overrides(struct load *load, const struct config_source *source)
{
    load->layer = NULL;
    load->target = NULL;
    load_environment(load, source->environ);
    load_set(load, span_str(source->set));
}
