/* Which candidate of a chain takes a refused call, and what its breakers make of it; what changes
 * in the request is in test_detour.c, what is told and counted in test_detour_told.c, detours by
 * address in test_detour_address.c. */
#include "detour_fixture.h"

static void body_an_open_model_goes_to_the_first(void)
{
    configure(TARGET(""));
    open_model(URL, "m");
    CHECK(ask("m") == SHIM_REFUSED);
    CHECK(shim_detour_possible(&call) && begin("m"));
    CHECK(next_is("one") && strcmp(way.url, "https://one.example/v1/chat/completions") == 0);
    CHECK(!way.address && way.foreign && !way.loopback && span_eq(way.model, SPAN_LIT("x/m")));
    CHECK(shim_detour_admit(&way) == SHIM_ADMITTED && shim_admitted(&way.call));
    shim_detour_taken(&way);
    shim_received(&way.call);
    shim_settle(&way.call, &good_end);
    shim_detour_end(&way);
    CHECK(totals_of("one.example").success == 1 && totals_of("one.example/x/m").success == 1);
    CHECK(totals_of(HOST "/m").rerouted == 1 && totals_of(HOST).rerouted == 0);
    CHECK(totals_of(HOST "/m").refused == 0);
    CHECK(ask("n") == SHIM_ADMITTED); /* the other models go where they went */
    clean_up();
}

static void body_an_open_host_goes_too(void)
{
    configure(TARGET(""));
    open_host(URL);
    reroute("m", "one", &good_end);
    reroute("gpt", "two", &good_end);
    reroute("other", "three", &good_end);
    CHECK(totals_of(HOST).rerouted == 3);
    CHECK(totals_of("two.example/y").success == 1);
    CHECK(totals_of("127.0.0.1:3000/llama").success == 1);
    clean_up();
}

static void body_forced_open_goes_too(void)
{
    configure(TARGET(""));
    end_call(URL, "m", &good_end);
    force_open(HOST "/m");
    reroute("m", "one", &good_end);
    force_open("one.example");
    CHECK(ask("m") == SHIM_REFUSED && begin("m"));
    CHECK(next_is("one") && shim_detour_admit(&way) == SHIM_REFUSED);
    CHECK(taken_by("three"));
    clean_up();
}

/* Half-open: one call is the probe, the others go elsewhere. */
static void body_beside_the_probe(void)
{
    static struct shim_call probe;
    struct shim_request request = request_to(URL, true);

    configure(TARGET(""));
    open_model(URL, "m");
    advance(31);
    CHECK(shim_open(&probe, &request) == SHIM_NEEDS_BODY && shim_body(&probe, body_of("m"), true));
    CHECK(shim_admit(&probe) == SHIM_ADMITTED && shim_is_probe(&probe));
    reroute("m", "one", &good_end);
    shim_settle(&probe, &good_end);
    CHECK(ask("m") == SHIM_ADMITTED);
    clean_up();
}

/* The first refuses, the second does not fit, the third takes it. */
static void body_a_chain_of_three(void)
{
    configure(TARGET(""));
    open_model(URL, "m");
    open_model("https://one.example/v1/chat/completions", "x/m");
    CHECK(ask("m") == SHIM_REFUSED && begin("m"));
    CHECK(next_is("one") && shim_detour_admit(&way) == SHIM_REFUSED && !shim_admitted(&way.call));
    CHECK(next_is("three") && way.loopback);
    CHECK(strcmp(way.url, "http://127.0.0.1:3000/v1/chat/completions") == 0);
    CHECK(shim_detour_admit(&way) == SHIM_ADMITTED);
    shim_detour_taken(&way);
    CHECK(strstr(logged("rerouted", 0),
                 "\"detail\":\"fallback three; not one: its breaker refuses; "
                 "two: its model is not in `model`\""));
    CHECK(totals_of("one.example/x/m").refused == 0 && !slot_of("two.example"));
    clean_up();
}

static void body_nobody_left(void)
{
    configure(TARGET(""));
    open_model(URL, "gpt");
    CHECK(ask("gpt") == SHIM_REFUSED && begin("gpt"));
    CHECK(next_is("two") && next_is("three"));
    CHECK(!shim_detour_next(&way) && !shim_detour_next(&way));
    shim_detour_end(&way);
    clean_up();
}

/* The fallback's failures are its own. */
static void body_its_own_breakers(void)
{
    configure(TARGET(""));
    open_model(URL, "m");
    for (int i = 0; i < 5; i++)
        reroute("m", "one", &bad_end);
    CHECK(phase_of("one.example/x/m") == BREAKER_OPEN);
    CHECK(totals_of("one.example/x/m").failure == 5 && totals_of(HOST "/m").failure == 5);
    for (int i = 0; i < 5; i++) { /* one's model refuses, its host does not */
        CHECK(ask("m2") == SHIM_ADMITTED);
        shim_settle(&call, &bad_end);
    }
    reroute("m2", "one", &no_connect);
    CHECK(totals_of("one.example").failure == 1);
    clean_up();
}

/* A grant of the fallback is handed back by whatever ends the candidate. */
static void body_its_probe(void)
{
    configure(TARGET("open_seconds = 1000") "[target one]\nmatch = one.example\n");
    open_model(URL, "m");
    open_model("https://one.example/v1/chat/completions", "x/m");
    advance(31);
    for (int i = 0; i < 5; i++) {
        CHECK(ask("m") == SHIM_REFUSED && begin("m"));
        CHECK(next_is("one") && shim_detour_admit(&way) == SHIM_ADMITTED);
        CHECK(shim_is_probe(&way.call));
        if (i == 0)
            CHECK(next_is("three") && !shim_admitted(&way.call));
        if (i == 1)
            shim_detour_skip(&way, "it is a test");
        if (i == 2)
            shim_detour_end(&way);
        if (i == 3)
            shim_drop(&way.call);
    }
    shim_detour_taken(&way);
    shim_settle(&way.call, &good_end);
    CHECK(phase_of("one.example/x/m") == BREAKER_CLOSED);
    reroute("m", "one", &good_end);
    clean_up();
}

static void body_a_fallback_that_is_off(void)
{
    configure(TARGET("") "[target one]\nmatch = one.example\nmode = off\n");
    open_model(URL, "m");
    for (int i = 0; i < 7; i++)
        reroute("m", "one", &bad_end);
    CHECK(!slot_of("one.example") && !slot_of("one.example/x/m"));
    CHECK(strstr(logged("rerouted", 0), "\"to\":\"one.example\""));
    CHECK(totals_of(HOST "/m").rerouted == 7);
    clean_up();
}

/* when_exhausted is the last resort of the call's own target, and none of a fallback's. */
static void body_pass_of_a_fallback_does_not_admit(void)
{
    configure(TARGET("") "[target one]\nmatch = one.example\nwhen_exhausted = pass\n");
    open_model(URL, "m");
    for (int i = 0; i < 5; i++)
        reroute("m", "one", &bad_end);
    reroute("m", "three", &good_end);
    clean_up();
}

static void body_covered_though_not_listed(void)
{
    configure("[breaker]\nmatch = listed\n" TARGET(""));
    open_model(URL, "m");
    for (int i = 0; i < 5; i++)
        reroute("m", "one", &bad_end);
    CHECK(totals_of("one.example/x/m").failure == 5);
    reroute("m", "three", &good_end);
    clean_up();
}

static void body_scope_host_of_the_target(void)
{
    configure(TARGET("scope = host"));
    open_host(URL);
    struct shim_request request = request_to(URL, true);
    CHECK(shim_open(&call, &request) == SHIM_READY && shim_admit(&call) == SHIM_REFUSED);
    CHECK(begin(NULL) && shim_detour_wants_model(&way));
    shim_detour_body(&way, body_of("m"));
    CHECK(!shim_detour_wants_model(&way) && taken_by("one"));
    shim_settle(&way.call, &good_end);
    CHECK(totals_of("one.example/x/m").success == 1 && totals_of(HOST).rerouted == 1);
    clean_up();
}

/* Then the key does not tell the model, but the path does. */
static void body_scope_host_and_a_model_in_the_path(void)
{
    static const char azure[] = "https://" HOST "/openai/deployments/m%201/chat/completions?v=1";

    configure(TARGET("scope = host"));
    open_host(URL);
    struct shim_request request = request_to(azure, true);
    CHECK(shim_open(&call, &request) == SHIM_READY && shim_admit(&call) == SHIM_REFUSED);
    CHECK(begin_at(azure, NULL) && !shim_detour_wants_model(&way));
    CHECK(next_is("one") && !way.model.ptr);
    CHECK(strcmp(way.url, "https://one.example/v1/deployments/x%2Fm%201/chat/completions?v=1") ==
          0);
    clean_up();
}

static void body_scope_host_of_the_fallback(void)
{
    configure(TARGET("") "[target one]\nmatch = one.example\nscope = host\n");
    open_model(URL, "m");
    for (int i = 0; i < 5; i++)
        reroute("m", "one", &bad_end);
    CHECK(phase_of("one.example") == BREAKER_OPEN && !slot_of("one.example/x/m"));
    CHECK(strstr(logged("rerouted", 0), "\"to\":\"one.example\""));
    reroute("m", "three", &good_end);
    clean_up();
}

/* M's policy has the chain where the model is known, else H's. */
static void body_whose_chain(void)
{
    configure("[target a]\nmatch = " HOST "\nfallback = three\n"
              "[target b]\nmatch = " HOST "/m\nfallback = one\n"
              "[target c]\nmatch = " HOST "/n\nallow_fallbacks = false\n" FALLBACKS);
    open_host(URL);
    reroute("m", "one", &good_end);
    reroute("o", "three", &good_end);
    CHECK(ask("n") == SHIM_REFUSED && !shim_detour_possible(&call) && !begin("n"));
    struct shim_request request = request_to(URL, true);
    CHECK(shim_open(&call, &request) == SHIM_NEEDS_BODY && shim_admit(&call) == SHIM_REFUSED);
    CHECK(begin(NULL) && !shim_detour_next(&way)); /* it might be the one that goes nowhere */
    CHECK(shim_exhausted(&call) == SHIM_REFUSED);
    shim_obeyed(&call);
    CHECK(strstr(logged("refused", 0),
                 "three: its model is not known, and one of its host's may go nowhere"));
    shim_detour_end(&way);
    CHECK(begin("m") && taken_by("one")); /* its model's, once that is known */
    shim_detour_end(&way);
    CHECK(begin("n") && !shim_detour_next(&way));
    clean_up();
}

/* To another machine, where its target allows it. */
static void body_over_clear_text(void)
{
    configure("[target a]\nmatch = " HOST "\nfallback = plain\n"
              "[target b]\nmatch = " HOST "/m\nallow_cleartext = true\n"
              "[fallback plain]\nbase = http://plain.example/v1\n");
    open_host(URL);
    reroute("m", "plain", &good_end);
    CHECK(ask("n") == SHIM_REFUSED && (!begin("n") || !shim_detour_next(&way)));
    clean_up();
}

static void body_the_dash(void)
{
    configure("[target a]\nmatch = " HOST "\nfallback = same, three\n"
              "[fallback same]\nbase = https://same.example/v1\n" FALLBACKS);
    open_host(URL);
    struct shim_request request = request_to(URL, true);
    CHECK(shim_open(&call, &request) == SHIM_NEEDS_BODY);
    CHECK(shim_body(&call, SPAN_LIT("{}"), true) && shim_admit(&call) == SHIM_REFUSED);
    CHECK(begin(NULL) && shim_detour_wants_model(&way));
    shim_detour_body(&way, SPAN_LIT("{}"));
    CHECK(taken_by("same"));
    shim_settle(&way.call, &good_end);
    CHECK(totals_of("same.example/-").success == 1);
    CHECK(!shim_detour_next(&way)); /* three's `model` has nothing to go by */
    shim_detour_end(&way);
    /* Not known is not absent: M is asked when it is. */
    CHECK(shim_open(&call, &request) == SHIM_NEEDS_BODY && shim_admit(&call) == SHIM_REFUSED);
    CHECK(begin(NULL) && taken_by("same") && shim_model_pending(&way.call));
    CHECK(shim_body(&way.call, body_of("q"), true));
    CHECK(shim_admit_model(&way.call) == SHIM_ADMITTED);
    shim_settle(&way.call, &good_end);
    CHECK(totals_of("same.example/q").success == 1 && totals_of("same.example/-").success == 1);
    clean_up();
}

IN_CHILD(an_open_model_goes_to_the_first, "")
IN_CHILD(an_open_host_goes_too, "")
IN_CHILD(forced_open_goes_too, "")
IN_CHILD(beside_the_probe, "")
IN_CHILD(a_chain_of_three, "")
IN_CHILD(nobody_left, "")
IN_CHILD(its_own_breakers, "")
IN_CHILD(its_probe, "")
IN_CHILD(a_fallback_that_is_off, "")
IN_CHILD(pass_of_a_fallback_does_not_admit, "")
IN_CHILD(covered_though_not_listed, "")
IN_CHILD(scope_host_of_the_target, "")
IN_CHILD(scope_host_and_a_model_in_the_path, "")
IN_CHILD(scope_host_of_the_fallback, "")
IN_CHILD(whose_chain, "")
IN_CHILD(over_clear_text, "")
IN_CHILD(the_dash, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_open_model_goes_to_the_first),
        cmocka_unit_test(test_an_open_host_goes_too),
        cmocka_unit_test(test_forced_open_goes_too),
        cmocka_unit_test(test_beside_the_probe),
        cmocka_unit_test(test_a_chain_of_three),
        cmocka_unit_test(test_nobody_left),
        cmocka_unit_test(test_its_own_breakers),
        cmocka_unit_test(test_its_probe),
        cmocka_unit_test(test_a_fallback_that_is_off),
        cmocka_unit_test(test_pass_of_a_fallback_does_not_admit),
        cmocka_unit_test(test_covered_though_not_listed),
        cmocka_unit_test(test_scope_host_of_the_target),
        cmocka_unit_test(test_scope_host_and_a_model_in_the_path),
        cmocka_unit_test(test_scope_host_of_the_fallback),
        cmocka_unit_test(test_whose_chain),
        cmocka_unit_test(test_over_clear_text),
        cmocka_unit_test(test_the_dash),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
