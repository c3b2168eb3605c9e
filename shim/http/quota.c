#include "http/quota.h"

#include "http/encoding.h"

struct texts {
    const struct span *first;
    size_t count;
};

#define TEXTS(array)                                                                               \
    {                                                                                              \
        (array), sizeof(array) / sizeof *(array)                                                   \
    }

static const struct span openai[] = {
    SPAN_LIT("insufficient_quota"),
    SPAN_LIT("billing_hard_limit_reached"),
    SPAN_LIT("exceeded_current_quota_error"),
    SPAN_LIT("nsufficient credits"),
    SPAN_LIT("\"code\":402"),
    SPAN_LIT("\"code\": 402"),
    SPAN_LIT("free-models-per-day"),
    SPAN_LIT("PerDay"),
};
static const struct span gemini[] = {SPAN_LIT("PerDay"), SPAN_LIT("per_day")};
static const struct span bedrock[] = {SPAN_LIT("quota"), SPAN_LIT("Quota"),
                                      SPAN_LIT("tokens per day")};
static const struct span cohere[] = {SPAN_LIT("API calls / month")};

static struct texts texts_of(enum api api)
{
    static const struct texts texts[] = {
        [API_OPENAI] = TEXTS(openai),   [API_ANTHROPIC] = {0}, [API_GEMINI] = TEXTS(gemini),
        [API_BEDROCK] = TEXTS(bedrock), [API_OLLAMA] = {0},    [API_COHERE] = TEXTS(cohere),
        [API_MISTRAL] = TEXTS(openai),
    };

    return texts[api];
}

static void quota_decide(struct quota *quota, enum quota_state state)
{
    quota->state = (uint8_t)state;
}

void quota_init(struct quota *quota, enum api api, struct span encoding)
{
    *quota = (struct quota){.api = (uint8_t)api};
    if (texts_of(api).count == 0 || !encoding_is_plain(encoding))
        quota_decide(quota, QUOTA_RATE);
}

enum quota_state quota_feed(struct quota *quota, struct span bytes)
{
    struct texts texts = texts_of((enum api)quota->api);

    if (quota->state != QUOTA_MORE)
        return (enum quota_state)quota->state;
    if (body_search_feed(&quota->search, bytes, texts.first, texts.count))
        quota_decide(quota, QUOTA_SPENT);
    else if (body_search_over(&quota->search))
        quota_decide(quota, QUOTA_RATE);
    return (enum quota_state)quota->state;
}

enum quota_state quota_end(struct quota *quota)
{
    if (quota->state == QUOTA_MORE)
        quota_decide(quota, QUOTA_RATE);
    return (enum quota_state)quota->state;
}
