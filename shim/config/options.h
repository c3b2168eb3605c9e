/*
 * options.h - the table of options behind options.def. Private to config/. Pure.
 */
#ifndef BREAKER_CONFIG_OPTIONS_H
#define BREAKER_CONFIG_OPTIONS_H

#include "config/config.h"

enum value_type {
    VALUE_UINT,
    VALUE_SECONDS, /* ns */
    VALUE_LEASE,   /* ns, or VALUE_LEASE_OF_CALL */
    VALUE_RATIO,   /* millionths */
    VALUE_FACTOR,  /* millionths */
    VALUE_BOOL,
    VALUE_PATH,
    VALUE_STATUS,
    VALUE_STATUS_CONNECT, /* the same, and maybe the word "connect" */
    VALUE_TEXTS,          /* a list, ", " between; may repeat its key */
    VALUE_CHOICE,
    VALUE_RATE_LIMIT, /* one bit for each choice: enum config_rate_limit */
    VALUE_NAMES,      /* a list, ", " between; may repeat its key */
    VALUE_BASE,       /* of http or https, without a '/' at its end */
    VALUE_ADDRESS,    /* HOST:PORT, as a key H spells it */
    VALUE_CODE,       /* 1..CONFIG_CODE_MAX bytes that JSON takes as they are */
};

struct option {
    const char *key;
    enum value_type type;
    const char *fallback;
    double min, max;    /* of numbers; equal: none */
    const char *bounds; /* the two in words, as options.def writes them (no locale) */
    bool global;
    const char *text;
    const char *const *choices; /* CHOICE, RATE_LIMIT: NULL-terminated */
    const char *expected;       /* what a message says was expected */
};

extern const struct option options[OPTION_COUNT];

/* The option of a key, or OPTION_COUNT. */
enum config_option option_find(struct span key);
/* The key that was perhaps meant by `key`; NULL: none is near. */
const char *option_nearest(struct span key);

#endif
