/* Frames of application/vnd.amazon.eventstream: what their headers say, however they are cut. */
#include "stream_fixture.h"

#define FRAMES "application/vnd.amazon.eventstream"

static char bytes[100000];
static size_t bytes_len;

static void put(const void *data, size_t len)
{
    memcpy(bytes + bytes_len, data, len);
    bytes_len += len;
}

static void put_number(unsigned long number, unsigned size)
{
    for (unsigned i = size; i-- > 0;)
        bytes[bytes_len++] = (char)(number >> (8 * i));
}

static size_t frame_at; /* where the one that is put began */

static void begin_frame(void)
{
    frame_at = bytes_len;
    bytes_len += 12;
}

static void put_header(const char *name, unsigned type, const char *value)
{
    put_number(strlen(name), 1);
    put(name, strlen(name));
    put_number(type, 1);
    if (type == 6 || type == 7)
        put_number(strlen(value), 2);
    put(value, strlen(value));
}

static void put_string(const char *name, const char *value)
{
    put_header(name, 7, value);
}

/* The payload, and with it the frame's lengths. */
static void end_frame(const char *payload)
{
    size_t end = bytes_len + strlen(payload) + 4, headers = bytes_len - frame_at - 12;

    bytes_len = frame_at;
    put_number(end - frame_at, 4);
    put_number(headers, 4);
    put_number(0xdeadbeef, 4);
    bytes_len += headers;
    put(payload, strlen(payload));
    put_number(0xfeedface, 4);
}

static void put_event(const char *type)
{
    begin_frame();
    put_string(":event-type", type);
    put_string(":content-type", "application/json");
    put_string(":message-type", "event");
    end_frame("{\"delta\":{\"text\":\"error :message-type exception\"},\"p\":\"abcd\"}");
}

static void put_exception(const char *type)
{
    begin_frame();
    put_string(":exception-type", type);
    put_string(":content-type", "application/json");
    put_string(":message-type", "exception");
    end_frame("{\"message\":\"m\"}");
}

static void is(enum stream_state expected)
{
    struct watched w = {API_BEDROCK, FRAMES, NULL, span_of(bytes, bytes_len)};

    check_watched(&w, expected, expected);
    bytes_len = 0;
}

static void test_exceptions(void **state)
{
    static const struct {
        const char *type;
        enum stream_state expected;
    } exceptions[] = {
        {"internalServerException", STREAM_FAILURE},
        {"modelStreamErrorException", STREAM_FAILURE},
        {"modelTimeoutException", STREAM_FAILURE},
        {"serviceUnavailableException", STREAM_FAILURE},
        {"someNewException", STREAM_FAILURE},
        {"aVeryLongNameOfAnExceptionThatNobodyHasEverSeenBefore", STREAM_FAILURE},
        {"throttlingException", STREAM_RATE},
        {"serviceQuotaExceededException", STREAM_QUOTA},
        {"validationException", STREAM_CALLER},
        {"accessDeniedException", STREAM_CALLER},
        {"", STREAM_FAILURE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++) {
        put_event("contentBlockDelta");
        put_exception(exceptions[i].type);
        put_event("messageStop");
        is(exceptions[i].expected);
    }
}

static void test_errors(void **state)
{
    (void)state;
    begin_frame();
    put_string(":message-type", "error");
    put_string(":error-code", "InternalFailure");
    put_string(":error-message", "m");
    end_frame("");
    is(STREAM_FAILURE);
    begin_frame();
    put_string(":error-code", "ThrottlingException");
    put_string(":message-type", "error");
    end_frame("");
    is(STREAM_RATE);
    begin_frame(); /* the kind alone is enough, and the message alone */
    put_string(":message-type", "exception");
    end_frame("");
    is(STREAM_FAILURE);
    begin_frame();
    put_string(":exception-type", "validationException");
    end_frame("");
    is(STREAM_CALLER);
}

static void test_ends(void **state)
{
    (void)state;
    put_event("messageStart");
    put_event("contentBlockDelta");
    put_event("messageStop");
    put_exception("internalServerException");
    is(STREAM_OVER);
    put_event("chunk");
    put_event("chunk");
    is(STREAM_RUNNING);
    is(STREAM_RUNNING);
}

/* Every type of value is passed over, and means nothing unless it is a string. */
static void test_types_of_values(void **state)
{
    (void)state;
    begin_frame();
    put_header("true", 0, "");
    put_header("false", 1, "");
    put_header("byte", 2, "1");
    put_header("short", 3, "12");
    put_header("int", 4, "1234");
    put_header("long", 5, "12345678");
    put_header("bytes", 6, ":message-type");
    put_header("time", 8, "12345678");
    put_header("uuid", 9, "0123456789abcdef");
    put_header(":message-type", 6, "exception");
    put_header(":exception-type", 6, "validationException");
    put_header(":exception-type", 0, "");
    put_string("a-header-whose-name-is-longer-than-any-that-matters", "exception");
    put_string("empty", "");
    put_string(":message-typ", "exception");
    end_frame("x");
    put_event("messageStop");
    is(STREAM_OVER);
    begin_frame(); /* a word of one frame says nothing of the next */
    put_string(":error-code", "ThrottlingException");
    put_string(":message-type", "event");
    end_frame("");
    put_exception("validationException");
    is(STREAM_CALLER);
    begin_frame(); /* no headers, no payload */
    end_frame("");
    put_exception("throttlingException");
    is(STREAM_RATE);
}

static void put_prelude(unsigned long total, unsigned long headers)
{
    put_number(total, 4);
    put_number(headers, 4);
    put_number(0, 4);
}

static void test_what_is_no_frame(void **state)
{
    (void)state;
    put("HTTP/1.1 200 OK\r\n", 17);
    is(STREAM_BLIND);
    put_prelude(15, 0);
    is(STREAM_BLIND);
    put_prelude(100, 85);
    is(STREAM_BLIND);
    put_prelude(100, 0xffffffff);
    is(STREAM_BLIND);
    put_prelude((16ul << 20) + 1, 0);
    is(STREAM_BLIND);
    put_prelude(16ul << 20, 0);
    is(STREAM_RUNNING);
    begin_frame(); /* a name beyond the headers */
    put("\x05:mes", 5);
    end_frame("sage");
    is(STREAM_BLIND);
    begin_frame(); /* a value beyond the headers */
    put("\x01"
        "a\x07\x00\x05xxxx",
        9);
    end_frame("sage");
    is(STREAM_BLIND);
    begin_frame(); /* headers that end behind a name */
    put("\x01"
        "a",
        2);
    end_frame("payload");
    is(STREAM_BLIND);
    begin_frame(); /* a type that there is not */
    put_header("a", 10, "");
    end_frame("");
    is(STREAM_BLIND);
    begin_frame(); /* a header without a name */
    put_string("", "value");
    end_frame("");
    is(STREAM_BLIND);
    put_prelude(15, 0); /* nothing is read any more */
    put_exception("throttlingException");
    is(STREAM_BLIND);
}

/* What stands before it is not, but nothing is told before the headers are whole. */
static void test_a_frame_that_is_cut_off(void **state)
{
    size_t whole;

    (void)state;
    put_exception("throttlingException");
    whole = bytes_len - strlen("{\"message\":\"m\"}") - 4;
    for (size_t len = 0; len < whole; len++) {
        bytes_len = len;
        is(STREAM_RUNNING);
    }
    bytes_len = whole;
    is(STREAM_RATE);
}

static void test_long_payloads_and_values(void **state)
{
    static char text[65000];

    (void)state;
    memset(text, 'x', sizeof text - 1);
    struct watched w = {API_BEDROCK, FRAMES, NULL, SPAN_NONE};
    for (int in_header = 0; in_header < 2; in_header++) {
        begin_frame();
        put_string("long", in_header ? text : "");
        end_frame(in_header ? "" : text);
        put_exception("throttlingException");
        w.body = span_of(bytes, bytes_len);
        for (size_t piece = 1; piece <= bytes_len; piece = piece * 37 + 1) {
            struct stream stream = stream_before(&w);
            for (size_t at = 0; at < bytes_len; at += piece)
                stream_feed(&stream,
                            span_of(bytes + at, piece < bytes_len - at ? piece : bytes_len - at));
            expect_state(&stream, &w, STREAM_RATE, STREAM_RATE, piece);
        }
        bytes_len = 0;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exceptions),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_types_of_values),
        cmocka_unit_test(test_what_is_no_frame),
        cmocka_unit_test(test_a_frame_that_is_cut_off),
        cmocka_unit_test(test_long_payloads_and_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
