/* The model in a multipart form: behind binary parts, and the same answer however the bytes are
 * cut.
 */
#include "http/model_scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

static char body[8192];
static size_t body_len;

static void put(struct span bytes)
{
    assert_true(body_len + bytes.len <= sizeof body);
    memcpy(body + body_len, bytes.ptr, bytes.len);
    body_len += bytes.len;
}

static void start(void)
{
    body_len = 0;
}

static void part(const char *boundary, const char *head, struct span content)
{
    put(SPAN_LIT("--"));
    put(span_str(boundary));
    put(SPAN_LIT("\r\n"));
    put(span_str(head));
    put(SPAN_LIT("\r\n\r\n"));
    put(content);
    put(SPAN_LIT("\r\n"));
}

static void finish(const char *boundary)
{
    put(SPAN_LIT("--"));
    put(span_str(boundary));
    put(SPAN_LIT("--\r\n"));
}

static void check(const char *expected)
{
    for (size_t split = 0; split <= body_len; split++) {
        struct model_scan scan;
        model_scan_init(&scan, SPAN_LIT("model"));
        model_scan_feed(&scan, span_of(body, split));
        model_scan_feed(&scan, span_of(body + split, body_len - split));
        enum model_scan_state state = model_scan_end(&scan);
        struct span value = model_scan_value(&scan);
        if (expected ? !span_eq(value, span_str(expected)) : state != MODEL_SCAN_ABSENT)
            fail_msg("split at %zu: state %d, value '%.*s' of: %.*s", split, state, (int)value.len,
                     value.ptr ? value.ptr : "", (int)body_len, body);
    }
    struct model_scan scan;
    model_scan_init(&scan, SPAN_LIT("model"));
    for (size_t i = 0; i < body_len; i++)
        model_scan_feed(&scan, span_of(body + i, 1));
    model_scan_end(&scan);
    assert_true(span_eq(model_scan_value(&scan), expected ? span_str(expected) : SPAN_NONE));
}

#define FILE_HEAD                                                                                  \
    "Content-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\nContent-Type: audio/wav"
#define MODEL_HEAD "Content-Disposition: form-data; name=\"model\""

static void test_before_and_after_a_file(void **state)
{
    (void)state;
    start();
    part("xYz", MODEL_HEAD, SPAN_LIT("whisper-1"));
    part("xYz", FILE_HEAD, SPAN_LIT("RIFF"));
    finish("xYz");
    check("whisper-1");
    start();
    part("xYz", FILE_HEAD, SPAN_LIT("RIFF\0\x80\xff"));
    part("xYz", MODEL_HEAD, SPAN_LIT("whisper-1"));
    finish("xYz");
    check("whisper-1");
}

static void test_a_file_that_looks_like_a_form(void **state)
{
    static const char noise[] =
        "\0\r\n--xY\r\n--xYq\r\n" MODEL_HEAD "\r\n\r\nfalse\r\n\r\r\n\r\n-\r\n--\r\r\n--x\r\n"
        "{\"model\":\"false\"}--xYz\r\n" MODEL_HEAD
        "\r\n\r\nfalse\r\n--xY--\n--xYz\r\n\r\n--xYzz\r\n" MODEL_HEAD
        "\r\n\r\nfalse\r\n--xYz-q\r\n\r\n\r\n--xY\r";

    (void)state;
    start();
    part("xYz", FILE_HEAD, span_of(noise, sizeof noise - 1));
    part("xYz", "Content-Disposition: form-data; name=\"prompt\"",
         SPAN_LIT("Content-Disposition: form-data; name=\"model\"\r\n\r\nfalse"));
    part("xYz", MODEL_HEAD, SPAN_LIT("true"));
    finish("xYz");
    check("true");
}

/* Every byte value, and every start of the delimiter cut off. */
static void test_binary(void **state)
{
    char noise[1024];
    size_t len = 0;
    static const char delimiter[] = "\r\n--xYz";

    (void)state;
    for (int i = 0; i < 256; i++)
        noise[len++] = (char)i;
    for (size_t cut = 1; cut < sizeof delimiter - 1; cut++)
        for (size_t i = 0; i < cut; i++)
            noise[len++] = delimiter[i];
    start();
    part("xYz", FILE_HEAD, span_of(noise, len));
    part("xYz", MODEL_HEAD, SPAN_LIT("m"));
    finish("xYz");
    check("m");
}

static void test_ways_to_write_the_head(void **state)
{
    static const char *const ours[] = {
        "content-disposition:form-data;name=model",
        "CONTENT-DISPOSITION: form-data; NAME=\"model\"",
        "Content-Disposition: form-data;  name=\"model\"; x=y",
        "Content-Disposition: form-data; x=y; name=model",
        "Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: form-data; name=\"model\"",
        "Content-Disposition: form-data; name=\"model\"\r\nContent-Type: text/plain",
        "Content-Disposition: form-data; name=\"model\"\r\nContent-Length: 1",
    };
    static const char *const others[] = {
        "Content-Disposition: form-data; name=\"models\"",
        "Content-Disposition: form-data; name=\"mode\"",
        "Content-Disposition: form-data; name=\"Model\"",
        "Content-Disposition: form-data; name=models",
        "Content-Disposition: form-data; name=\"model\"; filename=\"x\"",
        "Content-Disposition: form-data; filename=\"x\"; name=\"model\"",
        "Content-Disposition: form-data; xname=\"model\"",
        "Content-Disposition: form-data",
        "X-Content-Disposition: form-data; name=\"model\"",
    };

    (void)state;
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        start();
        part("b", ours[i], SPAN_LIT("m"));
        finish("b");
        check("m");
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        start();
        part("b", others[i], SPAN_LIT("m"));
        finish("b");
        check(NULL);
    }
}

static void test_boundaries(void **state)
{
    static const char *const boundaries[] = {
        "------------------------0123456789abcdef", /* libcurl */
        "----WebKitFormBoundaryABCdef", "'()+_,-./:=?",
        "1234567890123456789012345678901234567890123456789012345678901234567890", /* 70, the most */
    };

    (void)state;
    for (size_t i = 0; i < sizeof boundaries / sizeof *boundaries; i++) {
        start();
        part(boundaries[i], FILE_HEAD, SPAN_LIT("\r\n------\r\n"));
        part(boundaries[i], MODEL_HEAD, SPAN_LIT("m"));
        finish(boundaries[i]);
        check("m");
    }
    start();
    part("12345678901234567890123456789012345678901234567890123456789012345678901", MODEL_HEAD,
         SPAN_LIT("m"));
    check(NULL);
    start();
    put(SPAN_LIT("--\r\n" MODEL_HEAD "\r\n\r\nm\r\n"));
    check(NULL);
    start();
    put(SPAN_LIT("-x\r\n" MODEL_HEAD "\r\n\r\nm\r\n"));
    check(NULL);
    start(); /* blanks behind a boundary are allowed, other words make it another line */
    part("b", FILE_HEAD, SPAN_LIT("x\r\n--b \t\r\n" MODEL_HEAD "\r\n\r\nm"));
    finish("b");
    check("m");
}

static void test_what_cannot_be_a_model(void **state)
{
    char model[MODEL_MAX + 2];

    (void)state;
    for (size_t len = MODEL_MAX - 1; len <= MODEL_MAX + 1; len++) {
        memset(model, 'm', len);
        model[len] = '\0';
        start();
        part("b", MODEL_HEAD, span_str(model));
        finish("b");
        check(len <= MODEL_MAX ? model : NULL);
    }
    start();
    part("b", MODEL_HEAD, SPAN_LIT(""));
    finish("b");
    check(NULL);
    start();
    part("b", MODEL_HEAD, SPAN_LIT("a\tb"));
    finish("b");
    check(NULL);
    start(); /* truncated */
    put(SPAN_LIT("--b\r\n" MODEL_HEAD "\r\n\r\nwhisper"));
    check(NULL);
    start(); /* behind the last boundary */
    part("b", FILE_HEAD, SPAN_LIT("x"));
    finish("b");
    part("b", MODEL_HEAD, SPAN_LIT("m"));
    check(NULL);
}

static void test_a_long_head_line(void **state)
{
    char head[600];

    (void)state;
    snprintf(head, sizeof head,
             "Content-Disposition: form-data; name=\"file\"; filename=\"%0400d\"", 0);
    start();
    part("b", head, SPAN_LIT("x"));
    part("b", MODEL_HEAD, SPAN_LIT("m"));
    finish("b");
    check("m");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_before_and_after_a_file),
        cmocka_unit_test(test_a_file_that_looks_like_a_form),
        cmocka_unit_test(test_binary),
        cmocka_unit_test(test_ways_to_write_the_head),
        cmocka_unit_test(test_boundaries),
        cmocka_unit_test(test_what_cannot_be_a_model),
        cmocka_unit_test(test_a_long_head_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
