#include "http/shape.h"

/* --- hosts ----------------------------------------------------------------------------------- */

/* Shipped providers. A leading "*." stands for one or more labels; a '*' elsewhere for a run
 * without a dot (regions, resources). */
static const char *const known_hosts[] = {
    "api.openai.com",
    "*.api.openai.com", /* eu.api.openai.com and other regions */
    "*.openai.azure.com",
    "*.services.ai.azure.com",
    "*.cognitiveservices.azure.com",
    "*.inference.ai.azure.com",
    "api.anthropic.com",
    "generativelanguage.googleapis.com",
    "aiplatform.googleapis.com",
    "*-aiplatform.googleapis.com",
    "bedrock-runtime.*.amazonaws.com",
    "bedrock-runtime-fips.*.amazonaws.com",
    "bedrock-runtime.*.amazonaws.com.cn",
    "api.groq.com",
    "api.mistral.ai",
    "codestral.mistral.ai",
    "api.deepseek.com",
    "api.x.ai",
    "*.api.x.ai",
    "api.together.xyz",
    "api.together.ai",
    "openrouter.ai",
    "api.fireworks.ai",
    "api.cohere.com",
    "api.cohere.ai",
    "router.huggingface.co",
    "api-inference.huggingface.co",
    "api.replicate.com",
    "api.perplexity.ai",
    "api.cerebras.ai",
    "api.sambanova.ai",
    "integrate.api.nvidia.com",
    "api.moonshot.ai",
    "dashscope.aliyuncs.com",
    "dashscope-intl.aliyuncs.com",
};

static bool matches_run(const char *pattern, struct span text)
{
    while (*pattern) {
        if (pattern[0] == '*') {
            bool labels = pattern[1] == '.'; /* may span dots */
            for (size_t n = text.len; n > 0; n--)
                if ((labels || !memchr(text.ptr, '.', n)) &&
                    matches_run(pattern + 1, span_skip(text, n)))
                    return true;
            return false;
        }
        if (text.len == 0 || *pattern != *text.ptr)
            return false;
        pattern++;
        text = span_skip(text, 1);
    }
    return text.len == 0;
}

bool shape_known_host(struct span host)
{
    for (size_t i = 0; i < sizeof known_hosts / sizeof *known_hosts; i++)
        if (matches_run(known_hosts[i], host))
            return true;
    return false;
}

/* --- models in the path ---------------------------------------------------------------------- */

/* Where `needle` begins in `text`; text.len when nowhere. */
static size_t find(struct span text, struct span needle)
{
    if (needle.len <= text.len)
        for (size_t i = 0; i + needle.len <= text.len; i++)
            if (memcmp(text.ptr + i, needle.ptr, needle.len) == 0)
                return i;
    return text.len;
}

static bool contains(struct span text, struct span needle)
{
    return find(text, needle) < text.len;
}

static struct span after(struct span text, struct span marker)
{
    size_t at = find(text, marker);

    return at < text.len ? span_skip(text, at + marker.len) : SPAN_NONE;
}

static struct span until(struct span text, char stop)
{
    const char *end = text.len ? memchr(text.ptr, stop, text.len) : NULL;

    return end ? span_of(text.ptr, (size_t)(end - text.ptr)) : text;
}

static struct span until_last(struct span text, char stop)
{
    for (size_t i = text.len; i > 0; i--)
        if (text.ptr[i - 1] == stop)
            return span_of(text.ptr, i - 1);
    return SPAN_NONE;
}

static struct shape in_path(enum api api, struct span model)
{
    return (struct shape){api, model.len > 0 ? MODEL_IN_PATH : MODEL_NONE, model};
}

/* Gemini and Vertex: …/models/{m}:verb */
static struct shape gemini_shape(struct span path)
{
    static const struct span verbs[] = {
        SPAN_LIT(":generateContent"),
        SPAN_LIT(":streamGenerateContent"),
        SPAN_LIT(":embedContent"),
        SPAN_LIT(":batchEmbedContents"),
        SPAN_LIT(":countTokens"),
        SPAN_LIT(":predict"),
        SPAN_LIT(":streamPredict"),
        SPAN_LIT(":rawPredict"),
        SPAN_LIT(":streamRawPredict"),
        SPAN_LIT(":predictLongRunning"),
        SPAN_LIT(":serverStreamingPredict"),
    };

    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        if (!span_ends(path, verbs[i]))
            continue;
        struct span model = after(path, SPAN_LIT("/models/"));
        if (!model.ptr)
            model = after(path, SPAN_LIT("/endpoints/"));
        if (model.len > verbs[i].len)
            return in_path(API_GEMINI, span_of(model.ptr, model.len - verbs[i].len));
    }
    return (struct shape){API_GEMINI, MODEL_NONE, SPAN_NONE};
}

/* Bedrock: from /model/ to the LAST '/': ARNs hold slashes, coded or not. */
static struct shape bedrock_shape(struct span path)
{
    static const struct span verbs[] = {
        SPAN_LIT("/invoke"),
        SPAN_LIT("/invoke-with-response-stream"),
        SPAN_LIT("/converse"),
        SPAN_LIT("/converse-stream"),
    };

    if (span_starts(path, SPAN_LIT("/model/")))
        for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
            if (span_ends(path, verbs[i]))
                return in_path(API_BEDROCK, until_last(span_skip(path, 7), '/'));
    return (struct shape){API_BEDROCK, MODEL_NONE, SPAN_NONE};
}

/* {a}/{b} of ".../{a}/{b}/tail" */
static struct shape replicate_shape(struct span path)
{
    struct span model = after(path, SPAN_LIT("/v1/models/"));

    if (!model.ptr)
        model = after(path, SPAN_LIT("/v1/deployments/"));
    if (model.ptr && span_ends(model, SPAN_LIT("/predictions")))
        return in_path(API_OPENAI, until_last(model, '/'));
    return (struct shape){API_OPENAI, MODEL_NONE, SPAN_NONE};
}

static struct shape path_shape(struct span path)
{
    struct span model;
    struct shape shape;

    if ((model = after(path, SPAN_LIT("/openai/deployments/"))).ptr &&
        memchr(model.ptr, '/', model.len))
        return in_path(API_OPENAI, until(model, '/'));
    shape = bedrock_shape(path);
    if (shape.place == MODEL_NONE)
        shape = gemini_shape(path);
    if (shape.place == MODEL_NONE)
        shape = replicate_shape(path);
    if (shape.place == MODEL_NONE && (model = after(path, SPAN_LIT("/hf-inference/models/"))).ptr) {
        /* {org}/{name}, then perhaps /pipeline or /v1/… */
        struct span org = until(model, '/');
        struct span name = until(span_skip(model, org.len + 1), '/');
        shape = in_path(API_OPENAI, name.len ? span_of(model.ptr, org.len + 1 + name.len) : org);
    }
    return shape;
}

/* --- models in the body ---------------------------------------------------------------------- */

/* Ends of paths whose body names the model; gateways mount them below any prefix. */
static const struct {
    struct span end;
    enum api api;
} body_paths[] = {
    {SPAN_LIT("/chat/completions"), API_OPENAI},
    {SPAN_LIT("/v1/responses"), API_OPENAI},
    {SPAN_LIT("/openai/responses"), API_OPENAI},
    {SPAN_LIT("/v1/responses/input_tokens"), API_OPENAI},
    {SPAN_LIT("/v1/responses/compact"), API_OPENAI},
    {SPAN_LIT("/v1/embeddings"), API_OPENAI},
    {SPAN_LIT("/openai/embeddings"), API_OPENAI},
    {SPAN_LIT("/v1/completions"), API_OPENAI},
    {SPAN_LIT("/fim/completions"), API_OPENAI},
    {SPAN_LIT("/agents/completions"), API_OPENAI},
    {SPAN_LIT("/v1/moderations"), API_OPENAI},
    {SPAN_LIT("/v1/rerank"), API_OPENAI},
    {SPAN_LIT("/images/generations"), API_OPENAI},
    {SPAN_LIT("/images/edits"), API_OPENAI},
    {SPAN_LIT("/images/variations"), API_OPENAI},
    {SPAN_LIT("/audio/transcriptions"), API_OPENAI},
    {SPAN_LIT("/audio/translations"), API_OPENAI},
    {SPAN_LIT("/audio/speech"), API_OPENAI},
    {SPAN_LIT("/v1/messages"), API_ANTHROPIC},
    {SPAN_LIT("/v1/messages/count_tokens"), API_ANTHROPIC},
    {SPAN_LIT("/v1/complete"), API_ANTHROPIC},
    {SPAN_LIT("/v1/chat"), API_COHERE},
    {SPAN_LIT("/v2/chat"), API_COHERE},
    {SPAN_LIT("/v1/embed"), API_COHERE},
    {SPAN_LIT("/v2/embed"), API_COHERE},
    {SPAN_LIT("/v2/rerank"), API_COHERE},
    {SPAN_LIT("/v1beta/openai/embeddings"), API_OPENAI},
    {SPAN_LIT("/v1beta/openai/responses"), API_OPENAI},
};

/* Ollama's own: at the start of the path only, they are common words elsewhere. */
static const struct span ollama_paths[] = {
    SPAN_LIT("/api/chat"),
    SPAN_LIT("/api/generate"),
    SPAN_LIT("/api/embed"),
    SPAN_LIT("/api/embeddings"),
};

static struct shape body_shape(struct span host, struct span path)
{
    bool azure = span_ends(host, SPAN_LIT(".azure.com"));

    for (size_t i = 0; i < sizeof ollama_paths / sizeof *ollama_paths; i++)
        if (span_eq(path, ollama_paths[i]))
            return (struct shape){API_OLLAMA, MODEL_IN_BODY, SPAN_NONE};
    for (size_t i = 0; i < sizeof body_paths / sizeof *body_paths; i++)
        if (span_ends(path, body_paths[i].end))
            return (struct shape){body_paths[i].api, MODEL_IN_BODY, SPAN_NONE};
    if (azure && contains(path, SPAN_LIT("/openai/v1/")))
        return (struct shape){API_OPENAI, MODEL_IN_BODY, SPAN_NONE};
    if (span_ends(path, SPAN_LIT("/v1/predictions")) &&
        span_eq(host, SPAN_LIT("api.replicate.com")))
        return (struct shape){API_OPENAI, MODEL_IN_BODY_VERSION, SPAN_NONE};
    return (struct shape){API_OPENAI, MODEL_NONE, SPAN_NONE};
}

/* --- both ------------------------------------------------------------------------------------ */

/* Paths are shared by many; some hosts settle the dialect. */
static enum api host_api(struct span host, enum api by_path)
{
    if (span_ends(host, SPAN_LIT("mistral.ai")))
        return API_MISTRAL;
    if (span_eq(host, SPAN_LIT("api.cohere.com")) || span_eq(host, SPAN_LIT("api.cohere.ai")))
        return API_COHERE;
    if (span_eq(host, SPAN_LIT("api.anthropic.com")))
        return API_ANTHROPIC;
    if (span_starts(host, SPAN_LIT("bedrock-runtime")))
        return API_BEDROCK;
    return by_path;
}

struct shape shape_of(struct span method, struct span host, struct span path)
{
    struct shape shape = {API_OPENAI, MODEL_NONE, SPAN_NONE};

    while (path.len > 1 && path.ptr[path.len - 1] == '/')
        path.len--;
    if (span_eq(method, SPAN_LIT("POST")) || span_eq(method, SPAN_LIT("PUT"))) {
        shape = path_shape(path);
        if (shape.place == MODEL_NONE)
            shape = body_shape(host, path);
    }
    shape.api = host_api(host, shape.api);
    return shape;
}
