/* One failed connect parks its host, if cooldown_seconds says so; see cooldown_fixture.h. */
#include "cooldown_fixture.h"

#include "shim_flow.h"

#define BRIEFLY PLAIN "cooldown_seconds = 3\n"
#define FILES   "https://" HOST "/v1/files"

static struct shim_call other;

static void fail_as(enum call_end_kind kind, enum call_phase phase, double age)
{
    CHECK(ask_as("a", "m") == SHIM_ADMITTED);
    end_kind(&call, kind, phase, age);
}

static void fail_to_connect(void)
{
    fail_as(END_CONNECT, PHASE_CONNECTING, 0.001);
}

static enum shim_verdict ask_to_connect(void)
{
    const struct shim_request request = {
        .scheme = SPAN_LIT("https"), .host = SPAN_LIT(HOST), .port = 443, .path = SPAN_LIT("")};

    CHECK(shim_open(&call, &request) == SHIM_READY);
    return shim_admit(&call);
}

static void body_whoever_asks_and_for_whatever(void)
{
    configure(BRIEFLY);
    fail_to_connect();
    CHECK(ask_as("a", "m") == SHIM_REFUSED);
    const char *text = answer();
    CHECK(strstr(text, "HTTP/1.1 429 ") && says_to_wait(3));
    CHECK(strstr(text, "X-Breaker-State: cooling_down\r\nX-Breaker-Key: " HOST "\r\n"));
    CHECK(strstr(text, "libbreaker: " HOST " is cooling down; the call was refused"));
    shim_obeyed(&call);
    CHECK(totals_of(HOST).refused == 1 && totals_of(HOST).failure == 1);
    CHECK(ask_as("b", "other") == SHIM_REFUSED && ask_as(NULL, "m") == SHIM_REFUSED);
    CHECK(ask_at(FILES, NULL) == SHIM_REFUSED && strstr(answer(), " 429 "));
    CHECK(phase_of(HOST) == BREAKER_CLOSED && totals_of(KEY).failure == 0);
    advance(2.9);
    CHECK(ask_as("b", "m") == SHIM_REFUSED);
    advance(0.2);
    CHECK(flows("a") && flows("b") && ask_at(FILES, NULL) == SHIM_ADMITTED);
    const char *line = logged("cooldown", 0);
    CHECK(strstr(line, "\"key\":\"" HOST "\"") && strstr(line, "\"cause\":\"connect\""));
    CHECK(strstr(line, "all credentials for 3.000 s") && !logged("cooldown", 1));
    clean_up();
}

static void body_not_by_default(void)
{
    configure("");
    fail_to_connect();
    CHECK(flows("a"));
    clean_up();
}

static void body_not_without_the_word(void)
{
    configure(BRIEFLY "cooldown_on = 500\n");
    fail_to_connect();
    CHECK(flows("a"));
    clean_up();
}

static void body_with_nothing_but_the_word(void)
{
    configure(BRIEFLY "cooldown_on = connect\n");
    CHECK(ask_as("a", "m") == SHIM_ADMITTED);
    end_with(500, 0);
    CHECK(flows("a"));
    fail_to_connect();
    CHECK(ask_as("a", "m") == SHIM_REFUSED);
    clean_up();
}

/* What is no failure of the host's is none for its cool-down. */
static void body_what_counts_for_the_host(void)
{
    static const struct {
        enum call_end_kind kind;
        enum call_phase phase;
        double age;
        bool parks;
    } ends[] = {
        {END_CONNECT, PHASE_CONNECTING, 0.001, true}, {END_HANDSHAKE, PHASE_HANDSHAKE, 0.1, true},
        {END_TIMEOUT, PHASE_CONNECTING, 3.1, true},   {END_ABORTED, PHASE_HANDSHAKE, 3.1, true},
        {END_TIMEOUT, PHASE_CONNECTING, 2.9, false},  {END_ABORTED, PHASE_CONNECTING, 2.9, false},
        {END_LOCAL, PHASE_CONNECTING, 9, false},      {END_UNSENT, PHASE_CONNECTING, 9, false},
        {END_BROKEN, PHASE_WAITING, 9, false},        {END_TIMEOUT, PHASE_WAITING, 9, false},
    };

    configure(BRIEFLY);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        fail_as(ends[i].kind, ends[i].phase, ends[i].age);
        CHECK(flows("b") == !ends[i].parks);
        advance(3.1);
        CHECK(flows("b"));
    }
    clean_up();
}

/* After a suspend nothing is the host's fault. */
static void body_not_after_a_suspend(void)
{
    configure(BRIEFLY);
    CHECK(ask_as("a", "m") == SHIM_ADMITTED);
    slept += 60 * CLOCK_NS_PER_S;
    advance(60);
    end_kind(&call, END_CONNECT, PHASE_CONNECTING, 0.1);
    CHECK(flows("a"));
    clean_up();
}

/* Failures that add up across cool-downs trip (Rolter). */
static void body_failures_across_cooldowns_trip(void)
{
    configure(BRIEFLY);
    for (int i = 0; i < 5; i++) {
        fail_to_connect();
        CHECK(ask_as("a", "m") == SHIM_REFUSED && strstr(answer(), i < 4 ? " 429 " : " 503 "));
        advance(3.1);
    }
    CHECK(ask_as("a", "m") == SHIM_REFUSED && strstr(answer(), " 503 ") && says_to_wait(27));
    clean_up();
}

/* The one of a call that came late, too (litellm#40130), and nothing shortens it. */
static void body_the_later_deadline_stays(void)
{
    configure(BRIEFLY);
    CHECK(ask_as("a", "m") == SHIM_ADMITTED);
    other = call;
    memset(&call, 0, sizeof call);
    fail_to_connect();
    advance(2);
    end_kind(&other, END_CONNECT, PHASE_CONNECTING, 2);
    advance(2);
    CHECK(ask_as("a", "m") == SHIM_REFUSED && says_to_wait(1));
    advance(1.1);
    CHECK(flows("a"));
    clean_up();
}

/* A cool-down decides before a grant is taken. */
static void body_after_a_failed_probe(void)
{
    configure(PLAIN "cooldown_seconds = 100\nfailure_threshold = 1\nbackoff = 1\n");
    fail_to_connect();
    CHECK(ask_as("a", "m") == SHIM_REFUSED && strstr(answer(), " 503 ") && says_to_wait(100));
    advance(99);
    CHECK(ask_as("a", "m") == SHIM_REFUSED && strstr(answer(), " 429 ") && says_to_wait(1));
    CHECK(phase_of(HOST) == BREAKER_OPEN);
    advance(1.1);
    CHECK(ask_as("a", "m") == SHIM_ADMITTED && shim_is_probe(&call));
    end_kind(&call, END_CONNECT, PHASE_CONNECTING, 0.001);
    CHECK(phase_of(HOST) == BREAKER_OPEN);
    advance(31);
    CHECK(ask_as("a", "m") == SHIM_REFUSED && strstr(answer(), " 429 ") && says_to_wait(69));
    clean_up();
}

static void body_parked_at_both_keys(void)
{
    configure(BRIEFLY);
    CHECK(ask_as("b", "m") == SHIM_ADMITTED);
    other = call;
    memset(&call, 0, sizeof call);
    limit("a", 17000);
    end_kind(&other, END_CONNECT, PHASE_CONNECTING, 0.1);
    CHECK(ask_as("a", "m") == SHIM_REFUSED && says_to_wait(17));
    CHECK(strstr(answer(), "X-Breaker-Key: " HOST "\r\n"));
    CHECK(ask_as("b", "m") == SHIM_REFUSED && says_to_wait(3));
    clean_up();
}

/* It is H's setting; its model's has no say. */
static void body_as_the_hosts_policy_says(void)
{
    configure(PLAIN "[target " HOST "/m]\ncooldown_seconds = 3\n");
    fail_to_connect();
    CHECK(flows("a"));
    clean_up();
}

static void body_observe_only_tells(void)
{
    configure(BRIEFLY "mode = observe\n");
    fail_to_connect();
    CHECK(flows("a") && totals_of(HOST).refused == 1);
    CHECK(strstr(logged("observed", 0), "\"from\":\"closed\",\"cause\":\"cooling_down\""));
    clean_up();
}

static void body_pass(void)
{
    configure(BRIEFLY "when_exhausted = pass\n");
    fail_to_connect();
    CHECK(flows("a") && totals_of(HOST).refused == 0 && totals_of(HOST).success == 1);
    clean_up();
}

static void body_forced_closed_parks_nobody(void)
{
    configure(BRIEFLY);
    fail_to_connect();
    atomic_store(&slot_of(HOST)->word, breaker_force_closed(slot_word(slot_of(HOST))));
    CHECK(flows("a"));
    clean_up();
}

/* One breaker, one place to wait at; traffic that is no LLM call waits only with all others. */
static void body_of_a_host_alone(void)
{
    configure(BRIEFLY "scope = host\n");
    CHECK(ask_at(URL, NULL) == SHIM_ADMITTED);
    end_kind(&call, END_CONNECT, PHASE_CONNECTING, 0.1);
    CHECK(ask_at(URL, NULL) == SHIM_REFUSED && strstr(answer(), " 429 "));
    CHECK(ask_at(FILES, NULL) == SHIM_REFUSED && strstr(answer(), " 429 "));
    advance(3.1);
    for (int i = 0; i < 2; i++) { /* a limit is of LLM calls, whoever else has that key */
        struct shim_request request = request_to(i == 0 ? URL : FILES, true);
        CHECK(shim_open(&call, &request) == SHIM_READY);
        shim_credential(&call, SPAN_LIT("a"));
        CHECK(shim_admit(&call) == SHIM_ADMITTED);
        end_with(429, 17000);
    }
    clean_up();
}

/* The host was asked when the call connected. */
static void body_a_model_that_is_known_late(void)
{
    struct shim_request request = request_to(URL, false);

    configure(BRIEFLY);
    CHECK(shim_open(&other, &request) == SHIM_NEEDS_BODY && shim_admit(&other) == SHIM_ADMITTED);
    fail_to_connect();
    CHECK(shim_body(&other, body_of("m"), true));
    CHECK(shim_admit_model(&other) == SHIM_ADMITTED);
    CHECK(shim_open(&other, &request) == SHIM_NEEDS_BODY && shim_admit(&other) == SHIM_REFUSED);
    clean_up();
}

static void body_it_goes_to_a_fallback(void)
{
    configure(TARGET("cooldown_seconds = 3"));
    fail_to_connect();
    CHECK(ask_as("a", "m") == SHIM_REFUSED && begin("m") && taken_by("one"));
    CHECK(strstr(logged("rerouted", 0), "\"cause\":\"cooling_down\""));
    shim_drop(&way.call);
    shim_detour_end(&way);
    clean_up();
}

static void body_a_fallback_that_cools_down(void)
{
    configure(TARGET("cooldown_seconds = 3") "[target one.example]\ncooldown_seconds = 60\n");
    for (int i = 0; i < 2; i++) {
        fail_to_connect();
        CHECK(ask_as("a", "m") == SHIM_REFUSED && begin("m") && next_is("one"));
        CHECK(shim_detour_admit(&way) == (i == 0 ? SHIM_ADMITTED : SHIM_REFUSED));
        if (i == 0)
            end_kind(&way.call, END_CONNECT, PHASE_CONNECTING, 0.1);
        CHECK(next_is("three") && shim_detour_admit(&way) == SHIM_ADMITTED);
        shim_detour_taken(&way);
        shim_detour_end(&way);
        advance(11);
    }
    CHECK(strstr(logged("rerouted", 1), "not one: it is cooling down"));
    clean_up();
}

/* --- where only the connect is seen --- */

static bool leads_to_the_other(void)
{
    struct span host;
    uint16_t port;

    return shim_fallback_address(&call, &host, &port) && span_eq(host, SPAN_LIT("gpu2"));
}

static void body_a_connect_is_refused(void)
{
    configure(BRIEFLY);
    CHECK(ask_to_connect() == SHIM_ADMITTED);
    end_kind(&call, END_CONNECT, PHASE_CONNECTING, 0.001);
    CHECK(ask_to_connect() == SHIM_REFUSED && !leads_to_the_other());
    CHECK(ask_as("a", "m") == SHIM_REFUSED);
    advance(3.1);
    CHECK(ask_to_connect() == SHIM_ADMITTED);
    clean_up();
}

static void body_a_connect_goes_to_the_address(void)
{
    struct span names[4];

    configure(BRIEFLY "fallback_address = gpu2:8000\n");
    CHECK(ask_to_connect() == SHIM_ADMITTED);
    end_kind(&call, END_CONNECT, PHASE_CONNECTING, 0.001);
    CHECK(ask_to_connect() == SHIM_REFUSED && leads_to_the_other());
    /* A clean breaker whose host cools down has its address wanted all the same. */
    atomic_store(&slot_of(HOST)->word, 0);
    CHECK(shim_fallbacks_wanted(SPAN_LIT(HOST), 443, names, 4) == 1);
    CHECK(shim_fallbacks_wanted(SPAN_LIT(HOST), 0, names, 4) == 1);
    advance(3.1);
    CHECK(shim_fallbacks_wanted(SPAN_LIT(HOST), 443, names, 4) == 0);
    clean_up();
}

static void body_and_though_it_would_pass(void)
{
    const struct shim_request there = {.scheme = SPAN_LIT("https"),
                                       .host = SPAN_LIT("gpu2"),
                                       .port = 8000,
                                       .path = SPAN_LIT(""),
                                       .is_fallback = true};

    configure(BRIEFLY "fallback_address = gpu2:8000\nwhen_exhausted = pass\n");
    CHECK(ask_to_connect() == SHIM_ADMITTED);
    end_kind(&call, END_CONNECT, PHASE_CONNECTING, 0.001);
    CHECK(ask_to_connect() == SHIM_ADMITTED && shim_overruled(&call) && leads_to_the_other());
    CHECK(shim_open(&other, &there) == SHIM_READY && shim_admit(&other) == SHIM_ADMITTED);
    shim_rerouted(&call, &other);
    CHECK(strstr(logged("rerouted", 0), "\"cause\":\"cooling_down\""));
    advance(3.1);
    CHECK(ask_to_connect() == SHIM_ADMITTED && !shim_overruled(&call));
    clean_up();
}

IN_CHILD(whoever_asks_and_for_whatever, "")
IN_CHILD(not_by_default, "")
IN_CHILD(not_without_the_word, "")
IN_CHILD(with_nothing_but_the_word, "")
IN_CHILD(what_counts_for_the_host, "")
IN_CHILD(not_after_a_suspend, "")
IN_CHILD(failures_across_cooldowns_trip, "")
IN_CHILD(the_later_deadline_stays, "")
IN_CHILD(after_a_failed_probe, "")
IN_CHILD(parked_at_both_keys, "")
IN_CHILD(as_the_hosts_policy_says, "")
IN_CHILD(observe_only_tells, "")
IN_CHILD(pass, "")
IN_CHILD(forced_closed_parks_nobody, "")
IN_CHILD(of_a_host_alone, "")
IN_CHILD(a_model_that_is_known_late, "")
IN_CHILD(it_goes_to_a_fallback, "")
IN_CHILD(a_fallback_that_cools_down, "")
IN_CHILD(a_connect_is_refused, "")
IN_CHILD(a_connect_goes_to_the_address, "")
IN_CHILD(and_though_it_would_pass, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whoever_asks_and_for_whatever),
        cmocka_unit_test(test_not_by_default),
        cmocka_unit_test(test_not_without_the_word),
        cmocka_unit_test(test_with_nothing_but_the_word),
        cmocka_unit_test(test_what_counts_for_the_host),
        cmocka_unit_test(test_not_after_a_suspend),
        cmocka_unit_test(test_failures_across_cooldowns_trip),
        cmocka_unit_test(test_the_later_deadline_stays),
        cmocka_unit_test(test_after_a_failed_probe),
        cmocka_unit_test(test_parked_at_both_keys),
        cmocka_unit_test(test_as_the_hosts_policy_says),
        cmocka_unit_test(test_observe_only_tells),
        cmocka_unit_test(test_pass),
        cmocka_unit_test(test_forced_closed_parks_nobody),
        cmocka_unit_test(test_of_a_host_alone),
        cmocka_unit_test(test_a_model_that_is_known_late),
        cmocka_unit_test(test_it_goes_to_a_fallback),
        cmocka_unit_test(test_a_fallback_that_cools_down),
        cmocka_unit_test(test_a_connect_is_refused),
        cmocka_unit_test(test_a_connect_goes_to_the_address),
        cmocka_unit_test(test_and_though_it_would_pass),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
