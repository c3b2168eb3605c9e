/* A body fed to the watcher whole, in two parts at every place, and byte by byte. */
#ifndef BREAKER_UNIT_STREAM_FIXTURE_H
#define BREAKER_UNIT_STREAM_FIXTURE_H

#include "http/stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

struct watched {
    enum api api;
    const char *type; /* Content-Type */
    const char *encoding;
    struct span body;
};

/* Parts are heap blocks of their own, so that a sanitizer sees every byte too far. */
static inline void feed_copy(struct stream *stream, struct span bytes)
{
    char *copy = malloc(bytes.len + !bytes.len);

    if (bytes.len > 0)
        memcpy(copy, bytes.ptr, bytes.len);
    stream_feed(stream, span_of(copy, bytes.len));
    free(copy);
}

static inline struct stream stream_before(const struct watched *w)
{
    struct stream stream;

    memset(&stream, 0xa5, sizeof stream);
    stream_init(&stream, w->api, 200, span_str(w->type), span_str(w->encoding));
    return stream;
}

static inline void expect_state(struct stream *stream, const struct watched *w,
                                enum stream_state before_end, enum stream_state expected,
                                size_t split)
{
    enum stream_state got = stream_state(stream), end = stream_end(stream);

    if (got != before_end || end != expected || stream_state(stream) != end)
        fail_msg("split at %zu: %d, then %d; expected %d, then %d of: %.*s", split, got, end,
                 before_end, expected, (int)(w->body.len < 500 ? w->body.len : 500), w->body.ptr);
}

/* `before_end`: before the transport's end; `expected`: after it. */
static inline void check_watched(const struct watched *w, enum stream_state before_end,
                                 enum stream_state expected)
{
    struct stream stream;

    for (size_t split = 0; split <= w->body.len; split++) {
        stream = stream_before(w);
        feed_copy(&stream, span_of(w->body.ptr, split));
        struct stream moved = stream; /* plain bytes */
        memset(&stream, 0x5a, sizeof stream);
        feed_copy(&moved, span_skip(w->body, split));
        expect_state(&moved, w, before_end, expected, split);
    }
    stream = stream_before(w);
    for (size_t i = 0; i < w->body.len; i++)
        feed_copy(&stream, span_of(w->body.ptr + i, 1));
    expect_state(&stream, w, before_end, expected, w->body.len + 1);
}

#endif
