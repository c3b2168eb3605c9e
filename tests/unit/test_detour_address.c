/* Detours by an address alone, which the connect goes to instead; see detour_fixture.h. */
#include "detour_fixture.h"

static void body_the_address_comes_first(void)
{
    configure(TARGET("fallback_address = gpu2.internal:8443"));
    open_host(URL);
    CHECK(ask("m") == SHIM_REFUSED && begin("m"));
    CHECK(next_is("fallback_address") && !way.url && !way.foreign && !way.loopback);
    CHECK(strcmp(way.address, "gpu2.internal:8443") == 0 && !way.model.ptr);
    CHECK(shim_detour_admit(&way) == SHIM_ADMITTED);
    shim_detour_taken(&way);
    CHECK(strstr(logged("rerouted", 0), "\"to\":\"gpu2.internal:8443/m\"") &&
          strstr(logged("rerouted", 0), "\"detail\":\"fallback_address\""));
    shim_settle(&way.call, &no_connect);
    CHECK(totals_of("gpu2.internal:8443").failure == 1);
    CHECK(taken_by("one")); /* behind it */
    shim_settle(&way.call, &good_end);
    CHECK(next_is("three") && !shim_detour_next(&way));
    clean_up();
}

static void body_an_address_alone(void)
{
    configure("[target a]\nmatch = " HOST "\nfallback_address = gpu2:8000\n");
    open_model(URL, "m");
    CHECK(ask("m") == SHIM_REFUSED && begin("m") && taken_by("fallback_address"));
    CHECK(!shim_detour_next(&way));
    clean_up();
}

/* Its key tells the model; the body need not be shown for the fallback's M. */
static void body_no_body_is_shown(void)
{
    configure(TARGET(""));
    open_model(URL, "m");
    CHECK(ask("m") == SHIM_REFUSED && begin(NULL) && taken_by("one"));
    CHECK(!shim_model_pending(&way.call));
    shim_settle(&way.call, &bad_end);
    CHECK(totals_of("one.example/x/m").failure == 1);
    clean_up();
}

static void body_an_address_that_is_the_target_itself(void)
{
    configure(TARGET("fallback_address = " HOST ":443"));
    CHECK(ask("m") == SHIM_ADMITTED);
    shim_settle(&call, &no_connect);
    CHECK(begin("m") && taken_by("one"));
    CHECK(strstr(logged("rerouted", 0), "\"detail\":\"fallback one\""));
    clean_up();
}

/* The port that the layer connects to is the call's. */
static void body_another_port(void)
{
    struct shim_request request = request_to(URL, true);

    configure(TARGET("") "[target p]\nmatch = api.*:8443\nfallback = self\n"
                         "[fallback self]\nbase = https://" HOST ":8443/v2\n");
    request.port = 8443;
    for (int i = 0; i < 6; i++) {
        CHECK(shim_open(&call, &request) == SHIM_NEEDS_BODY);
        CHECK(shim_body(&call, body_of("m"), true));
        CHECK(shim_admit(&call) == (i < 5 ? SHIM_ADMITTED : SHIM_REFUSED));
        shim_settle(&call, &bad_end);
    }
    memset(&way, 0, sizeof way);
    CHECK(shim_detour_begin(&way, &call, SPAN_LIT("POST"), SPAN_LIT(URL), 8443));
    CHECK(!shim_detour_next(&way));
    shim_obeyed(&call);
    CHECK(strstr(logged("refused", 0), "\"detail\":\"self: it is where the call was going\""));
    clean_up();
}

IN_CHILD(the_address_comes_first, "")
IN_CHILD(an_address_alone, "")
IN_CHILD(no_body_is_shown, "")
IN_CHILD(an_address_that_is_the_target_itself, "")
IN_CHILD(another_port, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_address_comes_first),
        cmocka_unit_test(test_an_address_alone),
        cmocka_unit_test(test_no_body_is_shown),
        cmocka_unit_test(test_an_address_that_is_the_target_itself),
        cmocka_unit_test(test_another_port),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
