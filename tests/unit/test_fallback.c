/* A call on its way to a fallback: whether it fits there, its URL and its model; and where connects
 * go instead. */
#include "route/fallback.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

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

/* --- bases ----------------------------------------------------------------------------------- */

static const struct {
    const char *host, *base, *tail;
} paths[] = {
    {"api.openai.com", "/v1", "/chat/completions"},
    {"api.openai.com", "/v1", "/chat/completions/"},
    {"api.openai.com", "/v1", "/responses"},
    {"api.openai.com", "/v1", "/responses/input_tokens"},
    {"api.openai.com", "/v1", "/responses/compact"},
    {"api.openai.com", "/v1", "/embeddings"},
    {"api.openai.com", "/v1", "/completions"},
    {"api.openai.com", "/v1", "/moderations"},
    {"api.openai.com", "/v1", "/images/generations"},
    {"api.openai.com", "/v1", "/images/edits"},
    {"api.openai.com", "/v1", "/images/variations"},
    {"api.openai.com", "/v1", "/audio/transcriptions"},
    {"api.openai.com", "/v1", "/audio/translations"},
    {"api.openai.com", "/v1", "/audio/speech"},
    {"api.openai.com", "", "/responses"},
    {"api.openai.com", "", "/moderations"},
    {"localhost", "//v1", "/chat/completions"},
    {"localhost", "", "/chat/completions"},
    {"localhost", "/v1", "/rerank"},
    {"localhost", "/v2", "/rerank"},
    {"localhost", "", "/rerank"},
    {"api.groq.com", "/openai/v1", "/chat/completions"},
    {"openrouter.ai", "/api/v1", "/chat/completions"},
    {"api.deepseek.com", "", "/chat/completions"},
    {"api.fireworks.ai", "/inference/v1", "/chat/completions"},
    {"generativelanguage.googleapis.com", "/v1beta/openai", "/chat/completions"},
    {"generativelanguage.googleapis.com", "/v1beta/openai", "/embeddings"},
    {"api.mistral.ai", "/v1", "/chat/completions"},
    {"codestral.mistral.ai", "/v1", "/fim/completions"},
    {"api.mistral.ai", "/v1", "/agents/completions"},
    {"api.anthropic.com", "/v1", "/messages"},
    {"api.anthropic.com", "/v1", "/messages/count_tokens"},
    {"api.anthropic.com", "/v1", "/complete"},
    {"api.anthropic.com", "/v1", "/chat/completions"},
    {"gateway.example", "/x/y/v1", "/messages"},
    {"api.cohere.com", "/v1", "/chat"},
    {"api.cohere.com", "/v2", "/chat"},
    {"api.cohere.com", "/v1", "/embed"},
    {"api.cohere.com", "/v2", "/embed"},
    {"api.cohere.com", "/v1", "/rerank"},
    {"api.cohere.com", "/v2", "/rerank"},
    {"localhost", "", "/api/chat"},
    {"localhost", "", "/api/generate"},
    {"localhost", "", "/api/embed"},
    {"localhost", "", "/api/embeddings"},
    {"res.openai.azure.com", "/openai", "/deployments/gpt-4o/chat/completions"},
    {"apim.example", "/x/openai", "/deployments/my%20d/audio/transcriptions"},
    {"res.openai.azure.com", "/openai/v1", "/chat/completions"},
    {"res.openai.azure.com", "/openai", "/responses"},
    {"res.services.ai.azure.com", "/models", "/chat/completions"},
    {"generativelanguage.googleapis.com", "/v1beta", "/models/g:generateContent"},
    {"generativelanguage.googleapis.com", "/v1", "/tunedModels/t:embedContent"},
    {"us-central1-aiplatform.googleapis.com", "/v1/projects/p/locations/l/publishers/google",
     "/models/g:streamGenerateContent"},
    {"us-central1-aiplatform.googleapis.com", "/v1/projects/p/locations/l",
     "/endpoints/123:predict"},
    {"us-central1-aiplatform.googleapis.com", "/v1/projects/p/locations/l/endpoints/openapi",
     "/chat/completions"},
    {"bedrock-runtime.us-east-1.amazonaws.com", "", "/model/a.b%3A0/converse"},
    {"bedrock-runtime.us-east-1.amazonaws.com", "", "/model/arn:aws:x/y/invoke"},
    {"gateway.example", "/bedrock", "/model/m/invoke-with-response-stream"},
    {"api.replicate.com", "/v1", "/models/meta/llama/predictions"},
    {"api.replicate.com", "/v1", "/deployments/me/mine/predictions"},
    {"api.replicate.com", "/v1", "/predictions"},
    {"router.huggingface.co", "/hf-inference", "/models/org/name"},
    {"router.huggingface.co", "/hf-inference", "/models/org/name/pipeline/feature-extraction"},
    {"router.huggingface.co", "/hf-inference", "/models/bare"},
};

static void bases(void **state)
{
    char path[200];

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        snprintf(path, sizeof path, "%s%s", paths[i].base, paths[i].tail);
        struct shape shape = shape_of(SPAN_LIT("POST"), span_str(paths[i].host), span_str(path));
        size_t len = fallback_base_len(span_str(path), &shape);
        if (shape.place == MODEL_NONE || len != strlen(paths[i].base))
            fail_msg("%s%s: base is '%.*s'", paths[i].host, path, (int)len, path);
    }
    struct shape none = shape_of(SPAN_LIT("GET"), SPAN_LIT("h"), SPAN_LIT("/v1/models"));
    assert_int_equal(fallback_base_len(SPAN_LIT("/v1/models"), &none), 0);
}

/* --- plans ----------------------------------------------------------------------------------- */

/* A call to `url`, and what is asked of it; the rest may be changed before it is planned. */
struct question {
    const char *url, *model;
    struct policy policy;
    struct config_fallback fallback;
    char base[300];
    struct route_key key;
    struct fallback_call call;
    struct fallback_plan plan;
};

static struct question question;

static void ask(const char *url, const char *model, const char *base, const char *models)
{
    struct url parsed;

    question = (struct question){.url = url, .model = model};
    question.policy = (struct policy){.base = "", .allow_fallbacks = true};
    snprintf(question.base, sizeof question.base, "%s", base);
    assert_true(url_parse(span_str(question.base), &parsed));
    question.fallback = (struct config_fallback){
        .name = "f",
        .base = question.base,
        .scheme = parsed.scheme,
        .host = parsed.host,
        .port = parsed.port,
        .path = parsed.path,
        .models = models,
    };
}

static enum fallback_misfit plan(void)
{
    struct fallback_call *call = &question.call;

    assert_true(url_parse(span_str(question.url), &call->url));
    assert_true(route_key_of(SPAN_LIT("POST"), call->url.host, call->url.port, call->url.path,
                             &question.key));
    call->key = &question.key;
    call->policy = &question.policy;
    call->model = span_str(question.model);
    memset(&question.plan, 0xa5, sizeof question.plan);
    return fallback_plan(call, &question.fallback, &question.plan);
}

static void assert_misfit(enum fallback_misfit expected)
{
    enum fallback_misfit misfit = plan();

    if (misfit != expected)
        fail_msg("%s to %s: %s", question.url, question.base, fallback_misfit_text(misfit));
}

static void assert_url(const char *expected)
{
    assert_misfit(FALLBACK_FITS);
    assert_string_equal(question.plan.url, expected);
    assert_int_equal(question.plan.url_len, strlen(expected));
    assert_ptr_equal(question.plan.fallback, &question.fallback);
}

static void assert_plan_model(const char *expected, bool replaced, bool in_path)
{
    assert_true(span_eq(span_of(question.plan.model, question.plan.model_len), span_str(expected)));
    assert_int_equal(question.plan.replaces_model, replaced);
    assert_int_equal(question.plan.model_in_path, in_path);
}

static void urls(void **state)
{
    (void)state;
    ask("https://api.openai.com/v1/chat/completions", "gpt-4o", "https://openrouter.ai/api/v1",
        "gpt-4o:openai/gpt-4o, *:openai/{model}");
    assert_url("https://openrouter.ai/api/v1/chat/completions");
    assert_plan_model("openai/gpt-4o", true, false);
    assert_true(question.plan.foreign);
    ask("https://api.openai.com/v1/chat/completions", "gpt-4o", "http://127.0.0.1:11434/v1", "");
    question.fallback.loopback = true;
    assert_url("http://127.0.0.1:11434/v1/chat/completions");
    assert_plan_model("gpt-4o", false, false);
    ask("https://a.example/v1/embeddings/?api-version=1&key=CANARY#fragment", NULL,
        "https://b.example", "");
    assert_url("https://b.example/embeddings/?api-version=1");
    assert_plan_model("", false, false);
    ask("https://a.example/v1/embeddings?key=CANARY", NULL, "https://b.example/", "");
    question.base[strlen(question.base) - 1] = '\0';
    assert_url("https://b.example/embeddings");
    ask("https://a.example/v1/embeddings?", "m", "https://b.example/v1", "m:m");
    assert_url("https://b.example/v1/embeddings");
    assert_plan_model("m", false, false);
    ask("HTTPS://user:CANARY@A.Example./v1/embeddings", "m", "https://b.example/v1", "*:x");
    assert_url("https://b.example/v1/embeddings");
}

/* Each path goes to another base with what stood behind its own. */
static void urls_of_all_shapes(void **state)
{
    char url[300], expected[300];

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        snprintf(url, sizeof url, "https://%s%s%s?a=1", paths[i].host, paths[i].base,
                 paths[i].tail);
        snprintf(expected, sizeof expected, "https://f.example/x%s?a=1", paths[i].tail);
        ask(url, "m", "https://f.example/x", "");
        assert_url(expected);
    }
}

static void models_in_the_path(void **state)
{
    static const struct {
        const char *url, *model, *models, *expected;
    } calls[] = {
        {"https://res.openai.azure.com/openai/deployments/gpt-4o/chat/completions?api-version=1",
         "gpt-4o", "*:my {model}",
         "https://f.example/b/deployments/my%20gpt-4o/chat/completions?api-version=1"},
        {"https://generativelanguage.googleapis.com/v1beta/models/g:generateContent?key=CANARY",
         "g", "*:a/b", "https://f.example/b/models/a%2Fb:generateContent"},
        {"https://bedrock-runtime.us-east-1.amazonaws.com/model/a.b%3A0/converse", "a.b:0",
         "*:us.{model}", "https://f.example/b/model/us.a.b:0/converse"},
        {"https://bedrock-runtime.us-east-1.amazonaws.com/model/a%2Fb/invoke", "a/b", "*:{model}c",
         "https://f.example/b/model/a%2Fbc/invoke"},
        {"https://api.replicate.com/v1/models/meta/llama/predictions", "meta/llama", "*:other/one",
         "https://f.example/b/models/other/one/predictions"},
        {"https://router.huggingface.co/hf-inference/models/org/name/pipeline/x", "org/name",
         "*:a/b", "https://f.example/b/models/a/b/pipeline/x"},
        {"https://bedrock-runtime.us-east-1.amazonaws.com/model/a%3a0/invoke", "a:0", "*:{model}",
         "https://f.example/b/model/a%3a0/invoke"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        ask(calls[i].url, calls[i].model, "https://f.example/b", calls[i].models);
        assert_url(calls[i].expected);
        assert_true(question.plan.model_in_path);
        assert_int_equal(question.plan.replaces_model, strcmp(calls[i].models, "*:{model}") != 0);
    }
}

static void named_bases(void **state)
{
    static const char *const good[] = {
        "https://api.openai.com/v1",  "https://API.openai.com:443/v1", "HTTPS://api.openai.com/v1/",
        "https://api.openai.com./v1", "https://api.openai.com/v1//",
    };
    static const char *const bad[] = {
        "http://api.openai.com/v1",     "https://api.openai.com:8443/v1",
        "https://openai.com/v1",        "https://api.openai.com/V1",
        "https://api.openai.com/v",     "https://api.openai.com/v1/chat/completions/x",
        "http://api.openai.com:443/v1", CONFIG_NO_BASE,
        "https://api.openai.com/v1/ch",
    };

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ask("https://api.openai.com/v1/chat/completions", "m", "https://b.example/x", "");
        question.policy.base = good[i];
        assert_url("https://b.example/x/chat/completions");
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ask("https://api.openai.com/v1/chat/completions", "m", "https://b.example/x", "");
        question.policy.base = bad[i];
        assert_misfit(FALLBACK_BASE);
    }
    ask("https://api.openai.com/v1/chat/completions?a", "m", "https://b.example/x", "");
    question.policy.base = "https://api.openai.com";
    assert_url("https://b.example/x/v1/chat/completions?a");
    question.policy.base = "https://api.openai.com/v1/chat/completions";
    assert_url("https://b.example/x?a");
}

/* A base with the model in it: it goes with the base, and cannot be replaced there. */
static void models_in_the_base(void **state)
{
    (void)state;
    ask("https://r.openai.azure.com/openai/deployments/d/embeddings", "d", "https://b.example/v1",
        "");
    question.policy.base = "https://r.openai.azure.com/openai/deployments/d";
    assert_url("https://b.example/v1/embeddings");
    question.fallback.models = "d:x";
    assert_misfit(FALLBACK_BASE);
    question.policy.base = "https://r.openai.azure.com/openai/deployments";
    assert_url("https://b.example/v1/x/embeddings");
}

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

/* What the key was made of may be another copy of the URL, or stand for another request. */
static void another_path(void **state)
{
    (void)state;
    ask("https://a.example/model/m/invoke", "m", "https://b.example/v1", "m:x");
    assert_url("https://b.example/v1/model/x/invoke");
    question.call.url.path = SPAN_LIT("/b/model/longer/invoke");
    assert_int_equal(fallback_plan(&question.call, &question.fallback, &question.plan),
                     FALLBACK_FITS);
    assert_string_equal(question.plan.url, "https://b.example/v1/model/x/invoke");
    question.call.url.path = SPAN_LIT("/v1/files");
    question.fallback.models = "";
    assert_int_equal(fallback_plan(&question.call, &question.fallback, &question.plan),
                     FALLBACK_BASE);
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

static void lengths(void **state)
{
    static char url[2 * FALLBACK_URL_MAX];
    const char *front = "https://a.example/v1/embeddings?q=";
    /* "https://a.example/v1" becomes a base of the same length */
    size_t most = FALLBACK_URL_MAX - 1;

    (void)state;
    memset(url, 'q', sizeof url);
    memcpy(url, front, strlen(front));
    url[most] = '\0';
    ask(url, "m", "https://b.example/v2", "");
    assert_misfit(FALLBACK_FITS);
    assert_int_equal(question.plan.url_len, most);
    assert_int_equal(strlen(question.plan.url), most);
    url[most] = 'q';
    url[most + 1] = '\0';
    assert_misfit(FALLBACK_TOO_LONG);
    url[strlen(front) - 3] = '/'; /* a path that is too long, and no shape */
    assert_misfit(FALLBACK_NO_LLM_CALL);
    memcpy(url + most - 11, "/embeddings", 12);
    ask(url, "m", "https://b.example/v2345678901234567890", "");
    question.policy.base = "https://a.example/v1";
    assert_misfit(FALLBACK_TOO_LONG);
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
        cmocka_unit_test(models),
        cmocka_unit_test(bases),
        cmocka_unit_test(urls),
        cmocka_unit_test(urls_of_all_shapes),
        cmocka_unit_test(models_in_the_path),
        cmocka_unit_test(named_bases),
        cmocka_unit_test(models_in_the_base),
        cmocka_unit_test(foreign_or_not),
        cmocka_unit_test(itself),
        cmocka_unit_test(clear_text),
        cmocka_unit_test(another_path),
        cmocka_unit_test(order_of_reasons),
        cmocka_unit_test(lengths),
        cmocka_unit_test(texts),
        cmocka_unit_test(addresses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
