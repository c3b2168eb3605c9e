/* A spent quota and a mere rate limit, by the bodies of providers' 429s, however they are cut. */
#include "http/quota.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

static void feed_copy(struct quota *quota, struct span bytes)
{
    char *copy = malloc(bytes.len + !bytes.len);

    if (bytes.len > 0)
        memcpy(copy, bytes.ptr, bytes.len);
    quota_feed(quota, span_of(copy, bytes.len));
    free(copy);
}

static void expect(struct quota *quota, struct span body, enum quota_state expected, size_t split)
{
    if (quota_end(quota) != expected)
        fail_msg("split at %zu: not %d of: %.*s", split, expected, (int)body.len, body.ptr);
}

static void is(enum api api, const char *text, enum quota_state expected)
{
    struct span body = span_str(text);
    struct quota quota;

    for (size_t split = 0; split <= body.len; split++) {
        memset(&quota, 0xa5, sizeof quota);
        quota_init(&quota, api, SPAN_NONE);
        feed_copy(&quota, span_of(body.ptr, split));
        struct quota moved = quota; /* plain bytes */
        feed_copy(&moved, span_skip(body, split));
        expect(&moved, body, expected, split);
    }
    quota_init(&quota, api, SPAN_LIT("identity"));
    for (size_t i = 0; i < body.len; i++)
        feed_copy(&quota, span_of(body.ptr + i, 1));
    expect(&quota, body, expected, body.len + 1);
}

#define OPENAI_QUOTA                                                                               \
    "{\n    \"error\": {\n        \"message\": \"You exceeded your current quota, please check "   \
    "your plan and billing details.\",\n        \"type\": \"insufficient_quota\",\n        "       \
    "\"param\": null,\n        \"code\": \"insufficient_quota\"\n    }\n}\n"
#define GEMINI(quota)                                                                              \
    "{\"error\": {\"code\": 429,\"message\": \"You exceeded your current quota, please check "     \
    "your plan and billing details.\",\"status\": \"RESOURCE_EXHAUSTED\",\"details\": [{\"@type\"" \
    ": \"type.googleapis.com/google.rpc.QuotaFailure\",\"violations\": [" quota "]},{\"@type\": "  \
    "\"type.googleapis.com/google.rpc.RetryInfo\",\"retryDelay\": \"34s\"}]}}"
#define PER_MINUTE                                                                                 \
    "{\"quotaMetric\": \"generativelanguage.googleapis.com/generate_content_free_tier_requests\"," \
    "\"quotaId\": \"GenerateRequestsPerMinutePerProjectPerModel-FreeTier\"}"
#define PER_DAY                                                                                    \
    "{\"quotaMetric\": \"generativelanguage.googleapis.com/generate_content_free_tier_requests\"," \
    "\"quotaId\": \"GenerateRequestsPerDayPerProjectPerModel-FreeTier\"}"

static const struct {
    enum api api;
    enum quota_state expected;
    const char *body;
} bodies[] = {
    {API_OPENAI, QUOTA_SPENT, OPENAI_QUOTA},
    {API_OPENAI, QUOTA_SPENT,
     "{\"error\":{\"message\":\"m\",\"type\":\"insufficient_quota\",\"code\":"
     "\"billing_hard_limit_reached\"}}"},
    {API_OPENAI, QUOTA_SPENT, "{\"error\":{\"code\":\"billing_hard_limit_reached\"}}"},
    {API_OPENAI, QUOTA_RATE,
     "{\"error\":{\"message\":\"Rate limit reached for gpt-4o in organization org-1 on tokens per "
     "min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 2s.\",\"type\":"
     "\"tokens\",\"param\":null,\"code\":\"rate_limit_exceeded\"}}"},
    {API_OPENAI, QUOTA_RATE, "{\"error\":{\"message\":\"m\",\"code\":\"slow_down\"}}"},
    {API_OPENAI, QUOTA_RATE, /* Azure */
     "{\"error\":{\"code\":\"429\",\"message\":\"Requests have exceeded token rate limit of your "
     "current OpenAI S0 pricing tier. Please retry after 7 seconds.\"}}"},
    {API_OPENAI, QUOTA_SPENT, /* Moonshot */
     "{\"error\":{\"message\":\"m\",\"type\":\"exceeded_current_quota_error\"}}"},
    {API_OPENAI, QUOTA_SPENT,
     "{\"error\":{\"message\":\"Rate limit exceeded: free-models-per-day. Add 10 credits to "
     "unlock 1000 free model requests per day\",\"code\":429}}"},
    {API_OPENAI, QUOTA_RATE,
     "{\"error\":{\"message\":\"Rate limit exceeded: free-models-per-min. \",\"code\":429}}"},
    {API_OPENAI, QUOTA_SPENT, "{\"error\":{\"message\":\"Insufficient credits\",\"code\":429}}"},
    {API_OPENAI, QUOTA_SPENT, "{\"error\":{\"message\":\"m\",\"code\":402}}"},
    {API_OPENAI, QUOTA_SPENT, "{\"error\": {\"code\": 402, \"message\": \"m\"}}"},
    {API_OPENAI, QUOTA_SPENT, "[" GEMINI(PER_DAY) "]"},
    {API_OPENAI, QUOTA_RATE, "[" GEMINI(PER_MINUTE) "]"},
    {API_OPENAI, QUOTA_RATE, "<html><body>Too Many Requests</body></html>"},
    {API_OPENAI, QUOTA_RATE, ""},
    {API_GEMINI, QUOTA_SPENT, GEMINI(PER_DAY)},
    {API_GEMINI, QUOTA_SPENT, GEMINI(PER_MINUTE "," PER_DAY)},
    {API_GEMINI, QUOTA_SPENT,
     GEMINI("{\"quotaMetric\":\"generativelanguage.googleapis.com/"
            "generate_requests_per_model_per_day\"}")},
    {API_GEMINI, QUOTA_RATE, GEMINI(PER_MINUTE)},
    {API_GEMINI, QUOTA_RATE,
     "{\"error\":{\"code\":429,\"message\":\"Resource has been exhausted (e.g. check quota).\","
     "\"status\":\"RESOURCE_EXHAUSTED\"}}"},
    {API_BEDROCK, QUOTA_RATE,
     "{\"message\":\"Too many requests, please wait before trying again.\"}"},
    {API_BEDROCK, QUOTA_RATE,
     "{\"message\":\"Too many tokens, please wait before trying again.\"}"},
    {API_BEDROCK, QUOTA_SPENT,
     "{\"message\":\"Too many tokens per day, please wait before trying again.\"}"},
    {API_BEDROCK, QUOTA_SPENT, "{\"message\":\"Your account exceeded the service quota.\"}"},
    {API_BEDROCK, QUOTA_SPENT, "{\"__type\":\"ServiceQuotaExceededException\"}"},
    {API_COHERE, QUOTA_SPENT,
     "{\"message\":\"You are using a Trial key, which is limited to 1000 API calls / month.\"}"},
    {API_COHERE, QUOTA_RATE,
     "{\"message\":\"You are using a Trial key, which is limited to 20 API calls / minute.\"}"},
    {API_MISTRAL, QUOTA_RATE, "{\"message\":\"Requests rate limit exceeded\"}"},
    {API_MISTRAL, QUOTA_SPENT, "{\"message\":\"m\",\"code\":\"insufficient_quota\"}"},
    {API_ANTHROPIC, QUOTA_RATE,
     "{\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"Number of request "
     "tokens has exceeded your daily rate limit\"}}"},
    {API_ANTHROPIC, QUOTA_RATE, OPENAI_QUOTA},
    {API_OLLAMA, QUOTA_RATE,
     "{\"error\":\"server busy, please try again. maximum pending requests "
     "exceeded\"}"},
};

static void test_bodies(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        is(bodies[i].api, bodies[i].body, bodies[i].expected);
}

static void test_when_it_is_decided(void **state)
{
    struct quota quota;

    (void)state;
    quota_init(&quota, API_OPENAI, SPAN_NONE);
    assert_int_equal(quota_feed(&quota, SPAN_LIT("{\"code\":\"insufficient_quot")), QUOTA_MORE);
    assert_int_equal(quota_feed(&quota, SPAN_LIT("")), QUOTA_MORE);
    assert_int_equal(quota_feed(&quota, SPAN_LIT("a")), QUOTA_SPENT);
    assert_int_equal(quota_end(&quota), QUOTA_SPENT);
    quota_init(&quota, API_ANTHROPIC, SPAN_NONE);
    assert_int_equal(quota_feed(&quota, SPAN_LIT("")), QUOTA_RATE);
    quota_init(&quota, API_OPENAI, SPAN_LIT("gzip"));
    assert_int_equal(quota_feed(&quota, SPAN_LIT("insufficient_quota")), QUOTA_RATE);
    assert_int_equal(quota_end(&quota), QUOTA_RATE);
}

/* --- the search under it, which neutral_body uses, too -----------------------------------------
 */

static bool is_in(struct span body, struct span text, size_t piece)
{
    struct body_search search = {0};
    bool found = false;

    for (size_t at = 0; at < body.len; at += piece) {
        size_t len = piece < body.len - at ? piece : body.len - at;
        char *copy = memcpy(malloc(len), body.ptr + at, len);
        found = body_search_feed(&search, span_of(copy, len), &text, 1);
        free(copy);
    }
    assert_int_equal(body_search_over(&search), found || body.len >= BODY_SEARCH_LIMIT);
    return found;
}

static void test_the_first_4_kib(void **state)
{
    static char body[3 * BODY_SEARCH_LIMIT];
    struct span text = SPAN_LIT("maximum context length");

    (void)state;
    for (size_t at = BODY_SEARCH_LIMIT - 2 * text.len; at < BODY_SEARCH_LIMIT + 10; at++) {
        memset(body, '.', sizeof body);
        memcpy(body + at, text.ptr, text.len);
        for (size_t piece = 1; piece <= sizeof body; piece = piece * 3 + 1)
            assert_int_equal(is_in(span_of(body, sizeof body), text, piece),
                             at + text.len <= BODY_SEARCH_LIMIT);
    }
}

static void test_lengths_of_the_text(void **state)
{
    static char body[1000], text[BODY_SEARCH_TEXT_MAX + 1];

    (void)state;
    memset(body, 'a', sizeof body - 1); /* one that matches itself nearly everywhere */
    body[sizeof body - 1] = 'b';
    memset(text, 'a', sizeof text);
    for (size_t len = 1; len <= sizeof text; len++) {
        text[len - 1] = 'b';
        for (size_t piece = 1; piece <= sizeof body; piece += piece < 400 ? 1 : 97)
            assert_int_equal(is_in(span_of(body, sizeof body), span_of(text, len), piece),
                             len <= BODY_SEARCH_TEXT_MAX);
        text[len - 1] = 'a';
    }
    assert_false(is_in(span_of(body, sizeof body), SPAN_LIT(""), 7));
    assert_false(is_in(span_of(body, sizeof body), SPAN_LIT("B"), 7));
}

/* No two bytes alike: none may stand in for another where the pieces meet. */
static void test_where_pieces_meet(void **state)
{
    char body[250];

    (void)state;
    for (size_t i = 0; i < sizeof body; i++)
        body[i] = (char)i;
    for (size_t at = 0; at + BODY_SEARCH_TEXT_MAX <= sizeof body; at++) {
        struct span text = span_of(body + at, BODY_SEARCH_TEXT_MAX);
        for (size_t split = 0; split <= sizeof body; split++) {
            struct body_search search = {0};
            body_search_feed(&search, span_of(body, split), &text, 1);
            assert_true(
                body_search_feed(&search, span_of(body + split, sizeof body - split), &text, 1));
        }
    }
}

static void test_many_texts(void **state)
{
    static const struct span texts[] = {SPAN_LIT("one"), SPAN_LIT("two"), SPAN_LIT("three")};
    struct body_search search = {0};

    (void)state;
    assert_false(body_search_feed(&search, SPAN_LIT("thre"), texts, 0));
    search = (struct body_search){0};
    assert_false(body_search_feed(&search, SPAN_LIT("on tw thre"), texts, 3));
    assert_true(body_search_feed(&search, SPAN_LIT("e"), texts, 3));
    assert_true(body_search_feed(&search, SPAN_LIT("x"), texts, 3)); /* it stays */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_when_it_is_decided),
        cmocka_unit_test(test_the_first_4_kib),
        cmocka_unit_test(test_lengths_of_the_text),
        cmocka_unit_test(test_where_pieces_meet),
        cmocka_unit_test(test_many_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
