/* A connection as its bytes go by: what may leave, what is counted, what is answered; see
 * shim_fixture.h. */
#include "shim_fixture.h"

#include "shim_flow.h"
#include "table/slot.h"

#include <sys/stat.h>

#define HEAD_OF(length)                                                                            \
    "POST /v1/chat/completions HTTP/1.1\r\nHost: gpu1:8000\r\nContent-Length: " length "\r\n\r\n"
#define CHAT(model) HEAD_OF("13") "{\"model\":\"" model "\"}"
#define OK          "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define FAILED      "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"

#define EVENTS  "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
#define STREAM  EVENTS "\r\n"
#define CHUNKED EVENTS "Transfer-Encoding: chunked\r\n\r\n"

static struct shim_flow flow;
static struct shim_call nothing_yet;

static void begin(void)
{
    shim_flow_init(&flow, SPAN_LIT("10.0.0.1"), 8000, &nothing_yet);
}

static uint64_t offer(const char *bytes, size_t len)
{
    shim_flow_send_begin(&flow);
    shim_flow_send(&flow, span_of(bytes, len));
    uint64_t allowed = shim_flow_send_end(&flow);
    CHECK(allowed <= len);
    if (flow.state == SHIM_FLOW_REFUSED)
        shim_flow_obeyed(&flow);
    return allowed;
}

static bool passes(const char *bytes)
{
    return offer(bytes, strlen(bytes)) == strlen(bytes);
}

static void answer(const char *bytes)
{
    shim_flow_received(&flow, span_str(bytes));
}

static void exchange(const char *request, const char *response)
{
    CHECK(passes(request));
    answer(response);
}

static void trip_by_flow(const char *request)
{
    for (int i = 0; i < 5; i++) {
        begin();
        exchange(request, FAILED);
        shim_flow_end(&flow, SHIM_FLOW_CLOSE);
    }
}

static void expect_answer(void)
{
    static char text[SHIM_RESPONSE_MAX + 1], again[SHIM_RESPONSE_MAX];

    CHECK(flow.state == SHIM_FLOW_REFUSED && shim_flow_answer_due(&flow));
    CHECK(shim_flow_answer(&flow, 0, again, 5) == 5);
    CHECK(shim_flow_answer(&flow, 5, again + 5, 7) == 7);
    size_t len = shim_flow_answer(&flow, 0, text, 1);
    CHECK(len == 1);
    shim_flow_answer_taken(&flow, len);
    for (size_t more; (more = shim_flow_answer(&flow, 0, text + len, 7)) > 0; len += more) {
        CHECK(more <= 7);
        shim_flow_answer_taken(&flow, more);
    }
    text[len] = '\0';
    CHECK(memcmp(text, again, 12) == 0 && strncmp(text, "HTTP/1.1 503", 12) == 0);
    CHECK(strstr(text, "circuit_open\"}}") == text + len - strlen("circuit_open\"}}"));
}

#define CHAT_AS(key)                                                                               \
    "POST /v1/chat/completions HTTP/1.1\r\nHost: gpu1:8000\r\nAuthorization: Bearer " key          \
    "\r\nContent-Length: 13\r\n\r\n{\"model\":\"m\"}"
#define LIMITED "HTTP/1.1 429 No\r\nretry-after-ms: 17000\r\nContent-Length: 0\r\n\r\n"

/* One waits; the other, and who shows none, flow on the same connection. */
static void body_a_credential_that_waits(void)
{
    char text[13];

    begin();
    exchange(CHAT_AS("a"), LIMITED);
    exchange(CHAT_AS("b"), OK);
    exchange(CHAT("m"), OK);
    exchange(CHAT_AS("b"), OK);
    CHECK(offer(CHAT_AS("a"), strlen(CHAT_AS("a"))) == 0);
    CHECK(flow.state == SHIM_FLOW_REFUSED && shim_flow_answer_due(&flow));
    CHECK(shim_flow_answer(&flow, 0, text, 12) == 12 && memcmp(text, "HTTP/1.1 429", 12) == 0);
    CHECK(totals_of("gpu1:8000/m").refused == 1 && totals_of("gpu1:8000/m").neutral == 1);
    begin();
    exchange(CHAT("m"), LIMITED);
    exchange(CHAT_AS("b"), OK);
    CHECK(offer(CHAT("m"), strlen(CHAT("m"))) == 0);
    advance(17.1);
    begin();
    exchange(CHAT_AS("a"), OK);
}

#define TOO_LONG                                                                                   \
    "HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n"                                        \
    "7\r\n{\"code\"\r\n8\r\n:\"contex\r\n11\r\nt_length_exceeded\r\n2\r\n\"}\r\n0\r\n\r\n"
#define ZIPPED                                                                                     \
    "HTTP/1.1 500 No\r\nContent-Encoding: gzip\r\nContent-Length: 14\r\n\r\ncontext_length"

/* Found across chunks, at any cut of the bytes; not in a body that is encoded. */
static void body_a_neutral_body(void)
{
    const char *text = TOO_LONG;

    begin();
    for (size_t cut = 0; cut <= strlen(text); cut++) {
        CHECK(passes(CHAT("m")));
        shim_flow_received(&flow, span_of(text, cut));
        shim_flow_received(&flow, span_str(text + cut));
        CHECK(totals_of("gpu1:8000/m").neutral == cut + 1);
    }
    exchange(CHAT("m") CHAT("m"), TOO_LONG FAILED);
    exchange(CHAT("m"), ZIPPED);
    CHECK(totals_of("gpu1:8000/m").neutral == strlen(text) + 2);
    CHECK(totals_of("gpu1:8000/m").failure == 2 && totals_of("gpu1:8000").failure == 0);
}

static void body_five_failures_then_swallowed(void)
{
    trip_by_flow(CHAT("m"));
    begin();
    CHECK(offer(CHAT("m"), strlen(CHAT("m"))) == 0);
    expect_answer();
    CHECK(offer("more", 4) == 0); /* and all that follows */
    begin();
    exchange(CHAT("n"), OK);
    CHECK(totals_of("gpu1:8000/m").failure == 5 && totals_of("gpu1:8000/m").refused == 1);
    CHECK(totals_of("gpu1:8000/n").success == 1);
    CHECK(totals_of("gpu1:8000").success == 6 && totals_of("gpu1:8000").failure == 0);
}

static void body_any_cut_decides_the_same(void)
{
    const char *request = CHAT("m");
    size_t whole = strlen(request);

    trip_by_flow(request);
    for (size_t cut = 1; cut < whole; cut++) {
        begin();
        uint64_t first = offer(request, cut), second = offer(request + cut, whole - cut);
        CHECK(flow.state == SHIM_FLOW_REFUSED && first + second < whole);
        CHECK(second == 0);
        expect_answer();
    }
    begin();
    uint64_t left = 0;
    for (size_t at = 0; at < whole; at++)
        left += offer(request + at, 1);
    CHECK(left < whole && left >= strlen(HEAD_OF("13")));
    expect_answer();
}

/* Bytes that did not leave come again, in other pieces, and decide nothing twice. */
static void body_short_writes(void)
{
    const char *request = CHAT("m");
    size_t whole = strlen(request), at;
    uint64_t random = 88172645463325252u;

    for (int round = 0; round < 200; round++) {
        begin();
        for (at = 0; at < whole;) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            size_t want = 1 + random % (whole - at);
            size_t sent = random / 65536 % (want + 1);
            CHECK(offer(request + at, want) == want);
            shim_flow_unsent(&flow, want - sent);
            at += sent;
        }
        answer(OK);
        CHECK(totals_of("gpu1:8000/m").success == (uint64_t)round + 1);
        CHECK(totals_of("gpu1:8000").success == (uint64_t)round + 1);
        CHECK(flow.state == SHIM_FLOW_FOLLOWED);
        exchange("GET /v1/models HTTP/1.1\r\nHost: gpu1:8000\r\n\r\n", OK);
        CHECK(flow.state == SHIM_FLOW_FOLLOWED);
    }
}

static void body_earlier_requests_leave_and_are_answered(void)
{
    trip_by_flow(CHAT("m"));
    begin();
    const char *both = CHAT("n") CHAT("m");
    size_t good = strlen(CHAT("n"));
    CHECK(offer(both, good + strlen(CHAT("m"))) == good);
    CHECK(!shim_flow_answer_due(&flow));
    shim_flow_unsent(&flow, 10);
    CHECK(offer(both + good - 10, 10 + strlen(CHAT("m"))) == 10);
    answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no");
    CHECK(!shim_flow_answer_due(&flow));
    answer("k");
    expect_answer();
    CHECK(totals_of("gpu1:8000/n").success == 1 && totals_of("gpu1:8000/m").refused == 1);
}

static void body_pipelined_up_to_a_bound(void)
{
    begin();
    for (int i = 0; i < SHIM_FLOW_DEPTH; i++)
        CHECK(passes(CHAT("m")));
    for (int i = 0; i < SHIM_FLOW_DEPTH; i++)
        answer(OK);
    CHECK(totals_of("gpu1:8000/m").success == SHIM_FLOW_DEPTH);
    for (int i = 0; i <= SHIM_FLOW_DEPTH; i++)
        CHECK(passes(CHAT("m")));
    CHECK(flow.state == SHIM_FLOW_LOST);
    answer(FAILED);
    CHECK(totals_of("gpu1:8000/m").failure == 0);
}

static void body_ends(void)
{
    static const struct {
        const char *response;
        enum shim_flow_end end;
        int success, failure, neutral;
    } cases[] = {
        {"", SHIM_FLOW_EOF, 0, 1, 0},
        {"", SHIM_FLOW_RESET, 0, 1, 0},
        {"", SHIM_FLOW_CLOSE, 0, 0, 1},
        {"HTTP/1.1 2", SHIM_FLOW_EOF, 0, 1, 0},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nx", SHIM_FLOW_EOF, 0, 1, 0},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nx", SHIM_FLOW_CLOSE, 0, 0, 1},
        {"HTTP/1.1 200 OK\r\n\r\nto the end", SHIM_FLOW_EOF, 1, 0, 0},
        {"HTTP/1.1 200 OK\r\n\r\nto the end", SHIM_FLOW_RESET, 0, 1, 0},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", SHIM_FLOW_EOF, 0, 1,
         0},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", SHIM_FLOW_EOF,
         1, 0, 0},
        {"HTTP/1.1 100 Continue\r\n\r\n" OK, SHIM_FLOW_EOF, 1, 0, 0},
        {"HTTP/1.1 503 Busy\r\nContent-Length: 5\r\n\r\nx", SHIM_FLOW_CLOSE, 0, 1, 0},
        {"HTTP/1.1 400 Bad\r\nContent-Length: 5\r\n\r\nx", SHIM_FLOW_EOF, 0, 0, 1},
        {"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\nbinary", SHIM_FLOW_EOF, 1, 0, 0},
        {"SSH-2.0-x\r\n", SHIM_FLOW_EOF, 0, 1, 0},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", SHIM_FLOW_CLOSE, 0, 1, 0},
        {"", SHIM_FLOW_DROP, 0, 0, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char key[32], request[512];
        snprintf(key, sizeof key, "gpu1:8000/%c", (char)('a' + i));
        snprintf(request, sizeof request, HEAD_OF("13") "{\"model\":\"%c\"}", (char)('a' + i));
        begin();
        exchange(request, cases[i].response);
        shim_flow_end(&flow, cases[i].end);
        struct slot_totals found = totals_of(key);
        if (found.success != (uint64_t)cases[i].success ||
            found.failure != (uint64_t)cases[i].failure ||
            (cases[i].neutral == 0 && found.neutral != 0)) {
            fprintf(stderr, "case %zu: %d %d %d\n", i, (int)found.success, (int)found.failure,
                    (int)found.neutral);
            _exit(1);
        }
    }
}

/* A kept connection that the peer had closed when the next request came is nobody's failure. */
/* What a stream said of its call holds however it goes on: programs that have heard it leave the
 * rest unread, and the connection to their garbage collector. */
static void body_an_error_counts_when_it_is_there(void)
{
    begin();
    exchange(CHAT("s"), STREAM "data: {\"choices\":[]}\n\n");
    CHECK(totals_of("gpu1:8000/s").failure == 0);
    answer("data: {\"error\":{\"type\":\"server_error\"}}\n\n");
    CHECK(totals_of("gpu1:8000/s").failure == 1);
    answer("data: [DONE]\n\n");
    shim_flow_end(&flow, SHIM_FLOW_RESET);
    CHECK(totals_of("gpu1:8000/s").failure == 1);

    /* on a kept connection the next call is another */
    begin();
    exchange(CHAT("t"), CHUNKED "21\r\ndata: {\"error\":{\"code\":400}}\n\n\n\n\n\r\n");
    CHECK(totals_of("gpu1:8000/t").neutral == 1);
    answer("0\r\n\r\n");
    exchange(CHAT("t"), OK);
    CHECK(totals_of("gpu1:8000/t").neutral == 1);
    CHECK(totals_of("gpu1:8000/t").success == 1);
    shim_flow_end(&flow, SHIM_FLOW_CLOSE);
}

static void body_stale_connections(void)
{
    begin();
    exchange(CHAT("m"), OK);
    CHECK(passes(CHAT("m")));
    shim_flow_end(&flow, SHIM_FLOW_RESET);
    CHECK(totals_of("gpu1:8000/m").failure == 0);
    begin();
    exchange(CHAT("m"), OK);
    exchange(CHAT("m"), "HTTP/1");
    shim_flow_end(&flow, SHIM_FLOW_RESET);
    CHECK(totals_of("gpu1:8000/m").failure == 1);
    begin();
    exchange(CHAT("m"), OK);
    CHECK(passes(CHAT("m")));
    advance(2); /* it was at it, and died */
    shim_flow_end(&flow, SHIM_FLOW_EOF);
    CHECK(totals_of("gpu1:8000/m").failure == 2);
}

static void body_hangs_by_age(void)
{
    begin();
    CHECK(passes(CHAT("m")));
    advance(29);
    shim_flow_end(&flow, SHIM_FLOW_CLOSE);
    CHECK(totals_of("gpu1:8000/m").failure == 0);
    begin();
    CHECK(passes(CHAT("m")));
    advance(31);
    shim_flow_end(&flow, SHIM_FLOW_CLOSE);
    CHECK(totals_of("gpu1:8000/m").failure == 1);
}

static void body_what_is_not_followed(void)
{
    static const char *const others[] = {"*1\r\n$4\r\nPING\r\n",       "\x16\x03\x01",
                                         "PRI * HTTP/2.0\r\n",         "EHLO x\r\n",
                                         "CONNECT a:443 HTTP/1.1\r\n", "SSH-2.0\r\n"};

    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        begin();
        CHECK(passes(others[i]) && flow.state == SHIM_FLOW_LOST);
        CHECK(passes(CHAT("m")) && flow.state == SHIM_FLOW_LOST);
    }
    begin();
    CHECK(passes("POST /v1/chat/completions HTTP/1.1\r\nHost: gpu1:8000\r\n"
                 "Transfer-Encoding: chunked\r\n\r\nzz\r\n"));
    CHECK(flow.state == SHIM_FLOW_LOST && passes(CHAT("m")));
    begin();
    answer("220 hello\r\n"); /* it speaks first */
    CHECK(flow.state == SHIM_FLOW_LOST);
}

static void body_hosts(void)
{
    begin();
    exchange("POST /v1/messages HTTP/1.1\r\nHost: gpu2\r\nContent-Length: 0\r\n\r\n", OK);
    CHECK(totals_of("gpu2:8000/-").success == 1); /* the connection's port */
    exchange("POST /v1/messages HTTP/1.1\r\nContent-Length: 0\r\n\r\n", OK);
    CHECK(totals_of("10.0.0.1:8000/-").success == 1);
    exchange("POST /v1/messages HTTP/1.1\r\nHost: GPU3:1\r\nContent-Length: 0\r\n\r\n", OK);
    CHECK(totals_of("gpu3:1/-").success == 1);
    exchange("POST http://gpu4/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", OK);
    CHECK(totals_of("gpu4:80/-").success == 1 &&
          totals_of("gpu4:80").success == 0);                              /* by a proxy */
    static const char *const none[] = {"a:99999", "a:8o", "a:0", "a b:1"}; /* the last ends it */
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        char text[128];
        snprintf(text, sizeof text,
                 "POST /v1/messages HTTP/1.1\r\nHost: %s\r\nContent-Length: 0\r\n\r\n", none[i]);
        CHECK(flow.state == SHIM_FLOW_FOLLOWED);
        exchange(text, OK);
        snprintf(text, sizeof text, "%s/-", none[i]);
        CHECK(!slot_of(text));
    }
    CHECK(!slot_of("a:8000/-") && !slot_of("a/-") && flow.state == SHIM_FLOW_LOST);
}

/* A grant of H that the connect took is its first request's; half-open refuses everybody else's. */
static void body_a_probe_from_connect_to_first_byte(void)
{
    static struct shim_call connect, other;
    struct shim_request host = {.scheme = SPAN_LIT("https"),
                                .host = SPAN_LIT("api.openai.com"),
                                .port = 443,
                                .path = SPAN_LIT("")};
    const char *request = "POST /v1/chat/completions HTTP/1.1\r\nHost: api.openai.com:443\r\n"
                          "Content-Length: 13\r\n\r\n{\"model\":\"m\"}";

    for (int i = 0; i < 5; i++) {
        CHECK(shim_open(&connect, &host) == SHIM_READY && shim_admit(&connect) == SHIM_ADMITTED);
        end_kind(&connect, END_CONNECT, PHASE_CONNECTING, 0.001);
    }
    CHECK(shim_open(&connect, &host) == SHIM_READY && shim_admit(&connect) == SHIM_REFUSED);
    advance(31);
    CHECK(shim_open(&connect, &host) == SHIM_READY && shim_admit(&connect) == SHIM_ADMITTED);
    CHECK(shim_is_probe(&connect));
    CHECK(shim_open(&other, &host) == SHIM_READY && shim_admit(&other) == SHIM_REFUSED);
    shim_flow_init(&flow, SPAN_LIT("api.openai.com"), 443, &connect);
    CHECK(passes(request) && !shim_admitted(&connect));
    CHECK(shim_open(&other, &host) == SHIM_READY && shim_admit(&other) == SHIM_REFUSED);
    answer("H");
    CHECK(shim_open(&other, &host) == SHIM_READY && shim_admit(&other) == SHIM_ADMITTED);
    shim_flow_end(&flow, SHIM_FLOW_EOF); /* of the model: the host is well */
    CHECK(shim_open(&other, &host) == SHIM_READY && shim_admit(&other) == SHIM_ADMITTED);
}

/* A proxy's own host is asked at the connect, and hears of its first byte, whatever it was asked
 * for. */
static void body_a_proxy_recovers(void)
{
    static struct shim_call connect;
    struct shim_request proxy = {.scheme = SPAN_LIT("https"),
                                 .host = SPAN_LIT("10.0.0.1"),
                                 .port = 8000,
                                 .path = SPAN_LIT("")};

    for (int i = 0; i < 5; i++) {
        CHECK(shim_open(&connect, &proxy) == SHIM_READY && shim_admit(&connect) == SHIM_ADMITTED);
        end_kind(&connect, END_CONNECT, PHASE_CONNECTING, 0.001);
    }
    CHECK(shim_open(&connect, &proxy) == SHIM_READY && shim_admit(&connect) == SHIM_REFUSED);
    advance(31);
    CHECK(shim_open(&connect, &proxy) == SHIM_READY && shim_admit(&connect) == SHIM_ADMITTED);
    CHECK(shim_is_probe(&connect));
    shim_flow_init(&flow, SPAN_LIT("10.0.0.1"), 8000, &connect);
    exchange("POST http://gpu4/v1/messages HTTP/1.1\r\nHost: gpu4\r\nContent-Length: 0\r\n\r\n",
             OK);
    CHECK(totals_of("10.0.0.1:8000").success == 1 && totals_of("10.0.0.1:8000").failure == 5);
    CHECK(totals_of("gpu4:80/-").success == 1 && totals_of("gpu4:80").success == 0);
    CHECK(shim_open(&connect, &proxy) == SHIM_READY && shim_admit(&connect) == SHIM_ADMITTED);
    CHECK(!shim_is_probe(&connect));
}

/* Nor is it a proxy that is asked for itself in that form. */
static void body_the_peer_in_absolute_form(void)
{
    begin();
    exchange("POST http://10.0.0.1:8000/v1/messages HTTP/1.1\r\nHost: 10.0.0.1:8000\r\n"
             "Content-Length: 0\r\n\r\n",
             OK);
    CHECK(totals_of("10.0.0.1:8000/-").success == 1 && totals_of("10.0.0.1:8000").success == 1);
}

/* Over TLS a request is its server's, by the name that was asked for in the handshake; its port is
 * still the head's to say. Where no name was, the head says who it is. */
static void body_over_tls(void)
{
    begin();
    shim_flow_secure(&flow, true);
    exchange(CHAT("m"), OK);
    exchange("POST /v1/messages HTTP/1.1\r\nHost: other\r\nContent-Length: 0\r\n\r\n", OK);
    CHECK(totals_of("10.0.0.1:8000/m").success == 1 && totals_of("10.0.0.1:8000/-").success == 1);
    shim_flow_init(&flow, SPAN_LIT("tls1"), 443, NULL);
    shim_flow_secure(&flow, true);
    exchange(CHAT("m"), OK);
    exchange("POST /v1/messages HTTP/1.1\r\nHost: other\r\nContent-Length: 0\r\n\r\n", OK);
    CHECK(totals_of("tls1:8000/m").success == 1 && totals_of("tls1/-").success == 1);
    begin();
    shim_flow_secure(&flow, false);
    exchange(CHAT("m"), OK);
    CHECK(totals_of("gpu1:8000/m").success == 1);
    /* The next connection of this memory is in clear. */
    shim_flow_init(&flow, SPAN_LIT("10.0.0.1"), 8000, NULL);
    exchange(CHAT("m"), OK);
    CHECK(totals_of("gpu1:8000/m").success == 2);
}

/* --- heads that are the last one again -----------------------------------------------------------
 */

#define TO(path, host, length)                                                                     \
    "POST " path " HTTP/1.1\r\nHost: " host "\r\nContent-Length: " length "\r\n\r\n"
#define CHAT_PATH   "/v1/chat/completions"
#define BODY(model) "{\"model\":\"" model "\"}"

/* Each request is counted where it goes, whatever the one before it was. */
static void body_one_connection_many_heads(void)
{
    begin();
    for (int i = 0; i < 3; i++)
        exchange(CHAT("m"), OK);
    exchange(HEAD_OF("14") BODY("mm"), OK);
    exchange(HEAD_OF("13") BODY("n"), OK);
    CHECK(totals_of("gpu1:8000/m").success == 3 && totals_of("gpu1:8000/mm").success == 1 &&
          totals_of("gpu1:8000/n").success == 1);
    exchange(TO(CHAT_PATH, "gpu2:8000", "13") BODY("m"), OK);
    exchange(TO(CHAT_PATH, "gpu2:8000", "13") BODY("m"), OK);
    exchange(CHAT("m"), OK);
    CHECK(totals_of("gpu2:8000/m").success == 2 && totals_of("gpu1:8000/m").success == 4);
    exchange(TO("/v1/something/elses", "gpu1:8000", "13") BODY("m"), OK);
    exchange(TO("/v1/something/elses", "gpu1:8000", "13") BODY("m"), OK);
    CHECK(totals_of("gpu1:8000/m").success == 4);
    exchange(TO("/openai/deployments/d1/x", "gpu1:8000", "13") BODY("m"), OK);
    exchange(TO("/openai/deployments/d1/x", "gpu1:8000", "13") BODY("m"), OK);
    exchange(TO("/openai/deployments/d2/x", "gpu1:8000", "13") BODY("m"), OK);
    CHECK(totals_of("gpu1:8000/d1").success == 2 && totals_of("gpu1:8000/d2").success == 1);
    exchange(CHAT("m"), FAILED);
    CHECK(totals_of("gpu1:8000/m").success == 4 && totals_of("gpu1:8000/m").failure == 1);
}

/* Nor does it matter what the connection before it was for. */
static void body_many_connections_many_heads(void)
{
    static const char *const peers[] = {"10.0.0.1", "10.0.0.2", "10.0.0.2"};
    const char *request = "POST " CHAT_PATH " HTTP/1.1\r\nContent-Length: 13\r\n\r\n" BODY("m");

    for (size_t i = 0; i < 6; i++) {
        shim_flow_init(&flow, span_str(peers[i % 3]), (uint16_t)(8000 + i / 3), &nothing_yet);
        exchange(request, OK);
        if (i % 2)
            CHECK(passes(i % 4 == 1 ? "POST" : request));
        shim_flow_end(&flow, SHIM_FLOW_CLOSE);
    }
    CHECK(totals_of("10.0.0.1:8000/m").success == 1 && totals_of("10.0.0.1:8001/m").success == 1);
    CHECK(totals_of("10.0.0.2:8000/m").success == 2 && totals_of("10.0.0.2:8001/m").success == 2);
}

/* Pipelined ones are judged by other calls than the last. */
static void body_same_heads_pipelined(void)
{
    begin();
    CHECK(passes(CHAT("m") CHAT("n") HEAD_OF("14") BODY("mm") CHAT("m")));
    answer(OK FAILED OK);
    CHECK(passes(CHAT("n") TO(CHAT_PATH, "gpu2:8000", "13") BODY("m")));
    answer(OK OK OK);
    CHECK(totals_of("gpu1:8000/m").success == 2 && totals_of("gpu1:8000/mm").success == 1);
    CHECK(totals_of("gpu1:8000/n").success == 1 && totals_of("gpu1:8000/n").failure == 1);
    CHECK(totals_of("gpu2:8000/m").success == 1);
    CHECK(passes(TO(CHAT_PATH, "gpu3:8000", "13") BODY("m") TO(CHAT_PATH, "gpu3:8000", "14")
                     BODY("mm")));
    answer(OK OK);
    CHECK(totals_of("gpu3:8000/m").success == 1 && totals_of("gpu3:8000/mm").success == 1);
}

static void configure(const char *text)
{
    char path[128];

    CHECK(snprintf(path, sizeof path, "%s/breaker.ini", getenv("HOME")) < (int)sizeof path);
    setenv("BREAKER_CONFIG", path, 1);
    FILE *file = fopen(path, "w");
    CHECK(file && chmod(path, 0600) == 0 && fputs(text, file) >= 0 && fclose(file) == 0);
    advance(2);
}

/* What was judged under another configuration is judged anew. */
static void body_same_heads_of_another_configuration(void)
{
    configure("[breaker]\nmatch = llm\n");
    begin();
    exchange(CHAT("m"), OK);
    exchange(CHAT("m"), OK);
    CHECK(totals_of("gpu1:8000/m").success == 2);
    configure("[breaker]\nmatch = listed\n");
    exchange(CHAT("m"), OK);
    exchange(CHAT("m"), OK);
    CHECK(totals_of("gpu1:8000/m").success == 2);
    configure("[breaker]\nmatch = listed\nfailure_threshold = 1\n[target gpu1:8000]\n");
    exchange(CHAT("m"), OK);
    CHECK(totals_of("gpu1:8000/m").success == 3);
    exchange(CHAT("m"), FAILED);
    CHECK(!passes(CHAT("m")) && flow.state == SHIM_FLOW_REFUSED);
    unlink(getenv("BREAKER_CONFIG"));
}

/* The grant of a connect that was asked of a table that was replaced meanwhile goes back; the
 * request is asked, and counted, where all others are. */
static void body_a_grant_of_another_table(void)
{
    static struct shim_call connect, other;
    struct shim_request host = {
        .scheme = SPAN_LIT("http"), .host = SPAN_LIT("gpu1"), .port = 8000, .path = SPAN_LIT("")};

    for (int i = 0; i < 5; i++) {
        CHECK(shim_open(&connect, &host) == SHIM_READY && shim_admit(&connect) == SHIM_ADMITTED);
        end_kind(&connect, END_CONNECT, PHASE_CONNECTING, 0.001);
    }
    advance(31);
    CHECK(shim_open(&connect, &host) == SHIM_READY && shim_admit(&connect) == SHIM_ADMITTED);
    CHECK(shim_is_probe(&connect));
    CHECK(table_replace(getenv("BREAKER_TABLE"), true) == TABLE_OK);
    advance(2);
    CHECK(shim_open(&other, &host) == SHIM_READY && shim_admit(&other) == SHIM_ADMITTED);
    CHECK(!shim_is_probe(&other)); /* it was refused, and found the new one */
    shim_drop(&other);
    shim_flow_init(&flow, SPAN_LIT("gpu1"), 8000, &connect);
    CHECK(passes(CHAT("m")) && !shim_admitted(&connect));
    answer(OK);
    CHECK(totals_of("gpu1:8000").success == 1 && totals_of("gpu1:8000/m").success == 1);
}

IN_CHILD(a_credential_that_waits, "")
IN_CHILD(a_neutral_body, "neutral_body=context_length")
IN_CHILD(five_failures_then_swallowed, "")
IN_CHILD(any_cut_decides_the_same, "")
IN_CHILD(short_writes, "")
IN_CHILD(earlier_requests_leave_and_are_answered, "")
IN_CHILD(pipelined_up_to_a_bound, "")
IN_CHILD(ends, "")
IN_CHILD(an_error_counts_when_it_is_there, "")
IN_CHILD(stale_connections, "")
IN_CHILD(hangs_by_age, "")
IN_CHILD(what_is_not_followed, "")
IN_CHILD(hosts, "")
IN_CHILD(a_proxy_recovers, "match=all")
IN_CHILD(the_peer_in_absolute_form, "")
IN_CHILD(over_tls, "")
IN_CHILD(one_connection_many_heads, "")
IN_CHILD(many_connections_many_heads, "")
IN_CHILD(same_heads_pipelined, "")
IN_CHILD(same_heads_of_another_configuration, "")
IN_CHILD(a_grant_of_another_table, "match=all")
IN_CHILD(a_probe_from_connect_to_first_byte, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_credential_that_waits),
        cmocka_unit_test(test_a_neutral_body),
        cmocka_unit_test(test_five_failures_then_swallowed),
        cmocka_unit_test(test_any_cut_decides_the_same),
        cmocka_unit_test(test_short_writes),
        cmocka_unit_test(test_earlier_requests_leave_and_are_answered),
        cmocka_unit_test(test_pipelined_up_to_a_bound),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_an_error_counts_when_it_is_there),
        cmocka_unit_test(test_stale_connections),
        cmocka_unit_test(test_hangs_by_age),
        cmocka_unit_test(test_what_is_not_followed),
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_a_proxy_recovers),
        cmocka_unit_test(test_the_peer_in_absolute_form),
        cmocka_unit_test(test_over_tls),
        cmocka_unit_test(test_one_connection_many_heads),
        cmocka_unit_test(test_many_connections_many_heads),
        cmocka_unit_test(test_same_heads_pipelined),
        cmocka_unit_test(test_same_heads_of_another_configuration),
        cmocka_unit_test(test_a_grant_of_another_table),
        cmocka_unit_test(test_a_probe_from_connect_to_first_byte),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
