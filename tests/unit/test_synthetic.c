/* The answer in place of a provider: one whole HTTP response in the provider's own error shape. */
#include "http/synthetic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

static char response[SYNTHETIC_MAX + 1];
static const char *body; /* behind the head of `response` */

static void render(const struct synthetic *s)
{
    size_t len = synthetic_render(s, response, SYNTHETIC_MAX);

    assert_true(len > 0);
    response[len] = '\0';
    assert_int_equal(strlen(response), len);
    body = strstr(response, "\r\n\r\n");
    assert_non_null(body);
    body += 4;
}

static void assert_header(const char *line)
{
    char whole[3000];

    snprintf(whole, sizeof whole, "\r\n%s\r\n", line);
    const char *at = strstr(response, whole);
    if (!at || at >= body)
        fail_msg("no '%s' in: %s", line, response);
}

static size_t content_length(void)
{
    return strtoul(strstr(response, "\r\nContent-Length: ") + 18, NULL, 10);
}

static const struct synthetic PLAIN = {.api = API_OPENAI,
                                       .key = {"api.openai.com/gpt-4o", 21},
                                       .state = "open",
                                       .code = "circuit_open",
                                       .retry_after_ms = 29120};

static void test_head(void **state)
{
    (void)state;
    render(&PLAIN);
    assert_memory_equal(response, "HTTP/1.1 503 Service Unavailable\r\n", 34);
    assert_header("Content-Type: application/json");
    assert_header("Connection: close");
    assert_header("Retry-After: 30");
    assert_header("x-should-retry: false");
    assert_header("X-Breaker-State: open");
    assert_header("X-Breaker-Key: api.openai.com/gpt-4o");
    assert_int_equal(content_length(), strlen(body));
    assert_null(strstr(response, "x-amzn-errortype"));
}

static void test_retry_after_is_rounded_up_and_never_0(void **state)
{
    static const struct {
        uint32_t ms;
        const char *line;
    } cases[] = {{0, "Retry-After: 1"},
                 {1, "Retry-After: 1"},
                 {1000, "Retry-After: 1"},
                 {1001, "Retry-After: 2"},
                 {UINT32_MAX, "Retry-After: 4294968"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct synthetic s = PLAIN;
        s.retry_after_ms = cases[i].ms;
        render(&s);
        assert_header(cases[i].line);
    }
}

static void test_should_retry_and_state(void **state)
{
    struct synthetic s = PLAIN;

    (void)state;
    s.should_retry = true;
    s.state = "half_open";
    render(&s);
    assert_null(strstr(response, "x-should-retry"));
    assert_header("X-Breaker-State: half_open");
    assert_non_null(strstr(body, "half_open"));
}

/* Nothing happens at any time by itself: the header is for clients, the words promise nothing. */
static void test_held_open_by_hand(void **state)
{
    struct synthetic s = PLAIN;

    (void)state;
    s.state = "forced_open";
    s.by_hand = true;
    render(&s);
    assert_header("X-Breaker-State: forced_open");
    assert_header("Retry-After: 30");
    assert_non_null(strstr(body, "gpt-4o is held open by hand; the call was refused\""));
    assert_null(strstr(body, "Retry in"));
}

static void test_head_only(void **state)
{
    struct synthetic s = PLAIN;

    (void)state;
    render(&PLAIN);
    size_t whole = strlen(body);
    s.head_only = true;
    render(&s);
    assert_string_equal(body, "");
    assert_int_equal(content_length(), whole);
}

#define MESSAGE                                                                                    \
    "libbreaker: the circuit breaker of api.openai.com/gpt-4o is open; the call was refused. "     \
    "Retry in 30 s"

static void test_dialects(void **state)
{
    static const struct {
        enum api api;
        const char *body;
    } cases[] = {
        {API_OPENAI, "{\"error\":{\"message\":\"" MESSAGE
                     "\",\"type\":\"service_unavailable_error\",\"param\":null,\"code\":"
                     "\"circuit_open\"}}"},
        {API_ANTHROPIC, "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":"
                        "\"" MESSAGE "\",\"code\":\"circuit_open\"},\"request_id\":null}"},
        {API_GEMINI, "{\"error\":{\"code\":503,\"message\":\"" MESSAGE
                     "\",\"status\":\"UNAVAILABLE\",\"details\":[{\"reason\":\"circuit_open\"}]}}"},
        {API_BEDROCK, "{\"message\":\"" MESSAGE "\",\"code\":\"circuit_open\"}"},
        {API_OLLAMA, "{\"error\":\"" MESSAGE "\",\"code\":\"circuit_open\"}"},
        {API_COHERE, "{\"message\":\"" MESSAGE "\",\"code\":\"circuit_open\"}"},
        {API_MISTRAL, "{\"object\":\"error\",\"message\":\"" MESSAGE
                      "\",\"type\":\"service_unavailable_error\",\"param\":null,\"code\":"
                      "\"circuit_open\"}"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct synthetic s = PLAIN;
        s.api = cases[i].api;
        render(&s);
        assert_string_equal(body, cases[i].body);
        assert_int_equal(content_length(), strlen(body));
    }
}

/* The markers in the head stay; a rate limit is another thing, whatever an open breaker is called.
 */
static void test_a_code_of_the_users(void **state)
{
    struct synthetic s = PLAIN;

    (void)state;
    s.code = "provider-circuit-open";
    for (enum api api = API_OPENAI; api <= API_MISTRAL; api++) {
        s.api = api;
        s.rate_limited = false;
        s.state = "open";
        render(&s);
        assert_non_null(strstr(body, "\"provider-circuit-open\""));
        assert_null(strstr(response, "circuit_open"));
        assert_header("X-Breaker-State: open");
        assert_int_equal(content_length(), strlen(body));
        s.rate_limited = true;
        s.state = "cooling_down";
        render(&s);
        assert_non_null(strstr(body, "\"cooling_down\""));
        assert_null(strstr(body, "provider-circuit-open"));
    }
}

static void test_bedrock_names_its_exception(void **state)
{
    struct synthetic s = PLAIN;

    (void)state;
    s.api = API_BEDROCK;
    render(&s);
    assert_header("x-amzn-errortype: ServiceUnavailableException");
}

/* Cohere's SDK knows no x-should-retry: it asks twice more, after what a retry-after-ms says or
 * else after the Retry-After, a minute at most. */
static void test_cohere_asks_again_at_once(void **state)
{
    struct synthetic s = PLAIN;

    (void)state;
    render(&s);
    assert_null(strstr(response, "retry-after-ms"));
    s.api = API_COHERE;
    render(&s);
    assert_header("retry-after-ms: 1");
    assert_header("Retry-After: 30");
    s.should_retry = true;
    render(&s);
    assert_null(strstr(response, "retry-after-ms"));
}

#define WAIT                                                                                       \
    "libbreaker: api.openai.com/gpt-4o is cooling down for this credential; the call was "         \
    "refused. Retry in 30 s"

/* SDKs may retry: nothing says that they should not. */
static void test_a_rate_limit(void **state)
{
    static const struct {
        enum api api;
        const char *body;
    } cases[] = {
        {API_OPENAI, "{\"error\":{\"message\":\"" WAIT "\",\"type\":\"rate_limit_error\","
                     "\"param\":null,\"code\":\"cooling_down\"}}"},
        {API_ANTHROPIC,
         "{\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"" WAIT
         "\",\"code\":\"cooling_down\"},\"request_id\":null}"},
        {API_GEMINI,
         "{\"error\":{\"code\":429,\"message\":\"" WAIT
         "\",\"status\":\"RESOURCE_EXHAUSTED\",\"details\":[{\"reason\":\"cooling_down\"}]}}"},
        {API_BEDROCK, "{\"message\":\"" WAIT "\",\"code\":\"cooling_down\"}"},
        {API_OLLAMA, "{\"error\":\"" WAIT "\",\"code\":\"cooling_down\"}"},
        {API_COHERE, "{\"message\":\"" WAIT "\",\"code\":\"cooling_down\"}"},
        {API_MISTRAL, "{\"object\":\"error\",\"message\":\"" WAIT
                      "\",\"type\":\"rate_limit_error\",\"param\":null,"
                      "\"code\":\"cooling_down\"}"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct synthetic s = PLAIN;
        s.api = cases[i].api;
        s.state = "cooling_down";
        s.rate_limited = true;
        render(&s);
        assert_memory_equal(response, "HTTP/1.1 429 Too Many Requests\r\n", 32);
        assert_header("Retry-After: 30");
        assert_header("retry-after-ms: 29120");
        assert_header("X-Breaker-State: cooling_down");
        assert_null(strstr(response, "x-should-retry"));
        if (s.api == API_BEDROCK)
            assert_header("x-amzn-errortype: ThrottlingException");
        assert_string_equal(body, cases[i].body);
        assert_int_equal(content_length(), strlen(body));
    }
}

/* A model name comes from the request: it can never end a header or a JSON string. */
static void test_hostile_key(void **state)
{
    struct synthetic s = PLAIN;

    (void)state;
    s.key = SPAN_LIT("h/a\r\nSet-Cookie: x\"\\\x01%\xc3\xa9");
    render(&s);
    assert_header("X-Breaker-Key: h/a%0D%0ASet-Cookie:%20x\"\\%01%25%C3%A9");
    assert_null(strstr(response, "\nSet-Cookie"));
    assert_non_null(strstr(body, "h/a\\u000d\\u000aSet-Cookie: x\\\"\\\\\\u0001%\xc3\xa9 is open"));
    assert_int_equal(content_length(), strlen(body));
}

static void test_longest_key_and_small_buffers(void **state)
{
    static char key[4096], code[SYNTHETIC_CODE_MAX + 1], small[SYNTHETIC_MAX];
    struct synthetic s = PLAIN;

    (void)state;
    memset(code, 'c', SYNTHETIC_CODE_MAX);
    s.code = code;
    for (enum api api = API_OPENAI; api <= API_MISTRAL; api++)
        for (int fill = 0; fill < 3; fill++) {
            memset(key, "m\x01\xff"[fill], sizeof key);
            s.key = span_of(key, sizeof key);
            s.api = api;
            render(&s);
            assert_int_equal(content_length(), strlen(body));
            assert_int_equal(body[strlen(body) - 1], '}');
        }
    for (size_t size = 0; size < SYNTHETIC_MAX; size++) {
        memset(small, 'x', sizeof small);
        assert_int_equal(synthetic_render(&PLAIN, small, size), 0);
        assert_int_equal(small[0], 'x');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_head),
        cmocka_unit_test(test_retry_after_is_rounded_up_and_never_0),
        cmocka_unit_test(test_should_retry_and_state),
        cmocka_unit_test(test_held_open_by_hand),
        cmocka_unit_test(test_head_only),
        cmocka_unit_test(test_dialects),
        cmocka_unit_test(test_a_code_of_the_users),
        cmocka_unit_test(test_bedrock_names_its_exception),
        cmocka_unit_test(test_cohere_asks_again_at_once),
        cmocka_unit_test(test_a_rate_limit),
        cmocka_unit_test(test_hostile_key),
        cmocka_unit_test(test_longest_key_and_small_buffers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
