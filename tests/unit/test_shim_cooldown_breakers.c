/* Cool-downs beside open breakers, probes and fallbacks, and those of a whole key; see
 * cooldown_fixture.h. */
#include "cooldown_fixture.h"

static void open_while_parked(double seconds)
{
    limit("a", 50000);
    for (int i = 0; i < 5; i++) {
        CHECK(ask_as("b", "m") == SHIM_ADMITTED);
        end_with(500, 0);
    }
    advance(seconds);
}

static void body_open_decides_and_the_longer_one_tells(void)
{
    configure("");
    open_while_parked(1);
    CHECK(ask_as("b", "m") == SHIM_REFUSED);
    CHECK(strstr(answer(), " 503 ") && says_to_wait(29));
    CHECK(ask_as("a", "m") == SHIM_REFUSED);
    CHECK(strstr(answer(), " 503 ") && says_to_wait(49));
    CHECK(strstr(answer(), "X-Breaker-State: open\r\n") && !strstr(answer(), "retry-after-ms"));
    open_host(URL);
    CHECK(ask_as("a", "m") == SHIM_REFUSED);
    CHECK(strstr(answer(), "X-Breaker-Key: " HOST "\r\n") && says_to_wait(49));
    clean_up();
}

/* A parked call takes no grant, so that another credential's probe is not held up. */
static void body_a_parked_call_is_no_probe(void)
{
    configure("");
    open_while_parked(31);
    CHECK(ask_as("a", "m") == SHIM_REFUSED && strstr(answer(), " 429 "));
    CHECK(phase_of(KEY) == BREAKER_OPEN);
    CHECK(ask_as("b", "m") == SHIM_ADMITTED && shim_is_probe(&call));
    end_with(200, 0);
    CHECK(phase_of(KEY) == BREAKER_CLOSED && ask_as("a", "m") == SHIM_REFUSED);
    clean_up();
}

/* FIELD-NOTES 7.2 */
static void body_a_limited_probe_frees_its_grant(void)
{
    configure("");
    for (int i = 0; i < 5; i++) {
        CHECK(ask_as("b", "m") == SHIM_ADMITTED);
        end_with(500, 0);
    }
    advance(31);
    CHECK(ask_as("a", "m") == SHIM_ADMITTED && shim_is_probe(&call));
    end_with(429, 17000);
    CHECK(ask_as("a", "m") == SHIM_REFUSED && strstr(answer(), " 429 "));
    CHECK(ask_as("b", "m") == SHIM_ADMITTED && shim_is_probe(&call));
    clean_up();
}

static void body_a_single_failure_parks_the_key(void)
{
    configure(PLAIN "cooldown_seconds = 3\n");
    CHECK(ask_as("a", "m") == SHIM_ADMITTED);
    end_with(500, 0);
    CHECK(ask_as("b", "m") == SHIM_REFUSED && strstr(answer(), " 429 "));
    CHECK(ask_as(NULL, "m") == SHIM_REFUSED && says_to_wait(3));
    CHECK(phase_of(KEY) == BREAKER_CLOSED);
    advance(3.1);
    CHECK(ask_as("a", "m") == SHIM_ADMITTED);
    end_with(501, 0); /* not in cooldown_on */
    CHECK(flows("a"));
    limit("a", 0); /* of its credential, for so long, since it names no time */
    CHECK(flows("b") && ask_as("a", "m") == SHIM_REFUSED);
    clean_up();
}

static void body_what_parks_the_key(void)
{
    configure(PLAIN "cooldown_seconds = 3\ncooldown_on = 418, 501-502\n");
    for (unsigned status = 500; status < 504; status++) {
        bool parks = status == 501 || status == 502;
        CHECK(ask_as("a", "m") == SHIM_ADMITTED);
        end_with(status, 0);
        CHECK(ask_as("a", "m") == (parks ? SHIM_REFUSED : SHIM_ADMITTED));
        shim_drop(&call);
        advance(3.1);
    }
    limit("a", 0); /* 429 is none of them */
    CHECK(flows("a"));
    clean_up();
}

/* Failures that add up across cool-downs trip (Rolter). */
static void body_failures_across_cooldowns_trip(void)
{
    configure(PLAIN "cooldown_seconds = 3\n");
    for (int i = 0; i < 5; i++) {
        CHECK(ask_as("a", "m") == SHIM_ADMITTED);
        end_with(503, 0);
        CHECK(ask_as("a", "m") == SHIM_REFUSED);
        CHECK(strstr(answer(), i < 4 ? " 429 " : " 503 "));
        advance(3.1);
    }
    CHECK(ask_as("a", "m") == SHIM_REFUSED && strstr(answer(), " 503 "));
    clean_up();
}

static void body_it_goes_to_a_fallback(void)
{
    configure(TARGET(""));
    limit("a", 17000);
    CHECK(ask_as("a", "m") == SHIM_REFUSED && begin("m") && taken_by("one"));
    shim_settle(&way.call, &good_end);
    shim_detour_end(&way);
    CHECK(totals_of(KEY).rerouted == 1);
    CHECK(strstr(logged("rerouted", 0), "\"cause\":\"cooling_down\""));
    clean_up();
}

/* And there its own credential, or none, waits. */
static void body_a_fallback_has_its_own_cooldown(void)
{
    static const struct call_end limited = {.kind = END_COMPLETE,
                                            .phase = PHASE_BODY,
                                            .status = 429,
                                            .byte_received = true,
                                            .retry_after_ms = 9000};

    configure(TARGET(""));
    limit("a", 17000);
    CHECK(ask_as("a", "m") == SHIM_REFUSED && begin("m") && taken_by("one"));
    shim_settle(&way.call, &limited);
    shim_detour_end(&way);
    CHECK(ask_as("a", "m") == SHIM_REFUSED && begin("m") && next_is("one"));
    CHECK(shim_detour_admit(&way) == SHIM_REFUSED && next_is("three"));
    CHECK(shim_detour_admit(&way) == SHIM_ADMITTED);
    shim_detour_taken(&way);
    CHECK(strstr(logged("rerouted", 1), "one: its credential was told to wait"));
    shim_detour_end(&way);
    clean_up();
}

static void body_pass_and_observe(void)
{
    configure(PLAIN "when_exhausted = pass\n[target " HOST "/w]\nmode = observe\n");
    limit("a", 17000);
    CHECK(flows("a"));
    CHECK(ask_as("a", "w") == SHIM_ADMITTED);
    end_with(429, 17000);
    CHECK(ask_as("a", "w") == SHIM_ADMITTED);
    end_with(200, 0);
    CHECK(totals_of(HOST "/w").refused == 1 && totals_of(HOST "/w").success == 1);
    CHECK(strstr(logged("observed", 0), "\"from\":\"closed\",\"cause\":\"cooling_down\""));
    clean_up();
}

static void body_a_hard_stop(void)
{
    configure(TARGET("when_exhausted = pass\nallow_fallbacks = false"));
    limit("a", 17000);
    CHECK(ask_as("a", "m") == SHIM_REFUSED && !begin("m"));
    clean_up();
}

static void body_forced_closed_parks_nobody(void)
{
    configure("");
    limit("a", 17000);
    atomic_store(&slot_of(KEY)->word, breaker_force_closed(slot_word(slot_of(KEY))));
    CHECK(flows("a"));
    clean_up();
}

IN_CHILD(open_decides_and_the_longer_one_tells, "")
IN_CHILD(a_parked_call_is_no_probe, "")
IN_CHILD(a_limited_probe_frees_its_grant, "")
IN_CHILD(a_single_failure_parks_the_key, "")
IN_CHILD(what_parks_the_key, "")
IN_CHILD(failures_across_cooldowns_trip, "")
IN_CHILD(it_goes_to_a_fallback, "")
IN_CHILD(a_fallback_has_its_own_cooldown, "")
IN_CHILD(pass_and_observe, "")
IN_CHILD(a_hard_stop, "")
IN_CHILD(forced_closed_parks_nobody, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_decides_and_the_longer_one_tells),
        cmocka_unit_test(test_a_parked_call_is_no_probe),
        cmocka_unit_test(test_a_limited_probe_frees_its_grant),
        cmocka_unit_test(test_a_single_failure_parks_the_key),
        cmocka_unit_test(test_what_parks_the_key),
        cmocka_unit_test(test_failures_across_cooldowns_trip),
        cmocka_unit_test(test_it_goes_to_a_fallback),
        cmocka_unit_test(test_a_fallback_has_its_own_cooldown),
        cmocka_unit_test(test_pass_and_observe),
        cmocka_unit_test(test_a_hard_stop),
        cmocka_unit_test(test_forced_closed_parks_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
