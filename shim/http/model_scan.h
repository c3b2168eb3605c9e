/*
 * model_scan.h - finds the model in a request body as it passes by: resumable at any byte, no
 * allocation, no copy but of the model itself.
 *
 * JSON: the member "model" (or another name) of the top-level object only; prompts may contain the
 * text "model": at will, escaped or nested. Escapes in the value and in member names are decoded
 * (\uXXXX with surrogates to UTF-8). The first such member decides. multipart/form-data is told by
 * the body's leading "--": the form field of that name. Anything else (zstd, arrays, text) is
 * ABSENT, never an error.
 *
 * Cost goal (issue 2): a 1 MB body with the model last within 12x (prose), 5x (base64) and
 * 25x (tool schemas) of one memchr over it.
 */
#ifndef BREAKER_HTTP_MODEL_SCAN_H
#define BREAKER_HTTP_MODEL_SCAN_H

#include "http/json_skip.h"

#include <stdint.h>

#define MODEL_MAX 255 /* a longer model, or one with control characters, counts as ABSENT */

enum model_scan_state {
    MODEL_SCAN_MORE,   /* undecided: feed more */
    MODEL_SCAN_FOUND,  /* model_scan_value() has it */
    MODEL_SCAN_ABSENT, /* there is none, or it cannot be read */
};

/* Private but fixed in size: lives in the caller's struct; plain bytes, copied by assignment.
 * At most 512 bytes. */
struct model_scan {
    struct span name; /* member looked for; static storage */
    struct json_skip skip;
    uint16_t mode;
    uint16_t matched;
    uint16_t value_len;
    uint16_t flags;
    uint32_t code_point;
    uint16_t surrogate;
    uint8_t escape;
    uint8_t bytes_seen; /* before what tells what this is */
    uint8_t boundary_len;
    char boundary[72];
    char value[MODEL_MAX + 1];
    uint64_t reserved[4];
};

void model_scan_init(struct model_scan *scan, struct span name);
enum model_scan_state model_scan_feed(struct model_scan *scan, struct span bytes);
/* The body is complete: MORE becomes ABSENT. */
enum model_scan_state model_scan_end(struct model_scan *scan);
enum model_scan_state model_scan_state(const struct model_scan *scan);
/* Borrowed from `scan`; FOUND only, else SPAN_NONE. */
struct span model_scan_value(const struct model_scan *scan);

#endif
