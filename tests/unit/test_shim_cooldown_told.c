/* A rate limit that is told inside a good answer is one: as a 429 that names no time; see
 * cooldown_fixture.h. */
#include "cooldown_fixture.h"

#define EVENTS   "text/event-stream"
#define DELTA    "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"
#define TOO_MANY DELTA "data: {\"error\":{\"code\":\"rate_limit_exceeded\"}}\n\n"
#define SPENT    DELTA "data: {\"error\":{\"code\":\"insufficient_quota\"}}\n\n"
#define TOO_LONG DELTA "data: {\"error\":{\"code\":\"context_length_exceeded\"}}\n\n"
#define BRIEFLY  PLAIN "cooldown_seconds = 3\n"

/* A call of that credential gets this body under a 200. */
static void told(const char *credential, const char *type, const char *body)
{
    CHECK(ask_as(credential, "m") == SHIM_ADMITTED);
    CHECK(shim_head(&call, 200, span_str(type), SPAN_NONE, 0));
    shim_watch(&call, span_str(body));
    end_with(200, 0);
}

static void body_it_parks_its_credential_briefly(void)
{
    configure(BRIEFLY);
    told("a", EVENTS, TOO_MANY);
    CHECK(ask_as("a", "m") == SHIM_REFUSED && strstr(answer(), " 429 ") && says_to_wait(3));
    CHECK(flows("b") && flows("") && flows(NULL) && totals_of(KEY).failure == 0);
    const char *line = logged("cooldown", 0);
    CHECK(line && strstr(line, "\"cause\":\"stream\""));
    CHECK(strstr(line, "a credential for 3.000 s"));
    advance(3.1);
    CHECK(flows("a"));
    clean_up();
}

/* No time is told. */
static void body_without_a_time_of_ours_there_is_none(void)
{
    configure("");
    told("a", EVENTS, TOO_MANY);
    CHECK(flows("a"));
    clean_up();
}

static void body_not_where_429_is_none_of_them(void)
{
    configure(BRIEFLY "cooldown_on = 500\n");
    told("a", EVENTS, TOO_MANY);
    CHECK(flows("a"));
    clean_up();
}

static void body_a_document_tells_too(void)
{
    configure(BRIEFLY);
    told("a", "application/json", "{\"error\":{\"message\":\"m\",\"code\":429}}");
    CHECK(ask_as("a", "m") == SHIM_REFUSED && flows("b"));
    clean_up();
}

/* Whatever cooldown_seconds says. */
static void body_a_spent_quota(void)
{
    configure("");
    told("a", EVENTS, SPENT);
    advance(59);
    CHECK(ask_as("a", "m") == SHIM_REFUSED && flows("b"));
    advance(1.1);
    CHECK(flows("a"));
    clean_up();
}

static void body_as_rate_limit_says(void)
{
    configure(BRIEFLY "rate_limit = count\n");
    for (int i = 0; i < 5; i++)
        told("a", EVENTS, TOO_MANY);
    CHECK(ask_as("b", "m") == SHIM_REFUSED && strstr(answer(), " 503 "));
    CHECK(totals_of(KEY).failure == 5);
    CHECK(atomic_load(&slot_of(KEY)->last_failure) == (uint32_t)CAUSE_STREAM << 16);
    clean_up();
}

static void body_both(void)
{
    configure(BRIEFLY "rate_limit = cooldown, count\n");
    told("a", EVENTS, TOO_MANY);
    CHECK(totals_of(KEY).failure == 1 && ask_as("a", "m") == SHIM_REFUSED && flows("b"));
    clean_up();
}

static void body_ignored(void)
{
    configure(BRIEFLY "rate_limit = ignore\n");
    told("a", EVENTS, TOO_MANY);
    told("a", EVENTS, SPENT);
    CHECK(flows("a") && totals_of(KEY).failure == 0);
    clean_up();
}

/* The first error of an answer stays, and those of others park nobody. */
static void body_only_a_limit(void)
{
    configure(BRIEFLY);
    told("a", EVENTS, TOO_LONG);
    told("a", EVENTS, DELTA "data: [DONE]\n\n" TOO_MANY);
    told("a", EVENTS, DELTA "event: error\ndata: {\"error\":{\"type\":\"overloaded_error\"}}\n\n");
    CHECK(flows("a") && totals_of(KEY).failure == 1);
    clean_up();
}

/* What a followed redirect's other host says is not of this one. */
static void body_not_of_another_host(void)
{
    const struct call_end away = {.kind = END_COMPLETE,
                                  .phase = PHASE_BODY,
                                  .status = 200,
                                  .byte_received = true,
                                  .redirected_away = true};

    configure(BRIEFLY);
    CHECK(ask_as("a", "m") == SHIM_ADMITTED);
    CHECK(shim_head(&call, 200, SPAN_LIT(EVENTS), SPAN_NONE, 0));
    shim_watch(&call, SPAN_LIT(SPENT));
    shim_settle(&call, &away);
    CHECK(flows("a"));
    clean_up();
}

IN_CHILD(it_parks_its_credential_briefly, "")
IN_CHILD(without_a_time_of_ours_there_is_none, "")
IN_CHILD(not_where_429_is_none_of_them, "")
IN_CHILD(a_document_tells_too, "")
IN_CHILD(a_spent_quota, "")
IN_CHILD(as_rate_limit_says, "")
IN_CHILD(both, "")
IN_CHILD(ignored, "")
IN_CHILD(only_a_limit, "")
IN_CHILD(not_of_another_host, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_parks_its_credential_briefly),
        cmocka_unit_test(test_without_a_time_of_ours_there_is_none),
        cmocka_unit_test(test_not_where_429_is_none_of_them),
        cmocka_unit_test(test_a_document_tells_too),
        cmocka_unit_test(test_a_spent_quota),
        cmocka_unit_test(test_as_rate_limit_says),
        cmocka_unit_test(test_both),
        cmocka_unit_test(test_ignored),
        cmocka_unit_test(test_only_a_limit),
        cmocka_unit_test(test_not_of_another_host),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
