/* Cuts a fuzzer's input into pieces at places that the input itself chooses. */
#ifndef BREAKER_TESTS_FUZZ_CUT_H
#define BREAKER_TESTS_FUZZ_CUT_H

#include "base/span.h"

#include <sanitizer/asan_interface.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* abort() is what libFuzzer takes for a finding. */
#define MUST(condition)                                                                            \
    ((condition)                                                                                   \
         ? (void)0                                                                                 \
         : (fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition), abort()))

/* Inputs are "<kind><3 bytes that choose the pieces>\n" and what is to be read. */
enum { CUT_CONTROL = 5 };

typedef void cut_reader(void *reader, struct span piece);

/* Hands `bytes`, which must be a heap block, to `read` in pieces. What is still to come is
 * poisoned, so that a byte read too far is a finding. */
static inline void cut_read(cut_reader *read, void *reader, struct span bytes, const uint8_t *where)
{
    static const unsigned most[] = {1, 4, 61, 2048};
    uint32_t random = (uint32_t)where[1] << 8 | where[2];
    size_t len = where[0] & 4 ? random + 1 : 1; /* of the first piece */

    ASAN_POISON_MEMORY_REGION(bytes.ptr, bytes.len);
    for (size_t at = 0; at < bytes.len; at += len) {
        if (at > 0) {
            random = random * 1664525u + 1013904223u;
            len = (random >> 16) % most[where[0] & 3] + 1;
        }
        len = len < bytes.len - at ? len : bytes.len - at;
        ASAN_UNPOISON_MEMORY_REGION(bytes.ptr + at, len);
        read(reader, span_of(bytes.ptr + at, len));
    }
}

/* A heap block with what is to be read; free() its ptr. SPAN_NONE: there is nothing. */
static inline struct span cut_copy(const uint8_t *data, size_t size)
{
    char *copy;

    if (size <= CUT_CONTROL)
        return SPAN_NONE;
    copy = malloc(size - CUT_CONTROL);
    MUST(copy);
    memcpy(copy, data + CUT_CONTROL, size - CUT_CONTROL);
    return span_of(copy, size - CUT_CONTROL);
}

#endif
