/* The URL of a call at a fallback: where its own base ends, and what stands behind the other. */
#include "fallback_plan_fixture.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bases),
        cmocka_unit_test(urls),
        cmocka_unit_test(urls_of_all_shapes),
        cmocka_unit_test(models_in_the_path),
        cmocka_unit_test(named_bases),
        cmocka_unit_test(models_in_the_base),
        cmocka_unit_test(another_path),
        cmocka_unit_test(lengths),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
