/* A credential that is told when it matters: whoever works it out is asked then, and not of calls
 * that are healthy; see cooldown_fixture.h. */
#include "cooldown_fixture.h"

static const char *said; /* NULL: it tells nothing */
static unsigned asked;   /* how often, of the call under way */

static void tell(void *data)
{
    asked++;
    if (said)
        shim_credential(data, span_str(said));
}

/* Opens a call of that credential, whose body is not told yet. */
static void open_as(const char *credential)
{
    struct shim_request request = request_to(URL, true);

    shim_credential_later(&call, tell, &call);
    CHECK(shim_open(&call, &request) == SHIM_NEEDS_BODY);
    said = credential;
    asked = 0;
}

static enum shim_verdict ask_later(const char *credential, const char *model)
{
    open_as(credential);
    CHECK(shim_body(&call, body_of(model), true));
    return shim_admit(&call);
}

static bool is_refused(const char *credential)
{
    return ask_later(credential, "m") == SHIM_REFUSED;
}

/* In another process; the call under way here stays as it is. */
static void limit_elsewhere(const char *credential, uint32_t retry_after_ms)
{
    int status = -1;
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) {
        shim_credential_later(&call, NULL, NULL); /* it is told at once */
        limit(credential, retry_after_ms);
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void body_of_healthy_calls_nobody_is_asked(void)
{
    static const unsigned statuses[] = {200, 400, 401, 500, 503, 200};

    configure("");
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        CHECK(ask_later("a", "m") == SHIM_ADMITTED);
        end_with(statuses[i], 0);
        CHECK(asked == 0);
    }
    CHECK(ask_later("a", "m") == SHIM_ADMITTED);
    shim_settle(&call, &no_connect);
    CHECK(asked == 0);
    clean_up();
}

static void body_a_429_asks_once(void)
{
    configure("");
    CHECK(ask_later("a", "m") == SHIM_ADMITTED && asked == 0);
    end_with(429, 17000);
    CHECK(asked == 1);
    CHECK(is_refused("a") && asked == 1 && strstr(answer(), " 429 ") && says_to_wait(17));
    CHECK(!is_refused("b") && asked == 1);
    end_with(429, 30000);
    CHECK(asked == 1 && is_refused("b") && says_to_wait(30) && is_refused("a") && says_to_wait(17));
    CHECK(!is_refused("") && !is_refused(NULL) && asked == 1);
    advance(40);
    CHECK(!is_refused("a") && asked == 0);
    clean_up();
}

static void body_a_429_that_parks_nobody_asks_nobody(void)
{
    configure(PLAIN "rate_limit = count\n");
    CHECK(ask_later("a", "m") == SHIM_ADMITTED);
    end_with(429, 17000);
    CHECK(asked == 0 && !is_refused("a"));
    clean_up();
}

static void body_a_limit_told_in_a_good_answer_asks(void)
{
    configure(PLAIN "cooldown_seconds = 3\n");
    CHECK(ask_later("a", "m") == SHIM_ADMITTED);
    CHECK(shim_head(&call, 200, SPAN_LIT("text/event-stream"), SPAN_NONE, 0) && asked == 0);
    shim_watch(&call, SPAN_LIT("data: {\"error\":{\"code\":\"rate_limit_exceeded\"}}\n\n"));
    CHECK(asked == 0);
    end_with(200, 0);
    CHECK(asked == 1 && is_refused("a") && !is_refused("b"));
    clean_up();
}

/* Between the admission of a call and its answer. */
static void body_parked_meanwhile_by_another_process(void)
{
    configure("");
    CHECK(ask_later("a", "m") == SHIM_ADMITTED);
    limit_elsewhere("a", 17000);
    end_with(200, 0);
    CHECK(asked == 0 && is_refused("a") && says_to_wait(17));
    CHECK(ask_later("b", "m") == SHIM_ADMITTED);
    limit_elsewhere("b", 60000);
    end_with(429, 17000); /* the later end stays */
    CHECK(asked == 1 && is_refused("b") && says_to_wait(60));
    clean_up();
}

static void body_of_a_model_that_is_known_late(void)
{
    configure("");
    limit("a", 17000);
    open_as("a");
    CHECK(shim_admit(&call) == SHIM_ADMITTED && asked == 0);
    CHECK(shim_body(&call, body_of("m"), true) && asked == 0);
    CHECK(shim_admit_model(&call) == SHIM_REFUSED && asked == 1 && strstr(answer(), " 429 "));
    clean_up();
}

/* Where the breaker is one of the host alone. */
static void body_at_the_host(void)
{
    struct shim_request request = request_to(URL, true);

    configure(PLAIN "scope = host\n");
    for (int i = 0; i < 2; i++) {
        shim_credential_later(&call, tell, &call);
        CHECK(shim_open(&call, &request) == SHIM_READY);
        said = "a";
        asked = 0;
        CHECK(shim_admit(&call) == (i == 0 ? SHIM_ADMITTED : SHIM_REFUSED));
        CHECK(asked == (unsigned)i);
        end_with(429, 17000);
        CHECK(asked == 1);
    }
    clean_up();
}

/* All are parked there by a failed connect: it matters of nobody whose it is. */
static void body_what_is_no_llm_call_is_not_asked_for(void)
{
    struct shim_request get = request_to(URL, false);

    get.method = SPAN_LIT("GET");
    configure(PLAIN "cooldown_seconds = 9\ncooldown_on = connect\n");
    end_call(URL, "m", &no_connect);
    shim_credential_later(&call, tell, &call);
    CHECK(shim_open(&call, &get) == SHIM_READY);
    asked = 0;
    shim_credential_now(&call);
    CHECK(shim_admit(&call) == SHIM_REFUSED && asked == 0);
    advance(10);
    CHECK(shim_open(&call, &get) == SHIM_READY && shim_admit(&call) == SHIM_ADMITTED);
    end_with(429, 17000);
    shim_credential_now(&call);
    CHECK(asked == 0);
    clean_up();
}

static void body_what_may_be_gone_later_is_asked_for_now(void)
{
    configure("");
    CHECK(ask_later("a", "m") == SHIM_ADMITTED);
    shim_credential_now(&call);
    CHECK(asked == 1);
    said = "b";
    shim_credential_now(&call);
    end_with(429, 17000);
    CHECK(asked == 1 && is_refused("a") && !is_refused("b"));
    clean_up();
}

static void body_what_is_gone_is_not_asked_for(void)
{
    configure("");
    CHECK(ask_later("a", "m") == SHIM_ADMITTED);
    shim_credential_lost(&call);
    end_with(429, 17000);
    CHECK(asked == 0 && !is_refused("a") && !is_refused(NULL));
    CHECK(ask_later("a", "m") == SHIM_ADMITTED); /* of the next one it is */
    end_with(429, 17000);
    CHECK(asked == 1 && is_refused("a"));
    CHECK(ask_later("b", "m") == SHIM_ADMITTED);
    shim_credential_now(&call);
    shim_credential_lost(&call); /* it was told */
    end_with(429, 17000);
    CHECK(is_refused("b"));
    clean_up();
}

/* At the call's own host it draws on the same quota; elsewhere it is not told at all. */
static void body_a_fallback_may_draw_on_the_same(void)
{
    static const struct call_end limited = {.kind = END_COMPLETE,
                                            .phase = PHASE_BODY,
                                            .status = 429,
                                            .byte_received = true,
                                            .retry_after_ms = 17000};

    configure("[target openai]\nmatch = " HOST "\nfallback = own\n"
              "[fallback own]\nbase = https://" HOST "/v1\nmodel = *:x\n");
    open_model(URL, "m");
    CHECK(is_refused("a") && asked == 0 && begin("m") && next_is("own"));
    CHECK(shim_detour_admit(&way) == SHIM_ADMITTED && asked == 1);
    shim_settle(&way.call, &limited);
    shim_detour_end(&way);
    CHECK(ask_later("b", "x") == SHIM_ADMITTED && ask_later("a", "x") == SHIM_REFUSED &&
          asked == 1);
    clean_up();
}

static void body_elsewhere_it_is_not_told(void)
{
    configure(TARGET(""));
    open_model(URL, "m");
    CHECK(is_refused("a") && begin("m") && taken_by("one") && asked == 0);
    shim_detour_end(&way);
    clean_up();
}

IN_CHILD(of_healthy_calls_nobody_is_asked, "")
IN_CHILD(a_429_asks_once, "")
IN_CHILD(a_429_that_parks_nobody_asks_nobody, "")
IN_CHILD(a_limit_told_in_a_good_answer_asks, "")
IN_CHILD(parked_meanwhile_by_another_process, "")
IN_CHILD(of_a_model_that_is_known_late, "")
IN_CHILD(at_the_host, "")
IN_CHILD(what_is_no_llm_call_is_not_asked_for, "")
IN_CHILD(what_may_be_gone_later_is_asked_for_now, "")
IN_CHILD(what_is_gone_is_not_asked_for, "")
IN_CHILD(a_fallback_may_draw_on_the_same, "")
IN_CHILD(elsewhere_it_is_not_told, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_of_healthy_calls_nobody_is_asked),
        cmocka_unit_test(test_a_429_asks_once),
        cmocka_unit_test(test_a_429_that_parks_nobody_asks_nobody),
        cmocka_unit_test(test_a_limit_told_in_a_good_answer_asks),
        cmocka_unit_test(test_parked_meanwhile_by_another_process),
        cmocka_unit_test(test_of_a_model_that_is_known_late),
        cmocka_unit_test(test_at_the_host),
        cmocka_unit_test(test_what_is_no_llm_call_is_not_asked_for),
        cmocka_unit_test(test_what_may_be_gone_later_is_asked_for_now),
        cmocka_unit_test(test_what_is_gone_is_not_asked_for),
        cmocka_unit_test(test_a_fallback_may_draw_on_the_same),
        cmocka_unit_test(test_elsewhere_it_is_not_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
