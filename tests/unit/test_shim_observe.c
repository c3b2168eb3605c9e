/* mode = observe: the same machine, and every call passes; see detour_fixture.h. */
#include "detour_fixture.h"

#define OBSERVED TARGET("mode = observe\nfallback_address = gpu2:8000")
#define KEY      HOST "/m"

static void body_what_it_would_refuse_passes_uncounted(void)
{
    static struct shim_call late;

    configure(OBSERVED);
    open_model(URL, "m");
    CHECK(phase_of(KEY) == BREAKER_OPEN && totals_of(KEY).refused == 0);
    CHECK(slot_of(KEY)->opened == 1);
    uint64_t word = slot_word(slot_of(KEY));
    for (unsigned i = 1; i <= 3; i++) {
        CHECK(chat(&late, "m") == SHIM_ADMITTED && !shim_is_probe(&late));
        CHECK(totals_of(KEY).refused == i);
        end_status(&late, i % 2 ? 200 : 500);
        CHECK(slot_word(slot_of(KEY)) == word);
    }
    CHECK(totals_of(KEY).success == 2 && totals_of(KEY).failure == 5 + 1);
    CHECK(totals_of(HOST).refused == 0);
    clean_up();
}

static void body_one_of_many_is_the_probe(void)
{
    static struct shim_call probe, other;

    configure(OBSERVED);
    open_model(URL, "m");
    advance(31);
    CHECK(chat(&probe, "m") == SHIM_ADMITTED && shim_is_probe(&probe));
    CHECK(chat(&other, "m") == SHIM_ADMITTED && !shim_is_probe(&other));
    CHECK(totals_of(KEY).refused == 1);
    end_status(&other, 500); /* says nothing */
    CHECK(phase_of(KEY) == BREAKER_HALF_OPEN);
    end_status(&probe, 200);
    CHECK(phase_of(KEY) == BREAKER_CLOSED);
    CHECK(call_status("m", 200) == SHIM_ADMITTED && totals_of(KEY).refused == 1);
    clean_up();
}

static void body_nothing_goes_elsewhere(void)
{
    struct span name;

    configure(OBSERVED);
    open_model(URL, "m");
    open_host(URL);
    CHECK(ask("m") == SHIM_ADMITTED);
    CHECK(!shim_detour_possible(&call) && !shim_detour_on_failure(&call) && !begin("m"));
    CHECK(totals_of(KEY).rerouted == 0 && totals_of(HOST).rerouted == 0);
    CHECK(totals_of(KEY).refused == 1 && totals_of(HOST).refused == 1);
    shim_drop(&call);
    CHECK(shim_fallbacks_wanted(SPAN_LIT(HOST), 443, &name, 1) == 0);
    clean_up();
}

static void body_whatever_else_is_set(void)
{
    configure(TARGET("mode = observe\nallow_fallbacks = false"));
    open_model(URL, "m");
    open_host(URL);
    force_open(HOST);
    CHECK(ask("m") == SHIM_ADMITTED);
    clean_up();
}

/* H obeys and M is observed, or the other way round: each by its own. */
static void body_each_breaker_by_its_own_mode(void)
{
    configure("[target openai]\nmatch = " HOST "/watched\nmode = observe\n"
              "[target two]\nmatch = two.example\nmode = observe\n"
              "[target three]\nmatch = two.example/held\nmode = enforce\n");
    open_model(URL, "watched");
    CHECK(call_status("watched", 200) == SHIM_ADMITTED);
    open_model(URL, "m");
    CHECK(call_status("m", 200) == SHIM_REFUSED);
    open_model("https://two.example/v1/chat/completions", "held");
    CHECK(ask_at("https://two.example/v1/chat/completions", "held") == SHIM_REFUSED);
    open_host("https://two.example/v1/chat/completions");
    CHECK(ask_at("https://two.example/v1/chat/completions", "held") == SHIM_REFUSED);
    CHECK(ask_at("https://two.example/v1/chat/completions", "other") == SHIM_ADMITTED);
    shim_drop(&call);
    open_host(URL);
    CHECK(call_status("watched", 200) == SHIM_REFUSED);
    CHECK(totals_of(HOST "/watched").refused == 1); /* the last one was H's */
    clean_up();
}

/* A fallback that is only observed takes what goes there. */
static void body_an_observed_fallback_turns_nobody_away(void)
{
    configure(TARGET("") "[target one.example]\nmode = observe\n");
    open_model("https://one.example/v1/chat/completions", "x/m");
    open_model(URL, "m");
    CHECK(ask("m") == SHIM_REFUSED && begin("m") && taken_by("one"));
    CHECK(totals_of("one.example/x/m").refused == 1 && totals_of(KEY).rerouted == 1);
    shim_settle(&way.call, &good_end);
    shim_detour_end(&way);
    CHECK(phase_of("one.example/x/m") == BREAKER_OPEN);
    clean_up();
}

/* Decided late, as on sockets. */
static void body_a_model_that_is_known_late(void)
{
    configure(OBSERVED);
    open_model(URL, "m");
    CHECK(open_path(&call, "/v1/chat/completions") == SHIM_NEEDS_BODY);
    CHECK(shim_admit(&call) == SHIM_ADMITTED && shim_body(&call, body_of("m"), true));
    CHECK(shim_admit_model(&call) == SHIM_ADMITTED && shim_admitted(&call));
    CHECK(totals_of(KEY).refused == 1);
    end_status(&call, 200);
    CHECK(totals_of(KEY).success == 1 && phase_of(KEY) == BREAKER_OPEN);
    clean_up();
}

static void body_the_log_tells_what_would_have_been(void)
{
    configure(OBSERVED);
    open_model(URL, "m");
    for (int i = 0; i < 3; i++)
        CHECK(call_status("m", 200) == SHIM_ADMITTED);
    CHECK(!logged("refused", 0) && !logged("observed", 1));
    const char *line = logged("observed", 0);
    CHECK(line && strstr(line, "\"key\":\"" KEY "\",\"from\":\"open\"") &&
          strstr(line, "\"cause\":\"open\"") && strstr(line, "\"refused_total\":1,"));
    advance(11);
    CHECK(call_status("m", 200) == SHIM_ADMITTED);
    CHECK(strstr(logged("observed", 1), "\"refused_total\":4,"));
    CHECK(logged("transition", 1) && !logged("transition", 2));
    clean_up();
}

IN_CHILD(what_it_would_refuse_passes_uncounted, "")
IN_CHILD(one_of_many_is_the_probe, "")
IN_CHILD(nothing_goes_elsewhere, "")
IN_CHILD(whatever_else_is_set, "")
IN_CHILD(each_breaker_by_its_own_mode, "")
IN_CHILD(an_observed_fallback_turns_nobody_away, "")
IN_CHILD(a_model_that_is_known_late, "")
IN_CHILD(the_log_tells_what_would_have_been, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_it_would_refuse_passes_uncounted),
        cmocka_unit_test(test_one_of_many_is_the_probe),
        cmocka_unit_test(test_nothing_goes_elsewhere),
        cmocka_unit_test(test_whatever_else_is_set),
        cmocka_unit_test(test_each_breaker_by_its_own_mode),
        cmocka_unit_test(test_an_observed_fallback_turns_nobody_away),
        cmocka_unit_test(test_a_model_that_is_known_late),
        cmocka_unit_test(test_the_log_tells_what_would_have_been),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
