/*
 * kept_word.h - a word that comes in pieces, kept as long as it may be one that means something.
 * Plain bytes, copied by assignment; all-zero is empty. Pure.
 */
#ifndef BREAKER_HTTP_KEPT_WORD_H
#define BREAKER_HTTP_KEPT_WORD_H

#include "base/span.h"

#include <stdint.h>

#define KEPT_WORD_MAX 47 /* no longer word means anything */

struct kept_word {
    uint8_t len; /* beyond KEPT_WORD_MAX: lost */
    char bytes[KEPT_WORD_MAX];
};

/* It is longer, or cannot be read. */
static inline void kept_word_lose(struct kept_word *word)
{
    word->len = KEPT_WORD_MAX + 1;
}

static inline bool kept_word_is_lost(const struct kept_word *word)
{
    return word->len > KEPT_WORD_MAX;
}

static inline void kept_word_add(struct kept_word *word, struct span bytes)
{
    if (word->len + bytes.len > KEPT_WORD_MAX) {
        kept_word_lose(word);
        return;
    }
    memcpy(word->bytes + word->len, bytes.ptr, bytes.len);
    word->len = (uint8_t)(word->len + bytes.len);
}

/* Borrowed from `word`; SPAN_NONE: it is lost. */
static inline struct span kept_word_span(const struct kept_word *word)
{
    return kept_word_is_lost(word) ? SPAN_NONE : span_of(word->bytes, word->len);
}

/* Is it this one, which is not empty? */
static inline bool kept_word_is(const struct kept_word *word, struct span text)
{
    return span_eq(kept_word_span(word), text);
}

#endif
