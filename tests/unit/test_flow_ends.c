/* How a connection ends, and when, and what that makes of the call on it; see flow_fixture.h. */
#include "flow_fixture.h"

#define EVENTS  "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
#define STREAM  EVENTS "\r\n"
#define CHUNKED EVENTS "Transfer-Encoding: chunked\r\n\r\n"

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

/* A kept connection that the peer had closed when the next request came is nobody's failure. */
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

IN_CHILD(ends, "")
IN_CHILD(an_error_counts_when_it_is_there, "")
IN_CHILD(stale_connections, "")
IN_CHILD(hangs_by_age, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_an_error_counts_when_it_is_there),
        cmocka_unit_test(test_stale_connections),
        cmocka_unit_test(test_hangs_by_age),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
