/*
 * stream.h - what the body of a good answer says of the call, as it goes by: an error inside a
 * stream or a JSON body under a 200, or the stream's clean end (FIELD-NOTES 5, 7.14; DESIGN,
 * Outcomes and Streams). Resumable at any byte, no allocation, keeps no text. Pure.
 *
 *   text/event-stream         an event named "error" or "response.failed"; an event whose data is a
 *                             JSON document that tells of an error (json_error.h). Ends: data that
 *                             begins with [DONE]; events message_stop (Anthropic),
 *                             response.completed and response.incomplete (OpenAI), message-end
 *                             (Cohere; a failure where its delta says ERROR). Lines end with LF,
 *                             CR or CRLF; comments, a BOM and data of many lines are read as the
 *                             standard says.
 *   application/json          a document that tells of an error (OpenRouter; Gemini's arrays)
 *   application/x-ndjson, application/stream+json
 *                             the same, a document a line. Ends: "done": true of Ollama
 *   application/vnd.amazon.eventstream
 *                             frames whose headers tell of an exception or error (event_frames.h).
 *                             Ends: messageStop
 *
 * Of lines and documents of any length nothing but the words that matter is kept. Where the end
 * has no mark of its own (Gemini, a JSON body) only the transport knows it.
 *
 * Not seen: errors inside of Bedrock's chunks, whose bytes are base64; compressed bodies.
 *
 * Cost goal (issue 5): a stream of deltas within 3x of finding its line ends with memchr
 * (tests/bench/bench_stream.c).
 */
#ifndef BREAKER_HTTP_STREAM_H
#define BREAKER_HTTP_STREAM_H

#include "http/content.h"
#include "http/event_frames.h"
#include "http/json_error.h"
#include "http/shape.h"
#include "http/stream_state.h"

/* Private: lines of text/event-stream. */
struct stream_lines {
    uint8_t step;
    uint8_t bom;       /* bytes of it seen; past its end: it cannot come any more */
    uint8_t name_len;  /* of the field */
    uint8_t begin_len; /* of the data */
    bool after_cr;     /* an LF would belong to the line before */
    bool data;         /* the event has some, maybe empty */
    char name[6];
    char begin[6];
    struct kept_word event;
};

/* Fixed in size, at most 1.5 KB, plain bytes: where an application may refuse bytes and be given
 * them again (FIELD-NOTES 2.7), a copy is fed, and assigned back once they are taken. All-zero is
 * STREAM_BLIND. */
struct stream {
    uint8_t state; /* enum stream_state */
    /* private from here */
    uint8_t kind; /* enum content_kind */
    bool ollama;
    struct json_error json;
    union {
        struct stream_lines lines;
        struct event_frames frames;
    };
};

/* The body that follows a final head with this status (only a 2xx is watched), Content-Type and
 * Content-Encoding (SPAN_NONE: none; anything but "identity" cannot be read). */
void stream_init(struct stream *stream, enum api api, unsigned status, struct span type,
                 struct span encoding);
/* The same where what these two say is known already. `encoded`: it cannot be read. */
void stream_init_kind(struct stream *stream, enum api api, unsigned status, enum content_kind kind,
                      bool encoded);

/* Bytes of the body, without transfer coding. The state depends on the bytes alone, not on how they
 * are cut. */
enum stream_state stream_feed(struct stream *stream, struct span bytes);

/* The transport ended, well or not: what stood in an event or document that was not finished is
 * judged. RUNNING stays: then how it ended tells. */
enum stream_state stream_end(struct stream *stream);

static inline enum stream_state stream_state(const struct stream *stream)
{
    return (enum stream_state)stream->state;
}

#endif
