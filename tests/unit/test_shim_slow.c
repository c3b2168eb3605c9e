/* Slow first bytes and stalled streams, where the settings count them; see shim_fixture.h. */
#include "shim_fixture.h"

#include "shim_flow.h"

#define EVENTS    "text/event-stream"
#define DELTA     "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"
#define DONE      "data: [DONE]\n\n"
#define MODEL_KEY "api.openai.com/m"
#define HOST_KEY  "api.openai.com"
#define LATE      (3 * CLOCK_NS_PER_S)
#define IN_TIME   CLOCK_NS_PER_S

static struct shim_call call;

static uint32_t last_failure(const char *key)
{
    return atomic_load(&slot_of(key)->last_failure);
}

static void settle(enum call_end_kind kind, enum call_phase phase, uint64_t first_byte_ns,
                   uint64_t silent_ns)
{
    const struct call_end end = {.kind = kind,
                                 .phase = phase,
                                 .status = phase == PHASE_BODY ? 200 : 0,
                                 .byte_received = phase == PHASE_BODY,
                                 .age_ns = 1,
                                 .first_byte_ns = first_byte_ns,
                                 .silent_ns = silent_ns};

    shim_settle(&call, &end);
}

/* A stream that is read to its last event, and then whole. */
static void streamed(uint64_t first_byte_ns)
{
    CHECK(chat(&call, "m") == SHIM_ADMITTED);
    CHECK(shim_head(&call, 200, SPAN_LIT(EVENTS), SPAN_NONE, first_byte_ns));
    shim_watch(&call, SPAN_LIT(DELTA DONE));
    settle(END_COMPLETE, PHASE_BODY, first_byte_ns, 0);
}

static void body_late_answers_open(void)
{
    streamed(IN_TIME);
    for (int i = 0; i < 5; i++)
        streamed(LATE);
    CHECK(chat(&call, "m") == SHIM_REFUSED);
    CHECK(totals_of(MODEL_KEY).failure == 5 && totals_of(MODEL_KEY).success == 1);
    CHECK(totals_of(HOST_KEY).success == 6 && totals_of(HOST_KEY).failure == 0);
    CHECK(last_failure(MODEL_KEY) == (uint32_t)CAUSE_SLOW_FIRST_BYTE << 16);
}

static void body_late_answers_of_a_host_alone(void)
{
    for (int i = 0; i < 5; i++) {
        CHECK(open_path(&call, "/v1/chat/completions") == SHIM_READY);
        CHECK(shim_admit(&call) == SHIM_ADMITTED);
        CHECK(shim_times_first_byte(&call));
        settle(END_COMPLETE, PHASE_BODY, LATE, 0);
    }
    CHECK(open_path(&call, "/v1/chat/completions") == SHIM_READY);
    CHECK(shim_admit(&call) == SHIM_REFUSED);
    CHECK(last_failure(HOST_KEY) == (uint32_t)CAUSE_SLOW_FIRST_BYTE << 16);
}

static void body_given_up(void)
{
    CHECK(chat(&call, "m") == SHIM_ADMITTED);
    settle(END_ABORTED, PHASE_WAITING, LATE, 0);
    CHECK(last_failure(MODEL_KEY) == (uint32_t)CAUSE_SLOW_FIRST_BYTE << 16);
    CHECK(chat(&call, "m") == SHIM_ADMITTED);
    settle(END_TIMEOUT, PHASE_BODY, IN_TIME, LATE);
    CHECK(last_failure(MODEL_KEY) == (uint32_t)CAUSE_STALL << 16);
    CHECK(totals_of(MODEL_KEY).failure == 2 && totals_of(HOST_KEY).failure == 0);
    CHECK(chat(&call, "m") == SHIM_ADMITTED); /* it said its end: what follows is of no interest */
    CHECK(shim_head(&call, 200, SPAN_LIT(EVENTS), SPAN_NONE, IN_TIME));
    shim_watch(&call, SPAN_LIT(DELTA DONE));
    settle(END_ABORTED, PHASE_BODY, IN_TIME, LATE);
    CHECK(totals_of(MODEL_KEY).success == 1);
}

static void body_who_slept_is_not_blamed(void)
{
    CHECK(chat(&call, "m") == SHIM_ADMITTED);
    CHECK(shim_head(&call, 200, SPAN_LIT(EVENTS), SPAN_NONE, LATE));
    shim_watch(&call, SPAN_LIT(DELTA DONE));
    advance(30);
    slept += 20 * CLOCK_NS_PER_S;
    settle(END_COMPLETE, PHASE_BODY, LATE, 0);
    CHECK(totals_of(MODEL_KEY).failure == 0 && totals_of(MODEL_KEY).neutral == 1);
    CHECK(chat(&call, "m") == SHIM_ADMITTED);
    advance(30);
    slept += 20 * CLOCK_NS_PER_S;
    settle(END_ABORTED, PHASE_BODY, IN_TIME, LATE);
    CHECK(totals_of(MODEL_KEY).failure == 0 && totals_of(MODEL_KEY).neutral == 2);
}

static void body_of_llm_calls_alone(void)
{
    CHECK(!shim_times_first_byte(&call) && !shim_times_silence(&call));
    CHECK(chat(&call, "m") == SHIM_ADMITTED);
    CHECK(shim_times_first_byte(&call) && shim_times_silence(&call));
    shim_drop(&call);
    CHECK(open_path(&call, "/v1/files") == SHIM_READY);
    CHECK(shim_admit(&call) == SHIM_ADMITTED);
    CHECK(!shim_times_first_byte(&call) && !shim_times_silence(&call));
}

static void body_off_by_default(void)
{
    CHECK(chat(&call, "m") == SHIM_ADMITTED);
    CHECK(!shim_times_first_byte(&call) && !shim_times_silence(&call));
    settle(END_COMPLETE, PHASE_BODY, 1000 * LATE, 0);
    CHECK(chat(&call, "m") == SHIM_ADMITTED);
    settle(END_ABORTED, PHASE_BODY, 1000 * LATE, 1000 * LATE);
    CHECK(totals_of(MODEL_KEY).success == 1 && totals_of(MODEL_KEY).neutral == 1);
}

/* --- probes ---------------------------------------------------------------------------------- */

static void probe(uint64_t first_byte_ns)
{
    CHECK(chat(&call, "m") == SHIM_ADMITTED);
    CHECK(shim_is_probe(&call));
    CHECK(shim_head(&call, 200, SPAN_LIT(EVENTS), SPAN_NONE, first_byte_ns));
}

/* A good head of a stream closes the breaker, but not one that the call is to fail by. */
static void body_a_late_head_closes_nothing(void)
{
    static struct shim_call other;

    trip("m");
    advance(31);
    probe(LATE);
    CHECK(shim_is_probe(&call));
    CHECK(chat(&other, "m") == SHIM_REFUSED);
    shim_watch(&call, SPAN_LIT(DELTA DONE));
    settle(END_COMPLETE, PHASE_BODY, LATE, 0);
    CHECK(last_failure(MODEL_KEY) == (uint32_t)CAUSE_SLOW_FIRST_BYTE << 16);
    CHECK(chat(&other, "m") == SHIM_REFUSED);
    advance(61); /* backed off */
    probe(IN_TIME);
    CHECK(!shim_is_probe(&call));
    CHECK(chat(&other, "m") == SHIM_ADMITTED);
    settle(END_ABORTED, PHASE_BODY, IN_TIME, LATE); /* and its own stall opens it again */
    CHECK(chat(&call, "m") == SHIM_REFUSED);
}

/* --- connections ----------------------------------------------------------------------------- */

#define GPU "gpu1:8000/m"
#define ASK_HEAD                                                                                   \
    "POST /v1/chat/completions HTTP/1.1\r\nHost: gpu1:8000\r\nContent-Length: 13\r\n\r\n"
#define ASK_BODY "{\"model\":\"m\"}"
#define ASK      ASK_HEAD ASK_BODY
#define OK_HEAD  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
#define OK       OK_HEAD "ok"
#define STREAM   "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"

static struct shim_flow flow;

static void begin(void)
{
    static struct shim_call nothing;

    shim_flow_init(&flow, SPAN_LIT("10.0.0.1"), 8000, &nothing);
}

static void send_part(const char *bytes)
{
    shim_flow_send_begin(&flow);
    shim_flow_send(&flow, span_str(bytes));
    CHECK(shim_flow_send_end(&flow) == strlen(bytes));
    if (shim_flow_times(&flow))
        shim_flow_sent(&flow);
}

static void answer(const char *bytes)
{
    shim_flow_received(&flow, span_str(bytes));
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

#define SLOW "slow_first_byte=2\nstall_after=2"
IN_CHILD(late_answers_open, SLOW)
IN_CHILD(late_answers_of_a_host_alone, SLOW "\nscope=host")
IN_CHILD(given_up, SLOW)
IN_CHILD(who_slept_is_not_blamed, SLOW)
IN_CHILD(of_llm_calls_alone, SLOW)
IN_CHILD(off_by_default, "")
IN_CHILD(a_late_head_closes_nothing, SLOW)
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
        cmocka_unit_test(test_late_answers_open),
        cmocka_unit_test(test_late_answers_of_a_host_alone),
        cmocka_unit_test(test_given_up),
        cmocka_unit_test(test_who_slept_is_not_blamed),
        cmocka_unit_test(test_of_llm_calls_alone),
        cmocka_unit_test(test_off_by_default),
        cmocka_unit_test(test_a_late_head_closes_nothing),
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
