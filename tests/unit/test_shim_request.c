/* Which requests the door covers, and as what it takes them, once or again; see shim_fixture.h. */
#include "shim_fixture.h"

static void body_no_model_is_the_dash(void)
{
    static struct shim_call call;
    char text[SHIM_RESPONSE_MAX + 1];

    for (int i = 0; i < 5; i++) {
        CHECK(open_path(&call, "/v1/chat/completions") == SHIM_NEEDS_BODY);
        CHECK(shim_body(&call, SPAN_LIT("not json"), true));
        CHECK(shim_admit(&call) == SHIM_ADMITTED);
        end_status(&call, 500);
    }
    CHECK(open_path(&call, "/v1/chat/completions") == SHIM_NEEDS_BODY);
    CHECK(shim_body(&call, SPAN_NONE, true));
    CHECK(shim_admit(&call) == SHIM_REFUSED);
    text[shim_response(&call, text, SHIM_RESPONSE_MAX, false)] = '\0';
    CHECK(strcasestr(text, "X-Breaker-Key: api.openai.com/-\r\n"));
}

static void body_other_traffic_is_uncovered(void)
{
    static struct shim_call call;
    struct shim_request request = {
        .method = SPAN_LIT("POST"),
        .scheme = SPAN_LIT("https"),
        .host = SPAN_LIT("example.org"),
        .port = 443,
        .path = SPAN_LIT("/api/orders"),
    };

    CHECK(shim_open(&call, &request) == SHIM_UNCOVERED);
    CHECK(shim_admit(&call) == SHIM_ADMITTED);
    end_status(&call, 500);
    CHECK(access(getenv("BREAKER_TABLE"), F_OK) != 0); /* no call was covered: no table was made */
    request.path = SPAN_LIT("/v1/chat/completions");
    CHECK(shim_open(&call, &request) == SHIM_NEEDS_BODY);
    request.method = SPAN_LIT("GET");
    CHECK(shim_open(&call, &request) == SHIM_UNCOVERED);
    request.scheme = SPAN_LIT("ftp");
    CHECK(shim_open(&call, &request) == SHIM_UNCOVERED);
}

/* Whoever chose the URL chose the lengths of its parts: no sum of them may leave what we keep them
 * in. */
static void body_every_length_of_each_part(void)
{
    enum { LONGEST = 600 };
    static struct shim_call call;
    static char text[3][LONGEST + 4000];

    memset(text, 'a', sizeof text);
    text[2][0] = '/';
    for (size_t len = 1; len < LONGEST; len++)
        for (unsigned which = 0; which < 3; which++)
            for (unsigned again = 0; again < 2; again++) {
                struct shim_request request = {
                    .method = span_of(text[0], which == 0 ? len : 4),
                    .scheme = SPAN_LIT("http"),
                    .host = span_of(text[1], which == 1 ? len : 9),
                    .port = 80,
                    .path = span_of(text[2], which == 2 ? len : 4000),
                };
                CHECK(shim_open(&call, &request) == SHIM_UNCOVERED);
                CHECK(shim_admit(&call) == SHIM_ADMITTED);
            }
}

static void body_the_same_request_is_opened_again(void)
{
    static struct shim_call call;
    const struct shim_request other = {.method = SPAN_LIT("POST"),
                                       .scheme = SPAN_LIT("http"),
                                       .host = SPAN_LIT("example.org"),
                                       .port = 80,
                                       .path = SPAN_LIT("/")};
    enum shim_need need = SHIM_READY;

    CHECK(!shim_open_again(&call, &need));
    CHECK(open_path(&call, "/v1/chat/completions") == SHIM_NEEDS_BODY);
    CHECK(shim_open_again(&call, &need) && need == SHIM_NEEDS_BODY);
    CHECK(shim_body(&call, SPAN_LIT("{\"model\":\"m\"}"), true));
    CHECK(shim_admit(&call) == SHIM_ADMITTED);
    end_status(&call, 200);
    CHECK(shim_open(&call, &other) == SHIM_UNCOVERED);
    CHECK(shim_open_again(&call, &need) && need == SHIM_UNCOVERED);
    CHECK(open_path(&call, "/openai/deployments/d1/chat/completions") != SHIM_UNCOVERED);
    CHECK(shim_open_again(&call, &need) && need != SHIM_UNCOVERED);
}

/* Each request is judged as what it is, whatever the last one of the same call was. */
static void body_each_request_is_judged(void)
{
    static struct shim_call call;
    static char path[512] = "/openai/deployments/d1/chat";
    const struct shim_request first = {.method = SPAN_LIT("POST"),
                                       .scheme = SPAN_LIT("https"),
                                       .host = SPAN_LIT("llm.test"),
                                       .port = 8000,
                                       .path = span_str(path)};

    for (int i = 0; i < 2; i++) {
        struct shim_request other = first;
        CHECK(shim_open(&call, &first) == SHIM_READY);
        other.method = SPAN_LIT("GET");
        CHECK(shim_open(&call, &other) == SHIM_UNCOVERED);
        CHECK(shim_open(&call, &first) == SHIM_READY);
        other = first;
        other.scheme = SPAN_LIT("ftp");
        CHECK(shim_open(&call, &other) == SHIM_UNCOVERED);
        CHECK(shim_open(&call, &first) == SHIM_READY);
        other = first;
        other.path = SPAN_LIT("/v1/chat/completions");
        CHECK(shim_open(&call, &other) == SHIM_NEEDS_BODY);
        CHECK(shim_open(&call, &other) == SHIM_NEEDS_BODY);
    }
    /* The text of the last one may be gone. */
    for (int i = 0; i < 5; i++) {
        CHECK(shim_open(&call, &first) == SHIM_READY);
        memset(path, 'x', strlen(path));
        CHECK(shim_admit(&call) == SHIM_ADMITTED);
        end_status(&call, 500);
        memcpy(path, "/openai/deployments/d1/chat", strlen(path));
    }
    CHECK(shim_open(&call, &first) == SHIM_READY && shim_admit(&call) == SHIM_REFUSED);
    struct shim_request elsewhere = first;
    elsewhere.port = 8001;
    CHECK(shim_open(&call, &elsewhere) == SHIM_READY && shim_admit(&call) == SHIM_ADMITTED);
    path[sizeof "/openai/deployments/d" - 1] = '2';
    CHECK(shim_open(&call, &first) == SHIM_READY && shim_admit(&call) == SHIM_ADMITTED);
    /* Too long to be remembered. */
    memset(path, 'x', sizeof path - 1);
    memcpy(path, "/openai/deployments/d1/", sizeof "/openai/deployments/d1/" - 1);
    struct shim_request longer = first;
    longer.path = span_of(path, sizeof path - 1);
    for (int i = 0; i < 2; i++)
        CHECK(shim_open(&call, &longer) == SHIM_READY && shim_admit(&call) == SHIM_REFUSED);
    path[sizeof "/openai/deployments/d" - 1] = '3';
    CHECK(shim_open(&call, &longer) == SHIM_READY && shim_admit(&call) == SHIM_ADMITTED);
}

IN_CHILD(no_model_is_the_dash, "")
IN_CHILD(other_traffic_is_uncovered, "")
IN_CHILD(every_length_of_each_part, "")
IN_CHILD(the_same_request_is_opened_again, "")
IN_CHILD(each_request_is_judged, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_model_is_the_dash),
        cmocka_unit_test(test_other_traffic_is_uncovered),
        cmocka_unit_test(test_every_length_of_each_part),
        cmocka_unit_test(test_the_same_request_is_opened_again),
        cmocka_unit_test(test_each_request_is_judged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
