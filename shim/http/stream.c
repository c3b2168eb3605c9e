#include "http/stream.h"

#include "http/encoding.h"
#include "http/json_skip.h"
#include "http/stream_parts.h"

_Static_assert(sizeof(struct stream) <= 1536, "small enough to be copied for each piece");

void stream_init_kind(struct stream *stream, enum api api, unsigned status, enum content_kind kind,
                      bool encoded)
{
    if (encoded || status < 200 || status > 299)
        kind = CONTENT_OTHER;
    stream->kind = (uint8_t)kind;
    stream->ollama = api == API_OLLAMA;
    stream->json = (struct json_error){0};
    if (kind == CONTENT_EVENTS)
        stream->lines = (struct stream_lines){0};
    else if (kind == CONTENT_FRAMES)
        stream->frames = (struct event_frames){0};
    stream_set(stream, kind == CONTENT_OTHER ? STREAM_BLIND : STREAM_RUNNING);
}

void stream_init(struct stream *stream, enum api api, unsigned status, struct span type,
                 struct span encoding)
{
    stream_init_kind(stream, api, status, content_kind_of(type), !encoding_is_plain(encoding));
}

/* --- what decides ---------------------------------------------------------------------------- */

void stream_fail(struct stream *stream, enum error_kind kind)
{
    stream_set(stream, kind == ERROR_QUOTA    ? STREAM_QUOTA
                       : kind == ERROR_RATE   ? STREAM_RATE
                       : kind == ERROR_CALLER ? STREAM_CALLER
                                              : STREAM_FAILURE);
}

void stream_judge_document(struct stream *stream)
{
    if (json_error_seen(&stream->json))
        stream_fail(stream, json_error_kind(&stream->json));
    else if (stream->kind == CONTENT_DOCUMENTS && stream->ollama && json_error_done(&stream->json))
        stream_set(stream, STREAM_OVER);
    stream->json = (struct json_error){0};
}

static bool names_error(struct span bytes)
{
    size_t at = 0;

    for (; bytes.len - at > BLOCK; at += BLOCK) {
        struct block quotes = stream_quoted_e(block_load(bytes.ptr + at), bytes.ptr + at);
        if (block_any(quotes) && stream_names_error(bytes, at, block_bits(quotes)))
            return true;
    }
    char tail[BLOCK + 1] = {0};
    memcpy(tail, bytes.ptr + at, bytes.len - at);
    return stream_names_error(bytes, at, block_bits(stream_quoted_e(block_load(tail), tail)));
}

/* Does a document that stands here whole tell of no error, as nearly all do? It need not be
 * understood then. */
static bool is_plain_document(struct span bytes)
{
    struct json_skip skip;

    if (bytes.len == 0 || (bytes.ptr[0] != '{' && bytes.ptr[0] != '[') || names_error(bytes))
        return false;
    json_skip_begin(&skip, bytes.ptr[0]);
    json_skip_feed(&skip, span_skip(bytes, 1));
    return json_skip_over(&skip);
}

static void feed_document(struct stream *stream, struct span bytes)
{
    if (!json_error_begun(&stream->json) && is_plain_document(bytes)) {
        stream_set(stream, STREAM_BLIND);
        return;
    }
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
        struct span line = span_until(bytes, '\n');
        json_error_feed(&stream->json, line);
        if (line.len < bytes.len)
            stream_judge_document(stream);
        bytes = span_skip(bytes, line.len + 1);
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
    if (stream->state != STREAM_RUNNING || bytes.len == 0)
        return stream_state(stream);
    switch ((enum content_kind)stream->kind) {
    case CONTENT_EVENTS:
        stream_feed_lines(stream, bytes);
        break;
    case CONTENT_DOCUMENT:
        feed_document(stream, bytes);
        break;
    case CONTENT_DOCUMENTS:
        feed_documents(stream, bytes);
        break;
    case CONTENT_FRAMES:
        feed_frames(stream, bytes);
        break;
    case CONTENT_OTHER:
        break;
    }
    return stream_state(stream);
}

enum stream_state stream_end(struct stream *stream)
{
    if (stream->state != STREAM_RUNNING)
        return stream_state(stream);
    if (stream->kind == CONTENT_EVENTS)
        stream_end_lines(stream);
    else if (stream->kind == CONTENT_DOCUMENT || stream->kind == CONTENT_DOCUMENTS)
        stream_judge_document(stream);
    return stream_state(stream);
}
