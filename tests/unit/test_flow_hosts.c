/* Whose a request on a connection is, and whose the grant is that the connect took; see
 * flow_fixture.h. */
#include "flow_fixture.h"

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

IN_CHILD(hosts, "")
IN_CHILD(a_proxy_recovers, "match=all")
IN_CHILD(the_peer_in_absolute_form, "")
IN_CHILD(over_tls, "")
IN_CHILD(a_grant_of_another_table, "match=all")
IN_CHILD(a_probe_from_connect_to_first_byte, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_a_proxy_recovers),
        cmocka_unit_test(test_the_peer_in_absolute_form),
        cmocka_unit_test(test_over_tls),
        cmocka_unit_test(test_a_grant_of_another_table),
        cmocka_unit_test(test_a_probe_from_connect_to_first_byte),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
