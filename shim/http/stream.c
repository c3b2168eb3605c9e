#include "http/stream.h"

#include "http/encoding.h"
#include "http/stream_parts.h"

enum kind {
    KIND_NONE,
    KIND_EVENTS,    /* text/event-stream */
    KIND_DOCUMENT,  /* application/json */
    KIND_DOCUMENTS, /* one a line */
    KIND_FRAMES,
};

_Static_assert(sizeof(struct stream) <= 1536, "small enough to be copied for each piece");

/* --- which kind of body ---------------------------------------------------------------------- */

static enum kind kind_of(struct span type)
{
    static const struct {
        struct span type;
        enum kind kind;
    } types[] = {
        {SPAN_LIT("text/event-stream"), KIND_EVENTS},
        {SPAN_LIT("application/json"), KIND_DOCUMENT},
        {SPAN_LIT("application/x-ndjson"), KIND_DOCUMENTS},
        {SPAN_LIT("application/stream+json"), KIND_DOCUMENTS},
        {SPAN_LIT("application/vnd.amazon.eventstream"), KIND_FRAMES},
    };
    const char *parameters = type.len > 0 ? memchr(type.ptr, ';', type.len) : NULL;

    if (parameters)
        type.len = (size_t)(parameters - type.ptr);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (span_ieq(span_trim(type), types[i].type))
            return types[i].kind;
    return KIND_NONE;
}

void stream_init(struct stream *stream, enum api api, unsigned status, struct span type,
                 struct span encoding)
{
    *stream = (struct stream){.ollama = api == API_OLLAMA};
    if (encoding_is_plain(encoding) && status >= 200 && status <= 299)
        stream->kind = (uint8_t)kind_of(type);
    stream_set(stream, stream->kind == KIND_NONE ? STREAM_BLIND : STREAM_RUNNING);
}

/* --- what decides ---------------------------------------------------------------------------- */

void stream_fail(struct stream *stream, enum error_kind kind)
{
    stream_set(stream, kind == ERROR_RATE     ? STREAM_RATE
                       : kind == ERROR_CALLER ? STREAM_CALLER
                                              : STREAM_FAILURE);
}

void stream_judge_document(struct stream *stream)
{
    if (json_error_seen(&stream->json))
        stream_fail(stream, json_error_kind(&stream->json));
    else if (stream->kind == KIND_DOCUMENTS && stream->ollama && json_error_done(&stream->json))
        stream_set(stream, STREAM_OVER);
    stream->json = (struct json_error){0};
}

static void feed_document(struct stream *stream, struct span bytes)
{
    json_error_feed(&stream->json, bytes);
    if (!json_error_over(&stream->json))
        return;
    stream_judge_document(stream);
    if (stream->state == STREAM_RUNNING) /* nothing can follow it that says more */
        stream_set(stream, STREAM_BLIND);
}

static void feed_documents(struct stream *stream, struct span bytes)
{
    while (bytes.len > 0 && stream->state == STREAM_RUNNING) {
        const char *end = memchr(bytes.ptr, '\n', bytes.len);
        size_t len = end ? (size_t)(end - bytes.ptr) : bytes.len;
        json_error_feed(&stream->json, span_of(bytes.ptr, len));
        if (end)
            stream_judge_document(stream);
        bytes = span_skip(bytes, len + 1);
    }
}

static void feed_frames(struct stream *stream, struct span bytes)
{
    switch (event_frames_feed(&stream->frames, bytes)) {
    case EVENT_FRAMES_RUNNING:
        break;
    case EVENT_FRAMES_STOPPED:
        stream_set(stream, STREAM_OVER);
        break;
    case EVENT_FRAMES_ERROR:
        stream_fail(stream, (enum error_kind)stream->frames.kind);
        break;
    case EVENT_FRAMES_GARBLED:
        stream_set(stream, STREAM_BLIND);
        break;
    }
}

enum stream_state stream_feed(struct stream *stream, struct span bytes)
{
    if (stream->state != STREAM_RUNNING)
        return stream_state(stream);
    switch ((enum kind)stream->kind) {
    case KIND_EVENTS:
        stream_feed_lines(stream, bytes);
        break;
    case KIND_DOCUMENT:
        feed_document(stream, bytes);
        break;
    case KIND_DOCUMENTS:
        feed_documents(stream, bytes);
        break;
    case KIND_FRAMES:
        feed_frames(stream, bytes);
        break;
    case KIND_NONE:
        break;
    }
    return stream_state(stream);
}

enum stream_state stream_end(struct stream *stream)
{
    if (stream->state != STREAM_RUNNING)
        return stream_state(stream);
    if (stream->kind == KIND_EVENTS)
        stream_end_lines(stream);
    else if (stream->kind == KIND_DOCUMENT || stream->kind == KIND_DOCUMENTS)
        stream_judge_document(stream);
    return stream_state(stream);
}
