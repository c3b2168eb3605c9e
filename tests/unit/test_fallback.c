/* A call on its way to a fallback: whether it fits there, and its model; and where connects go
 * instead. Its URL there is in test_fallback_urls.c. */
#include "fallback_plan_fixture.h"

/* --- models ---------------------------------------------------------------------------------- */

static void assert_model(const char *models, struct span model, const char *expected)
{
    struct config_fallback fallback = {.models = models};
    char buf[MODEL_MAX];
    size_t len = 0;
    bool found = fallback_model(&fallback, model, buf, &len);

    if (found != (expected != NULL) || (found && !span_eq(span_of(buf, len), span_str(expected))))
        fail_msg("'%s' has for '%.*s': %.*s", models, (int)model.len, model.ptr,
                 found ? (int)len : 4, found ? buf : "none");
}

static void models(void **state)
{
    const char *mapped = "gpt-4o:openai/gpt-4o, o1*: x , *:openai/{model}";
    char longest[MODEL_MAX + 1], most[16 + MODEL_MAX];

    (void)state;
    assert_model("", SPAN_LIT("gpt-4o"), "gpt-4o");
    assert_model("", SPAN_NONE, NULL);
    assert_model("", SPAN_LIT(""), NULL);
    assert_model("", SPAN_LIT("a\nb"), NULL);
    assert_model(mapped, SPAN_LIT("gpt-4o"), "openai/gpt-4o");
    assert_model(mapped, SPAN_LIT("o1-mini"), "x");
    assert_model(mapped, SPAN_LIT("a/b c"), "openai/a/b c");
    assert_model("gpt-4o:x", SPAN_LIT("gpt-4"), NULL);
    assert_model("gpt-4o:x", SPAN_LIT("GPT-4o"), NULL);
    assert_model("a:llama3.2:1b", SPAN_LIT("a"), "llama3.2:1b"); /* the first colon */
    assert_model("*:{model}-{model}{model", SPAN_LIT("m"), "m-m{model");
    assert_model("*:{model}", SPAN_LIT("{model}"), "{model}");
    assert_model("*:", SPAN_LIT("m"), NULL);
    assert_model("*:a\x01", SPAN_LIT("m"), NULL);
    assert_model("m", SPAN_LIT("m"), NULL);
    assert_model(",, m:x", SPAN_LIT("m"), "x");
    memset(longest, 'm', sizeof longest);
    assert_model("", span_of(longest, sizeof longest), NULL);
    assert_model("*:x{model}", span_of(longest, MODEL_MAX), NULL);
    snprintf(most, sizeof most, "x%.*s", MODEL_MAX - 1, longest);
    assert_model("*:x{model}", span_of(longest, MODEL_MAX - 1), most);
    assert_model("m*:x{model},*:y", span_of(longest, MODEL_MAX), NULL); /* the first item decides */
}

/* --- plans ----------------------------------------------------------------------------------- */

static void foreign_or_not(void **state)
{
    static const struct {
        const char *base;
        bool foreign;
    } bases[] = {
        {"https://a.example/other", false},  {"https://A.Example.:443", false},
        {"https://a.example:8443/v1", true}, {"https://b.a.example/v1", true},
        {"http://a.example:443/v1", true},   {"http://a.example/v1", true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++) {
        ask("https://a.example/v1/embeddings?key=CANARY&b", "m", bases[i].base, "m:x");
        question.policy.allow_cleartext = true;
        assert_misfit(FALLBACK_FITS);
        assert_int_equal(question.plan.foreign, bases[i].foreign);
        assert_int_equal(strstr(question.plan.url, "CANARY") == NULL, bases[i].foreign);
    }
}

static void itself(void **state)
{
    (void)state;
    ask("https://a.example/v1/embeddings", "m", "https://A.example/v2", "");
    assert_misfit(FALLBACK_ITSELF);
    question.fallback.models = "m:m";
    assert_misfit(FALLBACK_ITSELF);
    question.fallback.models = "m:x";
    assert_misfit(FALLBACK_FITS);
    question.fallback.models = "x:m";
    assert_misfit(FALLBACK_MODEL);
    question.model = NULL;
    assert_misfit(FALLBACK_MODEL_UNKNOWN);
    question.fallback.models = "";
    assert_misfit(FALLBACK_ITSELF);
    question.url = "https://a.example:8443/v1/embeddings";
    assert_misfit(FALLBACK_FITS);
    question.url = "https://a.example/v1/files";
    assert_misfit(FALLBACK_ITSELF);
}

static void clear_text(void **state)
{
    (void)state;
    ask("https://a.example/v1/embeddings", "m", "http://b.example/v1", "");
    assert_misfit(FALLBACK_CLEAR_TEXT);
    question.policy.allow_cleartext = true;
    assert_misfit(FALLBACK_FITS);
    question.policy.allow_cleartext = false;
    question.fallback.loopback = true;
    assert_misfit(FALLBACK_FITS);
    ask("http://a.example/v1/embeddings", "m", "http://b.example/v1", "");
    assert_misfit(FALLBACK_FITS);
    ask("HTTPS://a.example/v1/embeddings", "m", "http://a.example:443/v1", "m:x");
    assert_misfit(FALLBACK_CLEAR_TEXT);
}

/* Several reasons at once: that which comes first in the enum is told. */
static void order_of_reasons(void **state)
{
    (void)state;
    ask("https://a.example/v1/files", "m", "http://b.example/v1", "x:y");
    question.policy.base = CONFIG_NO_BASE;
    assert_misfit(FALLBACK_NO_LLM_CALL);
    question.url = "https://a.example/v1/embeddings";
    assert_misfit(FALLBACK_BASE);
    question.policy.base = "";
    assert_misfit(FALLBACK_CLEAR_TEXT);
    question.policy.allow_cleartext = true;
    assert_misfit(FALLBACK_MODEL);
    question.model = "a\tb"; /* of the key "-" */
    assert_misfit(FALLBACK_MODEL_UNKNOWN);
    question.fallback.models = "";
    assert_misfit(FALLBACK_FITS);
    assert_int_equal(question.plan.model_len, 0);
    assert_int_equal(fallback_plan(&question.call, NULL, &question.plan), FALLBACK_UNKNOWN);
}

static void texts(void **state)
{
    (void)state;
    for (int i = FALLBACK_FITS; i <= FALLBACK_TOO_LONG; i++)
        assert_true(strlen(fallback_misfit_text((enum fallback_misfit)i)) > 0);
}

/* --- the address ----------------------------------------------------------------------------- */

static bool address_of(const char *key, const char *address, struct span *host, uint16_t *port)
{
    struct policy policy = {.fallback_address = address, .allow_fallbacks = true};

    return fallback_address(&policy, span_str(key), host, port);
}

static void addresses(void **state)
{
    struct policy stopped = {.fallback_address = "b.example:443"};
    struct span host;
    uint16_t port;

    (void)state;
    assert_true(address_of("a.example", "b.example:443", &host, &port));
    assert_true(span_eq(host, SPAN_LIT("b.example")));
    assert_int_equal(port, 443);
    assert_true(address_of("a.example:80", "a.example:8000", &host, &port));
    assert_int_equal(port, 8000);
    assert_true(address_of("a.example", "[::1]:80", &host, &port));
    assert_true(span_eq(host, SPAN_LIT("[::1]")));
    assert_false(address_of("a.example", "a.example:443", &host, &port));
    assert_false(address_of("a.example:80", "a.example:80", &host, &port));
    assert_false(address_of("a.example", "", &host, &port));
    assert_false(fallback_address(&stopped, SPAN_LIT("a.example"), &host, &port));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models),     cmocka_unit_test(foreign_or_not),   cmocka_unit_test(itself),
        cmocka_unit_test(clear_text), cmocka_unit_test(order_of_reasons), cmocka_unit_test(texts),
        cmocka_unit_test(addresses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
