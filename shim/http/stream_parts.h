/*
 * stream_parts.h - what the parts of the watcher share. Private to stream*.c.
 */
#ifndef BREAKER_HTTP_STREAM_PARTS_H
#define BREAKER_HTTP_STREAM_PARTS_H

#include "http/block.h"
#include "http/stream.h"

static inline void stream_set(struct stream *stream, enum stream_state state)
{
    stream->state = (uint8_t)state;
}

/* stream.c: a document is complete as far as it goes: judges it, and makes ready for the next. */
void stream_judge_document(struct stream *stream);

/* stream.c: an error of this kind decides. */
void stream_fail(struct stream *stream, enum error_kind kind);

/* Where, of a block that stands at `from`, a quote stands before an 'e'; one byte more is looked
 * at.
 */
static inline struct block stream_quoted_e(struct block v, const char *from)
{
    return block_and(block_compare(v, '"'), block_compare(block_load(from + 1), 'e'));
}

/* Does one of these, as bits seen from `at`, begin the bytes "error", quotes included? */
static inline bool stream_names_error(struct span bytes, size_t at, uint64_t quotes)
{
    for (; quotes; quotes &= quotes - 1) {
        struct span rest = span_skip(bytes, at + (size_t)__builtin_ctzll(quotes));
        if (span_starts(rest, SPAN_LIT("\"error\"")))
            return true;
    }
    return false;
}

/* stream_lines.c: text/event-stream. */
void stream_feed_lines(struct stream *stream, struct span bytes);
void stream_end_lines(struct stream *stream);

#endif
