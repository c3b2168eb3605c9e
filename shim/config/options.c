/*
 * options.c - the table of options, made from options.def.
 */
#include "config/options.h"

#include "base/distance.h"

#include <stdint.h>

static const char *const choice_match[] = {"llm", "listed", "all", NULL};
static const char *const choice_deepbind[] = {"mask", "keep", NULL};
static const char *const choice_mode[] = {"enforce", "observe", "off", NULL};
static const char *const choice_scope[] = {"model", "host", NULL};
static const char *const choice_exhausted[] = {"503", "pass", NULL};
static const char *const choice_failover[] = {"connect", "off", NULL};
static const char *const choice_rate_limit[] = {"cooldown", "count", "ignore", NULL};

#define GLOBAL                true
#define TARGET                false
#define TYPE_UINT             VALUE_UINT, NULL, "a whole number"
#define TYPE_SECONDS          VALUE_SECONDS, NULL, "a number of seconds"
#define TYPE_LEASE            VALUE_LEASE, NULL, "call, or a number of seconds"
#define TYPE_RATIO            VALUE_RATIO, NULL, "a number"
#define TYPE_FACTOR           VALUE_FACTOR, NULL, "a number"
#define TYPE_BOOL             VALUE_BOOL, NULL, "true or false"
#define TYPE_PATH             VALUE_PATH, NULL, "an absolute path"
#define TYPE_STATUS           VALUE_STATUS, NULL, "a list of HTTP statuses and ranges, as in 408, 500-504"
#define TYPE_CHOICE_MATCH     VALUE_CHOICE, choice_match, "llm, listed or all"
#define TYPE_CHOICE_DEEPBIND  VALUE_CHOICE, choice_deepbind, "mask or keep"
#define TYPE_CHOICE_MODE      VALUE_CHOICE, choice_mode, "enforce, observe or off"
#define TYPE_CHOICE_SCOPE     VALUE_CHOICE, choice_scope, "model or host"
#define TYPE_CHOICE_EXHAUSTED VALUE_CHOICE, choice_exhausted, "503 or pass"
#define TYPE_CHOICE_FAILOVER  VALUE_CHOICE, choice_failover, "connect or off"
#define TYPE_TEXTS                                                                                 \
    VALUE_TEXTS, NULL,                                                                             \
        "texts of 1 to 128 bytes with commas between, at most 16 of them and 511 bytes in all"
#define TYPE_STATUS_CONNECT                                                                        \
    VALUE_STATUS_CONNECT, NULL, "a list of HTTP statuses, ranges and the word connect"
#define TYPE_RATE_LIMIT                                                                            \
    VALUE_RATE_LIMIT, choice_rate_limit, "cooldown, count, both with a comma between, or ignore"
#define TYPE_NAMES   VALUE_NAMES, NULL, "names of [fallback NAME] sections"
#define TYPE_BASE    VALUE_BASE, NULL, "http://HOST[:PORT][/PATH] or https://..."
#define TYPE_ADDRESS VALUE_ADDRESS, NULL, "HOST:PORT"
#define TYPE_CODE                                                                                  \
    VALUE_CODE, NULL, "1 to 64 printable ASCII characters without quotes and backslashes"

/* Through a second macro, so that TYPE_... is three arguments by then. */
#define ROW(...) row(__VA_ARGS__)
#define row(key_, fallback_, min_, max_, scope_, text_, type_, choices_, expected_)                \
    {.key = key_,                                                                                  \
     .type = type_,                                                                                \
     .fallback = fallback_,                                                                        \
     .min = min_,                                                                                  \
     .max = max_,                                                                                  \
     .bounds = "from " #min_ " to " #max_,                                                         \
     .global = scope_,                                                                             \
     .text = text_,                                                                                \
     .choices = choices_,                                                                          \
     .expected = expected_},

const struct option options[OPTION_COUNT] = {
#define OPTION(key, type, fallback, min, max, scope, text)                                         \
    ROW(#key, fallback, min, max, scope, text, TYPE_##type)
#include "config/options.def"
#undef OPTION
};

enum config_option option_find(struct span key)
{
    unsigned i = 0;

    while (i < OPTION_COUNT && !span_eq(key, span_str(options[i].key)))
        i++;
    return (enum config_option)i;
}

const char *option_nearest(struct span key)
{
    unsigned best = DISTANCE_FAR;
    const char *nearest = NULL;

    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        unsigned d = distance_if_near(key, span_str(options[i].key));
        if (d < best) {
            best = d;
            nearest = options[i].key;
        }
    }
    return nearest;
}
