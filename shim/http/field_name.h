/*
 * field_name.h - is this text a field's name, whatever its case? Eight bytes at a time. Pure.
 */
#ifndef BREAKER_HTTP_FIELD_NAME_H
#define BREAKER_HTTP_FIELD_NAME_H

#include "base/span.h"

#include <stdint.h>

enum { FIELD_NAME_WORD = 8 };

/* Eight bytes of text against as many of a name in lower case: letters may differ in case. */
static inline bool field_name_word(const char *text, const char *name)
{
    uint64_t a, b;

    memcpy(&a, text, FIELD_NAME_WORD);
    memcpy(&b, name, FIELD_NAME_WORD);
    return ((a ^ b) & ~((b & UINT64_C(0x4040404040404040)) >> 1)) == 0; /* no '-' has that bit */
}

/* `text` is as long as the name, which is of letters in lower case, digits and '-'. */
static inline bool field_name_is(const char *text, struct span name)
{
    if (name.len < FIELD_NAME_WORD)
        return span_ieq(span_of(text, name.len), name);
    for (size_t at = 0; at + FIELD_NAME_WORD < name.len; at += FIELD_NAME_WORD)
        if (!field_name_word(text + at, name.ptr + at))
            return false;
    size_t last = name.len - FIELD_NAME_WORD;
    return field_name_word(text + last, name.ptr + last);
}

#endif
