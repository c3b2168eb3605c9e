/* failure_rate, window, min_calls and neutral_status, through the door; see shim_fixture.h. */
#include "shim_fixture.h"

#define RATED "failure_rate=0.5\nmin_calls=20\nwindow=60"

/* Calls that fail and succeed by turns, the first one `failing` or not; all are admitted. */
static void alternate(unsigned count, bool failing)
{
    for (unsigned i = 0; i < count; i++, failing = !failing) {
        CHECK(call_status("m", failing ? 500 : 200) == SHIM_ADMITTED);
        CHECK(breaker_decode(slot_word(slot_of("api.openai.com/m"))).streak <= 1);
        advance(0.1);
    }
}

static void body_little_traffic_trips_by_its_streak(void)
{
    trip("m");
}

static void body_much_traffic_trips_by_its_share(void)
{
    alternate(19, false);
    CHECK(call_status("m", 500) == SHIM_ADMITTED); /* 10 of 20 */
    CHECK(call_status("m", 200) == SHIM_REFUSED);
    CHECK(call_status("other", 200) == SHIM_ADMITTED);
}

static void body_a_smaller_share_does_not(void)
{
    for (unsigned i = 0; i < 200; i++) {
        CHECK(call_status("m", i % 3 ? 200 : 500) == SHIM_ADMITTED);
        advance(0.1);
    }
}

static void body_without_a_rate_it_never_trips(void)
{
    alternate(400, false);
}

static void body_without_a_threshold_the_share_trips_alone(void)
{
    for (unsigned i = 0; i < 19; i++)
        CHECK(call_status("m", 500) == SHIM_ADMITTED);
    CHECK(call_status("m", 500) == SHIM_ADMITTED);
    CHECK(call_status("m", 500) == SHIM_REFUSED);
}

static void body_neutral_ends_are_in_no_share(void)
{
    for (unsigned i = 0; i < 30; i++)
        CHECK(call_status("m", 400) == SHIM_ADMITTED);
    alternate(18, true);
    for (unsigned i = 0; i < 30; i++)
        CHECK(call_status("m", 429) == SHIM_ADMITTED);
    CHECK(call_status("m", 500) == SHIM_ADMITTED); /* 10 of 19 */
    CHECK(call_status("m", 500) == SHIM_ADMITTED); /* 11 of 20 */
    CHECK(call_status("m", 500) == SHIM_REFUSED);
}

static void body_what_the_window_left_behind_is_forgotten(void)
{
    for (unsigned i = 0; i < 20; i++) {
        alternate(10, true);
        advance(35); /* less than 20 calls in 60 s */
    }
    alternate(10, true);
    advance(30);
    alternate(9, false);
    CHECK(call_status("m", 500) == SHIM_ADMITTED); /* 10 of 20 */
    CHECK(call_status("m", 500) == SHIM_REFUSED);
}

static void body_a_longer_window_remembers(void)
{
    alternate(10, true);
    advance(400);
    alternate(9, false);
    CHECK(call_status("m", 500) == SHIM_ADMITTED); /* 10 of 20 */
    CHECK(call_status("m", 500) == SHIM_REFUSED);
}

static void body_a_breaker_that_closed_begins_afresh(void)
{
    alternate(19, false);
    CHECK(call_status("m", 500) == SHIM_ADMITTED);
    CHECK(call_status("m", 200) == SHIM_REFUSED);
    advance(31);
    CHECK(call_status("m", 200) == SHIM_ADMITTED); /* the probe is in no share */
    alternate(19, false);
    CHECK(call_status("m", 500) == SHIM_ADMITTED);
    CHECK(call_status("m", 500) == SHIM_REFUSED);
}

static void body_calls_of_before_the_trip_are_in_no_share(void)
{
    static struct shim_call old[20];

    for (unsigned i = 0; i < 20; i++)
        CHECK(chat(&old[i], "m") == SHIM_ADMITTED);
    for (unsigned i = 0; i < 5; i++)
        CHECK(call_status("m", 500) == SHIM_ADMITTED);
    advance(31);
    CHECK(call_status("m", 200) == SHIM_ADMITTED);
    for (unsigned i = 0; i < 20; i++)
        end_status(&old[i], 500);
    alternate(19, false);
}

static void body_the_host_has_a_share_of_its_own(void)
{
    static struct shim_call call;

    for (unsigned i = 0; i < 20; i++) {
        CHECK(chat(&call, i % 2 ? "a" : "b") == SHIM_ADMITTED);
        if (i % 2)
            end_kind(&call, END_CONNECT, PHASE_CONNECTING, 0.001);
        else
            end_status(&call, 200);
    }
    CHECK(chat(&call, "c") == SHIM_REFUSED);
    CHECK(breaker_decode(slot_word(slot_of("api.openai.com"))).phase == BREAKER_OPEN);
    CHECK(breaker_decode(slot_word(slot_of("api.openai.com/b"))).phase == BREAKER_CLOSED);
}

static void body_a_host_alone_counts_what_its_models_fail_by(void)
{
    static struct shim_call call;

    for (unsigned i = 0; i < 20; i++) {
        CHECK(open_path(&call, "/v1/chat/completions") == SHIM_READY);
        CHECK(shim_admit(&call) == SHIM_ADMITTED);
        end_status(&call, i % 2 ? 500 : 200);
    }
    CHECK(open_path(&call, "/v1/chat/completions") == SHIM_READY);
    CHECK(shim_admit(&call) == SHIM_REFUSED);
}

/* On sockets the first byte settles H long before the call ends. */
static void body_the_first_byte_is_in_the_hosts_share(void)
{
    static struct shim_call call;
    const struct breaker_policy policy = {.failure_rate = RATE_ONE, .window_ms = 60000};

    for (unsigned i = 1; i <= 3; i++) {
        CHECK(chat(&call, "m") == SHIM_ADMITTED);
        shim_received(&call);
        CHECK(slot_rate(slot_of("api.openai.com"), 0, breaker_tick(boot), &policy).calls == i);
        end_status(&call, 200);
        CHECK(slot_rate(slot_of("api.openai.com"), 0, breaker_tick(boot), &policy).calls == i);
        CHECK(slot_rate(slot_of("api.openai.com/m"), 0, breaker_tick(boot), &policy).calls == i);
    }
}

static void body_a_neutral_status_never_trips(void)
{
    for (unsigned i = 0; i < 30; i++)
        CHECK(call_status("m", 500) == SHIM_ADMITTED);
    CHECK(totals_of("api.openai.com/m").neutral == 30);
    for (unsigned i = 0; i < 5; i++)
        CHECK(call_status("m", 502) == SHIM_ADMITTED);
    CHECK(call_status("m", 502) == SHIM_REFUSED);
}

IN_CHILD(little_traffic_trips_by_its_streak, RATED)
IN_CHILD(much_traffic_trips_by_its_share, RATED)
IN_CHILD(a_smaller_share_does_not, RATED)
IN_CHILD(without_a_rate_it_never_trips, "")
IN_CHILD(without_a_threshold_the_share_trips_alone, RATED "\nfailure_threshold=0")
IN_CHILD(neutral_ends_are_in_no_share, RATED)
IN_CHILD(what_the_window_left_behind_is_forgotten, RATED)
IN_CHILD(a_longer_window_remembers, "failure_rate=0.5\nmin_calls=20\nwindow=600")
IN_CHILD(a_breaker_that_closed_begins_afresh, RATED)
IN_CHILD(calls_of_before_the_trip_are_in_no_share, RATED)
IN_CHILD(the_host_has_a_share_of_its_own, RATED)
IN_CHILD(a_host_alone_counts_what_its_models_fail_by, RATED "\nscope=host")
IN_CHILD(the_first_byte_is_in_the_hosts_share, RATED)
IN_CHILD(a_neutral_status_never_trips, "neutral_status=500")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_little_traffic_trips_by_its_streak),
        cmocka_unit_test(test_much_traffic_trips_by_its_share),
        cmocka_unit_test(test_a_smaller_share_does_not),
        cmocka_unit_test(test_without_a_rate_it_never_trips),
        cmocka_unit_test(test_without_a_threshold_the_share_trips_alone),
        cmocka_unit_test(test_neutral_ends_are_in_no_share),
        cmocka_unit_test(test_what_the_window_left_behind_is_forgotten),
        cmocka_unit_test(test_a_longer_window_remembers),
        cmocka_unit_test(test_a_breaker_that_closed_begins_afresh),
        cmocka_unit_test(test_calls_of_before_the_trip_are_in_no_share),
        cmocka_unit_test(test_the_host_has_a_share_of_its_own),
        cmocka_unit_test(test_a_host_alone_counts_what_its_models_fail_by),
        cmocka_unit_test(test_the_first_byte_is_in_the_hosts_share),
        cmocka_unit_test(test_a_neutral_status_never_trips),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
