/*
 * fallback_fixture.h - configurations with fallbacks, loaded as `breaker check` does: what costs
 * only a fallback is told, and the rest is there.
 */
#ifndef BREAKER_TESTS_FALLBACK_FIXTURE_H
#define BREAKER_TESTS_FALLBACK_FIXTURE_H

#include "config_fixture.h"

#define GOOD_FALLBACK "[fallback f]\nbase = https://f.example/v1\n"

static inline const char *variable(const char *name)
{
    static const char *const known[][2] = {
        {"KEY", "sk-canary"}, {"EMPTY", ""}, {"LINES", "a\nb"}, {"_x9", "$${KEY}"}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i][0], name) == 0)
            return known[i][1];
    return NULL;
}

/* One that is there although something was told. */
static inline struct config *load_checked(const char *text)
{
    struct config_source source = {.path = fixture_path, .variable = variable};

    write_bytes(text, strlen(text));
    return assert_loaded(load_source(&source));
}

static inline const struct config_fallback *find(const struct config *config, const char *name)
{
    return config_fallback(config, span_str(name));
}

#endif
