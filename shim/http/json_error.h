/*
 * json_error.h - does a JSON document say that the call failed? Read as it passes by: resumable at
 * any byte, no allocation. Pure.
 *
 * An error is (FIELD-NOTES 5, 7.14, and what providers send under a 200):
 *   {"error": …}                   OpenAI-like, Gemini, OpenRouter; Ollama's is a string
 *   [{"error": …}]                 Gemini without alt=sse, in any element
 *   {"choices": [{"error": …}]}    OpenRouter; or a "finish_reason" of "error" in a choice
 *   {"response": {"error": …}}     OpenAI's response.failed
 *   {"delta": {"error": …}}        Cohere's message-end; see json_error_ended_badly()
 *   {"type": "error"}, {"object": "error"}   OpenAI's /v1/responses; an older vLLM
 * null, false, 0 and "" are no error. Whose trouble it is, the members type, code, status,
 * error_type and http_status_code tell, of the error and of the top level beside it.
 *
 * Names with escapes in them are none of these: nobody writes them so, and a text without the bytes
 * "error", quotes included, is then known to hold no error.
 */
#ifndef BREAKER_HTTP_JSON_ERROR_H
#define BREAKER_HTTP_JSON_ERROR_H

#include "http/error_word.h"
#include "http/json_skip.h"
#include "http/kept_word.h"

/* The deepest place that is looked into: list, object, choices, choice, error, an error in it. */
#define JSON_ERROR_LEVELS 7

/* Private but for the functions below; plain bytes, copied by assignment. All-zero is ready
 * for a document. */
struct json_error {
    struct json_skip skip;
    uint8_t mode;
    uint8_t level;
    uint8_t places[JSON_ERROR_LEVELS];
    uint8_t member; /* the last name */
    uint8_t kinds;  /* of the words so far, bits */
    bool in_name;
    bool seen;
    bool done;
    bool ended_badly;
    struct kept_word text; /* of a name or value; lost if there is an escape in it */
};

void json_error_feed(struct json_error *json, struct span bytes);

/* The document is complete, or cannot be read any further: nothing more will be seen. */
bool json_error_over(const struct json_error *json);

/* Was anything but blanks there? */
static inline bool json_error_begun(const struct json_error *json)
{
    return json->mode != 0 || json->level != 0;
}

/* So far. `done`: the top level says "done": true (Ollama's last line). The words of an error may
 * follow it, so whoever can waits for the document's end before asking for them. */
static inline bool json_error_seen(const struct json_error *json)
{
    return json->seen;
}
static inline bool json_error_done(const struct json_error *json)
{
    return json->done;
}
/* The top level's "delta" has a "finish_reason" of "ERROR": an error where the document is Cohere's
 * message-end, and nothing elsewhere. */
static inline bool json_error_ended_badly(const struct json_error *json)
{
    return json->ended_badly;
}
static inline enum error_kind json_error_kind(const struct json_error *json)
{
    return error_word_of_kinds(json->kinds);
}

#endif
