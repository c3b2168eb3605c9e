/* Slow first bytes and silent bodies of connections, where the settings count them; see
 * slow_fixture.h. */
#include "flow_fixture.h"
#include "slow_fixture.h"

#define GPU      "gpu1:8000/m"
#define ASK_HEAD HEAD_OF("13")
#define ASK_BODY "{\"model\":\"m\"}"
#define ASK      ASK_HEAD ASK_BODY
#define OK_HEAD  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
#define STREAM   "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"

static void send_part(const char *bytes)
{
    shim_flow_send_begin(&flow);
    shim_flow_send(&flow, span_str(bytes));
    CHECK(shim_flow_send_end(&flow) == strlen(bytes));
    if (shim_flow_times(&flow))
        shim_flow_sent(&flow);
}

/* What became of the one call since the last time. */
static void expect(enum breaker_outcome outcome, enum outcome_cause cause)
{
    static struct slot_totals before;
    struct slot_totals now = totals_of(GPU);

    CHECK(now.success - before.success == (outcome == BREAKER_SUCCESS));
    CHECK(now.failure - before.failure == (outcome == BREAKER_FAILURE));
    CHECK(now.neutral - before.neutral == (outcome == BREAKER_NEUTRAL));
    CHECK(cause == CAUSE_NONE || last_failure(GPU) == (uint32_t)cause << 16);
    before = now;
}

static void body_a_late_first_byte(void)
{
    begin();
    send_part(ASK);
    advance(1);
    answer(OK);
    expect(BREAKER_SUCCESS, CAUSE_NONE);
    advance(10); /* the connection is kept */
    send_part(ASK);
    advance(3);
    answer(OK);
    expect(BREAKER_FAILURE, CAUSE_SLOW_FIRST_BYTE);
    send_part(ASK);
    advance(1);
    answer("H"); /* it came, the rest takes its time */
    advance(3);
    answer(&OK[1]);
    expect(BREAKER_SUCCESS, CAUSE_NONE);
}

static void body_an_upload_is_not_waited_for(void)
{
    begin();
    send_part(ASK_HEAD);
    advance(10);
    send_part(ASK_BODY);
    advance(1);
    answer(OK);
    expect(BREAKER_SUCCESS, CAUSE_NONE);
    send_part(ASK_HEAD ASK_BODY); /* and answered before the write is told of */
    advance(3);
    answer(OK_HEAD);
    shim_flow_sent(&flow);
    answer("ok");
    expect(BREAKER_FAILURE, CAUSE_SLOW_FIRST_BYTE);
    send_part("POST /v1/chat/completions HTTP/1.1\r\nHost: gpu1:8000\r\nContent-Length: "
              "99\r\n\r\n" ASK_BODY);
    advance(3);
    shim_flow_end(&flow, SHIM_FLOW_CLOSE);
    expect(BREAKER_NEUTRAL, CAUSE_NONE);
}

#define HINTS "HTTP/1.1 103 Hints\r\n\r\n"

static void body_a_1xx_is_no_answer(void)
{
    begin();
    send_part(ASK);
    answer(HINTS);
    advance(3);
    answer(OK);
    expect(BREAKER_FAILURE, CAUSE_SLOW_FIRST_BYTE);
    send_part(ASK_HEAD);
    advance(3);
    answer("HTTP/1.1 100 Continue\r\n\r\n");
    send_part(ASK_BODY);
    advance(1);
    answer(OK);
    expect(BREAKER_SUCCESS, CAUSE_NONE);
    send_part(ASK);
    answer(HINTS);
    advance(3);
    shim_flow_end(&flow, SHIM_FLOW_CLOSE);
    expect(BREAKER_FAILURE, CAUSE_SLOW_FIRST_BYTE);
}

static void body_one_behind_the_other(void)
{
    begin();
    send_part(ASK ASK);
    advance(3);
    answer(OK);
    expect(BREAKER_FAILURE, CAUSE_SLOW_FIRST_BYTE);
    advance(1);
    answer(OK);
    expect(BREAKER_SUCCESS, CAUSE_NONE);
}

static void body_no_first_byte(void)
{
    begin();
    send_part(ASK);
    advance(1);
    shim_flow_end(&flow, SHIM_FLOW_CLOSE);
    expect(BREAKER_NEUTRAL, CAUSE_NONE);
    begin();
    send_part(ASK);
    advance(3);
    shim_flow_end(&flow, SHIM_FLOW_CLOSE);
    expect(BREAKER_FAILURE, CAUSE_SLOW_FIRST_BYTE);
}

static void body_what_lay_there_was_not_late(void)
{
    begin();
    send_part(ASK);
    advance(1);
    CHECK(!shim_flow_is_late(&flow));
    advance(9);
    CHECK(shim_flow_is_late(&flow));
    shim_flow_lay(&flow, 9 * CLOCK_NS_PER_S);
    answer(OK_HEAD);
    CHECK(!shim_flow_is_late(&flow));
    answer("ok");
    expect(BREAKER_SUCCESS, CAUSE_NONE);
    send_part(ASK);
    advance(9); /* the next one lay nowhere */
    answer(OK);
    expect(BREAKER_FAILURE, CAUSE_SLOW_FIRST_BYTE);
}

static void ask_for(const char *response)
{
    begin();
    send_part(ASK);
    answer(response);
}

static void body_a_silent_body(void)
{
    ask_for(STREAM);
    advance(3);
    shim_flow_end(&flow, SHIM_FLOW_CLOSE);
    expect(BREAKER_FAILURE, CAUSE_STALL);
    ask_for(STREAM);
    for (int i = 0; i < 4; i++) {
        advance(1);
        answer(DELTA);
    }
    shim_flow_end(&flow, SHIM_FLOW_CLOSE);
    expect(BREAKER_NEUTRAL, CAUSE_NONE);
    ask_for(STREAM DELTA);
    advance(3);
    CHECK(shim_flow_listens(&flow));
    shim_flow_unread(&flow);
    shim_flow_end(&flow, SHIM_FLOW_CLOSE);
    expect(BREAKER_NEUTRAL, CAUSE_NONE);
    ask_for(STREAM DELTA);
    advance(3);
    shim_flow_end(&flow, SHIM_FLOW_EOF); /* as long as it takes to come to its end */
    expect(BREAKER_SUCCESS, CAUSE_NONE);
    ask_for(STREAM DELTA DONE);
    advance(3);
    shim_flow_end(&flow, SHIM_FLOW_CLOSE);
    expect(BREAKER_SUCCESS, CAUSE_NONE);
}

static void body_a_silent_error(void)
{
    ask_for("HTTP/1.1 404 No\r\nContent-Length: 5\r\n\r\n");
    CHECK(!shim_flow_listens(&flow));
    advance(3);
    shim_flow_end(&flow, SHIM_FLOW_CLOSE);
    expect(BREAKER_NEUTRAL, CAUSE_NONE);
}

static void body_a_connection_of_no_interest(void)
{
    ask_for(OK_HEAD);
    CHECK(!shim_flow_times(&flow) && !shim_flow_listens(&flow));
    answer("ok");
    send_part(ASK);
    advance(25);
    CHECK(!shim_flow_is_late(&flow));
    answer(OK_HEAD);
    advance(25);
    shim_flow_end(&flow, SHIM_FLOW_CLOSE);
    CHECK(totals_of(GPU).success == 1 && totals_of(GPU).neutral == 1);
}

IN_CHILD(a_late_first_byte, SLOW)
IN_CHILD(an_upload_is_not_waited_for, SLOW)
IN_CHILD(a_1xx_is_no_answer, SLOW)
IN_CHILD(one_behind_the_other, SLOW)
IN_CHILD(no_first_byte, SLOW)
IN_CHILD(what_lay_there_was_not_late, SLOW)
IN_CHILD(a_silent_body, SLOW)
IN_CHILD(a_silent_error, SLOW)
IN_CHILD(a_connection_of_no_interest, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_late_first_byte),
        cmocka_unit_test(test_an_upload_is_not_waited_for),
        cmocka_unit_test(test_a_1xx_is_no_answer),
        cmocka_unit_test(test_one_behind_the_other),
        cmocka_unit_test(test_no_first_byte),
        cmocka_unit_test(test_what_lay_there_was_not_late),
        cmocka_unit_test(test_a_silent_body),
        cmocka_unit_test(test_a_silent_error),
        cmocka_unit_test(test_a_connection_of_no_interest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
