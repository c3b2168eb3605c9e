/*
 * content.h - what a response's Content-Type says of how its body is to be read. Pure.
 */
#ifndef BREAKER_HTTP_CONTENT_H
#define BREAKER_HTTP_CONTENT_H

#include "base/span.h"

#include <stdint.h>

enum content_kind {
    CONTENT_OTHER,
    CONTENT_EVENTS,    /* text/event-stream */
    CONTENT_DOCUMENT,  /* application/json */
    CONTENT_DOCUMENTS, /* application/x-ndjson, application/stream+json: one a line */
    CONTENT_FRAMES,    /* application/vnd.amazon.eventstream */
};

/* Parameters are looked over; SPAN_NONE: CONTENT_OTHER. */
enum content_kind content_kind_of(struct span type);

/* Does it come piece by piece, so that its head says nothing of when it ends? */
static inline bool content_is_stream(enum content_kind kind)
{
    return kind == CONTENT_EVENTS || kind == CONTENT_DOCUMENTS || kind == CONTENT_FRAMES;
}

#endif
