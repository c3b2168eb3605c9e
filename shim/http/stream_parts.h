/*
 * stream_parts.h - what the parts of the watcher share. Private to stream*.c.
 */
#ifndef BREAKER_HTTP_STREAM_PARTS_H
#define BREAKER_HTTP_STREAM_PARTS_H

#include "http/stream.h"

static inline void stream_set(struct stream *stream, enum stream_state state)
{
    stream->state = (uint8_t)state;
}

/* stream.c: a document is complete as far as it goes: judges it, and makes ready for the next. */
void stream_judge_document(struct stream *stream);

/* stream.c: an error of this kind decides. */
void stream_fail(struct stream *stream, enum error_kind kind);

/* stream_lines.c: text/event-stream. */
void stream_feed_lines(struct stream *stream, struct span bytes);
void stream_end_lines(struct stream *stream);

#endif
