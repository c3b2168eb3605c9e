/* A connection as its bytes go by: what may leave, what is counted, what is answered; see
 * flow_fixture.h. */
#include "flow_fixture.h"

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

IN_CHILD(a_credential_that_waits, "")
IN_CHILD(a_neutral_body, "neutral_body=context_length")
IN_CHILD(five_failures_then_swallowed, "")
IN_CHILD(any_cut_decides_the_same, "")
IN_CHILD(short_writes, "")
IN_CHILD(earlier_requests_leave_and_are_answered, "")
IN_CHILD(pipelined_up_to_a_bound, "")
IN_CHILD(what_is_not_followed, "")

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
        cmocka_unit_test(test_what_is_not_followed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
