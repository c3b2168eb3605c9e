/* Ends, lines and what is no error inside streams and JSON bodies, however they are cut; errors are
 * in test_stream_errors.c. */
#include "stream_text_fixture.h"

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
