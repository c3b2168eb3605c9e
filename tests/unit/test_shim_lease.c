/* probe_lease = call: a probe keeps its place for as long as its own caller waits for it. */
#include "detour_fixture.h"

static struct shim_call second, third;

/* A chat call that its caller gives so many ms; 0: its layer tells none. */
static enum shim_verdict timed(struct shim_call *one, const char *model, uint64_t ms)
{
    CHECK(open_path(one, "/v1/chat/completions") == SHIM_NEEDS_BODY);
    CHECK(shim_body(one, body_of(model), true));
    if (ms > 0)
        shim_timeout(one, ms);
    return shim_admit(one);
}

/* Is a call asked for its time-out that turns out to be of that model? Until then each is. */
static bool is_asked(const char *model)
{
    CHECK(open_path(&call, "/v1/chat/completions") == SHIM_NEEDS_BODY);
    CHECK(shim_wants_timeout(&call));
    CHECK(shim_body(&call, body_of(model), true));
    return shim_wants_timeout(&call);
}

/* The place that was taken just now is free again after so many seconds, not before. */
static void free_after(double seconds)
{
    advance(seconds - 1);
    CHECK(timed(&third, "m", 0) == SHIM_REFUSED);
    advance(1.1);
    CHECK(timed(&third, "m", 0) == SHIM_ADMITTED && shim_is_probe(&third));
    shim_drop(&third);
}

static void trip_and_wait(double seconds)
{
    trip("m");
    advance(seconds);
}

static void body_a_patient_probe_keeps_its_place(void)
{
    trip_and_wait(31);
    CHECK(timed(&call, "m", 90000) == SHIM_ADMITTED && shim_is_probe(&call));
    free_after(90);
    end_status(&call, 200); /* late, and good all the same */
    CHECK(call_status("m", 200) == SHIM_ADMITTED);
}

static void body_an_impatient_one_has_thirty_seconds(void)
{
    trip_and_wait(31);
    CHECK(timed(&call, "m", 5000) == SHIM_ADMITTED);
    free_after(30);
}

static void body_without_a_time_out_too(void)
{
    trip_and_wait(31);
    CHECK(timed(&call, "m", 0) == SHIM_ADMITTED);
    free_after(30);
}

static void body_or_the_open_time(void)
{
    trip_and_wait(41);
    CHECK(timed(&call, "m", 35000) == SHIM_ADMITTED);
    free_after(40);
    CHECK(timed(&call, "m", 45000) == SHIM_ADMITTED);
    free_after(45);
}

/* A handle is used again: what one call told is not the next one's. */
static void body_each_call_has_its_own(void)
{
    enum shim_need need;

    trip_and_wait(31);
    CHECK(timed(&call, "m", 90000) == SHIM_ADMITTED);
    shim_drop(&call);
    CHECK(shim_open_again(&call, &need) && need == SHIM_NEEDS_BODY);
    CHECK(shim_body(&call, body_of("m"), true) && shim_admit(&call) == SHIM_ADMITTED);
    free_after(30);
}

/* Whose lease has begun decides; a further grant of it does not move it. */
static void body_the_first_of_several_decides(void)
{
    trip_and_wait(31);
    CHECK(timed(&call, "m", 50000) == SHIM_ADMITTED);
    CHECK(timed(&second, "m", 90000) == SHIM_ADMITTED);
    free_after(50);
}

static void body_a_model_that_is_known_late(void)
{
    trip_and_wait(31);
    CHECK(open_path(&call, "/v1/chat/completions") == SHIM_NEEDS_BODY && shim_wants_timeout(&call));
    shim_timeout(&call, 90000);
    CHECK(shim_admit(&call) == SHIM_ADMITTED && !shim_is_probe(&call));
    CHECK(shim_body(&call, body_of("m"), true) && shim_admit_model(&call) == SHIM_ADMITTED);
    CHECK(shim_is_probe(&call));
    free_after(90);
}

static void body_of_a_host_too(void)
{
    open_model(URL, NULL);
    advance(31);
    CHECK(open_path(&call, "/v1/chat/completions") == SHIM_READY && shim_wants_timeout(&call));
    shim_timeout(&call, 90000);
    CHECK(shim_admit(&call) == SHIM_ADMITTED && shim_is_probe(&call));
    advance(89);
    CHECK(open_path(&third, "/v1/chat/completions") == SHIM_READY);
    CHECK(shim_admit(&third) == SHIM_REFUSED);
    advance(1.1);
    CHECK(open_path(&third, "/v1/chat/completions") == SHIM_READY);
    CHECK(shim_admit(&third) == SHIM_ADMITTED);
}

/* A time-out of weeks is no lease of weeks: beyond the horizon nobody would believe it. The other
 * is one that is next to none in 64 bits of ns. */
static void body_a_day_at_most(void)
{
    static const uint64_t long_ones[] = {UINT64_C(2147483647), UINT64_C(18446744073710)};

    trip_and_wait(31);
    for (size_t i = 0; i < 2; i++) {
        CHECK(timed(&call, "m", long_ones[i]) == SHIM_ADMITTED);
        free_after(86400);
    }
}

static void body_a_number_asks_nobody(void)
{
    trip_and_wait(31);
    CHECK(!is_asked("m"));
    shim_timeout(&call, 90000);
    CHECK(shim_admit(&call) == SHIM_ADMITTED);
    free_after(30);
}

/* The host's lease is a number, one model's goes by the call. */
static void body_each_key_by_its_own_word(void)
{
    configure("[breaker]\nprobe_lease = 60\n[target " HOST "/m]\nprobe_lease = Call\n");
    CHECK(open_path(&call, "/v1/files") == SHIM_READY && !shim_wants_timeout(&call));
    CHECK(is_asked("m") && !is_asked("other"));
    trip("m");
    open_host(URL);
    advance(31);
    CHECK(timed(&call, "m", 90000) == SHIM_ADMITTED);
    advance(59);
    CHECK(timed(&third, "other", 0) == SHIM_REFUSED);
    advance(1.1); /* the host's place */
    CHECK(timed(&third, "other", 0) == SHIM_ADMITTED);
    end_status(&third, 200);
    advance(28);
    CHECK(timed(&third, "m", 0) == SHIM_REFUSED);
    advance(2); /* the model's */
    CHECK(timed(&third, "m", 0) == SHIM_ADMITTED);
    clean_up();
}

/* What is left of the caller's time is what the fallback's probe has. */
static void body_on_the_way_to_a_fallback(void)
{
    struct shim_request there = request_to("https://one.example/v1/chat/completions", false);

    configure("[breaker]\nprobe_lease = call\n" TARGET(""));
    open_model("https://one.example/v1/chat/completions", "x/m");
    advance(31);
    open_model(URL, "m");
    CHECK(ask("m") == SHIM_REFUSED && begin("m") && next_is("one"));
    shim_detour_timeout(&way, 70000);
    CHECK(shim_detour_admit(&way) == SHIM_ADMITTED && shim_is_probe(&way.call));
    for (int i = 0; i < 2; i++) {
        advance(i ? 1.1 : 69);
        CHECK(shim_open(&third, &there) == SHIM_NEEDS_BODY);
        CHECK(shim_body(&third, body_of("x/m"), true));
        CHECK(shim_admit(&third) == (i ? SHIM_ADMITTED : SHIM_REFUSED));
    }
    shim_detour_end(&way);
    clean_up();
}

IN_CHILD(a_patient_probe_keeps_its_place, "probe_lease=call")
IN_CHILD(an_impatient_one_has_thirty_seconds, "probe_lease=call")
IN_CHILD(without_a_time_out_too, "probe_lease=call")
IN_CHILD(or_the_open_time, "probe_lease=call\nopen_seconds=40")
IN_CHILD(each_call_has_its_own, "probe_lease=call")
IN_CHILD(the_first_of_several_decides, "probe_lease=call\nhalf_open_probes=2")
IN_CHILD(a_model_that_is_known_late, "probe_lease=call")
IN_CHILD(of_a_host_too, "probe_lease=call\nscope=host")
IN_CHILD(a_day_at_most, "probe_lease=call")
IN_CHILD(a_number_asks_nobody, "")
IN_CHILD(each_key_by_its_own_word, "")
IN_CHILD(on_the_way_to_a_fallback, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_patient_probe_keeps_its_place),
        cmocka_unit_test(test_an_impatient_one_has_thirty_seconds),
        cmocka_unit_test(test_without_a_time_out_too),
        cmocka_unit_test(test_or_the_open_time),
        cmocka_unit_test(test_each_call_has_its_own),
        cmocka_unit_test(test_the_first_of_several_decides),
        cmocka_unit_test(test_a_model_that_is_known_late),
        cmocka_unit_test(test_of_a_host_too),
        cmocka_unit_test(test_a_day_at_most),
        cmocka_unit_test(test_a_number_asks_nobody),
        cmocka_unit_test(test_each_key_by_its_own_word),
        cmocka_unit_test(test_on_the_way_to_a_fallback),
    };

    return cmocka_run_group_tests_name("shim_lease", tests, NULL, NULL);
}
