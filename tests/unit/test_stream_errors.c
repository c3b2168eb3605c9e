/* What FIELD-NOTES 7.14 is about: errors inside a 200, as each provider writes them. */
#include "stream_text_fixture.h"

static void test_errors_of_anthropic(void **state)
{
    static const struct {
        const char *type;
        enum stream_state expected;
    } errors[] = {
        {"overloaded_error", STREAM_FAILURE},    {"api_error", STREAM_FAILURE},
        {"timeout_error", STREAM_FAILURE},       {"a_new_error", STREAM_FAILURE},
        {"rate_limit_error", STREAM_RATE},       {"invalid_request_error", STREAM_CALLER},
        {"authentication_error", STREAM_CALLER}, {"permission_error", STREAM_CALLER},
        {"not_found_error", STREAM_CALLER},      {"request_too_large", STREAM_CALLER},
    };
    char body[1024];

    (void)state;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        snprintf(body, sizeof body,
                 "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":"
                 "\"msg_1\"}}\n\n" DELTA "event: error\ndata: {\"type\":\"error\",\"error\":{"
                 "\"type\":\"%s\",\"message\":\"Overloaded\"},\"request_id\":\"r\"}\n\n",
                 errors[i].type);
        is(SSE, body, errors[i].expected);
    }
}

static const struct {
    const char *error;
    enum stream_state expected;
} openai_errors[] = {
    {"{\"message\":\"m\",\"type\":\"server_error\",\"param\":null,\"code\":null}", STREAM_FAILURE},
    {"{\"message\":\"m\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":"
     "\"context_length_exceeded\"}",
     STREAM_CALLER},
    {"{\"message\":\"m\",\"type\":\"tokens\",\"code\":\"rate_limit_exceeded\"}", STREAM_RATE},
    {"{\"code\":\"insufficient_quota\",\"message\":\"m\",\"type\":\"insufficient_quota\"}",
     STREAM_QUOTA},
    {"{\"type\":\"requests\",\"code\":\"billing_hard_limit_reached\"}", STREAM_QUOTA},
    {"{\"type\":\"exceeded_current_quota_error\",\"code\":429}", STREAM_QUOTA},
    {"{\"type\":\"invalid_request_error\",\"code\":\"rate_limit_exceeded\"}", STREAM_RATE},
    {"{\"message\":\"m\",\"code\":\"content_filter\"}", STREAM_CALLER},
    /* LiteLLM writes statuses as text, vLLM as numbers, TGI under a name of its own */
    {"{\"message\":\"m\",\"type\":\"None\",\"param\":\"None\",\"code\":\"500\"}", STREAM_FAILURE},
    {"{\"message\":\"m\",\"type\":\"None\",\"code\":\"400\"}", STREAM_CALLER},
    {"{\"object\":\"error\",\"type\":\"BadRequestError\",\"code\":null}", STREAM_CALLER},
    {"{\"message\":\"m\",\"http_status_code\":422}", STREAM_CALLER},
    {"{\"message\":\"m\",\"code\":401}", STREAM_CALLER},
    {"{\"message\":\"m\",\"code\":403}", STREAM_CALLER},
    {"{\"message\":\"m\",\"code\":404}", STREAM_CALLER},
    {"{\"message\":\"m\",\"code\":413}", STREAM_CALLER},
    {"{\"message\":\"m\",\"code\":429}", STREAM_RATE},
    {"{\"message\":\"m\",\"code\":408}", STREAM_FAILURE},
    {"{\"message\":\"m\",\"code\":424}", STREAM_FAILURE},
    {"{\"message\":\"m\",\"code\":498}", STREAM_FAILURE},
    {"{\"message\":\"m\",\"code\":529}", STREAM_FAILURE},
    {"{\"message\":\"m\",\"code\":7}", STREAM_FAILURE},
    {"{\"message\":\"m\",\"code\":429.5}", STREAM_FAILURE},
    {"{}", STREAM_FAILURE},
    {"[]", STREAM_FAILURE},
    {"[{\"code\":400}]", STREAM_FAILURE},
    {"\"something broke\"", STREAM_FAILURE},
    {"\"rate_limit_exceeded\"", STREAM_RATE},
    {"true", STREAM_FAILURE},
    {"{\"error\":{\"type\":\"invalid_request_error\"}}", STREAM_CALLER},
    /* only whole words of a length that they have */
    {"{\"code\":\"xcontext_length_exceeded\"}", STREAM_FAILURE},
    {"{\"code\":\"context_length_exceeded_not\"}", STREAM_FAILURE},
    {"{\"code\":\"invalid_01234567890123456789012345678901234567\"}", STREAM_CALLER},
    {"{\"code\":\"invalid_012345678901234567890123456789012345678\"}", STREAM_CALLER},
    {"{\"code\":\"invalid_0123456789012345678901234567890123456789\"}", STREAM_FAILURE},
    {"{\"code\":\"inv\\u0061lid_prompt\"}", STREAM_FAILURE},
    {"{\"a_name_that_is_much_longer_than_any_that_ever_matters\":{\"a\":[]},\"code\":400}",
     STREAM_CALLER},
    {"{\"a_name_that_is_much_longer_than_any_that_ever_matters\":\"a\",\"code\":400}",
     STREAM_CALLER},
    {"{\"metadata\":{\"code\":400},\"message\":\"code\\\":400\"}", STREAM_FAILURE},
};

static void test_errors_of_openai(void **state)
{
    char body[1024];

    (void)state;
    for (size_t i = 0; i < sizeof openai_errors / sizeof *openai_errors; i++) {
        snprintf(body, sizeof body, CHUNK "data: {\"error\":%s}\n\ndata: [DONE]\n\n",
                 openai_errors[i].error);
        is(SSE, body, openai_errors[i].expected);
        snprintf(body, sizeof body, "\n {\"id\":\"x\",\"choices\":[],\"error\":%s} ",
                 openai_errors[i].error);
        is(JSON, body, openai_errors[i].expected);
    }
}

/* /v2/chat ends as ever, and says in the end's delta that nothing good came of it. */
static void test_errors_of_cohere(void **state)
{
#define END "event: message-end\ndata: {\"type\":\"message-end\",\"id\":\"c\",\"delta\":"
    (void)state;
    is(SSE, END "{\"error\":\"m\",\"finish_reason\":\"ERROR\"}}\n\n", STREAM_FAILURE);
    is(SSE, END "{\"finish_reason\":\"ERROR\",\"usage\":{\"tokens\":1}}}\n\n", STREAM_FAILURE);
    is(SSE, END "{\"finish_reason\":\"MAX_TOKENS\",\"error\":\"m\"}}\n\n", STREAM_FAILURE);
    is(SSE, END "{\"error\":null,\"finish_reason\":\"COMPLETE\"}}\n\n", STREAM_OVER);
    is(SSE, END "{\"finish_reason\":\"ERROR_OF_ANOTHER_KIND\"}}\n\n", STREAM_OVER);
    is(SSE, END "{\"message\":{\"finish_reason\":\"ERROR\"}}}\n\n", STREAM_OVER);
    is(SSE, END "\"ERROR\",\"finish_reason\":\"ERROR\"}\n\n", STREAM_OVER);
    /* of an event that is no end the same words say nothing */
    is_at_end(SSE,
              "event: content-delta\ndata: {\"delta\":{\"finish_reason\":\"ERROR\"}}\n\n"
              "data: {\"delta\":{\"finish_reason\":\"ERROR\"}}\n\n",
              STREAM_RUNNING);
#undef END
}

/* /v1/responses tells of an error without a member of that name, or deeper inside. */
static void test_errors_of_responses(void **state)
{
    (void)state;
    is(SSE,
       "event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"m\","
       "\"param\":null,\"sequence_number\":1}\n\n",
       STREAM_FAILURE);
    is(SSE, "data: {\"code\":\"rate_limit_exceeded\",\"type\":\"error\",\"message\":\"m\"}\n\n",
       STREAM_RATE);
    is(SSE,
       "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"r\","
       "\"status\":\"in_progress\",\"error\":null}}\n\n"
       "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"status\":"
       "\"failed\",\"error\":{\"code\":\"invalid_prompt\",\"message\":\"m\"}}}\n\n",
       STREAM_CALLER);
    is(SSE,
       "event: response.failed\ndata: {\"response\":{\"error\":{\"code\":\"server_error\"}}}\n\n",
       STREAM_FAILURE);
    is(SSE, "event: response.failed\ndata: {\"response\":{\"error\":null}}\n\n", STREAM_FAILURE);
    is(SSE,
       "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"error\":"
       "null,\"output\":[{\"error\":1}]}}\n\n",
       STREAM_OVER);
    is(SSE, "event: response.incomplete\ndata: {\"response\":{}}\n\n", STREAM_OVER);
}

static void test_errors_of_openrouter(void **state)
{
    (void)state;
    is(JSON, "{\"error\":{\"code\":502,\"message\":\"Provider returned error\"}}", STREAM_FAILURE);
    is(JSON, "\n\n   \n{\"error\":{\"code\":429,\"message\":\"m\"},\"user_id\":\"u\"}",
       STREAM_RATE);
    is(JSON,
       "{\"id\":\"g\",\"choices\":[{\"message\":{\"error\":1}},{\"error\":{\"code\":400},"
       "\"finish_reason\":\"error\"}]}",
       STREAM_CALLER);
    is(SSE,
       ": OPENROUTER PROCESSING\n\n" CHUNK
       "data: {\"id\":\"g\",\"provider\":\"p\",\"error\":{\"code\":\"server_error\",\"message\":"
       "\"Provider disconnected\"},\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},"
       "\"finish_reason\":\"error\"}]}\n\n",
       STREAM_FAILURE);
    is(SSE,
       "data: {\"id\":\"g\",\"choices\":[{\"delta\":{},\"finish_reason\":\"error\",\"error\":{"
       "\"code\":429,\"message\":\"m\"}}]}\n\n",
       STREAM_RATE);
    is(SSE, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"error\"}]}\n\n",
       STREAM_FAILURE); /* Mistral's too */
}

static void test_errors_of_gemini(void **state)
{
    (void)state;
    is(SSE,
       "data: {\"candidates\": [{\"content\": {\"parts\": [{\"text\": \"a\"}]}}]}\r\n\r\n"
       "data: {\"error\": {\"code\": 503,\"message\": \"overloaded\",\"status\": "
       "\"UNAVAILABLE\"}}\r\n\r\n",
       STREAM_FAILURE);
    is(JSON,
       "[{\"candidates\": [{\"content\": {}}]}\n,\r\n{\"error\": {\"code\": 429,\"status\": "
       "\"RESOURCE_EXHAUSTED\"}}]\n",
       STREAM_RATE);
    is(JSON,
       "[{\n  \"error\": {\n    \"code\": 400,\n    \"status\": \"INVALID_ARGUMENT\"\n  }\n}\n]",
       STREAM_CALLER);
    /* the words of one element say nothing of the next */
    is(JSON, "[{\"status\":\"INVALID_ARGUMENT\"},{\"error\":{\"code\":500}},{\"code\":400}]",
       STREAM_FAILURE);
    /* deeper than is looked at */
    is(JSON, "[{\"choices\":[{\"error\":{\"error\":{\"error\":{\"error\":{\"code\":400}}}}}]}]",
       STREAM_FAILURE);
    is(JSON, "[{\"candidates\":[]},[{\"error\":1}],\"error\",1]", STREAM_BLIND);
}

static void test_errors_of_ollama(void **state)
{
    (void)state;
    struct watched w = {API_OLLAMA, NDJSON, NULL,
                        SPAN_LIT("{\"response\":\"a\",\"done\":false}\n{\"error\":\"unexpected "
                                 "EOF\"}\n")};

    check_watched(&w, STREAM_FAILURE, STREAM_FAILURE);
    w.body = SPAN_LIT("{\"error\":\"an error was encountered\",\"status_code\":500}");
    check_watched(&w, STREAM_RUNNING, STREAM_FAILURE);
    w.body = SPAN_LIT("{\"message\":{\"content\":\"error\"},\"done\":false}\r\n"
                      "{\"message\":{\"done\":true},\"done\":true,\"done_reason\":\"stop\"}\r\n");
    check_watched(&w, STREAM_OVER, STREAM_OVER);
    w.body = SPAN_LIT("{\"a\":\"\",\"done\" : true}");
    check_watched(&w, STREAM_RUNNING, STREAM_OVER);
    w.body = SPAN_LIT("{\"done\":\"true\"}\n{\"done\":false}\n[{\"done\":true}]\n{\"done\":1}\n");
    check_watched(&w, STREAM_RUNNING, STREAM_RUNNING);
    w.body = SPAN_LIT("no JSON\n{\"a\":\n{\"error\":\"x\"}\n"); /* a line is one document */
    check_watched(&w, STREAM_FAILURE, STREAM_FAILURE);
    w.api = API_COHERE; /* "done" is Ollama's */
    w.type = "application/stream+json";
    w.body = SPAN_LIT("{\"done\":true}\n");
    check_watched(&w, STREAM_RUNNING, STREAM_RUNNING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors_of_anthropic),  cmocka_unit_test(test_errors_of_openai),
        cmocka_unit_test(test_errors_of_cohere),     cmocka_unit_test(test_errors_of_responses),
        cmocka_unit_test(test_errors_of_openrouter), cmocka_unit_test(test_errors_of_gemini),
        cmocka_unit_test(test_errors_of_ollama),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
