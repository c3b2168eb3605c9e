/* What the body of a good answer says of its call; see shim_fixture.h. */
#include "shim_fixture.h"

#define EVENTS "text/event-stream"
#define DELTA  "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"
#define OVERLOADED                                                                                 \
    "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n"
#define TOO_LONG "data: {\"error\":{\"code\":\"context_length_exceeded\"}}\n\n"
#define TOO_MANY "data: {\"error\":{\"code\":\"rate_limit_exceeded\"}}\n\n"
#define DONE     "data: [DONE]\n\n"

static struct shim_call call;

static void head(const char *type)
{
    CHECK(shim_watches(&call));
    CHECK(shim_head(&call, 200, span_str(type), SPAN_NONE, 0));
}

static void end_as(enum call_end_kind kind)
{
    const struct call_end end = {
        .kind = kind, .phase = PHASE_BODY, .status = 200, .byte_received = true, .age_ns = 1};

    shim_settle(&call, &end);
}

/* A call that is admitted, gets this body, and ends so. */
static void answered(const char *type, const char *body, enum call_end_kind kind)
{
    CHECK(chat(&call, "m") == SHIM_ADMITTED);
    head(type);
    for (size_t at = 0, len = strlen(body); at < len; at++)
        shim_watch(&call, span_of(body + at, 1));
    end_as(kind);
}

#define MODEL_KEY "api.openai.com/m"
#define HOST_KEY  "api.openai.com"

static uint64_t streak(void)
{
    return breaker_decode(slot_word(slot_of(MODEL_KEY))).streak;
}

static void body_error_events_open(void)
{
    for (int i = 0; i < 5; i++)
        answered(EVENTS, DELTA OVERLOADED, END_COMPLETE);
    CHECK(chat(&call, "m") == SHIM_REFUSED);
    CHECK(totals_of(MODEL_KEY).failure == 5 && totals_of(MODEL_KEY).success == 0);
    CHECK(totals_of(HOST_KEY).success == 5 && totals_of(HOST_KEY).failure == 0);
    CHECK(atomic_load(&slot_of(MODEL_KEY)->last_failure) == (uint32_t)CAUSE_STREAM << 16);
}

static void body_however_it_ends_the_error_counts(void)
{
    answered(EVENTS, OVERLOADED, END_ABORTED);
    answered(EVENTS, OVERLOADED, END_BROKEN);
    answered(EVENTS, OVERLOADED, END_TIMEOUT);
    CHECK(streak() == 3);
}

static void body_the_callers_fault_and_limits_are_neutral(void)
{
    CHECK(call_status("m", 500) == SHIM_ADMITTED);
    answered(EVENTS, TOO_LONG, END_COMPLETE);
    answered(EVENTS, TOO_MANY, END_COMPLETE);
    answered(EVENTS, TOO_MANY, END_BROKEN);
    CHECK(streak() == 1);
    CHECK(totals_of(MODEL_KEY).neutral == 3);
}

/* As a 429 does (Rolter). */
static void body_limits_count_where_a_429_does(void)
{
    for (int i = 0; i < 4; i++)
        answered(EVENTS, TOO_MANY, END_COMPLETE);
    answered(EVENTS, TOO_LONG, END_COMPLETE);
    CHECK(streak() == 4);
    answered("application/json", "{\"error\":{\"code\":429}}", END_COMPLETE);
    CHECK(chat(&call, "m") == SHIM_REFUSED);
    CHECK(atomic_load(&slot_of(MODEL_KEY)->last_failure) == (uint32_t)CAUSE_STREAM << 16);
}

static void body_a_document_counts(void)
{
    answered("application/json; charset=utf-8", "{\"error\":{\"code\":502}}", END_COMPLETE);
    CHECK(streak() == 1);
    answered("application/json", "{\"choices\":[]}", END_COMPLETE);
    CHECK(streak() == 0);
}

static void body_lost_before_and_after_its_end(void)
{
    answered(EVENTS, DELTA, END_BROKEN);
    CHECK(streak() == 1);
    advance(1);
    answered(EVENTS, DELTA DONE, END_BROKEN);
    CHECK(streak() == 0);
    CHECK(totals_of(MODEL_KEY).success == 1);
    answered(EVENTS, DELTA, END_ABORTED); /* the caller's own will */
    CHECK(totals_of(MODEL_KEY).neutral == 1);
    answered(EVENTS, DELTA DONE, END_ABORTED);
    CHECK(totals_of(MODEL_KEY).success == 2);
}

static void body_what_is_refused_comes_again(void)
{
    struct shim_watched watched;
    const struct span error = SPAN_LIT("event: error\ndata: {}\n\n");

    CHECK(chat(&call, "m") == SHIM_ADMITTED);
    head(EVENTS);
    shim_watch_ahead(&call, span_of(error.ptr, 20), &watched);
    shim_watch_ahead(&call, span_of(error.ptr, 20), &watched); /* again: nothing was taken */
    CHECK(shim_watch_taken(&call, &watched));
    shim_watch_ahead(&call, span_skip(error, 20), &watched);
    CHECK(!shim_watch_taken(&call, &watched));
    end_as(END_COMPLETE);
    CHECK(streak() == 1);
    CHECK(chat(&call, "m") == SHIM_ADMITTED);
    head(EVENTS);
    shim_watch_ahead(&call, error, &watched); /* never taken: the program knows nothing of it */
    end_as(END_COMPLETE);
    CHECK(totals_of(MODEL_KEY).success == 1);
}

static void body_only_good_answers_of_llm_calls_are_watched(void)
{
    CHECK(!shim_watches(&call));
    CHECK(open_path(&call, "/v1/files") == SHIM_READY);
    CHECK(shim_admit(&call) == SHIM_ADMITTED);
    CHECK(!shim_watches(&call));
    CHECK(!shim_head(&call, 200, SPAN_LIT(EVENTS), SPAN_NONE, 0));
    CHECK(chat(&call, "m") == SHIM_ADMITTED);
    CHECK(!shim_head(&call, 500, SPAN_LIT("application/json"), SPAN_NONE, 0));
    CHECK(!shim_head(&call, 200, SPAN_LIT("text/html"), SPAN_NONE, 0));
    CHECK(!shim_head(&call, 200, SPAN_NONE, SPAN_NONE, 0));
    CHECK(!shim_head(&call, 200, SPAN_LIT(EVENTS), SPAN_LIT("gzip"), 0));
    CHECK(!shim_watch(&call, SPAN_LIT(OVERLOADED)));
    end_status(&call, 200);
    CHECK(totals_of(MODEL_KEY).success == 1);
}

static void body_what_the_last_call_saw_is_forgotten(void)
{
    answered(EVENTS, OVERLOADED, END_COMPLETE);
    CHECK(chat(&call, "m") == SHIM_ADMITTED);
    end_status(&call, 200);
    CHECK(totals_of(MODEL_KEY).success == 1);
}

/* --- probes ---------------------------------------------------------------------------------- */

static void probe(void)
{
    trip("m");
    advance(31);
    CHECK(chat(&call, "m") == SHIM_ADMITTED);
    CHECK(shim_is_probe(&call));
}

static void body_a_good_head_closes(void)
{
    static struct shim_call other;

    probe();
    CHECK(chat(&other, "m") == SHIM_REFUSED);
    head(EVENTS);
    CHECK(!shim_is_probe(&call));
    CHECK(breaker_is_closed(slot_word(slot_of(MODEL_KEY))));
    CHECK(streak() == 4);
    CHECK(totals_of(MODEL_KEY).success == 0); /* counted once, at its end */
    CHECK(chat(&other, "m") == SHIM_ADMITTED);
    shim_watch(&call, SPAN_LIT(DELTA DONE));
    end_as(END_COMPLETE);
    CHECK(streak() == 0);
    CHECK(totals_of(MODEL_KEY).success == 1);
}

static void body_its_own_break_reopens(void)
{
    probe();
    head(EVENTS);
    shim_watch(&call, SPAN_LIT(DELTA));
    end_as(END_BROKEN);
    CHECK(chat(&call, "m") == SHIM_REFUSED);
    advance(
        31); /* the step is as it was: the back-off did not grow by what was no probe any more */
    CHECK(chat(&call, "m") == SHIM_ADMITTED);
    head(EVENTS);
    shim_watch(&call, SPAN_LIT(OVERLOADED));
    end_as(END_COMPLETE);
    CHECK(chat(&call, "m") == SHIM_REFUSED);
}

/* Where no streak opens, too: only its share of failures does, and it is of one call. */
static void body_its_own_break_reopens_without_a_threshold(void)
{
    for (int i = 0; i < 10; i++)
        CHECK(call_status("m", 500) == SHIM_ADMITTED);
    advance(31);
    CHECK(chat(&call, "m") == SHIM_ADMITTED && shim_is_probe(&call));
    head(EVENTS);
    CHECK(breaker_is_closed(slot_word(slot_of(MODEL_KEY))));
    shim_watch(&call, SPAN_LIT(OVERLOADED));
    end_as(END_COMPLETE);
    CHECK(chat(&call, "m") == SHIM_REFUSED);
    advance(31);
    CHECK(chat(&call, "m") == SHIM_ADMITTED && shim_is_probe(&call));
    head(EVENTS);
    CHECK(call_status("m", 200) == SHIM_ADMITTED); /* another proves it */
    shim_watch(&call, SPAN_LIT(OVERLOADED));
    end_as(END_COMPLETE);
    CHECK(call_status("m", 200) == SHIM_ADMITTED);
}

static void body_a_neutral_end_leaves_it_on_trial(void)
{
    probe();
    head(EVENTS);
    end_as(END_ABORTED);
    CHECK(streak() == 4);
    CHECK(call_status("m", 500) == SHIM_ADMITTED);
    CHECK(call_status("m", 200) == SHIM_REFUSED);
}

static void body_what_is_no_stream_settles_at_its_end(void)
{
    probe();
    CHECK(shim_head(&call, 200, SPAN_LIT("application/json"), SPAN_NONE, 0));
    CHECK(shim_is_probe(&call));
    shim_watch(&call, SPAN_LIT("{\"error\":{\"code\":502}}"));
    end_as(END_COMPLETE);
    CHECK(chat(&call, "m") == SHIM_REFUSED);
}

static void body_a_bad_head_closes_nothing(void)
{
    probe();
    CHECK(!shim_head(&call, 503, SPAN_LIT(EVENTS), SPAN_NONE, 0));
    CHECK(shim_is_probe(&call));
    end_status(&call, 503);
    CHECK(chat(&call, "m") == SHIM_REFUSED);
}

static enum shim_verdict host_call(void)
{
    CHECK(open_path(&call, "/v1/chat/completions") == SHIM_READY);
    return shim_admit(&call);
}

static void body_a_host_alone_is_closed_too(void)
{
    for (int i = 0; i < 5; i++) {
        CHECK(host_call() == SHIM_ADMITTED);
        head(EVENTS);
        shim_watch(&call, SPAN_LIT(OVERLOADED));
        end_as(END_COMPLETE);
    }
    CHECK(host_call() == SHIM_REFUSED);
    CHECK(totals_of(HOST_KEY).failure == 5);
    advance(31);
    CHECK(host_call() == SHIM_ADMITTED);
    head(EVENTS);
    CHECK(!shim_is_probe(&call));
    shim_watch(&call, SPAN_LIT(DONE));
    end_as(END_BROKEN);
    CHECK(breaker_is_clean(slot_word(slot_of(HOST_KEY))));
}

IN_CHILD(error_events_open, "")
IN_CHILD(however_it_ends_the_error_counts, "")
IN_CHILD(the_callers_fault_and_limits_are_neutral, "")
IN_CHILD(limits_count_where_a_429_does, "rate_limit=count")
IN_CHILD(a_document_counts, "")
IN_CHILD(lost_before_and_after_its_end, "")
IN_CHILD(what_is_refused_comes_again, "")
IN_CHILD(only_good_answers_of_llm_calls_are_watched, "")
IN_CHILD(what_the_last_call_saw_is_forgotten, "")
IN_CHILD(a_good_head_closes, "")
IN_CHILD(its_own_break_reopens, "")
IN_CHILD(its_own_break_reopens_without_a_threshold,
         "failure_threshold=0\nfailure_rate=0.5\nmin_calls=10")
IN_CHILD(a_neutral_end_leaves_it_on_trial, "")
IN_CHILD(what_is_no_stream_settles_at_its_end, "")
IN_CHILD(a_bad_head_closes_nothing, "")
IN_CHILD(a_host_alone_is_closed_too, "scope=host")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error_events_open),
        cmocka_unit_test(test_however_it_ends_the_error_counts),
        cmocka_unit_test(test_the_callers_fault_and_limits_are_neutral),
        cmocka_unit_test(test_limits_count_where_a_429_does),
        cmocka_unit_test(test_a_document_counts),
        cmocka_unit_test(test_lost_before_and_after_its_end),
        cmocka_unit_test(test_what_is_refused_comes_again),
        cmocka_unit_test(test_only_good_answers_of_llm_calls_are_watched),
        cmocka_unit_test(test_what_the_last_call_saw_is_forgotten),
        cmocka_unit_test(test_a_good_head_closes),
        cmocka_unit_test(test_its_own_break_reopens),
        cmocka_unit_test(test_its_own_break_reopens_without_a_threshold),
        cmocka_unit_test(test_a_neutral_end_leaves_it_on_trial),
        cmocka_unit_test(test_what_is_no_stream_settles_at_its_end),
        cmocka_unit_test(test_a_bad_head_closes_nothing),
        cmocka_unit_test(test_a_host_alone_is_closed_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
