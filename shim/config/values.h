/*
 * values.h - option values: parsing, bounds, text. Private to config/. Locale-independent; pure.
 */
#ifndef BREAKER_CONFIG_VALUES_H
#define BREAKER_CONFIG_VALUES_H

#include "config/options.h"

#define VALUE_TEXT_MAX      CONFIG_VALUE_MAX
#define VALUE_LEASE_OF_CALL UINT64_MAX /* the word `call` */

struct value {
    uint64_t number; /* UINT, SECONDS, LEASE, RATIO, FACTOR, BOOL, CHOICE (index), RATE_LIMIT
                        (bits), TEXTS (how many), STATUS_CONNECT (is the word there?) */
    struct status_set statuses;
    char text[VALUE_TEXT_MAX]; /* as written, for `breaker config`; the value itself for PATH and
                                 CODE, and spelled in one way for NAMES, TEXTS, BASE and ADDRESS */
};

/* False: not a value of this option, or out of range; *out untouched. */
bool value_parse(const struct option *option, struct span text, struct value *out);
/* Adds another occurrence of a list key; false: *value is as it was. */
bool value_append(const struct option *option, struct span text, struct value *value);

static inline bool value_has_statuses(const struct option *option)
{
    return option->type == VALUE_STATUS || option->type == VALUE_STATUS_CONNECT;
}

static inline bool value_is_list(const struct option *option)
{
    return value_has_statuses(option) || option->type == VALUE_NAMES || option->type == VALUE_TEXTS;
}

/* Adds one to a list as text, with ", " before it; false: there is no room. */
bool value_add_item(char *list, size_t size, struct span item);

#endif
