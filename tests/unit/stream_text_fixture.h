/* stream_text_fixture.h - bodies of text, and what each of them says; on stream_fixture.h. */
#ifndef BREAKER_UNIT_STREAM_TEXT_FIXTURE_H
#define BREAKER_UNIT_STREAM_TEXT_FIXTURE_H

#include "stream_fixture.h"

#include <stdio.h>

#define SSE    "text/event-stream"
#define JSON   "application/json"
#define NDJSON "application/x-ndjson"

/* A chunk and an error of OpenAI's and of what speaks like it. */
#define CHUNK                                                                                      \
    "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0," \
    "\"delta\":{\"content\":\" word\"},\"finish_reason\":null}]}\n\n"
#define DELTA                                                                                      \
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":"   \
    "{\"type\":\"text_delta\",\"text\":\" the \\\"error\\\"\"}}\n\n"

static inline void is(const char *type, const char *body, enum stream_state expected)
{
    struct watched w = {API_OPENAI, type, NULL, span_str(body)};

    check_watched(&w, expected, expected);
}

/* Nothing is told until the transport ends. */
static inline void is_at_end(const char *type, const char *body, enum stream_state expected)
{
    struct watched w = {API_OPENAI, type, NULL, span_str(body)};

    check_watched(&w, STREAM_RUNNING, expected);
}

#endif
