/*
 * quota.h - does a 429 say that a quota is spent, which a minute does not bring back, or only that
 * the rate is too high? From the first 4 KiB of its body, by texts that mean nothing else
 * (FIELD-NOTES 5, 7.11). Resumable at any byte, no allocation. Pure.
 *
 *   OpenAI and alike   insufficient_quota, billing_hard_limit_reached (FIELD-NOTES 5);
 *                      exceeded_current_quota_error (Moonshot); OpenRouter: Insufficient credits,
 *                      the code 402, the limit free-models-per-day; and Gemini's, which speaks so
 *                      under /v1beta/openai/
 *   Gemini, Vertex     a quotaId of QuotaFailure with PerDay in it, or a metric with per_day. The
 *                      status RESOURCE_EXHAUSTED and the words "exceeded your current quota" are
 *                      those of the limits per minute, too
 *   Bedrock            the word quota (FIELD-NOTES 5); "Too many tokens per day". "Too many
 *                      requests" and "Too many tokens" are rates
 *   Cohere             a trial key's "API calls / month"; its "/ minute" is a rate
 *   Anthropic, Ollama  none: its 429 is a rate limit
 *   Mistral            as OpenAI's
 */
#ifndef BREAKER_HTTP_QUOTA_H
#define BREAKER_HTTP_QUOTA_H

#include "http/body_search.h"
#include "http/shape.h"

enum quota_state {
    QUOTA_MORE,  /* not known: feed more */
    QUOTA_SPENT, /* park for quota_cooldown, do not probe each minute */
    QUOTA_RATE,  /* a rate limit as far as can be seen */
};

/* Private; plain bytes, copied by assignment. */
struct quota {
    uint8_t state; /* enum quota_state */
    uint8_t api;
    struct body_search search;
};

/* For the body of a 429. `encoding`: its Content-Encoding (SPAN_NONE: none); an encoded body cannot
 * be read, and is QUOTA_RATE at once. */
void quota_init(struct quota *quota, enum api api, struct span encoding);
enum quota_state quota_feed(struct quota *quota, struct span bytes);
/* The body ended, well or not: MORE becomes RATE. */
enum quota_state quota_end(struct quota *quota);

#endif
