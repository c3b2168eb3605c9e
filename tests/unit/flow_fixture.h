/* flow_fixture.h - one connection to 10.0.0.1:8000, and what goes by on it; on shim_fixture.h. */
#ifndef BREAKER_TESTS_FLOW_FIXTURE_H
#define BREAKER_TESTS_FLOW_FIXTURE_H

#include "shim_fixture.h"

#include "shim_flow.h"

#define HEAD_OF(length)                                                                            \
    "POST /v1/chat/completions HTTP/1.1\r\nHost: gpu1:8000\r\nContent-Length: " length "\r\n\r\n"
#define CHAT(model) HEAD_OF("13") "{\"model\":\"" model "\"}"
#define OK          "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define FAILED      "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"

static struct shim_flow flow;
static struct shim_call nothing_yet;

static inline void begin(void)
{
    shim_flow_init(&flow, SPAN_LIT("10.0.0.1"), 8000, &nothing_yet);
}

static inline uint64_t offer(const char *bytes, size_t len)
{
    shim_flow_send_begin(&flow);
    shim_flow_send(&flow, span_of(bytes, len));
    uint64_t allowed = shim_flow_send_end(&flow);
    CHECK(allowed <= len);
    if (flow.state == SHIM_FLOW_REFUSED)
        shim_flow_obeyed(&flow);
    return allowed;
}

static inline bool passes(const char *bytes)
{
    return offer(bytes, strlen(bytes)) == strlen(bytes);
}

static inline void answer(const char *bytes)
{
    shim_flow_received(&flow, span_str(bytes));
}

static inline void exchange(const char *request, const char *response)
{
    CHECK(passes(request));
    answer(response);
}

static inline void trip_by_flow(const char *request)
{
    for (int i = 0; i < 5; i++) {
        begin();
        exchange(request, FAILED);
        shim_flow_end(&flow, SHIM_FLOW_CLOSE);
    }
}

#endif
