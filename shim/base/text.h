/*
 * text.h - text that grows in its caller's buffer and never beyond it. Not NUL-terminated. Pure,
 * async-signal-safe.
 */
#ifndef BREAKER_BASE_TEXT_H
#define BREAKER_BASE_TEXT_H

#include "base/span.h"

struct text {
    char *buf;
    size_t len, size;
    bool is_cut; /* something did not fit; nothing is appended from then on */
};

/* All of it, or nothing, and the text is cut. */
static inline void text_append(struct text *text, struct span bytes)
{
    if (text->is_cut || bytes.len > text->size - text->len) {
        text->is_cut = true;
        return;
    }
    if (bytes.len > 0)
        memcpy(text->buf + text->len, bytes.ptr, bytes.len);
    text->len += bytes.len;
}

#endif
