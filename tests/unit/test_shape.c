/* Which requests are LLM calls, in whose dialect, and where their model is (FIELD-NOTES 4). */
#include "http/shape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

static const char *const places[] = {"none", "path", "body", "version"};

static void assert_shape(const char *method, const char *host, const char *path, enum api api,
                         enum model_place place, const char *model)
{
    struct shape got = shape_of(span_str(method), span_str(host), span_str(path));

    if (got.api != api || got.place != place || !span_eq(got.model, span_str(model)))
        fail_msg("%s %s%s: api %d, model in %s '%.*s'", method, host, path, got.api,
                 places[got.place], (int)got.model.len, got.model.ptr ? got.model.ptr : "");
}

static void in_body(const char *host, const char *path, enum api api)
{
    assert_shape("POST", host, path, api, MODEL_IN_BODY, NULL);
}

static void in_path(const char *host, const char *path, enum api api, const char *model)
{
    assert_shape("POST", host, path, api, MODEL_IN_PATH, model);
}

static void none(const char *host, const char *path)
{
    struct shape got = shape_of(SPAN_LIT("POST"), span_str(host), span_str(path));

    if (got.place != MODEL_NONE || got.model.ptr)
        fail_msg("%s%s: model in %s", host, path, places[got.place]);
}

static void test_model_in_body(void **state)
{
    static const char *const paths[] = {
        "/v1/chat/completions",
        "/v1/responses",
        "/v1/embeddings",
        "/v1/completions",
        "/v1/moderations",
        "/v1/images/generations",
        "/v1/images/edits",
        "/v1/rerank",
        "/v1/audio/transcriptions",
        "/v1/audio/translations",
        "/v1/audio/speech",
        "/chat/completions",
        "/embeddings",
        "/responses",
        "/rerank",
        "/moderations",
        "/images/generations",
        "/audio/transcriptions",
    };
    static const char *const prefixes[] = {"", "/x/y", "/openai", "/api/x", "/inference"};
    char path[128];

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        in_body("localhost", paths[i], API_OPENAI);
        in_body("api.openai.com", paths[i], API_OPENAI);
        for (size_t p = 0; p < sizeof prefixes / sizeof *prefixes; p++) {
            snprintf(path, sizeof path, "%s%s", prefixes[p], paths[i]);
            in_body("api.openai.com", path, API_OPENAI);
            if (strncmp(paths[i], "/v1/", 4) == 0)
                in_body("gateway.example", path, API_OPENAI);
        }
    }
    in_body("localhost", "/v1/chat/completions/", API_OPENAI);
    in_body("localhost", "//v1/chat/completions", API_OPENAI);
}

static void test_providers_of_the_field_notes(void **state)
{
    (void)state;
    in_body("api.groq.com", "/openai/v1/chat/completions", API_OPENAI);
    in_body("api.deepseek.com", "/chat/completions", API_OPENAI);
    in_body("openrouter.ai", "/api/v1/chat/completions", API_OPENAI);
    in_body("api.fireworks.ai", "/inference/v1/chat/completions", API_OPENAI);
    in_body("router.huggingface.co", "/v1/chat/completions", API_OPENAI);
    in_body("generativelanguage.googleapis.com", "/v1beta/openai/chat/completions", API_OPENAI);
    in_body("generativelanguage.googleapis.com", "/v1beta/openai/embeddings", API_OPENAI);
    in_body("api.mistral.ai", "/v1/chat/completions", API_MISTRAL);
    in_body("codestral.mistral.ai", "/v1/fim/completions", API_MISTRAL);
    in_body("api.anthropic.com", "/v1/messages", API_ANTHROPIC);
    in_body("gateway.example", "/x/y/v1/messages", API_ANTHROPIC);
    in_body("gateway.example", "/x/y/v1/messages/count_tokens", API_ANTHROPIC);
    in_body("api.cohere.com", "/v1/chat", API_COHERE);
    in_body("api.cohere.com", "/v2/chat", API_COHERE);
    in_body("api.cohere.com", "/v2/embed", API_COHERE);
    in_body("api.cohere.com", "/v2/rerank", API_COHERE);
    in_body("api.cohere.ai", "/v1/rerank", API_COHERE);
    in_body("localhost", "/v2/rerank", API_COHERE);
    in_body("res.openai.azure.com", "/openai/v1/chat/completions", API_OPENAI);
    in_body("res.openai.azure.com", "/openai/responses", API_OPENAI);
    in_body("res.services.ai.azure.com", "/models/chat/completions", API_OPENAI);
    in_body("us-central1-aiplatform.googleapis.com",
            "/v1/projects/p/locations/us-central1/endpoints/openapi/chat/completions", API_OPENAI);
}

static void test_ollama_at_the_start_only(void **state)
{
    (void)state;
    in_body("localhost", "/api/chat", API_OLLAMA);
    in_body("localhost", "/api/generate", API_OLLAMA);
    in_body("localhost", "/api/embed", API_OLLAMA);
    in_body("localhost", "/api/embeddings", API_OLLAMA);
    in_body("localhost", "/v1/chat/completions", API_OPENAI);
    none("forum.example", "/x/api/chat");
    none("forum.example", "/api/chat/rooms");
    none("localhost", "/api/tags");
    none("localhost", "/api/pull");
}

static void test_azure_deployments(void **state)
{
    (void)state;
    in_path("res.openai.azure.com", "/openai/deployments/gpt-4o/chat/completions", API_OPENAI,
            "gpt-4o");
    in_path("res.openai.azure.com", "/openai/deployments/my%20d/audio/transcriptions", API_OPENAI,
            "my%20d");
    in_path("apim.example", "/base/openai/deployments/d/embeddings", API_OPENAI, "d");
    none("res.openai.azure.com", "/openai/deployments");
    none("res.openai.azure.com", "/openai/deployments/d");
    none("res.openai.azure.com", "/openai/v1/files");
}

static void test_gemini_and_vertex(void **state)
{
    (void)state;
    in_path("generativelanguage.googleapis.com", "/v1beta/models/gemini-2.0-flash:generateContent",
            API_GEMINI, "gemini-2.0-flash");
    in_path("generativelanguage.googleapis.com", "/v1/models/gemini-pro:streamGenerateContent",
            API_GEMINI, "gemini-pro");
    in_path("generativelanguage.googleapis.com", "/v1beta/models/e:embedContent", API_GEMINI, "e");
    in_path("generativelanguage.googleapis.com", "/v1beta/models/e:countTokens", API_GEMINI, "e");
    in_path("generativelanguage.googleapis.com", "/v1beta/tunedModels/t:generateContent",
            API_GEMINI, "t");
    in_path("generativelanguage.googleapis.com", "/v1beta/models/imagen-4:predict", API_GEMINI,
            "imagen-4");
    in_path("gateway.example", "/x/v1beta/models/g:generateContent", API_GEMINI, "g");
    in_path("us-central1-aiplatform.googleapis.com",
            "/v1/projects/p/locations/us-central1/publishers/google/models/g:generateContent",
            API_GEMINI, "g");
    in_path(
        "aiplatform.googleapis.com",
        "/v1/projects/p/locations/global/publishers/anthropic/models/c@20240620:streamRawPredict",
        API_GEMINI, "c@20240620");
    in_path("us-central1-aiplatform.googleapis.com",
            "/v1/projects/p/locations/us-central1/endpoints/123:predict", API_GEMINI, "123");
    none("generativelanguage.googleapis.com", "/v1beta/models/:generateContent");
    none("generativelanguage.googleapis.com", "/v1beta/models/g:unknownVerb");
    none("generativelanguage.googleapis.com", "/v1beta/files");
    none("tensorflow.example", "/v1/models/resnet:predict");
}

static void test_bedrock(void **state)
{
    static const char host[] = "bedrock-runtime.us-east-1.amazonaws.com";

    (void)state;
    in_path(host, "/model/anthropic.claude-3-haiku-20240307-v1%3A0/invoke", API_BEDROCK,
            "anthropic.claude-3-haiku-20240307-v1%3A0");
    in_path(host, "/model/m/invoke-with-response-stream", API_BEDROCK, "m");
    in_path(host, "/model/m/converse", API_BEDROCK, "m");
    in_path(host, "/model/m/converse-stream", API_BEDROCK, "m");
    in_path(host, "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fus.m/converse",
            API_BEDROCK, "arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fus.m");
    in_path(host, "/model/arn:aws:bedrock:us-east-1:1:inference-profile/us.m/converse", API_BEDROCK,
            "arn:aws:bedrock:us-east-1:1:inference-profile/us.m");
    in_path(host, "/model/a/invoke/invoke", API_BEDROCK, "a/invoke");
    in_path("gateway.example", "/bedrock/model/m/converse", API_BEDROCK, "m");
    none(host, "/model//invoke");
    none(host, "/model/invoke");
    none(host, "/model/m/other");
    none(host, "/guardrail/g/version/1/apply");
}

static void test_hugging_face_and_replicate(void **state)
{
    (void)state;
    in_path("router.huggingface.co", "/hf-inference/models/org/name", API_OPENAI, "org/name");
    in_path("router.huggingface.co", "/hf-inference/models/org/name/pipeline/feature-extraction",
            API_OPENAI, "org/name");
    in_path("router.huggingface.co", "/hf-inference/models/org/name/v1/chat/completions",
            API_OPENAI, "org/name");
    in_path("router.huggingface.co", "/hf-inference/models/gpt2", API_OPENAI, "gpt2");
    in_path("router.huggingface.co", "/hf-inference/models/gpt2/pipeline/x", API_OPENAI, "gpt2");
    in_path("api.replicate.com", "/v1/models/meta/llama/predictions", API_OPENAI, "meta/llama");
    in_path("api.replicate.com", "/v1/deployments/o/n/predictions", API_OPENAI, "o/n");
    assert_shape("POST", "api.replicate.com", "/v1/predictions", API_OPENAI, MODEL_IN_BODY_VERSION,
                 NULL);
    assert_shape("POST", "gateway.example", "/replicate/v1/predictions", API_OPENAI,
                 MODEL_IN_BODY_VERSION, NULL);
    none("router.huggingface.co", "/hf-inference/models/");
    none("api.replicate.com", "/v1/predictions/abc/cancel");
    none("weather.example", "/v1/predictions");
}

static void test_other_traffic(void **state)
{
    static const char *const paths[] = {
        "",
        "/",
        "/v1/files",
        "/v1/models",
        "/v1/batches",
        "/v1/chat/completions/x",
        "/v1/chatter",
        "/xchat/completions",
        "/forms/5/responses",
        "/forum/moderations",
        "/v1/messages/batches",
        "/upload.bin",
    };

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        none("other.example", paths[i]);
    assert_shape("GET", "api.openai.com", "/v1/chat/completions", API_OPENAI, MODEL_NONE, NULL);
    assert_shape("HEAD", "api.openai.com", "/v1/chat/completions", API_OPENAI, MODEL_NONE, NULL);
    assert_shape("DELETE", "api.openai.com", "/v1/files/f", API_OPENAI, MODEL_NONE, NULL);
    assert_shape("PUT", "localhost", "/v1/chat/completions", API_OPENAI, MODEL_IN_BODY, NULL);
}

/* A refused GET still gets the provider's own error shape. */
static void test_dialect_of_the_host(void **state)
{
    (void)state;
    assert_shape("GET", "api.anthropic.com", "/v1/models", API_ANTHROPIC, MODEL_NONE, NULL);
    assert_shape("GET", "api.cohere.com", "/v1/models", API_COHERE, MODEL_NONE, NULL);
    assert_shape("GET", "api.mistral.ai", "/v1/models", API_MISTRAL, MODEL_NONE, NULL);
    assert_shape("GET", "generativelanguage.googleapis.com", "/v1beta/models", API_GEMINI,
                 MODEL_NONE, NULL);
    assert_shape("GET", "bedrock-runtime.eu-west-1.amazonaws.com", "/x", API_BEDROCK, MODEL_NONE,
                 NULL);
    assert_shape("GET", "notmistral.ai", "/v1/models", API_OPENAI, MODEL_NONE, NULL);
    assert_shape("GET", "bedrock-runtime.example", "/v1/models", API_OPENAI, MODEL_NONE, NULL);
}

static void test_known_hosts(void **state)
{
    static const char *const known[] = {
        "api.openai.com",
        "eu.api.openai.com",
        "res.openai.azure.com",
        "res.openai.azure.us",
        "res.cognitiveservices.azure.com",
        "res.services.ai.azure.com",
        "d.eastus2.models.ai.azure.com",
        "models.inference.ai.azure.com",
        "api.anthropic.com",
        "generativelanguage.googleapis.com",
        "aiplatform.googleapis.com",
        "us-central1-aiplatform.googleapis.com",
        "aiplatform.eu.rep.googleapis.com",
        "bedrock-runtime.us-east-1.amazonaws.com",
        "bedrock-runtime.us-gov-west-1.amazonaws.com",
        "bedrock-runtime-fips.us-east-1.amazonaws.com",
        "bedrock-runtime.cn-north-1.amazonaws.com.cn",
        "api.groq.com",
        "api.mistral.ai",
        "api.deepseek.com",
        "api.x.ai",
        "us-east-1.api.x.ai",
        "api.together.xyz",
        "openrouter.ai",
        "api.fireworks.ai",
        "api.cohere.com",
        "api.cohere.ai",
        "router.huggingface.co",
        "api.replicate.com",
    };

    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!shape_known_host(span_str(known[i])))
            fail_msg("%s is not known", known[i]);
}

static void test_unknown_hosts(void **state)
{
    static const char *const unknown[] = {
        "",
        "com",
        "openai.com",
        "xapi.openai.com",
        "api.openai.com.evil.example",
        ".api.openai.com",
        "openai.azure.com",
        ".openai.azure.com",
        "aiplatform.googleapis.com.evil.example",
        "-aiplatform.googleapis.com",
        "a.b-aiplatform.googleapis.com",
        "bedrock-runtime..amazonaws.com",
        "s3.us-east-1.amazonaws.com",
        "storage.googleapis.com",
        "huggingface.co",
        "localhost",
        "127.0.0.1",
        "[::1]",
    };

    (void)state;
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        if (shape_known_host(span_str(unknown[i])))
            fail_msg("%s is known", unknown[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_in_body),
        cmocka_unit_test(test_providers_of_the_field_notes),
        cmocka_unit_test(test_ollama_at_the_start_only),
        cmocka_unit_test(test_azure_deployments),
        cmocka_unit_test(test_gemini_and_vertex),
        cmocka_unit_test(test_bedrock),
        cmocka_unit_test(test_hugging_face_and_replicate),
        cmocka_unit_test(test_other_traffic),
        cmocka_unit_test(test_dialect_of_the_host),
        cmocka_unit_test(test_known_hosts),
        cmocka_unit_test(test_unknown_hosts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
