/* The breaker bugs of others that had to do with what counts, and with what a refused caller is
 * told; see test_field_bugs_probes.c. */
#include "detour_fixture.h"

#define KEY HOST "/m"

static unsigned streak_of(const char *key)
{
    return breaker_decode(slot_word(slot_of(key))).streak;
}

/* So many calls that end so; each is admitted. */
static void end_often(unsigned count, enum call_end_kind kind, enum call_phase phase, double age)
{
    for (unsigned i = 0; i < count; i++) {
        CHECK(chat(&call, "m") == SHIM_ADMITTED);
        advance(age);
        end_kind(&call, kind, phase, age);
    }
}

/* OmniRoute#7907, #9653: who hung up on the provider counted against it, and so did a stream that
 * had come to its end. */
static void body_bug_08_client_aborts_count_as_failures(void)
{
    end_often(20, END_ABORTED, PHASE_CONNECTING, 0.1);
    end_often(20, END_ABORTED, PHASE_WAITING, 5);
    end_often(20, END_ABORTED, PHASE_BODY, 100);
    CHECK(totals_of(KEY).failure == 0 && totals_of(HOST).failure == 0);
    CHECK(phase_of(KEY) == BREAKER_CLOSED && phase_of(HOST) == BREAKER_CLOSED);
}

static void body_bug_08_a_finished_stream_counts_as_aborted(void)
{
    for (unsigned i = 0; i < 4; i++)
        CHECK(call_status("m", 500) == SHIM_ADMITTED);
    CHECK(chat(&call, "m") == SHIM_ADMITTED);
    advance(120); /* longer than any time of impatience */
    end_status(&call, 200);
    CHECK(totals_of(KEY).success == 1 && streak_of(KEY) == 0);
}

/* llm-proxy: cancels never counted, so that nothing told of a provider that hangs. */
static void body_bug_09_cancels_hide_every_hang(void)
{
    end_often(5, END_ABORTED, PHASE_WAITING, 31);
    CHECK(phase_of(KEY) == BREAKER_OPEN);
    CHECK(call_status("m", 200) == SHIM_REFUSED);
}

static void body_bug_09_timeouts_hide_every_hang(void)
{
    end_often(5, END_TIMEOUT, PHASE_WAITING, 6);
    CHECK(phase_of(KEY) == BREAKER_OPEN);
    CHECK(call_status("m", 200) == SHIM_REFUSED);
}

/* OmniRoute#6868: the rate limit of one model or credential opened the whole provider. */
static void body_bug_10_rate_limits_open_the_provider(void)
{
    for (unsigned i = 0; i < 20; i++)
        call_status("m", 429);
    CHECK(phase_of(KEY) == BREAKER_CLOSED && phase_of(HOST) == BREAKER_CLOSED);
    CHECK(totals_of(KEY).failure == 0 && totals_of(HOST).failure == 0);
    CHECK(call_status("other", 200) == SHIM_ADMITTED);
}

/* A call of one application, with its credential. */
static enum shim_verdict ask_limited(void)
{
    CHECK(open_path(&call, "/v1/chat/completions") == SHIM_NEEDS_BODY);
    shim_credential(&call, SPAN_LIT("Bearer of-one"));
    CHECK(shim_body(&call, body_of("m"), true));
    return shim_admit(&call);
}

static void end_limited(uint32_t retry_after_ms, bool quota_spent)
{
    const struct call_end end = {.kind = END_COMPLETE,
                                 .phase = PHASE_BODY,
                                 .status = 429,
                                 .byte_received = true,
                                 .retry_after_ms = retry_after_ms,
                                 .quota_spent = quota_spent};

    CHECK(ask_limited() == SHIM_ADMITTED);
    shim_settle(&call, &end);
}

/* SmarterRouter#7: a spent quota was taken for a rate limit, and asked again each few seconds. */
static void body_bug_11_a_spent_quota_is_taken_for_a_rate_limit(void)
{
    end_limited(3000, false);
    advance(4);
    end_limited(0, true);
    advance(58);
    CHECK(ask_limited() == SHIM_REFUSED);
    advance(3);
    CHECK(ask_limited() == SHIM_ADMITTED);
    CHECK(phase_of(KEY) == BREAKER_CLOSED && totals_of(KEY).failure == 0);
}

/* web-researcher-mcp#276: a provider that says how long to wait was asked again until the failure
 * threshold was reached. */
static void body_bug_12_a_retry_after_waits_for_the_threshold(void)
{
    end_limited(20000, false); /* the first one */
    CHECK(ask_limited() == SHIM_REFUSED);
    advance(21);
    CHECK(ask_limited() == SHIM_ADMITTED);
    CHECK(phase_of(KEY) == BREAKER_CLOSED && totals_of(KEY).failure == 0);
}

/* mecatl#207: one conversation that is too long jammed the breaker, by a 4xx, or by the 5xx that a
 * gateway makes of it. */
static void body_bug_13_a_context_length_error_opens(void)
{
    configure("[target gateway]\nmatch = " HOST "/behind-*\nneutral_status = 500\n"
              "[target other]\nmatch = " HOST "/told-*\nneutral_body = context_length_exceeded\n");
    for (unsigned i = 0; i < 20; i++) {
        CHECK(call_status("m", i % 2 ? 400 : 413) == SHIM_ADMITTED);
        CHECK(call_status("behind-a-gateway", 500) == SHIM_ADMITTED);
        CHECK(chat(&call, "told-by-its-body") == SHIM_ADMITTED);
        CHECK(shim_head(&call, 500, SPAN_NONE, SPAN_NONE, 0));
        shim_watch(&call, SPAN_LIT("{\"error\":{\"code\":\"context_length_exceeded\"}}"));
        end_status(&call, 500);
    }
    CHECK(totals_of(KEY).failure == 0 && totals_of(HOST "/behind-a-gateway").failure == 0);
    CHECK(totals_of(HOST "/told-by-its-body").failure == 0);
    trip("told-by-its-body"); /* another 500 there still counts */
    trip("m");                /* the others' 500 still counts */
    clean_up();
}

/* litellm#24005: 510 overloads in 80 minutes came as events inside streams that had begun with a
 * 200, and were logged as successes. */
static void stream_that_says(const char *event)
{
    CHECK(chat(&call, "m") == SHIM_ADMITTED);
    if (shim_head(&call, 200, SPAN_LIT("text/event-stream"), SPAN_NONE, 0))
        shim_watch(&call, span_str(event));
    end_status(&call, 200);
}

static void body_bug_14_errors_inside_a_stream_are_successes(void)
{
    for (unsigned i = 0; i < 20; i++)
        stream_that_says("data: {\"error\":{\"message\":\"too long\","
                         "\"code\":\"context_length_exceeded\"}}\n\n");
    CHECK(totals_of(KEY).failure == 0);
    for (unsigned i = 0; i < 5; i++)
        stream_that_says("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"
                         "data: {\"error\":{\"message\":\"overloaded\",\"code\":529}}\n\n");
    CHECK(totals_of(KEY).failure == 5 && phase_of(KEY) == BREAKER_OPEN);
}

static void be_without_a_network(void)
{
    for (unsigned phase = PHASE_CONNECTING; phase <= PHASE_BODY; phase++) {
        end_often(20, END_LOCAL, (enum call_phase)phase, 60);
        end_often(20, END_UNSENT, (enum call_phase)phase, 60);
    }
}

/* Polly#287: a client without a network opened the breaker for those with one. */
static void body_bug_22_one_bad_client_opens_it_for_good_ones(void)
{
    CHECK(child_ends_well(be_without_a_network));
    CHECK(totals_of(HOST).failure == 0 && totals_of(KEY).failure == 0);
    CHECK(call_status("m", 200) == SHIM_ADMITTED);
}

/* anticapture#2148: fewer calls than the minimum of the rate, and no number of failures opened it;
 * one success among many failures, and the streak said nothing. */
static void body_bug_24_a_minimum_volume_makes_low_traffic_untrippable(void)
{
    for (unsigned i = 0; i < 5; i++) {
        CHECK(call_status("m", 500) == SHIM_ADMITTED);
        advance(3600);
    }
    CHECK(call_status("m", 200) == SHIM_ADMITTED); /* hours later it is a probe's turn */
    for (unsigned i = 0; i < 5; i++)
        CHECK(call_status("m", 500) == SHIM_ADMITTED);
    CHECK(call_status("m", 500) == SHIM_REFUSED);
    CHECK(slot_of(KEY)->opened == 2);
}

static void body_bug_24_any_success_resets_all(void)
{
    for (unsigned i = 0; i < 20; i++)
        CHECK(call_status("m", i % 4 == 0 ? 200 : 500) == SHIM_ADMITTED);
    CHECK(call_status("m", 500) == SHIM_REFUSED); /* 15 of 20, never more than three in a row */
}

/* neurolink#899: an error without a structure, which SDKs tried again 395 times. */
static void body_bug_25_an_unstructured_error_is_retried(void)
{
    static const char *const wanted[] = {"\r\nContent-Type: application/json\r\n",
                                         "\r\nx-should-retry: false\r\n",
                                         "\r\nX-Breaker-Key: " KEY "\r\n",
                                         "\r\nX-Breaker-State: open\r\n",
                                         "\r\nRetry-After: 3",
                                         "\"code\":\"circuit_open\""};
    char text[SHIM_RESPONSE_MAX + 1];

    trip("m");
    CHECK(chat(&call, "m") == SHIM_REFUSED);
    text[shim_response(&call, text, SHIM_RESPONSE_MAX, false)] = '\0';
    CHECK(strncmp(text, "HTTP/1.1 503 ", 13) == 0);
    for (unsigned i = 0; i < sizeof wanted / sizeof *wanted; i++)
        CHECK(strstr(text, wanted[i]));
    CHECK(strstr(text, "\r\n\r\n{\"error\":{\"message\":\"libbreaker: "));
}

IN_CHILD(bug_08_client_aborts_count_as_failures, "")
IN_CHILD(bug_08_a_finished_stream_counts_as_aborted, "")
IN_CHILD(bug_09_cancels_hide_every_hang, "")
IN_CHILD(bug_09_timeouts_hide_every_hang, "")
IN_CHILD(bug_10_rate_limits_open_the_provider, "")
IN_CHILD(bug_11_a_spent_quota_is_taken_for_a_rate_limit, "")
IN_CHILD(bug_12_a_retry_after_waits_for_the_threshold, "")
IN_CHILD(bug_13_a_context_length_error_opens, "")
IN_CHILD(bug_14_errors_inside_a_stream_are_successes, "")
IN_CHILD(bug_22_one_bad_client_opens_it_for_good_ones, "")
IN_CHILD(bug_24_a_minimum_volume_makes_low_traffic_untrippable,
         "failure_rate=0.5\nmin_calls=20\nwindow=60")
IN_CHILD(bug_24_any_success_resets_all, "failure_rate=0.5\nmin_calls=20\nwindow=60")
IN_CHILD(bug_25_an_unstructured_error_is_retried, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bug_08_client_aborts_count_as_failures),
        cmocka_unit_test(test_bug_08_a_finished_stream_counts_as_aborted),
        cmocka_unit_test(test_bug_09_cancels_hide_every_hang),
        cmocka_unit_test(test_bug_09_timeouts_hide_every_hang),
        cmocka_unit_test(test_bug_10_rate_limits_open_the_provider),
        cmocka_unit_test(test_bug_11_a_spent_quota_is_taken_for_a_rate_limit),
        cmocka_unit_test(test_bug_12_a_retry_after_waits_for_the_threshold),
        cmocka_unit_test(test_bug_13_a_context_length_error_opens),
        cmocka_unit_test(test_bug_14_errors_inside_a_stream_are_successes),
        cmocka_unit_test(test_bug_22_one_bad_client_opens_it_for_good_ones),
        cmocka_unit_test(test_bug_24_a_minimum_volume_makes_low_traffic_untrippable),
        cmocka_unit_test(test_bug_24_any_success_resets_all),
        cmocka_unit_test(test_bug_25_an_unstructured_error_is_retried),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
