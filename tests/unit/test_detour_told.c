/* A refused call that no fallback takes, calls that fail over, and what the log and the counts say
 * of both; see test_detour_chain.c. */
#include "detour_fixture.h"

/* A chain whose only candidate refuses from then on. */
#define ONE(keys)                                                                                  \
    "[target openai]\nmatch = " HOST "\nfallback = one\n" keys "\n"                                \
    "[fallback one]\nbase = https://one.example/v1\nmodel = m*:x/{model}\n"

static void close_the_chain(void)
{
    open_model("https://one.example/v1/chat/completions", "x/m");
}

/* Refused, and nobody takes it; the way is still there. */
static void exhaust(void)
{
    CHECK(ask("m") == SHIM_REFUSED && begin("m"));
    CHECK(next_is("one") && shim_detour_admit(&way) == SHIM_REFUSED);
    CHECK(!shim_detour_next(&way));
}

static void body_503(void)
{
    char text[SHIM_RESPONSE_MAX + 1];

    configure(ONE(""));
    open_model(URL, "m");
    close_the_chain();
    exhaust();
    CHECK(shim_exhausted(&call) == SHIM_REFUSED && shim_exhausted(&call) == SHIM_REFUSED);
    CHECK(totals_of(HOST "/m").refused == 0 && !logged("refused", 0));
    shim_obeyed(&call);
    shim_obeyed(&call);
    shim_detour_end(&way);
    CHECK(totals_of(HOST "/m").refused == 1 && totals_of(HOST "/m").rerouted == 0);
    CHECK(totals_of("one.example/x/m").refused == 0);
    CHECK(strstr(logged("refused", 0), "\"key\":\"" HOST "/m\"") && !logged("refused", 1));
    CHECK(strstr(logged("refused", 0), "\"detail\":\"one: its breaker refuses\""));
    text[shim_response(&call, text, SHIM_RESPONSE_MAX, false)] = '\0';
    CHECK(strstr(text, HOST "/m is open") && !shim_admitted(&call));
    /* Nothing of the way is left in the next refusal. */
    advance(11);
    CHECK(call_status("m", 200) == SHIM_REFUSED);
    CHECK(!strstr(logged("refused", 1), "one:"));
    clean_up();
}

/* What was told ends with the way, which is the layer's memory; and it has an end of its own. */
static void body_what_is_told_has_ends(void)
{
    static char why[300];

    configure(ONE(""));
    open_model(URL, "m");
    CHECK(ask("m") == SHIM_REFUSED && begin("m") && next_is("one"));
    memset(why, 'x', sizeof why - 1);
    for (int i = 0; i < 4; i++)
        shim_detour_skip(&way, why);
    CHECK(span_eq(way.model, SPAN_LIT("x/m")) && !shim_detour_next(&way));
    shim_obeyed(&call);
    CHECK(strstr(logged("refused", 0), "one: xxx") && strstr(logged("refused", 0), "; one: xxx"));
    shim_detour_end(&way);
    advance(11);
    CHECK(ask("m") == SHIM_REFUSED && begin("m") && next_is("one") && !shim_detour_next(&way));
    shim_detour_end(&way);
    memset(&way, 'X', sizeof way);
    shim_obeyed(&call);
    CHECK(logged("refused", 1) && !strstr(logged("refused", 1), "\"detail\""));
    clean_up();
}

/* It goes out, and its end is a number alone. */
static void body_pass(void)
{
    configure(ONE("when_exhausted = pass"));
    for (int i = 0; i < 5; i++)
        CHECK(call_status("m", 500) == SHIM_ADMITTED);
    close_the_chain();
    uint64_t word = slot_word(slot_of(HOST "/m"));
    exhaust();
    CHECK(shim_exhausted(&call) == SHIM_ADMITTED && shim_admitted(&call));
    shim_detour_end(&way);
    shim_received(&call);
    shim_settle(&call, &bad_end);
    CHECK(totals_of(HOST "/m").failure == 6 && totals_of(HOST "/m").refused == 0);
    CHECK(slot_word(slot_of(HOST "/m")) == word && !logged("refused", 0));
    /* As one without a chain does. */
    CHECK(call_status("m", 200) == SHIM_ADMITTED);
    CHECK(totals_of(HOST "/m").success == 1 && slot_word(slot_of(HOST "/m")) == word);
    /* And the handle's next calls are rerouted again, however they are opened. */
    enum shim_need need;
    CHECK(shim_open_again(&call, &need) && need == SHIM_NEEDS_BODY);
    CHECK(shim_body(&call, body_of("m"), true) && shim_admit(&call) == SHIM_REFUSED);
    CHECK(shim_exhausted(&call) == SHIM_ADMITTED);
    CHECK(ask("m") == SHIM_REFUSED);
    clean_up();
}

/* One that was closed in between takes the call as any other. */
static void body_exhausted_of_one_that_let_go(void)
{
    configure(ONE("when_exhausted = pass"));
    open_model(URL, "m");
    CHECK(ask("m") == SHIM_REFUSED);
    atomic_store(&slot_of(HOST "/m")->word, 0);
    CHECK(shim_exhausted(&call) == SHIM_ADMITTED && shim_admitted(&call));
    shim_settle(&call, &bad_end);
    CHECK(breaker_decode(slot_word(slot_of(HOST "/m"))).streak == 1);
    CHECK(shim_exhausted(&call) == SHIM_ADMITTED && !shim_admitted(&call)); /* nor was it refused */
    clean_up();
}

/* No chain, and no pass either. */
static void body_a_hard_stop(void)
{
    configure(ONE("when_exhausted = pass\nallow_fallbacks = false"));
    open_model(URL, "m");
    CHECK(ask("m") == SHIM_REFUSED && !shim_detour_possible(&call) && !begin("m"));
    CHECK(!shim_detour_on_failure(&call));
    CHECK(shim_exhausted(&call) == SHIM_REFUSED);
    CHECK(call_status("m", 200) == SHIM_REFUSED); /* of layers that cannot reroute, too */
    clean_up();
}

/* Layers that do not reroute, and what is no LLM call, know nothing of the chain. */
static void body_pass_without_a_layer_that_reroutes(void)
{
    struct shim_request files = request_to("https://" HOST "/v1/files", true);

    configure(ONE("when_exhausted = pass"));
    open_host(URL);
    CHECK(call_status("m", 200) == SHIM_ADMITTED);
    CHECK(shim_open(&call, &files) == SHIM_READY && shim_admit(&call) == SHIM_ADMITTED);
    CHECK(!shim_detour_possible(&call) && !begin_at("https://" HOST "/v1/files", NULL));
    CHECK(ask("m") == SHIM_REFUSED);
    clean_up();
}

/* H lets it pass, M does not: what was told of the chain is told of M's refusal. */
static void body_pass_of_the_host_alone(void)
{
    configure(ONE("when_exhausted = pass") "[target m]\nmatch = " HOST "/m\n"
                                           "when_exhausted = 503\nallow_fallbacks = true\n");
    open_model(URL, "m");
    open_host(URL);
    close_the_chain();
    exhaust();
    CHECK(shim_exhausted(&call) == SHIM_REFUSED);
    shim_obeyed(&call);
    CHECK(totals_of(HOST "/m").refused == 1 && totals_of(HOST).refused == 0);
    CHECK(strstr(logged("refused", 0), "\"key\":\"" HOST "/m\"") &&
          strstr(logged("refused", 0), "\"detail\":\"one: its breaker refuses\""));
    clean_up();
}

/* The body showed the model while it was sent. */
static void body_refused_late(void)
{
    struct shim_request request = request_to(URL, true);

    configure(ONE("when_exhausted = pass"));
    open_model(URL, "m");
    close_the_chain();
    CHECK(shim_open(&call, &request) == SHIM_NEEDS_BODY && shim_admit(&call) == SHIM_ADMITTED);
    CHECK(shim_body(&call, body_of("m"), true) && shim_admit_model(&call) == SHIM_REFUSED);
    CHECK(begin("m") && next_is("one") && shim_detour_admit(&way) == SHIM_REFUSED);
    CHECK(!shim_detour_next(&way) && shim_exhausted(&call) == SHIM_ADMITTED);
    shim_settle(&call, &good_end);
    CHECK(totals_of(HOST "/m").success == 1 && totals_of(HOST).success >= 1);
    CHECK(phase_of(HOST "/m") == BREAKER_OPEN);
    /* After it passed by H, a model that shows itself is not to be taken elsewhere any more. */
    force_open(HOST);
    CHECK(shim_open(&call, &request) == SHIM_NEEDS_BODY && shim_admit(&call) == SHIM_REFUSED);
    CHECK(shim_exhausted(&call) == SHIM_ADMITTED && shim_model_pending(&call));
    CHECK(shim_body(&call, body_of("m"), true) && shim_admit_model(&call) == SHIM_ADMITTED);
    shim_drop(&call);
    clean_up();
}

/* The fallback's own model refuses late. */
static void body_refused_late_by_the_fallback(void)
{
    struct shim_request request = request_to(URL, true);

    configure("[target openai]\nmatch = " HOST "\nfallback = same\n"
              "[fallback same]\nbase = https://same.example/v1\n");
    open_host(URL);
    open_model("https://same.example/v1/chat/completions", "m");
    CHECK(shim_open(&call, &request) == SHIM_NEEDS_BODY && shim_admit(&call) == SHIM_REFUSED);
    CHECK(begin(NULL) && next_is("same") && shim_detour_admit(&way) == SHIM_ADMITTED);
    CHECK(shim_body(&way.call, body_of("m"), true));
    CHECK(shim_admit_model(&way.call) == SHIM_REFUSED);
    shim_detour_skip(&way, "its breaker refuses");
    CHECK(!shim_detour_next(&way) && shim_exhausted(&call) == SHIM_REFUSED);
    shim_obeyed(&call);
    CHECK(strstr(logged("refused", 0), "\"detail\":\"same: its breaker refuses\""));
    clean_up();
}

/* Once in ten seconds per destination; counted each time. */
static void body_reroutes_are_told_by_destination(void)
{
    configure(TARGET(""));
    open_host(URL);
    for (int i = 0; i < 3; i++) {
        reroute("m", "one", &good_end);
        reroute("gpt", "two", &good_end);
    }
    const char *line = logged("rerouted", 0);
    CHECK(strstr(line, "\"key\":\"" HOST "\"") && strstr(line, "\"from\":\"open\""));
    CHECK(strstr(line, "\"to\":\"one.example/x/m\"") && strstr(line, "\"cause\":\"open\""));
    CHECK(strstr(line, "\"detail\":\"fallback one\""));
    CHECK(strstr(logged("rerouted", 1), "\"to\":\"two.example/y\"") && !logged("rerouted", 2));
    CHECK(totals_of(HOST).rerouted == 6);
    advance(10);
    reroute("m", "one", &good_end);
    CHECK(strstr(logged("rerouted", 2), "\"to\":\"one.example/x/m\"") && !logged("rerouted", 3));
    CHECK(totals_of(HOST).rerouted == 7 && totals_of(HOST).refused == 0);
    force_open(HOST);
    advance(10);
    reroute("m", "one", &good_end);
    CHECK(strstr(logged("rerouted", 3), "\"cause\":\"forced_open\""));
    clean_up();
}

static void body_no_log_no_trouble(void)
{
    write_ini(TARGET(""));
    open_host(URL);
    reroute("m", "one", &good_end);
    CHECK(totals_of(HOST).rerouted == 1 && !logged("rerouted", 0));
    clean_up();
}

static void cannot_connect(const char *model)
{
    CHECK(ask(model) == SHIM_ADMITTED && shim_detour_on_failure(&call));
    shim_settle(&call, &no_connect);
}

/* Closed still: the failure counts, and the call goes elsewhere at once. */
static void body_failover(void)
{
    configure(TARGET(""));
    cannot_connect("m");
    CHECK(begin("m") && taken_by("one"));
    shim_settle(&way.call, &good_end);
    shim_detour_end(&way);
    CHECK(totals_of(HOST).failure == 1 && totals_of("one.example/x/m").success == 1);
    CHECK(totals_of(HOST).rerouted + totals_of(HOST "/m").rerouted == 1);
    const char *line = logged("rerouted", 0);
    CHECK(strstr(line, "\"key\":\"" HOST "/m\"") && strstr(line, "\"to\":\"one.example/x/m\""));
    CHECK(strstr(line, "\"cause\":\"connect failed\"") && !strstr(line, "\"from\":"));
    CHECK(strstr(line, "\"detail\":\"fallback one\"") && !logged("failover", 0));
    CHECK(shim_exhausted(&call) == SHIM_ADMITTED); /* it was never refused */
    clean_up();
}

/* All of them fail: each is told of, and nothing of it is a refusal. */
static void body_failover_to_nobody(void)
{
    configure(TARGET(""));
    cannot_connect("m");
    CHECK(begin("m") && next_is("one") && shim_detour_admit(&way) == SHIM_ADMITTED);
    shim_settle(&way.call, &no_connect);
    shim_detour_skip(&way, "its connect failed");
    CHECK(next_is("three"));
    shim_detour_skip(&way, "it is a test");
    CHECK(!shim_detour_next(&way) && shim_exhausted(&call) == SHIM_ADMITTED);
    shim_obeyed(&call);
    shim_detour_end(&way);
    CHECK(totals_of(HOST).refused == 0 && totals_of("one.example").failure == 1 &&
          totals_of(HOST "/m").rerouted == 0);
    const char *line = logged("failover", 0);
    CHECK(strstr(line, "\"key\":\"" HOST "/m\"") && !strstr(line, "\"to\":"));
    CHECK(strstr(line, "\"cause\":\"no fallback\""));
    CHECK(strstr(line, "\"detail\":\"one: its connect failed; two: its model is not in `model`; "
                       "three: it is a test\""));
    clean_up();
}

/* The handle's call before had a model; of this one none is known. */
static void body_failover_without_a_model(void)
{
    struct shim_request request = request_to(URL, true);

    configure("[target openai]\nmatch = " HOST "\nfallback = same\n"
              "[fallback same]\nbase = https://same.example/v1\n");
    cannot_connect("m");
    CHECK(totals_of(HOST "/m").rerouted == 0 && slot_of(HOST "/m"));
    CHECK(shim_open(&call, &request) == SHIM_NEEDS_BODY && shim_admit(&call) == SHIM_ADMITTED);
    shim_settle(&call, &no_connect);
    CHECK(begin(NULL) && taken_by("same"));
    CHECK(totals_of(HOST "/m").rerouted == 0 && totals_of(HOST).rerouted == 1);
    CHECK(strstr(logged("rerouted", 0), "\"key\":\"" HOST "\""));
    CHECK(strstr(logged("rerouted", 0), "\"to\":\"same.example\""));
    clean_up();
}

static void body_failover_off(void)
{
    configure(TARGET("failover = off") "[target m]\nmatch = " HOST "/m\nfailover = connect\n"
                                       "[target n]\nmatch = " HOST "/n\nallow_fallbacks = false\n"
                                       "failover = connect\n");
    cannot_connect("m");
    CHECK(ask("o") == SHIM_ADMITTED && !shim_detour_on_failure(&call));
    CHECK(shim_detour_possible(&call));
    CHECK(ask("n") == SHIM_ADMITTED && !shim_detour_on_failure(&call));
    clean_up();
}

static void body_failover_without_a_chain(void)
{
    memset(&call, 0, sizeof call);
    CHECK(!shim_detour_possible(&call) && !shim_detour_on_failure(&call));
    CHECK(ask("m") == SHIM_ADMITTED && !shim_detour_on_failure(&call));
    shim_settle(&call, &no_connect);
    CHECK(!shim_detour_possible(&call) && !begin("m"));
}

IN_CHILD(503, "")
IN_CHILD(what_is_told_has_ends, "")
IN_CHILD(pass, "")
IN_CHILD(exhausted_of_one_that_let_go, "")
IN_CHILD(a_hard_stop, "")
IN_CHILD(pass_without_a_layer_that_reroutes, "")
IN_CHILD(pass_of_the_host_alone, "")
IN_CHILD(refused_late, "")
IN_CHILD(refused_late_by_the_fallback, "")
IN_CHILD(reroutes_are_told_by_destination, "")
IN_CHILD(no_log_no_trouble, "")
IN_CHILD(failover, "")
IN_CHILD(failover_to_nobody, "")
IN_CHILD(failover_without_a_model, "")
IN_CHILD(failover_off, "")
IN_CHILD(failover_without_a_chain, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_503),
        cmocka_unit_test(test_what_is_told_has_ends),
        cmocka_unit_test(test_pass),
        cmocka_unit_test(test_exhausted_of_one_that_let_go),
        cmocka_unit_test(test_a_hard_stop),
        cmocka_unit_test(test_pass_without_a_layer_that_reroutes),
        cmocka_unit_test(test_pass_of_the_host_alone),
        cmocka_unit_test(test_refused_late),
        cmocka_unit_test(test_refused_late_by_the_fallback),
        cmocka_unit_test(test_reroutes_are_told_by_destination),
        cmocka_unit_test(test_no_log_no_trouble),
        cmocka_unit_test(test_failover),
        cmocka_unit_test(test_failover_to_nobody),
        cmocka_unit_test(test_failover_without_a_model),
        cmocka_unit_test(test_failover_off),
        cmocka_unit_test(test_failover_without_a_chain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
