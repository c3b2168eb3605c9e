/* What the end of a call carries into its breakers; see shim_fixture.h. */
#include "shim_fixture.h"

static struct shim_call call;

static struct breaker_view view_of(const char *key)
{
    return breaker_decode(slot_word(slot_of(key)));
}

/* Admitted, and then the machine slept. */
static void sleep_in_a_call(void)
{
    CHECK(chat(&call, "m") == SHIM_ADMITTED);
    advance(40);
    slept += UINT64_C(20) * CLOCK_NS_PER_S;
}

/* Only silence can be a suspend's doing. */
static void body_what_the_peer_said_before_a_suspend_counts(void)
{
    static const struct call_end streamed = {
        .kind = END_ABORTED, .phase = PHASE_BODY, .status = 200, .byte_received = true};

    sleep_in_a_call();
    end_status(&call, 500);
    CHECK(view_of("api.openai.com/m").streak == 1);
    sleep_in_a_call();
    CHECK(shim_head(&call, 200, SPAN_LIT("text/event-stream"), SPAN_NONE, 0));
    shim_watch(&call, SPAN_LIT("data: {\"error\":{\"code\":500}}\n\n"));
    shim_settle(&call, &streamed);
    CHECK(view_of("api.openai.com/m").streak == 2);
    sleep_in_a_call();
    end_status(&call, 200);
    CHECK(view_of("api.openai.com/m").streak == 0);
    CHECK(totals_of("api.openai.com/m").failure == 2);
    CHECK(totals_of("api.openai.com/m").success == 1);
}

/* Trips a model by one failure with Retry-After. Returns the seconds for which it is open. */
static double open_seconds(const char *model, unsigned status, uint32_t retry_after_ms)
{
    const struct call_end end = {.kind = END_COMPLETE,
                                 .phase = PHASE_BODY,
                                 .status = (uint16_t)status,
                                 .byte_received = true,
                                 .retry_after_ms = retry_after_ms};
    char key[64];

    CHECK(chat(&call, model) == SHIM_ADMITTED);
    shim_settle(&call, &end);
    snprintf(key, sizeof key, "api.openai.com/%s", model);
    CHECK(view_of(key).phase == BREAKER_OPEN);
    return (double)breaker_tick_ns(view_of(key).time - breaker_tick(boot)) / CLOCK_NS_PER_S;
}

static void body_a_failing_5xx_says_how_long_it_lasts(void)
{
    CHECK(open_seconds("a", 503, 0) < 31);
    CHECK(open_seconds("b", 503, 90000) >= 90);
    CHECK(open_seconds("c", 500, 90000) >= 90);
    CHECK(open_seconds("d", 503, 1000) >= 30);
    CHECK(open_seconds("e", 408, 90000) < 31);
}

/* At random, per key: who was refused together does not come again together. */
static void body_jitter_lengthens_the_open_time(void)
{
    double first = open_seconds("m0", 503, 0), least = first, most = first;
    char model[8];

    for (int i = 1; i < 16; i++) {
        snprintf(model, sizeof model, "m%d", i);
        double seconds = open_seconds(model, 503, 0);
        least = seconds < least ? seconds : least;
        most = seconds > most ? seconds : most;
    }
    CHECK(least >= 30 && most <= 60.1);
    CHECK(most - least > 3);
}

IN_CHILD(what_the_peer_said_before_a_suspend_counts, "")
IN_CHILD(a_failing_5xx_says_how_long_it_lasts, "failure_threshold=1")
IN_CHILD(jitter_lengthens_the_open_time, "failure_threshold=1\njitter=1")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_the_peer_said_before_a_suspend_counts),
        cmocka_unit_test(test_a_failing_5xx_says_how_long_it_lasts),
        cmocka_unit_test(test_jitter_lengthens_the_open_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
