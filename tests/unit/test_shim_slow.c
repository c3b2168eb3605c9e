/* Slow first bytes and stalled streams, where the settings count them; see slow_fixture.h. */
#include "slow_fixture.h"

#define EVENTS    "text/event-stream"
#define MODEL_KEY "api.openai.com/m"
#define HOST_KEY  "api.openai.com"
#define LATE      (3 * CLOCK_NS_PER_S)
#define IN_TIME   CLOCK_NS_PER_S

static struct shim_call call;

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

IN_CHILD(late_answers_open, SLOW)
IN_CHILD(late_answers_of_a_host_alone, SLOW "\nscope=host")
IN_CHILD(given_up, SLOW)
IN_CHILD(who_slept_is_not_blamed, SLOW)
IN_CHILD(of_llm_calls_alone, SLOW)
IN_CHILD(off_by_default, "")
IN_CHILD(a_late_head_closes_nothing, SLOW)

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
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
