/* From the facts of a call to its keys, to whether they count, and to what a refusal means. */
#include "config_fixture.h"

#include "route/route.h"

static struct route_key key_of(const char *method, const char *host, uint16_t port,
                               const char *path)
{
    struct route_key key;

    assert_true(route_key_of(span_str(method), span_str(host), port, span_str(path), &key));
    return key;
}

static void schemes(void **state)
{
    (void)state;
    assert_true(route_is_http(SPAN_LIT("HTTP")));
    assert_true(route_is_http(SPAN_LIT("https")));
    assert_false(route_is_http(SPAN_LIT("wss")));
    assert_false(route_is_http(SPAN_LIT("")));
}

static void keys(void **state)
{
    char longest[ROUTE_HOST_MAX + 1];
    struct route_key key = key_of("POST", "API.Example.", 8443, "/v1/embeddings");

    (void)state;
    assert_true(span_eq(span_of(key.text, key.len), SPAN_LIT("api.example:8443")));
    assert_int_equal(key.name_len, strlen("api.example"));
    assert_int_equal(key.shape.place, MODEL_IN_BODY);
    key = key_of(NULL, "api.example", 443, "/v1/embeddings");
    assert_int_equal(key.shape.place, MODEL_NONE);
    assert_int_equal(key.len, key.name_len);
    memset(longest, 'h', sizeof longest);
    struct span host = span_of(longest, ROUTE_HOST_MAX), method = SPAN_LIT("GET"), path = host;
    assert_true(route_key_of(method, host, 443, path, &key));
    assert_int_equal(key.len, ROUTE_HOST_MAX);
    assert_false(route_key_of(method, host, 80, path, &key));
    assert_false(route_key_of(method, span_of(longest, sizeof longest), 443, path, &key));
    assert_false(route_key_of(method, SPAN_LIT("a b"), 443, path, &key));
}

static void assert_cover(const char *ini, const char *method, const char *host, const char *path,
                         enum route_cover expected)
{
    struct config *config = load_text(ini);
    struct route_key key = key_of(method, host, 443, path);

    assert_non_null(config);
    enum route_cover cover = route_cover(config, &key);
    config_free(config);
    if (cover != expected)
        fail_msg("%s %s%s: %d, not %d", method, host, path, cover, expected);
}

static void covers(void **state)
{
    const char *chat = "/v1/chat/completions", *listed = "[target a.example/m]\nmode = off\n";

    (void)state;
    assert_cover("", "POST", "a.example", chat, ROUTE_LLM_SHAPE);
    assert_cover("", "GET", "a.example", chat, ROUTE_NO_LLM_CALL);
    assert_cover("", "GET", "api.openai.com", chat, ROUTE_KNOWN_HOST);
    assert_cover("", "GET", "api.openai.com", "", ROUTE_KNOWN_HOST);
    assert_cover(listed, "GET", "a.example", "/", ROUTE_LISTED);
    assert_cover(listed, "GET", "b.example", "/", ROUTE_NO_LLM_CALL);
    const char *only = "[breaker]\nmatch = listed\n[target a.example]\nopen_seconds = 1\n";
    assert_cover(only, "GET", "a.example", "/", ROUTE_LISTED);
    assert_cover(only, "POST", "api.openai.com", chat, ROUTE_NOT_LISTED);
    assert_cover("[breaker]\nmatch = all\n", "GET", "b.example", "/", ROUTE_MATCH_ALL);
    assert_true(route_is_covered(ROUTE_MATCH_ALL) && route_is_covered(ROUTE_LISTED) &&
                route_is_covered(ROUTE_LLM_SHAPE) && route_is_covered(ROUTE_KNOWN_HOST));
    assert_false(route_is_covered(ROUTE_NOT_LISTED) || route_is_covered(ROUTE_NO_LLM_CALL));
}

static void targets_for_a_host(void **state)
{
    struct config *config =
        load_text("[target a.*]\nmode = off\n[target b.example/m*]\nmode = off\n");

    (void)state;
    assert_non_null(config);
    assert_true(config_target_lists(config, 0, SPAN_LIT("a.example")));
    assert_false(config_target_lists(config, 1, SPAN_LIT("a.example")));
    assert_true(config_target_lists(config, 1, SPAN_LIT("b.example")));
    assert_false(config_target_lists(config, 2, SPAN_LIT("b.example")));
    config_free(config);
}

static void models(void **state)
{
    char longest[MODEL_MAX + 1], decoded[MODEL_MAX];
    struct span dash = SPAN_LIT("-");

    (void)state;
    memset(longest, 'm', sizeof longest);
    assert_true(span_eq(route_model(SPAN_LIT("a b/c\xff")), SPAN_LIT("a b/c\xff")));
    assert_int_equal(route_model(span_of(longest, MODEL_MAX)).len, MODEL_MAX);
    assert_true(span_eq(route_model(span_of(longest, sizeof longest)), dash));
    assert_true(span_eq(route_model(SPAN_NONE), dash));
    assert_true(span_eq(route_model(SPAN_LIT("")), dash));
    assert_true(span_eq(route_model(SPAN_LIT("a\tb")), dash));
    assert_true(span_eq(route_model(SPAN_LIT("a\x7f")), dash));
    assert_true(span_eq(route_model_member(MODEL_IN_BODY), SPAN_LIT("model")));
    assert_true(span_eq(route_model_member(MODEL_IN_BODY_VERSION), SPAN_LIT("version")));
    assert_null(route_model_member(MODEL_IN_PATH).ptr);
    assert_null(route_model_member(MODEL_NONE).ptr);
    struct shape shape = {API_BEDROCK, MODEL_IN_PATH, SPAN_LIT("a%2Fb%")};
    assert_true(span_eq(route_model_in_path(&shape, decoded), SPAN_LIT("a/b%")));
    shape.model = span_of(longest, sizeof longest);
    assert_true(span_eq(route_model(route_model_in_path(&shape, decoded)), dash));
}

static void one_breaker(void **state)
{
    struct policy policy = {.scope = SCOPE_HOST};

    (void)state;
    assert_true(route_host_alone(&policy, MODEL_IN_BODY));
    assert_false(route_host_alone(&policy, MODEL_NONE));
    policy.scope = SCOPE_MODEL;
    assert_false(route_host_alone(&policy, MODEL_IN_PATH));
}

static void chains(void **state)
{
    struct policy policy = {.fallback = "", .fallback_address = "", .allow_fallbacks = true};

    (void)state;
    assert_false(route_has_chain(&policy, MODEL_IN_BODY));
    policy.fallback = "one";
    assert_true(route_has_chain(&policy, MODEL_IN_BODY));
    assert_true(route_has_chain(&policy, MODEL_IN_PATH));
    assert_false(route_has_chain(&policy, MODEL_NONE));
    policy.fallback = "";
    policy.fallback_address = "b:1";
    assert_true(route_has_chain(&policy, MODEL_IN_BODY));
    policy.allow_fallbacks = false;
    assert_false(route_has_chain(&policy, MODEL_IN_BODY));
}

static void refusals(void **state)
{
    struct policy policy = {
        .breaker.open_ticks = 30, .when_exhausted = EXHAUSTED_503, .allow_fallbacks = true};
    struct breaker_admission admission = {.verdict = BREAKER_REFUSE, .wait_ticks = 3};

    (void)state;
    assert_true(route_refuses(&policy, &admission));
    assert_int_equal(route_wait_ms(&policy, &admission, BREAKER_SHOW_OPEN), 100);
    assert_int_equal(route_wait_ms(&policy, &admission, BREAKER_SHOW_FORCED_OPEN), 1006);
    assert_int_equal(route_wait_ms(&policy, &admission, BREAKER_SHOW_HALF_OPEN), 0);
    policy.when_exhausted = EXHAUSTED_PASS;
    assert_false(route_refuses(&policy, &admission));
    policy.when_exhausted = EXHAUSTED_503;
    admission.verdict = BREAKER_GRANT;
    assert_false(route_refuses(&policy, &admission));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schemes), cmocka_unit_test(keys),
        cmocka_unit_test(covers),  cmocka_unit_test(targets_for_a_host),
        cmocka_unit_test(models),  cmocka_unit_test(one_breaker),
        cmocka_unit_test(chains),  cmocka_unit_test(refusals),
    };

    return cmocka_run_group_tests(tests, fixture_make, fixture_remove);
}
