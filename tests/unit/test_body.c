/* Where bodies end, what of their bytes is payload, and the same answer however they are cut. */
#include "http/body.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

static char got[1 << 18];
static size_t got_len;

/* Feeds all of one piece, from a heap block of its own so that a sanitizer sees every byte too far;
 * returns how much was consumed. */
static size_t feed(struct http_body *body, struct span piece)
{
    char *copy = memcpy(malloc(piece.len + 1), piece.ptr, piece.len);
    size_t at = 0;

    while (body->state == HTTP_BODY_MORE && at < piece.len) {
        struct span payload;
        struct span rest = span_of(copy + at, piece.len - at);
        size_t used = http_body_feed(body, rest, &payload);
        assert_in_range(used, 1, rest.len);
        assert_true(payload.ptr >= rest.ptr && payload.ptr + payload.len <= rest.ptr + used);
        if (payload.len > 0) /* nothing may come behind a run */
            assert_ptr_equal(payload.ptr + payload.len, rest.ptr + used);
        assert_true(got_len + payload.len <= sizeof got);
        memcpy(got + got_len, payload.ptr, payload.len);
        got_len += payload.len;
        at += used;
    }
    free(copy);
    return at;
}

static void check_cut(struct http_body body, struct span bytes, size_t end,
                      enum http_body_state expected, struct span payload, size_t first, size_t size)
{
    size_t used = 0;

    got_len = 0;
    for (size_t at = 0; at < bytes.len;) {
        struct span rest = span_skip(bytes, at);
        size_t len = at == 0 && first > 0 ? first : size;
        len = len < rest.len ? len : rest.len;
        used += feed(&body, span_of(rest.ptr, len));
        at += len;
    }
    if (body.state != expected ||
        (expected != HTTP_BODY_ALIEN && (used != end || !span_eq(span_of(got, got_len), payload))))
        fail_msg("cut %zu/%zu: state %d, %zu of %zu used, payload '%.*s' of: %.*s", first, size,
                 (int)body.state, used, end, (int)(got_len < 100 ? got_len : 100), got,
                 (int)(bytes.len < 100 ? bytes.len : 100), bytes.ptr);
}

/* `end`: where the body does, or bytes.len. */
static void check(struct http_body body, struct span bytes, size_t end,
                  enum http_body_state expected, struct span payload)
{
    check_cut(body, bytes, end, expected, payload, 0, bytes.len);
    check_cut(body, bytes, end, expected, payload, 0, 1);
    check_cut(body, bytes, end, expected, payload, 0, 3);
    for (size_t first = 1; first < bytes.len && first < 512; first++)
        check_cut(body, bytes, end, expected, payload, first, bytes.len);
}

static struct http_body chunked_body(void)
{
    struct http_head_facts head = {.status = 200, .chunked = true, .has_length = true, .length = 3};
    struct http_body body;

    memset(&body, 0xa5, sizeof body);
    http_body_init_response(&body, &head, false);
    assert_int_equal(body.state, HTTP_BODY_MORE);
    assert_false(body.until_close);
    return body;
}

/* The text, with one byte of a next message behind it. */
static void chunked(const char *text, const char *payload)
{
    char bytes[1024];
    int len = snprintf(bytes, sizeof bytes, "%sH", text);

    check(chunked_body(), span_of(bytes, (size_t)len), (size_t)len - 1, HTTP_BODY_DONE,
          span_str(payload));
}

static void broken(const char *text)
{
    check(chunked_body(), span_str(text), strlen(text), HTTP_BODY_ALIEN, SPAN_LIT(""));
    struct http_body body = chunked_body(); /* at its last byte, not before it */
    feed(&body, span_of(text, strlen(text) - 1));
    if (body.state != HTTP_BODY_MORE)
        fail_msg("too early: %s", text);
}

static void unfinished(const char *text, const char *payload)
{
    check(chunked_body(), span_str(text), strlen(text), HTTP_BODY_MORE, span_str(payload));
}

static void test_chunked(void **state)
{
    (void)state;
    chunked("0\r\n\r\n", "");
    chunked("5\r\nhello\r\n0\r\n\r\n", "hello");
    chunked("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", "hello world");
    chunked("a\r\n0123456789\r\n0\r\n\r\n", "0123456789");
    chunked("A\r\n0\r\n\r\n\r\n\r\n!\r\n0\r\n\r\n", "0\r\n\r\n\r\n\r\n!");
    chunked("00005\r\nhello\r\n0000\r\n\r\n", "hello");
    chunked("0000000000000000000000005\r\nhello\r\n0\r\n\r\n", "hello");
    chunked("5\nhello\n0\n\n", "hello");
    chunked("5;name=value\r\nhello\r\n0;last\r\n\r\n", "hello");
    chunked("5 ; a=\"b\"\r\nhello\r\n0\t\r\n\r\n", "hello");
    chunked("5  \r\nhello\r\n0 \n\n", "hello");
    chunked("0\r\nTrailer: x\r\nOther: y\n\r\n", "");
    chunked("0\r\nA: \rb\r\n folded\r\n\n", "");
    unfinished("", "");
    unfinished("5", "");
    unfinished("5\r\n", "");
    unfinished("5\r\nhel", "hel");
    unfinished("5\r\nhello", "hello");
    unfinished("5\r\nhello\r\n", "hello");
    unfinished("5\r\nhello\r\n0\r\n", "hello");
    unfinished("5\r\nhello\r\n0\r\nTrailer: x\r\n", "hello");
    unfinished("5\r\nhello\r\n0\r\n\r", "hello");
    unfinished("ffffffffffffffff\r\nhello", "hello");
}

static void test_broken_chunks(void **state)
{
    (void)state;
    broken("\r");
    broken("\n");
    broken(";");
    broken(" ");
    broken("g");
    broken("-");
    broken("5x");
    broken("0x");
    broken("5\rh");
    broken("5 6");
    broken("5\r\nhellox");
    broken("5\r\nhello\rx");
    broken("5\r\nhello\r\r");
    broken("5\r\nhello\r\n\r");
    broken("0\r\n\rx");
    broken("10000000000000000");
    broken("fffffffffffffffff");
}

/* A line of 64 KB is looked over, of one byte more is not. */
static void test_long_lines(void **state)
{
    enum { MOST = 64 * 1024 };
    static char text[MOST + 64];
    static const char *const fronts[] = {"0;", "0\r\nT: ", "1\r\nx\r\n0;", ""};

    (void)state;
    for (size_t i = 0; i < sizeof fronts / sizeof *fronts; i++)
        for (int over = 0; over <= 1; over++) {
            size_t len = strlen(fronts[i]), before = len;
            while (before > 0 && fronts[i][before - 1] != '\n')
                before--;
            memset(text, len > 0 ? 'x' : '0', sizeof text);
            memcpy(text, fronts[i], len);
            memcpy(text + before + MOST + over - 1, "\n\r\n", 3); /* the line's end belongs to it */
            struct span bytes = span_of(text, before + MOST + (size_t)over + 2);
            enum http_body_state expected = over ? HTTP_BODY_ALIEN : HTTP_BODY_DONE;
            struct span payload = i == 2 ? SPAN_LIT("x") : SPAN_LIT("");
            check_cut(chunked_body(), bytes, bytes.len, expected, payload, 0, bytes.len);
            check_cut(chunked_body(), bytes, bytes.len, expected, payload, 0, 1);
            check_cut(chunked_body(), bytes, bytes.len, expected, payload, 0, 4096);
        }
}

static void test_length(void **state)
{
    struct http_head_facts head = {.has_length = true, .length = 5};
    struct http_body body;

    (void)state;
    http_body_init_request(&body, &head);
    assert_int_equal(body.state, HTTP_BODY_MORE);
    assert_false(body.until_close);
    check(body, SPAN_LIT("helloX"), 5, HTTP_BODY_DONE, SPAN_LIT("hello"));
    check(body, SPAN_LIT("hell"), 4, HTTP_BODY_MORE, SPAN_LIT("hell"));
    head.status = 200;
    http_body_init_response(&body, &head, false);
    check(body, SPAN_LIT("helloX"), 5, HTTP_BODY_DONE, SPAN_LIT("hello"));
    head.length = UINT64_MAX;
    http_body_init_response(&body, &head, false);
    check(body, SPAN_LIT("hello"), 5, HTTP_BODY_MORE, SPAN_LIT("hello"));
}

static void assert_nothing(const struct http_body *body)
{
    struct http_body copy = *body;
    struct span payload = SPAN_LIT("what stood there");

    assert_int_equal(body->state, HTTP_BODY_DONE);
    assert_false(body->until_close);
    assert_int_equal(http_body_feed(&copy, SPAN_LIT("x"), &payload), 0);
    assert_int_equal(payload.len, 0);
}

static void test_no_body(void **state)
{
    static const uint16_t none[] = {100, 101, 103, 199, 204, 304};
    struct http_head_facts head = {0};
    struct http_body body;

    (void)state;
    http_body_init_request(&body, &head);
    assert_nothing(&body);
    head.has_length = true;
    http_body_init_request(&body, &head);
    assert_nothing(&body);
    head.status = 200;
    http_body_init_response(&body, &head, false);
    assert_nothing(&body);
    head.length = 5;
    http_body_init_response(&body, &head, true);
    assert_nothing(&body);
    head.chunked = true;
    http_body_init_response(&body, &head, true);
    assert_nothing(&body);
    head.coded = true;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        head.status = none[i];
        http_body_init_response(&body, &head, false);
        assert_nothing(&body);
    }
}

static void test_until_close(void **state)
{
    struct http_head_facts head = {.status = 200};
    struct http_body body;

    (void)state;
    http_body_init_response(&body, &head, false);
    assert_true(body.until_close);
    check(body, SPAN_LIT("hello"), 5, HTTP_BODY_MORE, SPAN_LIT("hello"));
    head = (struct http_head_facts){.status = 200, .coded = true, .has_length = true, .length = 3};
    http_body_init_response(&body, &head, false);
    assert_true(body.until_close);
    check(body, SPAN_LIT("hello"), 5, HTTP_BODY_MORE, SPAN_LIT("hello"));
}

static void test_chunked_requests(void **state)
{
    struct http_head_facts head = {.chunked = true, .has_length = true, .length = 2};
    struct http_body body;

    (void)state;
    http_body_init_request(&body, &head);
    check(body, SPAN_LIT("5\r\nhello\r\n0\r\n\r\nX"), 15, HTTP_BODY_DONE, SPAN_LIT("hello"));
}

/* One call ends with one run, so that its user can look at it before the rest. */
static void test_one_run_a_call(void **state)
{
    struct http_body body = chunked_body();
    struct span bytes = SPAN_LIT("2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n"), payload;

    (void)state;
    assert_int_equal(http_body_feed(&body, bytes, &payload), 5);
    assert_true(span_eq(payload, SPAN_LIT("ab")));
    bytes = span_skip(bytes, 5);
    assert_int_equal(http_body_feed(&body, bytes, &payload), 8);
    assert_true(span_eq(payload, SPAN_LIT("cde")));
    bytes = span_skip(bytes, 8);
    assert_int_equal(http_body_feed(&body, bytes, &payload), 7);
    assert_int_equal(payload.len, 0);
    assert_int_equal(body.state, HTTP_BODY_DONE);
    assert_int_equal(http_body_feed(&body, SPAN_NONE, &payload), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunked),          cmocka_unit_test(test_broken_chunks),
        cmocka_unit_test(test_long_lines),       cmocka_unit_test(test_length),
        cmocka_unit_test(test_no_body),          cmocka_unit_test(test_until_close),
        cmocka_unit_test(test_chunked_requests), cmocka_unit_test(test_one_run_a_call),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
