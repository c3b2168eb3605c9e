/* Errors and ends inside streams and JSON bodies, as providers send them, however they are cut. */
#include "stream_fixture.h"

#include <stdio.h>

#define SSE    "text/event-stream"
#define JSON   "application/json"
#define NDJSON "application/x-ndjson"

/* A chunk and an error of OpenAI's and of what speaks like it. */
#define CHUNK                                                                                      \
    "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0," \
    "\"delta\":{\"content\":\" word\"},\"finish_reason\":null}]}\n\n"
#define DELTA                                                                                      \
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":"   \
    "{\"type\":\"text_delta\",\"text\":\" the \\\"error\\\"\"}}\n\n"

static void is(const char *type, const char *body, enum stream_state expected)
{
    struct watched w = {API_OPENAI, type, NULL, span_str(body)};

    check_watched(&w, expected, expected);
}

/* Nothing is told until the transport ends. */
static void is_at_end(const char *type, const char *body, enum stream_state expected)
{
    struct watched w = {API_OPENAI, type, NULL, span_str(body)};

    check_watched(&w, STREAM_RUNNING, expected);
}

/* --- what FIELD-NOTES 7.14 is about: errors inside a 200 ----------------------------------------
 */

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

static void test_errors_of_openai(void **state)
{
    static const struct {
        const char *error;
        enum stream_state expected;
    } errors[] = {
        {"{\"message\":\"m\",\"type\":\"server_error\",\"param\":null,\"code\":null}",
         STREAM_FAILURE},
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
        {"{\"message\":\"m\",\"type\":\"None\",\"param\":\"None\",\"code\":\"500\"}",
         STREAM_FAILURE},
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
    char body[1024];

    (void)state;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        snprintf(body, sizeof body, CHUNK "data: {\"error\":%s}\n\ndata: [DONE]\n\n",
                 errors[i].error);
        is(SSE, body, errors[i].expected);
        snprintf(body, sizeof body, "\n {\"id\":\"x\",\"choices\":[],\"error\":%s} ",
                 errors[i].error);
        is(JSON, body, errors[i].expected);
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

/* --- ends ------------------------------------------------------------------------------------ */

static void test_clean_ends(void **state)
{
    (void)state;
    is(SSE, CHUNK "data: [DONE]\n\n", STREAM_OVER);
    is(SSE, CHUNK "data:[DONE]\r\n\r\n", STREAM_OVER);
    is(SSE, CHUNK "data: [DONE]\n\n" CHUNK "data: {\"error\":{}}\n\n", STREAM_OVER);
    is(SSE, DELTA "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", STREAM_OVER);
    is(SSE, "data: {\"type\":\"message_stop\"}\nevent: message_stop\n\n", STREAM_OVER);
    is(SSE, "event: message-end\ndata: {\"type\":\"message-end\"}\n\n", STREAM_OVER); /* Cohere */
    is(SSE,
       "event: message-end\ndata: {\"type\":\"message-end\",\"delta\":{\"error\":null,"
       "\"finish_reason\":\"COMPLETE\"}}\n\n",
       STREAM_OVER);
    is(SSE,
       "event: message-end\ndata: {\"type\":\"message-end\",\"delta\":{\"error\":\"no\","
       "\"finish_reason\":\"ERROR\"}}\n\n",
       STREAM_FAILURE);
    is_at_end(SSE, CHUNK "data: [DONE]\n", STREAM_OVER);
    is_at_end(SSE, CHUNK "data: [DONE]", STREAM_OVER);
    is_at_end(SSE, CHUNK "event: message_stop\n", STREAM_OVER);
    is_at_end(SSE, CHUNK "event: message_stop", STREAM_RUNNING); /* or of a longer name */
    is_at_end(SSE, CHUNK CHUNK, STREAM_RUNNING);
    is_at_end(SSE, DELTA DELTA, STREAM_RUNNING);
    is_at_end(SSE, "", STREAM_RUNNING);
    is_at_end(SSE, "data: [DONE\n\nevent: message_stopped\ndata: {}\n\n", STREAM_RUNNING);
    is_at_end(SSE, "id: message_stop\ndata: \"[DONE]\"\n\n", STREAM_RUNNING);
    is_at_end(JSON, "{\"id\":1,\"done\":true", STREAM_RUNNING);
    is(JSON, "{\"id\":1,\"done\":true}", STREAM_BLIND);
}

static void test_errors_that_the_end_cuts_off(void **state)
{
    (void)state;
    is_at_end(SSE, CHUNK "event: error\n", STREAM_FAILURE);
    is_at_end(SSE, CHUNK "event: error", STREAM_RUNNING);
    is_at_end(SSE, "data: {\"error\":{\"code\":400}}", STREAM_CALLER);
    is_at_end(SSE, "data: {\"error\":{\"code\":400,\"mess", STREAM_CALLER);
    is_at_end(SSE, "data: {\"error\":{", STREAM_FAILURE);
    is_at_end(SSE, "data: {\"error\":nul", STREAM_RUNNING);
    is_at_end(SSE, "data: {\"error\":", STREAM_RUNNING);
    is_at_end(JSON, "{\"error\":{\"code\":429", STREAM_FAILURE); /* the number may go on */
    is_at_end(JSON, "{\"error\":{\"code\":429,", STREAM_RATE);
}

/* --- what is none ---------------------------------------------------------------------------- */

static void test_what_is_no_error(void **state)
{
    static const char *const documents[] = {
        "{\"error\":null,\"choices\":[]}",
        "{\"error\":false,\"a\":1}",
        "{\"error\":\"\"}",
        "{\"error\":0}",
        "{\"choices\":[{\"message\":{\"content\":\"{\\\"error\\\":{\\\"code\\\":500}}\"}}]}",
        "{\"choices\":[{\"error\":null,\"finish_reason\":\"stop\"}]}",
        "{\"choices\":[{\"message\":{\"error\":{\"code\":500}}}]}",
        "{\"choices\":[[{\"error\":1}],{\"error\":null}]}",
        "{\"choices\":{\"error\":1}}",
        "{\"delta\":{\"error\":null,\"type\":\"error\",\"message\":{\"error\":1}}}",
        "{\"delta\":[{\"error\":1}],\"choices\":[{\"delta\":{\"error\":1}}]}",
        "{\"output\":[{\"type\":\"error\",\"error\":{\"code\":500}}]}",
        "{\"errors\":[1],\"xerror\":1,\"Error\":1,\"err\\u006fr\":1,\"\\\"error\\\"\":1}",
        "{\"type\":\"message\",\"code\":500,\"status\":\"failed\",\"object\":\"Error\"}",
        "{\"response\":{\"output\":{\"error\":1},\"error\":null}}",
        "{\"response\":\"error\",\"model\":\"error\",\"finish_reason\":\"error\"}",
        "{\"a\":{\"b\":[{\"c\":\"]}\\\\\"}]},\"d\":\"error\"}",
        "{\"a\":1}{\"error\":1}",
        "{\"a\" \"error\":1}",
        "{\"a\":}{\"error\":1}",
        "\"error\"",
        "error",
        "{\"a\":1,x\"error\":1}",
        "{\"a\":1x{\"error\":1}",
    };
    char body[512];

    (void)state;
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        snprintf(body, sizeof body, CHUNK "data: %s\n\n", documents[i]);
        is_at_end(SSE, body, STREAM_RUNNING);
        struct watched w = {API_OLLAMA, NDJSON, NULL, span_str(documents[i])};
        check_watched(&w, STREAM_RUNNING, STREAM_RUNNING);
        is(JSON, documents[i], STREAM_BLIND);
    }
    is_at_end(SSE, "event: errors\ndata: {\"type\":\"x\"}\n\nevent:  error\ndata: {}\n\n",
              STREAM_RUNNING);
    is_at_end(SSE, "eventx: error\n\nevent error\n\nevents:error\n\n:event: error\n\nid: error\n\n",
              STREAM_RUNNING);
    is_at_end(SSE, "event: error\nevent: other\ndata: x\n\nevent: error\nevent\ndata: x\n\n",
              STREAM_RUNNING); /* the last one counts */
    is_at_end(SSE, "event: error\nevent:\ndata: x\n\n", STREAM_RUNNING);
    is_at_end(SSE, "data{\"error\":1}\n\ndatax: {\"error\":1}\n\n data: {\"error\":1}\n\n",
              STREAM_RUNNING);
}

/* --- lines ----------------------------------------------------------------------------------- */

static void test_line_ends(void **state)
{
    static const char *const ends[] = {"\n", "\r\n", "\r"};
    char body[1024];

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        const char *e = ends[i];
        snprintf(body, sizeof body,
                 "data: {\"a\":\"b\"}%s%sevent: ping%sdata: {}%s%s: comment%s%sdata: {%sdata: "
                 "\"error\":%sdata:{\"code\":400}}%s%s",
                 e, e, e, e, e, e, e, e, e, e, e);
        is(SSE, body, STREAM_CALLER);
        snprintf(body, sizeof body, "event:error%sdata:{\"code\":429}%s%s", e, e, e);
        is(SSE, body, STREAM_RATE);
    }
    /* a document over two lines, which the first one alone is not */
    is(SSE, "data: {\"a\":1,\ndata: \"error\":{\"code\":400}}\n\n", STREAM_CALLER);
    is_at_end(SSE, "data: {\"err\ndata: or\":1}\n\n", STREAM_RUNNING);
    is_at_end(SSE, "data: {\"a\":1\n\ndata: ,\"error\":1}\n\n", STREAM_RUNNING);
    is(SSE, "data\ndata: {\"error\":1}\n\n", STREAM_FAILURE);
    is(SSE, "\n\n\r\n\rdata: {\"error\":1}\r\n\r\n", STREAM_FAILURE);
}

static void test_byte_order_mark(void **state)
{
    (void)state;
    is(SSE,
       "\xef\xbb\xbf"
       "data: {\"error\":1}\n\n",
       STREAM_FAILURE);
    is(SSE,
       "\xef\xbb\xbf"
       "event: error\n\n",
       STREAM_FAILURE);
    is_at_end(SSE,
              "\xef\xbb"
              "data: {\"error\":1}\n\n",
              STREAM_RUNNING);
    is_at_end(SSE,
              "\xef\xbb\xbf\xef\xbb\xbf"
              "data: {\"error\":1}\n\n",
              STREAM_RUNNING);
    is_at_end(SSE,
              "\n\xef\xbb\xbf"
              "data: {\"error\":1}\n\n",
              STREAM_RUNNING);
}

/* Lengths around those of a block, where a line's end and "error" fall at every place. */
static void test_every_alignment(void **state)
{
    char body[400];

    (void)state;
    for (int pad = 0; pad < 140; pad++) {
        snprintf(body, sizeof body,
                 "data: {\"a\":\"%0*d\"}\n\ndata: {\"error\":{\"code\":400}}\n\n", pad, 0);
        is(SSE, body, STREAM_CALLER);
        snprintf(body, sizeof body, "data: {\"a\":\"%0*d\",\"error\":{\"code\":400}}\n\n", pad, 0);
        is(SSE, body, STREAM_CALLER);
        snprintf(body, sizeof body, "event: %0*d\ndata: {\"a\":\"e\"}\n\ndata: [DONE]\n\n", pad, 0);
        is(SSE, body, STREAM_OVER);
    }
}

static struct span long_event(char *body, size_t size, const char *begin, const char *end)
{
    size_t head = strlen(begin), tail = strlen(end);

    memset(body, 'x', size);
    memcpy(body, begin, head);
    memcpy(body + size - tail, end, tail);
    return span_of(body, size);
}

/* An image of 300 KB in one line: what stands before and after it is still read. */
static void test_long_lines(void **state)
{
    static char body[300000];
    static const struct {
        const char *begin, *end;
        enum stream_state expected;
    } lines[] = {
        {"data: {\"b64\":\"", "\",\"error\":{\"code\":400}}\n\n", STREAM_CALLER},
        {"data: {\"error\":{\"code\":429,\"message\":\"", "\"}}\n\n", STREAM_RATE},
        {"data: {\"b64\":\"", "\",\"error\":null}\n\n", STREAM_RUNNING},
        {"data: {\"b64\":\"", "\"}\n\ndata: [DONE]\n\n", STREAM_OVER},
        {"event: ", "\ndata: {}\n\ndata: [DONE]\n\n", STREAM_OVER},
        {": ", "\ndata: {\"error\":1}\n\n", STREAM_FAILURE},
        {"", ": x\n\nevent: error\n\n", STREAM_FAILURE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct watched w = {API_OPENAI, SSE, NULL,
                            long_event(body, sizeof body, lines[i].begin, lines[i].end)};
        for (size_t piece = 1; piece <= sizeof body; piece = piece * 37 + 1) {
            struct stream stream = stream_before(&w);
            for (size_t at = 0; at < sizeof body; at += piece)
                stream_feed(&stream, span_of(body + at,
                                             piece < sizeof body - at ? piece : sizeof body - at));
            expect_state(&stream, &w, lines[i].expected, lines[i].expected, piece);
        }
    }
}

/* --- which bodies are watched ---------------------------------------------------------------- */

static void test_what_is_watched(void **state)
{
    static const struct {
        unsigned status;
        const char *type, *encoding;
        bool watched;
    } heads[] = {
        {200, "text/event-stream", NULL, true},
        {200, "Text/Event-Stream; charset=utf-8", NULL, true},
        {200, " text/event-stream ;charset=utf-8", "", true},
        {200, "application/json", "Identity", true},
        {201, "application/json; charset=UTF-8", NULL, true},
        {200, "application/x-ndjson", NULL, true},
        {200, "application/stream+json", NULL, true},
        {200, "application/vnd.amazon.eventstream", NULL, true},
        {200, "text/event-stream", "gzip", false},
        {200, "application/json", "br", false},
        {200, "application/json", "identity, gzip", false},
        {429, "application/json", NULL, false},
        {500, "text/event-stream", NULL, false},
        {101, "text/event-stream", NULL, false},
        {302, "application/json", NULL, false},
        {200, "text/html", NULL, false},
        {200, "application/jsonp", NULL, false},
        {200, "audio/mpeg", NULL, false},
        {200, "", NULL, false},
        {200, NULL, NULL, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        struct stream stream;
        stream_init(&stream, API_OPENAI, heads[i].status, span_str(heads[i].type),
                    span_str(heads[i].encoding));
        if ((stream_state(&stream) == STREAM_RUNNING) != heads[i].watched)
            fail_msg("%u %s %s", heads[i].status, heads[i].type, heads[i].encoding);
        if (!heads[i].watched) {
            assert_int_equal(stream_feed(&stream, SPAN_LIT("{\"error\":1}\n")), STREAM_BLIND);
            assert_int_equal(stream_end(&stream), STREAM_BLIND);
        }
    }
    struct stream zero = {0};
    assert_int_equal(stream_feed(&zero, SPAN_LIT("event: error\n\n")), STREAM_BLIND);
}

/* FIELD-NOTES 2.7: bytes that an application refused come again; a copy saw them first. */
static void test_bytes_that_come_again(void **state)
{
    struct watched w = {API_OPENAI, SSE, NULL, SPAN_LIT("data: [DO")};
    struct stream taken = stream_before(&w), copy;

    (void)state;
    stream_feed(&taken, w.body);
    copy = taken;
    assert_int_equal(stream_feed(&copy, SPAN_LIT("NE]\n\n")), STREAM_OVER);
    assert_int_equal(stream_state(&taken), STREAM_RUNNING);
    assert_int_equal(stream_feed(&taken, SPAN_LIT("NE]\n\n")), STREAM_OVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors_of_anthropic),
        cmocka_unit_test(test_errors_of_openai),
        cmocka_unit_test(test_errors_of_cohere),
        cmocka_unit_test(test_errors_of_responses),
        cmocka_unit_test(test_errors_of_openrouter),
        cmocka_unit_test(test_errors_of_gemini),
        cmocka_unit_test(test_errors_of_ollama),
        cmocka_unit_test(test_clean_ends),
        cmocka_unit_test(test_errors_that_the_end_cuts_off),
        cmocka_unit_test(test_what_is_no_error),
        cmocka_unit_test(test_line_ends),
        cmocka_unit_test(test_byte_order_mark),
        cmocka_unit_test(test_every_alignment),
        cmocka_unit_test(test_long_lines),
        cmocka_unit_test(test_what_is_watched),
        cmocka_unit_test(test_bytes_that_come_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
