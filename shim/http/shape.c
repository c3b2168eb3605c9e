#include "http/shape.h"

/* --- hosts ----------------------------------------------------------------------------------- */

/* Shipped providers. A leading "*." stands for one or more labels; a '*' elsewhere for a run
 * without a dot (regions, resources). */
static const struct span known_hosts[] = {
    SPAN_LIT("api.openai.com"),
    SPAN_LIT("*.api.openai.com"), /* eu.api.openai.com and other regions */
    SPAN_LIT("*.openai.azure.com"),
    SPAN_LIT("*.openai.azure.us"),
    SPAN_LIT("*.openai.azure.cn"),
    SPAN_LIT("*.services.ai.azure.com"),
    SPAN_LIT("*.cognitiveservices.azure.com"),
    SPAN_LIT("*.inference.ai.azure.com"),
    SPAN_LIT("*.models.ai.azure.com"),
    SPAN_LIT("api.anthropic.com"),
    SPAN_LIT("generativelanguage.googleapis.com"),
    SPAN_LIT("aiplatform.googleapis.com"),
    SPAN_LIT("*-aiplatform.googleapis.com"),
    SPAN_LIT("aiplatform.*.rep.googleapis.com"),
    SPAN_LIT("bedrock-runtime.*.amazonaws.com"),
    SPAN_LIT("bedrock-runtime-fips.*.amazonaws.com"),
    SPAN_LIT("bedrock-runtime.*.amazonaws.com.cn"),
    SPAN_LIT("api.groq.com"),
    SPAN_LIT("api.mistral.ai"),
    SPAN_LIT("codestral.mistral.ai"),
    SPAN_LIT("api.deepseek.com"),
    SPAN_LIT("api.x.ai"),
    SPAN_LIT("*.api.x.ai"),
    SPAN_LIT("api.together.xyz"),
    SPAN_LIT("api.together.ai"),
    SPAN_LIT("openrouter.ai"),
    SPAN_LIT("api.fireworks.ai"),
    SPAN_LIT("api.cohere.com"),
    SPAN_LIT("api.cohere.ai"),
    SPAN_LIT("router.huggingface.co"),
    SPAN_LIT("api-inference.huggingface.co"),
    SPAN_LIT("api.replicate.com"),
    SPAN_LIT("api.perplexity.ai"),
    SPAN_LIT("api.cerebras.ai"),
    SPAN_LIT("api.sambanova.ai"),
    SPAN_LIT("integrate.api.nvidia.com"),
    SPAN_LIT("api.moonshot.ai"),
    SPAN_LIT("api.moonshot.cn"),
    SPAN_LIT("dashscope.aliyuncs.com"),
    SPAN_LIT("dashscope-intl.aliyuncs.com"),
    SPAN_LIT("dashscope-us.aliyuncs.com"),
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

/* Does the text end as the pattern does behind its last '*'? Told at the first byte or two of most
 * pairs, from their ends. */
static bool ends_alike(struct span pattern, struct span text)
{
    while (pattern.len > 0 && pattern.ptr[pattern.len - 1] != '*') {
        if (text.len == 0 || text.ptr[--text.len] != pattern.ptr[--pattern.len])
            return false;
    }
    return pattern.len > 0 || text.len == 0;
}

bool shape_known_host(struct span host)
{
    for (size_t i = 0; i < sizeof known_hosts / sizeof *known_hosts; i++)
        if (ends_alike(known_hosts[i], host) && matches_run(known_hosts[i].ptr, host))
            return true;
    return false;
}

/* --- models in the path ---------------------------------------------------------------------- */

/* Where `needle`, of two bytes at least, begins in `text`; text.len when nowhere. */
static size_t find(struct span text, struct span needle)
{
    for (size_t i = 0; i + needle.len <= text.len; i++)
        /* The second byte first: each path has many slashes. */
        if (text.ptr[i + 1] == needle.ptr[1] && memcmp(text.ptr + i, needle.ptr, needle.len) == 0)
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

/* Gemini and Vertex: …/models/{m}:verb. TensorFlow Serving has /v1/models/{m}:predict on anybody's
 * host, so the predict verbs count only where the host or the path is Google's. */
static struct shape gemini_shape(struct span host, struct span path)
{
    static const struct {
        struct span text;
        bool common;
    } verbs[] = {
        {SPAN_LIT(":generateContent"), false},   {SPAN_LIT(":streamGenerateContent"), false},
        {SPAN_LIT(":embedContent"), false},      {SPAN_LIT(":batchEmbedContents"), false},
        {SPAN_LIT(":countTokens"), false},       {SPAN_LIT(":rawPredict"), false},
        {SPAN_LIT(":streamRawPredict"), false},  {SPAN_LIT(":predict"), true},
        {SPAN_LIT(":streamPredict"), true},      {SPAN_LIT(":serverStreamingPredict"), true},
        {SPAN_LIT(":predictLongRunning"), true},
    };
    static const struct span marks[] = {
        SPAN_LIT("/models/"),
        SPAN_LIT("/tunedModels/"),
        SPAN_LIT("/endpoints/"),
    };
    bool is_google =
        span_ends(host, SPAN_LIT(".googleapis.com")) || contains(path, SPAN_LIT("/projects/"));

    for (size_t v = 0; v < sizeof verbs / sizeof *verbs; v++) {
        if (!span_ends(path, verbs[v].text) || (verbs[v].common && !is_google))
            continue;
        for (size_t m = 0; m < sizeof marks / sizeof *marks; m++) {
            struct span model = after(path, marks[m]);
            if (model.len > verbs[v].text.len)
                return in_path(API_GEMINI, span_of(model.ptr, model.len - verbs[v].text.len));
        }
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
    struct span model = after(path, SPAN_LIT("/model/"));

    if (model.ptr)
        for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
            if (span_ends(path, verbs[i]))
                return in_path(API_BEDROCK, until_last(model, '/'));
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

/* {org}/{name}, or one bare {name}, then perhaps /pipeline/… or /v1/… */
static struct shape hugging_face_shape(struct span path)
{
    struct span model = after(path, SPAN_LIT("/hf-inference/models/"));

    if (!model.ptr)
        return (struct shape){API_OPENAI, MODEL_NONE, SPAN_NONE};
    struct span first = span_until(model, '/');
    struct span second = span_until(span_skip(model, first.len + 1), '/');
    if (first.len == 0 || second.len == 0 || span_eq(second, SPAN_LIT("pipeline")) ||
        span_eq(second, SPAN_LIT("v1")))
        return in_path(API_OPENAI, first);
    return in_path(API_OPENAI, span_of(model.ptr, first.len + 1 + second.len));
}

static struct shape path_shape(struct span host, struct span path)
{
    struct span model;
    struct shape shape;

    if ((model = after(path, SPAN_LIT("/openai/deployments/"))).ptr &&
        memchr(model.ptr, '/', model.len))
        return in_path(API_OPENAI, span_until(model, '/'));
    shape = bedrock_shape(path);
    if (shape.place == MODEL_NONE)
        shape = gemini_shape(host, path);
    if (shape.place == MODEL_NONE)
        shape = replicate_shape(path);
    if (shape.place == MODEL_NONE)
        shape = hugging_face_shape(path);
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
    {SPAN_LIT("/embeddings"), API_OPENAI},
    {SPAN_LIT("/v1/completions"), API_OPENAI},
    {SPAN_LIT("/fim/completions"), API_OPENAI},
    {SPAN_LIT("/agents/completions"), API_OPENAI},
    {SPAN_LIT("/v1/moderations"), API_OPENAI},
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
    {SPAN_LIT("/rerank"), API_OPENAI}, /* behind /v2/rerank: the first that fits decides */
};

/* Words that other services use too (surveys have responses, forums have moderations): without
 * /v1 before them only as the whole path or at a provider. */
static const struct span shared_words[] = {
    SPAN_LIT("/responses"),
    SPAN_LIT("/moderations"),
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
    for (size_t i = 0; i < sizeof ollama_paths / sizeof *ollama_paths; i++)
        if (span_eq(path, ollama_paths[i]))
            return (struct shape){API_OLLAMA, MODEL_IN_BODY, SPAN_NONE};
    for (size_t i = 0; i < sizeof body_paths / sizeof *body_paths; i++)
        if (span_ends(path, body_paths[i].end))
            return (struct shape){body_paths[i].api, MODEL_IN_BODY, SPAN_NONE};
    for (size_t i = 0; i < sizeof shared_words / sizeof *shared_words; i++)
        if (span_ends(path, shared_words[i]) &&
            (path.len == shared_words[i].len || shape_known_host(host)))
            return (struct shape){API_OPENAI, MODEL_IN_BODY, SPAN_NONE};
    /* Predictions are anybody's word: Replicate's own, or a gateway that says so in its path. */
    if (span_ends(path, SPAN_LIT("/v1/predictions")) &&
        (span_eq(host, SPAN_LIT("api.replicate.com")) || contains(path, SPAN_LIT("/replicate/"))))
        return (struct shape){API_OPENAI, MODEL_IN_BODY_VERSION, SPAN_NONE};
    return (struct shape){API_OPENAI, MODEL_NONE, SPAN_NONE};
}

/* --- both ------------------------------------------------------------------------------------ */

/* Paths are shared by many; some hosts settle the dialect. */
static enum api host_api(struct span host, enum api by_path, enum model_place place)
{
    if (span_ends(host, SPAN_LIT(".mistral.ai")))
        return API_MISTRAL;
    if (span_eq(host, SPAN_LIT("api.cohere.com")) || span_eq(host, SPAN_LIT("api.cohere.ai")))
        return API_COHERE;
    if (span_eq(host, SPAN_LIT("api.anthropic.com")))
        return API_ANTHROPIC;
    if (span_starts(host, SPAN_LIT("bedrock-runtime")) &&
        contains(host, SPAN_LIT(".amazonaws.com")))
        return API_BEDROCK;
    if (span_ends(host, SPAN_LIT(".googleapis.com")) && place == MODEL_NONE)
        return API_GEMINI;
    return by_path;
}

struct shape shape_of(struct span method, struct span host, struct span path)
{
    struct shape shape = {API_OPENAI, MODEL_NONE, SPAN_NONE};

    while (path.len > 1 && path.ptr[path.len - 1] == '/')
        path.len--;
    if (span_eq(method, SPAN_LIT("POST")) || span_eq(method, SPAN_LIT("PUT"))) {
        shape = path_shape(host, path);
        if (shape.place == MODEL_NONE)
            shape = body_shape(host, path);
    }
    shape.api = host_api(host, shape.api, shape.place);
    return shape;
}
