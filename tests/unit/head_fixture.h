/* head_fixture.h - a head fed to the reader however it is cut, and what came of it in one line. */
#ifndef BREAKER_TESTS_HEAD_FIXTURE_H
#define BREAKER_TESTS_HEAD_FIXTURE_H

#include "http/credential.h"
#include "http/head.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sun, 06 Nov 1994 08:49:37 GMT */
enum { WALL = 784111777 };

static inline void begin(struct http_head *head, bool response)
{
    memset(head, 0xa5, sizeof *head); /* what stood there must not matter */
    if (response)
        http_head_init_response(head);
    else
        http_head_init_request(head);
}

static bool shows_credentials;

/* The facts in one line, so that a test shows what it expects and what came. */
static inline const char *shown(const struct http_head *head, bool response)
{
    static char text[4096];
    const struct http_head_facts *facts = &head->facts;
    int at;

    if (head->state != HTTP_HEAD_DONE)
        return head->state == HTTP_HEAD_MORE ? "more" : "alien";
    if (response)
        at = snprintf(text, sizeof text, "%u 1.%u", facts->status, facts->minor);
    else
        at = snprintf(text, sizeof text, "%.*s %.*s 1.%u @%.*s", facts->method_len, facts->method,
                      facts->path_len, facts->path, facts->minor, facts->host_len, facts->host);
    if (facts->has_length)
        at += snprintf(text + at, sizeof text - (size_t)at, " length=%llu",
                       (unsigned long long)facts->length);
    if (http_head_retry_ms(facts, WALL))
        at += snprintf(text + at, sizeof text - (size_t)at, " retry=%u",
                       http_head_retry_ms(facts, WALL));
    if (facts->credential && shows_credentials)
        at += snprintf(text + at, sizeof text - (size_t)at, " key=%s",
                       facts->credential == credential_hash(0, SPAN_LIT("sk-1")) ? "sk-1" : "?");
    if (facts->has_query && shows_credentials)
        at += snprintf(text + at, sizeof text - (size_t)at, " query");
    snprintf(text + at, sizeof text - (size_t)at, "%s%s%s%s%s", facts->chunked ? " chunked" : "",
             facts->coded ? " coded" : "", facts->close ? " close" : "",
             facts->upgrade ? " upgrade" : "", facts->absolute ? " absolute" : "");
    return text;
}

/* Feeds one piece from a heap block of its own, so that a sanitizer sees every byte too far. */
static inline size_t feed(struct http_head *head, struct span piece)
{
    char *copy = memcpy(malloc(piece.len + 1), piece.ptr, piece.len);
    enum http_head_state before = head->state;
    size_t used = http_head_feed(head, span_of(copy, piece.len));

    free(copy);
    assert_true(used <= piece.len);
    if (head->state == HTTP_HEAD_MORE)
        assert_int_equal(used, piece.len);
    if (before != HTTP_HEAD_MORE)
        assert_int_equal(used, 0);
    return used;
}

/* In pieces of `size` after a first one of `first`. The bytes after the head must be left. */
static inline void check_cut(bool response, struct span text, size_t end, const char *expected,
                             size_t first, size_t size)
{
    struct http_head head;
    size_t at = 0, used = 0;

    begin(&head, response);
    while (at < text.len) {
        size_t len = at == 0 && first > 0 ? first : size;
        struct span rest = span_skip(text, at);
        len = len < rest.len ? len : rest.len;
        used += feed(&head, span_of(rest.ptr, len));
        at += len;
    }
    if (strcmp(shown(&head, response), expected) != 0 ||
        (head.state == HTTP_HEAD_DONE && used != end))
        fail_msg("cut %zu/%zu: '%s', not '%s', %zu of %zu used, for: %.*s", first, size,
                 shown(&head, response), expected, used, end,
                 (int)(text.len < 300 ? text.len : 300), text.ptr);
}

/* `after`: bytes that follow the head. */
static inline void check_bytes(bool response, struct span text, size_t after, const char *expected)
{
    size_t end = text.len - after;

    check_cut(response, text, end, expected, 0, text.len);
    check_cut(response, text, end, expected, 0, 1);
    check_cut(response, text, end, expected, 0, 7);
    for (size_t first = 1; first < text.len; first++)
        check_cut(response, text, end, expected, first, text.len);
}

static inline void request(const char *text, const char *expected)
{
    check_bytes(false, span_str(text), 0, expected);
}

static inline void response(const char *text, const char *expected)
{
    check_bytes(true, span_str(text), 0, expected);
}

/* A POST with these lines. */
static inline void lines(const char *text, const char *expected)
{
    char whole[4096], wanted[512];

    snprintf(whole, sizeof whole, "POST /p HTTP/1.1\r\n%s\r\n", text);
    snprintf(wanted, sizeof wanted, "POST /p 1.1 @%s", expected);
    request(whole, strcmp(expected, "alien") == 0 ? expected : wanted);
}

/* A 503 with these lines. */
static inline void answer(const char *text, const char *expected)
{
    char whole[4096], wanted[512];

    snprintf(whole, sizeof whole, "HTTP/1.1 503 Service Unavailable\r\n%s\r\n", text);
    snprintf(wanted, sizeof wanted, "503 1.1%s", expected);
    response(whole, strcmp(expected, "alien") == 0 ? expected : wanted);
}

#endif
