#include "http/error_word.h"

/* How a word begins, or all of it. */
struct word {
    struct span text;
    enum error_kind kind;
    bool begins; /* with more to follow */
};

#define WHOLE(literal, kind)                                                                       \
    {                                                                                              \
        SPAN_LIT(literal), kind, false                                                             \
    }
#define BEGINS(literal, kind)                                                                      \
    {                                                                                              \
        SPAN_LIT(literal), kind, true                                                              \
    }

/* Of OpenAI and what speaks like it, Anthropic, google.rpc.Code, Bedrock's exceptions, vLLM's class
 * names, TGI's error_type. */
static const struct word words[] = {
    BEGINS("rate_limit", ERROR_RATE), /* _error, _exceeded */
    WHOLE("insufficient_quota", ERROR_QUOTA),
    WHOLE("billing_hard_limit_reached", ERROR_QUOTA),
    WHOLE("slow_down", ERROR_RATE),
    WHOLE("too_many_requests", ERROR_RATE),
    WHOLE("exceeded_current_quota_error", ERROR_QUOTA), /* Moonshot */
    WHOLE("resource_exhausted", ERROR_RATE),
    WHOLE("ThrottlingException", ERROR_RATE),
    WHOLE("ServiceQuotaExceededException", ERROR_QUOTA),
    WHOLE("RateLimitError", ERROR_RATE),

    BEGINS("invalid_", ERROR_CALLER), /* _request_error, _prompt, _api_key, _image…, _argument */
    BEGINS("image_", ERROR_CALLER),   /* _too_large, _parse_error, _content_policy_violation */
    BEGINS("unsupported_", ERROR_CALLER),
    WHOLE("context_length_exceeded", ERROR_CALLER),
    WHOLE("string_above_max_length", ERROR_CALLER),
    WHOLE("content_filter", ERROR_CALLER),
    WHOLE("content_policy_violation", ERROR_CALLER),
    WHOLE("model_not_found", ERROR_CALLER),
    WHOLE("authentication_error", ERROR_CALLER),
    WHOLE("permission_error", ERROR_CALLER),
    WHOLE("billing_error", ERROR_CALLER),
    WHOLE("not_found_error", ERROR_CALLER),
    WHOLE("request_too_large", ERROR_CALLER),
    WHOLE("failed_precondition", ERROR_CALLER),
    WHOLE("out_of_range", ERROR_CALLER),
    WHOLE("not_found", ERROR_CALLER),
    WHOLE("permission_denied", ERROR_CALLER),
    WHOLE("unauthenticated", ERROR_CALLER),
    WHOLE("cancelled", ERROR_CALLER),
    WHOLE("ValidationException", ERROR_CALLER),
    WHOLE("AccessDeniedException", ERROR_CALLER),
    WHOLE("ResourceNotFoundException", ERROR_CALLER),
    WHOLE("BadRequestError", ERROR_CALLER),
    WHOLE("AuthenticationError", ERROR_CALLER),
    WHOLE("PermissionDeniedError", ERROR_CALLER),
    WHOLE("NotFoundError", ERROR_CALLER),
    WHOLE("UnprocessableEntityError", ERROR_CALLER),
    WHOLE("validation", ERROR_CALLER),

    WHOLE("overloaded_error", ERROR_FAILURE),
    WHOLE("api_error", ERROR_FAILURE),
    WHOLE("server_error", ERROR_FAILURE),
    WHOLE("timeout_error", ERROR_FAILURE),
    WHOLE("internal", ERROR_FAILURE),
    WHOLE("unavailable", ERROR_FAILURE),
    WHOLE("deadline_exceeded", ERROR_FAILURE),
    WHOLE("InternalServerException", ERROR_FAILURE),
    WHOLE("ModelStreamErrorException", ERROR_FAILURE),
    WHOLE("ModelTimeoutException", ERROR_FAILURE),
    WHOLE("ServiceUnavailableException", ERROR_FAILURE),
    WHOLE("InternalServerError", ERROR_FAILURE),
    WHOLE("overloaded", ERROR_FAILURE),
};

/* 408 (a time-out), 424 (Bedrock's model) and 498 (Groq's capacity) are the provider's. */
static enum error_kind kind_of_status(unsigned status)
{
    if (status == 429)
        return ERROR_RATE;
    if (status == 408 || status == 424 || status == 498 || (status >= 500 && status <= 599))
        return ERROR_FAILURE;
    return status >= 400 && status <= 499 ? ERROR_CALLER : ERROR_UNKNOWN;
}

static bool is_status(struct span word)
{
    return word.len == 3 && word.ptr[0] >= '1' && word.ptr[0] <= '9' && word.ptr[1] >= '0' &&
           word.ptr[1] <= '9' && word.ptr[2] >= '0' && word.ptr[2] <= '9';
}

enum error_kind error_word_kind(struct span word)
{
    if (is_status(word))
        return kind_of_status((unsigned)(word.ptr[0] - '0') * 100 +
                              (unsigned)(word.ptr[1] - '0') * 10 + (unsigned)(word.ptr[2] - '0'));
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].begins ? span_istarts(word, words[i].text) : span_ieq(word, words[i].text))
            return words[i].kind;
    return ERROR_UNKNOWN;
}

enum error_kind error_word_of_kinds(unsigned kinds)
{
    return kinds & 1u << ERROR_QUOTA    ? ERROR_QUOTA
           : kinds & 1u << ERROR_RATE   ? ERROR_RATE
           : kinds & 1u << ERROR_CALLER ? ERROR_CALLER
                                        : ERROR_FAILURE;
}
