/* Cool-downs at the door: who is told to wait by a 429 waits, and nobody else; see
 * cooldown_fixture.h. */
#include "cooldown_fixture.h"

static void body_one_waits_and_the_other_flows(void)
{
    configure("");
    limit("a", 17000);
    CHECK(ask_as("a", "m") == SHIM_REFUSED);
    const char *text = answer();
    CHECK(strncmp(text, "HTTP/1.1 429 Too Many Requests\r\n", 32) == 0);
    CHECK(says_to_wait(17));
    CHECK(strstr(text, "\r\nretry-after-ms: 17") && !strstr(text, "x-should-retry"));
    CHECK(strstr(text, "\r\nX-Breaker-State: cooling_down\r\nX-Breaker-Key: " KEY "\r\n"));
    CHECK(strstr(text, "\"type\":\"rate_limit_error\"") && strstr(text, "\"cooling_down\""));
    shim_obeyed(&call);
    CHECK(totals_of(KEY).refused == 1 && totals_of(KEY).neutral == 1);
    CHECK(flows("b") && flows("") && flows(NULL));
    CHECK(ask_as("a", "other") == SHIM_ADMITTED); /* of one model */
    shim_drop(&call);
    advance(16.9);
    CHECK(ask_as("a", "m") == SHIM_REFUSED);
    advance(0.2);
    CHECK(flows("a"));
    clean_up();
}

/* Calls without any credential wait together; where it is not known, nobody does. */
static void body_no_credential_is_one_too(void)
{
    configure("");
    limit("", 17000);
    CHECK(ask_as("", "m") == SHIM_REFUSED && flows("a") && flows(NULL));
    limit(NULL, 17000);
    CHECK(flows("a") && flows(NULL));
    clean_up();
}

/* FIELD-NOTES 7.10 */
static void body_rate_limits_open_nothing(void)
{
    configure("");
    for (int i = 0; i < 20; i++)
        limit("a", 0);
    CHECK(totals_of(KEY).failure == 0 && flows("a") && flows("b"));
    CHECK(!slot_of(KEY) || slot_of(KEY)->opened == 0);
    clean_up();
}

/* FIELD-NOTES 7.11: a quota is no rate; a minute brings it back no sooner. */
static void body_a_spent_quota_is_no_rate(void)
{
    struct call_end spent = {.kind = END_COMPLETE,
                             .phase = PHASE_BODY,
                             .status = 429,
                             .byte_received = true,
                             .quota_spent = true};

    configure("");
    CHECK(ask_as("a", "m") == SHIM_ADMITTED);
    shim_settle(&call, &spent);
    advance(59);
    CHECK(ask_as("a", "m") == SHIM_REFUSED && flows("b"));
    advance(1.1);
    CHECK(flows("a"));
    CHECK(ask_as("a", "m") == SHIM_ADMITTED);
    spent.retry_after_ms = 100; /* says too little */
    shim_settle(&call, &spent);
    advance(59);
    CHECK(ask_as("a", "m") == SHIM_REFUSED);
    advance(1.1);
    CHECK(ask_as("a", "m") == SHIM_ADMITTED);
    spent.retry_after_ms = 90000; /* says more */
    shim_settle(&call, &spent);
    advance(89);
    CHECK(ask_as("a", "m") == SHIM_REFUSED);
    clean_up();
}

static void body_as_long_as_quota_cooldown_says(void)
{
    const struct call_end spent = {.kind = END_COMPLETE,
                                   .phase = PHASE_BODY,
                                   .status = 429,
                                   .byte_received = true,
                                   .quota_spent = true};

    configure(PLAIN "quota_cooldown = 250\n");
    CHECK(ask_as("a", "m") == SHIM_ADMITTED);
    shim_settle(&call, &spent);
    advance(249);
    CHECK(ask_as("a", "m") == SHIM_REFUSED);
    advance(1.1);
    CHECK(flows("a"));
    clean_up();
}

/* FIELD-NOTES 7.12: the first one parks, whatever the threshold. */
static void body_the_first_one_parks(void)
{
    configure(PLAIN "failure_threshold = 100\n");
    limit("a", 5000);
    CHECK(ask_as("a", "m") == SHIM_REFUSED);
    clean_up();
}

/* FIELD-NOTES 7.15 */
static void body_the_later_deadline_stays(void)
{
    static struct shim_call late;

    configure("");
    CHECK(ask_as("a", "m") == SHIM_ADMITTED);
    late = call;
    memset(&call, 0, sizeof call);
    limit("a", 60000);
    call = late;
    end_with(429, 5000);
    memset(&call, 0, sizeof call);
    advance(59);
    CHECK(ask_as("a", "m") == SHIM_REFUSED);
    advance(2);
    CHECK(flows("a"));
    clean_up();
}

static void body_how_long(void)
{
    configure(PLAIN "cooldown_max = 10\n");
    limit("a", 300);
    limit("a", 1999);
    limit("a", 0);
    CHECK(flows("a"));
    limit("a", 2000);
    CHECK(ask_as("a", "m") == SHIM_REFUSED);
    advance(2.1);
    limit("a", 86400000);
    advance(9.9);
    CHECK(ask_as("a", "m") == SHIM_REFUSED);
    advance(0.2);
    CHECK(flows("a"));
    clean_up();
}

static void body_as_rate_limit_says(void)
{
    configure(PLAIN "[target " HOST "/counts]\nrate_limit = count\n[target " HOST
                    "/both]\nrate_limit = cooldown, count\n[target " HOST
                    "/none]\nrate_limit = ignore\n");
    for (int i = 0; i < 5; i++) {
        CHECK(ask_as("a", "counts") == SHIM_ADMITTED);
        end_with(429, 17000);
        CHECK(ask_as("a", "none") == SHIM_ADMITTED);
        end_with(429, 17000);
        CHECK(ask_as("a", "both") == SHIM_ADMITTED);
        end_with(429, 17000);
        CHECK(ask_as("a", "both") == SHIM_REFUSED && strstr(answer(), i < 4 ? " 429 " : " 503 "));
        advance(17.1);
    }
    CHECK(ask_as("b", "counts") == SHIM_REFUSED && strstr(answer(), " 503 "));
    CHECK(ask_as("b", "both") == SHIM_REFUSED && strstr(answer(), " 503 "));
    CHECK(ask_as("a", "none") == SHIM_ADMITTED);
    clean_up();
}

static void body_of_a_host_alone(void)
{
    struct shim_request get = {.method = SPAN_LIT("GET")};

    configure(PLAIN "scope = host\n");
    CHECK(ask_at(URL, NULL) == SHIM_ADMITTED);
    shim_drop(&call);
    CHECK(shim_request_of_url(SPAN_LIT(URL), &get));
    struct shim_request request = request_to(URL, true);
    for (int i = 0; i < 2; i++) {
        CHECK(shim_open(&call, &request) == SHIM_READY);
        shim_credential(&call, SPAN_LIT("a"));
        CHECK(shim_admit(&call) == (i == 0 ? SHIM_ADMITTED : SHIM_REFUSED));
        end_with(429, 17000);
    }
    CHECK(shim_open(&call, &get) == SHIM_READY);
    CHECK(shim_admit(&call) == SHIM_ADMITTED);
    clean_up();
}

static void body_a_model_that_is_known_late(void)
{
    struct shim_request request = request_to(URL, false);

    configure("");
    limit("a", 17000);
    CHECK(shim_open(&call, &request) == SHIM_NEEDS_BODY);
    shim_credential(&call, SPAN_LIT("a"));
    CHECK(shim_admit(&call) == SHIM_ADMITTED && shim_body(&call, body_of("m"), true));
    CHECK(shim_admit_model(&call) == SHIM_REFUSED && strstr(answer(), " 429 "));
    CHECK(!shim_admitted(&call));
    clean_up();
}

/* Each call tells it anew. */
static void body_the_same_request_again(void)
{
    enum shim_need need;
    bool other = false;

    configure("");
    limit("a", 17000);
    CHECK(ask_as("a", "m") == SHIM_REFUSED);
    CHECK(shim_open_again(&call, &need) && need == SHIM_NEEDS_BODY);
    shim_credential(&call, SPAN_LIT("b"));
    CHECK(shim_body(&call, body_of("m"), true) && shim_admit(&call) == SHIM_ADMITTED);
    shim_drop(&call);
    CHECK(shim_open_again(&call, &need));
    CHECK(shim_body(&call, body_of("m"), true) && shim_admit(&call) == SHIM_ADMITTED);
    shim_drop(&call);
    CHECK(shim_open_again(&call, &need));
    CHECK(shim_credential_header(&call, SPAN_LIT("Authorization: Bearer a"), &other) && !other);
    CHECK(shim_body(&call, body_of("m"), true) && shim_admit(&call) == SHIM_REFUSED);
    CHECK(shim_open_again(&call, &need));
    CHECK(!shim_credential_header(&call, SPAN_LIT("Accept: a"), &other) && !other);
    CHECK(!shim_credential_header(&call, SPAN_LIT("X-Auth-Token: b"), NULL));
    CHECK(!shim_credential_header(&call, SPAN_LIT("X-Auth-Token: b"), &other) && other);
    CHECK(!shim_credential_url(&call, SPAN_LIT(URL)));
    CHECK(!shim_credential_url(&call, SPAN_LIT("https://a b/?key=a")));
    CHECK(shim_credential_url(&call, SPAN_LIT(URL "?key=a")));
    CHECK(shim_body(&call, body_of("m"), true) && shim_admit(&call) == SHIM_REFUSED);
    clean_up();
}

/* `breaker reset --all`, told to who is only ever refused. */
static void body_a_replaced_table_is_found(void)
{
    configure("");
    limit("a", 17000);
    advance(2);
    CHECK(table_replace(getenv("BREAKER_TABLE"), true) == TABLE_OK);
    CHECK(flows("a"));
    clean_up();
}

static void body_the_log_tells(void)
{
    configure("");
    limit("secret", 17000);
    CHECK(ask_as("secret", "m") == SHIM_REFUSED);
    shim_obeyed(&call);
    const char *line = logged("cooldown", 0);
    CHECK(line && strstr(line, "\"key\":\"" KEY "\"") && strstr(line, "\"cause\":\"status 429\""));
    CHECK(strstr(line, "a credential for 17.000 s") && !strstr(line, "secret"));
    line = logged("refused", 0);
    CHECK(strstr(line, "\"from\":\"closed\"") && strstr(line, "\"cause\":\"cooling_down\""));
    CHECK(!logged("cooldown", 1));
    clean_up();
}

IN_CHILD(one_waits_and_the_other_flows, "")
IN_CHILD(no_credential_is_one_too, "")
IN_CHILD(rate_limits_open_nothing, "")
IN_CHILD(a_spent_quota_is_no_rate, "")
IN_CHILD(as_long_as_quota_cooldown_says, "")
IN_CHILD(the_first_one_parks, "")
IN_CHILD(the_later_deadline_stays, "")
IN_CHILD(how_long, "")
IN_CHILD(as_rate_limit_says, "")
IN_CHILD(of_a_host_alone, "")
IN_CHILD(a_model_that_is_known_late, "")
IN_CHILD(the_same_request_again, "")
IN_CHILD(a_replaced_table_is_found, "")
IN_CHILD(the_log_tells, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_waits_and_the_other_flows),
        cmocka_unit_test(test_no_credential_is_one_too),
        cmocka_unit_test(test_rate_limits_open_nothing),
        cmocka_unit_test(test_a_spent_quota_is_no_rate),
        cmocka_unit_test(test_as_long_as_quota_cooldown_says),
        cmocka_unit_test(test_the_first_one_parks),
        cmocka_unit_test(test_the_later_deadline_stays),
        cmocka_unit_test(test_how_long),
        cmocka_unit_test(test_as_rate_limit_says),
        cmocka_unit_test(test_of_a_host_alone),
        cmocka_unit_test(test_a_model_that_is_known_late),
        cmocka_unit_test(test_the_same_request_again),
        cmocka_unit_test(test_a_replaced_table_is_found),
        cmocka_unit_test(test_the_log_tells),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
