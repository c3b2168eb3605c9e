#include "http/synthetic.h"

#include "base/log.h"

#include <stdio.h>

/* A header value: printable ASCII, everything else as %XX (and '%' itself, so that it can be read
 * back). */
static size_t header_value(struct span text, char *buf, size_t size)
{
    size_t at = 0;

    for (size_t i = 0; i < text.len && at + 4 < size; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c > 0x20 && c < 0x7f && c != '%')
            buf[at++] = (char)c;
        else
            at += (size_t)snprintf(buf + at, size - at, "%%%02X", c);
    }
    buf[at] = '\0';
    return at;
}

/* The words that a person reads; `key` is JSON-escaped already. */
static int message(char *buf, size_t size, const struct synthetic *s, const char *key,
                   unsigned seconds)
{
    if (s->by_hand)
        return snprintf(
            buf, size,
            "libbreaker: the circuit breaker of %s is held open by hand; no request was "
            "sent",
            key);
    return snprintf(
        buf, size,
        "libbreaker: the circuit breaker of %s is %s; no request was sent. Retry in %u s", key,
        s->state, seconds);
}

/* The provider's own error shape (FIELD-NOTES 6); "circuit_open" marks it as ours in each. */
static int body(char *buf, size_t size, enum api api, const char *text)
{
    switch (api) {
    case API_ANTHROPIC:
        return snprintf(buf, size,
                        "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":"
                        "\"%s\",\"code\":\"circuit_open\"},\"request_id\":null}",
                        text);
    case API_GEMINI:
        return snprintf(buf, size,
                        "{\"error\":{\"code\":503,\"message\":\"%s\",\"status\":\"UNAVAILABLE\","
                        "\"details\":[{\"reason\":\"circuit_open\"}]}}",
                        text);
    case API_BEDROCK:
        return snprintf(buf, size, "{\"message\":\"%s\",\"code\":\"circuit_open\"}", text);
    case API_OLLAMA:
        return snprintf(buf, size, "{\"error\":\"%s\",\"code\":\"circuit_open\"}", text);
    case API_COHERE:
        return snprintf(buf, size, "{\"message\":\"%s\",\"code\":\"circuit_open\"}", text);
    case API_MISTRAL:
        return snprintf(buf, size,
                        "{\"object\":\"error\",\"message\":\"%s\",\"type\":"
                        "\"service_unavailable_error\",\"param\":null,\"code\":\"circuit_open\"}",
                        text);
    case API_OPENAI:
        break;
    }
    return snprintf(buf, size,
                    "{\"error\":{\"message\":\"%s\",\"type\":\"service_unavailable_error\","
                    "\"param\":null,\"code\":\"circuit_open\"}}",
                    text);
}

size_t synthetic_render(const struct synthetic *s, char *buf, size_t size)
{
    char key[1600], text[1800], json[2048];
    unsigned seconds = s->retry_after_ms / 1000 + (s->retry_after_ms % 1000 != 0);

    if (seconds == 0)
        seconds = 1;
    key[log_json_escape(s->key, key, sizeof key - 1)] = '\0';
    message(text, sizeof text, s, key, seconds);
    int body_len = body(json, sizeof json, s->api, text);
    header_value(s->key, key, sizeof key);
    int len =
        snprintf(buf, size,
                 "HTTP/1.1 503 Service Unavailable\r\n"
                 "Content-Type: application/json\r\n"
                 "Content-Length: %d\r\n"
                 "Connection: close\r\n"
                 "Retry-After: %u\r\n"
                 "%s"
                 "%s"
                 "X-Breaker-State: %s\r\n"
                 "X-Breaker-Key: %s\r\n"
                 "\r\n"
                 "%s",
                 body_len, seconds, s->should_retry ? "" : "x-should-retry: false\r\n",
                 s->api == API_BEDROCK ? "x-amzn-errortype: ServiceUnavailableException\r\n" : "",
                 s->state, key, s->head_only ? "" : json);
    return len > 0 && (size_t)len < size ? (size_t)len : 0;
}
