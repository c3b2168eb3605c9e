/*
 * values.h - option values: parsing, bounds, text. Private to config/. Locale-independent; pure.
 */
#ifndef BREAKER_CONFIG_VALUES_H
#define BREAKER_CONFIG_VALUES_H

#include "config/config.h"

enum value_type {
    VALUE_UINT,
    VALUE_SECONDS, /* ns */
    VALUE_RATIO,   /* millionths */
    VALUE_FACTOR,  /* millionths */
    VALUE_BOOL,
    VALUE_PATH,
    VALUE_STATUS,
    VALUE_CHOICE,
};

#define VALUE_TEXT_MAX 512

struct value {
    uint64_t number; /* UINT, SECONDS, RATIO, FACTOR, BOOL, CHOICE (index) */
    struct status_set statuses;
    char text[VALUE_TEXT_MAX]; /* as written, for `breaker config`; the value itself for PATH */
};

struct option {
    const char *key;
    enum value_type type;
    const char *fallback;
    double min, max;
    bool global;
    const char *text;
    const char *const *choices; /* CHOICE: NULL-terminated */
    const char *expected;       /* what a message says was expected */
};

extern const struct option options[OPTION_COUNT];

/* The option of a key, or OPTION_COUNT. */
enum config_option option_find(struct span key);
/* The key that looks most like `key`; never NULL. */
const char *option_nearest(struct span key);

/* False: not a value of this option, or out of range; *out untouched. */
bool value_parse(const struct option *option, struct span text, struct value *out);
/* Adds another occurrence of a list key. */
bool value_append(const struct option *option, struct span text, struct value *value);

#endif
