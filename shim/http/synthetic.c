/*
 * synthetic.c - written straight into the caller's buffer, piece by piece: it runs on the
 * application's stack, of which threads may have 16 KB, and it is what a refusal costs.
 */
#include "http/synthetic.h"

#include "base/log.h"

/* Room for the key, in the head and in the body; what is longer once escaped is cut. */
#define KEY_ROOM 1600

/* Room for a head: what it is without the key is shorter than 400 bytes. */
#define HEAD_ROOM (400 + KEY_ROOM)

_Static_assert(HEAD_ROOM + KEY_ROOM + SYNTHETIC_CODE_MAX + 400 < SYNTHETIC_MAX,
               "whatever the key, a response fits");

struct out {
    char *buf;
    size_t len;
};

static void put(struct out *out, struct span text)
{
    if (text.len > 0) /* memcpy takes no NULL, not even for nothing */
        memcpy(out->buf + out->len, text.ptr, text.len);
    out->len += text.len;
}

static void put_text(struct out *out, const char *text)
{
    put(out, span_str(text));
}

static void put_number(struct out *out, size_t number)
{
    char digits[20];
    unsigned at = sizeof digits;

    do
        digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    put(out, span_of(digits + at, sizeof digits - at));
}

static void put_json(struct out *out, struct span text)
{
    out->len += log_json_escape(text, out->buf + out->len, KEY_ROOM);
}

/* A header value: printable ASCII, everything else as %XX (and '%' itself, so that it can be read
 * back). */
static void put_header_value(struct out *out, struct span text)
{
    static const char hex[] = "0123456789ABCDEF";

    size_t end = out->len + KEY_ROOM - 3;

    for (size_t i = 0; i < text.len && out->len < end; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        const char escaped[] = {'%', hex[c >> 4], hex[c & 15]};
        if (c > 0x20 && c < 0x7f && c != '%')
            put(out, span_of(text.ptr + i, 1));
        else
            put(out, span_of(escaped, sizeof escaped));
    }
}

/* The words that a person reads. */
static void put_message(struct out *out, const struct synthetic *s, unsigned seconds)
{
    put_text(out, s->rate_limited ? "libbreaker: " : "libbreaker: the circuit breaker of ");
    put_json(out, s->key);
    put_text(out, s->rate_limited ? " is cooling down" : " is ");
    if (s->rate_limited)
        put_text(out, s->with_all ? "" : " for this credential");
    else
        put_text(out, s->by_hand ? "held open by hand" : s->state);
    put_text(out, "; the call was refused");
    if (s->by_hand)
        return;
    put_text(out, ". Retry in ");
    put_number(out, seconds);
    put_text(out, " s");
}

/* The provider's own error shape around the message and the code, which marks it as ours in each
 * (FIELD-NOTES 6). */
struct shape_texts {
    const char *before, *between, *behind;
};
static const struct shape_texts shapes[] = {
    [API_OPENAI] = {"{\"error\":{\"message\":\"",
                    "\",\"type\":\"service_unavailable_error\",\"param\":null,\"code\":\"", "\"}}"},
    [API_ANTHROPIC] =
        {"{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"",
         "\",\"code\":\"", "\"},\"request_id\":null}"},
    [API_GEMINI] = {"{\"error\":{\"code\":503,\"message\":\"",
                    "\",\"status\":\"UNAVAILABLE\",\"details\":[{\"reason\":\"", "\"}]}}"},
    [API_BEDROCK] = {"{\"message\":\"", "\",\"code\":\"", "\"}"},
    [API_OLLAMA] = {"{\"error\":\"", "\",\"code\":\"", "\"}"},
    [API_COHERE] = {"{\"message\":\"", "\",\"code\":\"", "\"}"},
    [API_MISTRAL] = {"{\"object\":\"error\",\"message\":\"",
                     "\",\"type\":\"service_unavailable_error\",\"param\":null,\"code\":\"", "\"}"},
};

/* The same of a 429. */
static const struct shape_texts limited_shapes[] = {
    [API_OPENAI] = {"{\"error\":{\"message\":\"",
                    "\",\"type\":\"rate_limit_error\",\"param\":null,\"code\":\"", "\"}}"},
    [API_ANTHROPIC] =
        {"{\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"",
         "\",\"code\":\"", "\"},\"request_id\":null}"},
    [API_GEMINI] = {"{\"error\":{\"code\":429,\"message\":\"",
                    "\",\"status\":\"RESOURCE_EXHAUSTED\",\"details\":[{\"reason\":\"", "\"}]}}"},
    [API_BEDROCK] = {"{\"message\":\"", "\",\"code\":\"", "\"}"},
    [API_OLLAMA] = {"{\"error\":\"", "\",\"code\":\"", "\"}"},
    [API_COHERE] = {"{\"message\":\"", "\",\"code\":\"", "\"}"},
    [API_MISTRAL] = {"{\"object\":\"error\",\"message\":\"",
                     "\",\"type\":\"rate_limit_error\",\"param\":null,\"code\":\"", "\"}"},
};

static void put_head(struct out *out, const struct synthetic *s, unsigned seconds, size_t body_len)
{
    put_text(out, s->rate_limited ? "HTTP/1.1 429 Too Many Requests\r\n"
                                  : "HTTP/1.1 503 Service Unavailable\r\n");
    put_text(out, "Content-Type: application/json\r\n"
                  "Content-Length: ");
    put_number(out, body_len);
    put_text(out, "\r\nConnection: close\r\nRetry-After: ");
    put_number(out, seconds);
    if (s->rate_limited) {
        put_text(out, "\r\nretry-after-ms: ");
        put_number(out, s->retry_after_ms);
    } else if (!s->should_retry) {
        put_text(out, "\r\nx-should-retry: false");
        /* Cohere's SDK does not know it, and would sleep for the Retry-After inside the call,
         * twice. This it reads first, and nobody else who obeys the line above reads it. */
        if (s->api == API_COHERE)
            put_text(out, "\r\nretry-after-ms: 1");
    }
    if (s->api == API_BEDROCK)
        put_text(out, s->rate_limited ? "\r\nx-amzn-errortype: ThrottlingException"
                                      : "\r\nx-amzn-errortype: ServiceUnavailableException");
    put_text(out, "\r\nX-Breaker-State: ");
    put_text(out, s->state);
    put_text(out, "\r\nX-Breaker-Key: ");
    put_header_value(out, s->key);
    put_text(out, "\r\n\r\n");
}

/* The body comes first, since the head tells its length: behind the room that the head may take,
 * then moved up to it. */
size_t synthetic_render(const struct synthetic *s, char *buf, size_t size)
{
    unsigned seconds = synthetic_seconds(s->retry_after_ms);
    const struct shape_texts *shape = s->rate_limited ? &limited_shapes[s->api] : &shapes[s->api];
    struct out head = {.buf = buf}, body = {.buf = buf + HEAD_ROOM};

    if (size < SYNTHETIC_MAX)
        return 0;
    put_text(&body, shape->before);
    put_message(&body, s, seconds);
    put_text(&body, shape->between);
    put_text(&body, s->rate_limited ? "cooling_down" : s->code);
    put_text(&body, shape->behind);
    put_head(&head, s, seconds, body.len);
    if (s->head_only)
        body.len = 0;
    memmove(buf + head.len, body.buf, body.len);
    buf[head.len + body.len] = '\0';
    return head.len + body.len;
}
