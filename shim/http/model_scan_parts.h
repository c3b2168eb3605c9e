/*
 * model_scan_parts.h - what the parts of the scanner share. Private to model_scan*.c.
 */
#ifndef BREAKER_HTTP_MODEL_SCAN_PARTS_H
#define BREAKER_HTTP_MODEL_SCAN_PARTS_H

#include "http/model_scan.h"

#include <stdbool.h>

enum scan_mode {
    SCAN_START, /* before the first byte that tells what this is */
    /* JSON, inside the top-level object */
    SCAN_MEMBER, /* before a member name, a comma or the end */
    SCAN_NAME,   /* inside a member name */
    SCAN_COLON,  /* after it */
    SCAN_VALUE,  /* before a value */
    SCAN_MODEL,  /* inside the string that we look for */
    SCAN_SCALAR, /* inside a number or a word */
    SCAN_OTHER,  /* inside another string, object or array: see skip */
    /* multipart/form-data */
    SCAN_BOUNDARY,  /* inside the first line, which is the boundary */
    SCAN_HEADER,    /* inside a line of a part's head */
    SCAN_FIELD,     /* inside the content of the field that we look for */
    SCAN_CONTENT,   /* inside another part's content */
    SCAN_DELIMITER, /* after a boundary: the rest of its line */
    /* decided */
    SCAN_FOUND,
    SCAN_ABSENT,
};

/* scan->flags */
#define SCAN_NAME_DIFFERS  1u /* the member name cannot be the one looked for any more */
#define SCAN_NAME_MATCHED  2u /* the value that follows is the model */
#define SCAN_FIELD_IS_OURS 4u

static inline void scan_set(struct model_scan *scan, enum scan_mode mode)
{
    scan->mode = (uint16_t)mode;
}

/* model_scan_multipart.c: takes at least one byte in the multipart modes. */
size_t model_scan_multipart(struct model_scan *scan, struct span bytes);

#endif
