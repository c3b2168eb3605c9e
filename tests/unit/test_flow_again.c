/* Heads on a connection that are the last one again, or nearly: each request is judged as what it
 * is; see flow_fixture.h. */
#include "flow_fixture.h"

#include <sys/stat.h>

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

IN_CHILD(one_connection_many_heads, "")
IN_CHILD(many_connections_many_heads, "")
IN_CHILD(same_heads_pipelined, "")
IN_CHILD(same_heads_of_another_configuration, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_connection_many_heads),
        cmocka_unit_test(test_many_connections_many_heads),
        cmocka_unit_test(test_same_heads_pipelined),
        cmocka_unit_test(test_same_heads_of_another_configuration),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
