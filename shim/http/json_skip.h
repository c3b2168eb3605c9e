/*
 * json_skip.h - passes over a JSON string, object or array that need not be understood: resumable
 * at any byte, no allocation, no stack. Pure.
 */
#ifndef BREAKER_HTTP_JSON_SKIP_H
#define BREAKER_HTTP_JSON_SKIP_H

#include "base/span.h"

#include <stdint.h>

/* All-zero: nothing is passed over. */
struct json_skip {
    uint32_t depth; /* objects and arrays that are open */
    bool in_string;
    bool escaped; /* a backslash was the last byte */
};

/* After the byte that opens the value: '"', '{' or '['. */
static inline void json_skip_begin(struct json_skip *skip, char opener)
{
    skip->in_string = opener == '"';
    skip->depth = !skip->in_string;
    skip->escaped = false;
}

/* The byte that closes the value was taken. */
static inline bool json_skip_over(const struct json_skip *skip)
{
    return skip->depth == 0 && !skip->in_string;
}

/* Returns how many bytes it took: up to the one that closes the value, or all. */
size_t json_skip_feed(struct json_skip *skip, struct span bytes);

#endif
