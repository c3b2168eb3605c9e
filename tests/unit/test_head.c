/* HTTP/1.x heads: what is read of them, what is let go, and the same answer however they are cut.
 */
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
#include <time.h>

/* Sun, 06 Nov 1994 08:49:37 GMT */
enum { WALL = 784111777 };

static void begin(struct http_head *head, bool response)
{
    memset(head, 0xa5, sizeof *head); /* what stood there must not matter */
    if (response)
        http_head_init_response(head);
    else
        http_head_init_request(head);
}

static bool shows_credentials;

/* The facts in one line, so that a test shows what it expects and what came. */
static const char *shown(const struct http_head *head, bool response)
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
static size_t feed(struct http_head *head, struct span piece)
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
static void check_cut(bool response, struct span text, size_t end, const char *expected,
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
static void check_bytes(bool response, struct span text, size_t after, const char *expected)
{
    size_t end = text.len - after;

    check_cut(response, text, end, expected, 0, text.len);
    check_cut(response, text, end, expected, 0, 1);
    check_cut(response, text, end, expected, 0, 7);
    for (size_t first = 1; first < text.len; first++)
        check_cut(response, text, end, expected, first, text.len);
}

static void request(const char *text, const char *expected)
{
    check_bytes(false, span_str(text), 0, expected);
}

static void response(const char *text, const char *expected)
{
    check_bytes(true, span_str(text), 0, expected);
}

/* A POST with these lines. */
static void lines(const char *text, const char *expected)
{
    char whole[4096], wanted[512];

    snprintf(whole, sizeof whole, "POST /p HTTP/1.1\r\n%s\r\n", text);
    snprintf(wanted, sizeof wanted, "POST /p 1.1 @%s", expected);
    request(whole, strcmp(expected, "alien") == 0 ? expected : wanted);
}

/* A 503 with these lines. */
static void answer(const char *text, const char *expected)
{
    char whole[4096], wanted[512];

    snprintf(whole, sizeof whole, "HTTP/1.1 503 Service Unavailable\r\n%s\r\n", text);
    snprintf(wanted, sizeof wanted, "503 1.1%s", expected);
    response(whole, strcmp(expected, "alien") == 0 ? expected : wanted);
}

static void test_request_line(void **state)
{
    (void)state;
    request("GET / HTTP/1.1\r\n\r\n", "GET / 1.1 @");
    request("GET / HTTP/1.0\r\n\r\n", "GET / 1.0 @ close");
    request("POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\n\r\n",
            "POST /v1/chat/completions 1.1 @h");
    request("HEAD /a HTTP/1.1\n\n", "HEAD /a 1.1 @");
    request("PUT /a HTTP/1.1\r\n\n", "PUT /a 1.1 @");
    request("PATCH /a HTTP/1.1\n\r\n", "PATCH /a 1.1 @");
    request("DELETE /a HTTP/1.1\r\n\r\n", "DELETE /a 1.1 @");
    request("OPTIONS /a HTTP/1.1\r\n\r\n", "OPTIONS /a 1.1 @");
    request("OPTIONS * HTTP/1.1\r\n\r\n", "OPTIONS * 1.1 @");
    request("GET /a?b=/c#d HTTP/1.1\r\n\r\n", "GET /a 1.1 @");
    request("GET /a#d?e HTTP/1.1\r\n\r\n", "GET /a 1.1 @");
    request("GET /? HTTP/1.1\r\n\r\n", "GET / 1.1 @");
    request("GET /%41%2f//b%20c HTTP/1.1\r\n\r\n", "GET /%41%2f//b%20c 1.1 @");
    request("GET /\xc3\xa4 HTTP/1.1\r\n\r\n", "GET /\xc3\xa4 1.1 @");
    request("", "more");
    request("POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\n", "more");
    request("POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\n\r", "more");
}

static void test_absolute_form(void **state)
{
    (void)state;
    request("GET http://h/p HTTP/1.1\r\nHost: h\r\n\r\n", "GET /p 1.1 @h absolute");
    request("GET http://h:81/p?q HTTP/1.1\r\nHost: other\r\n\r\n", "GET /p 1.1 @h:81 absolute");
    request("POST HTTPS://H/p HTTP/1.1\r\n\r\n", "POST /p 1.1 @H absolute");
    request("GET http://h HTTP/1.1\r\n\r\n", "GET  1.1 @h absolute");
    request("GET http://h?q HTTP/1.1\r\n\r\n", "GET  1.1 @h absolute");
    request("GET http://u:p@h:1/p@q HTTP/1.1\r\n\r\n", "GET /p@q 1.1 @h:1 absolute");
    request("GET http://[::1]:8000/p HTTP/1.1\r\n\r\n", "GET /p 1.1 @[::1]:8000 absolute");
    request("GET http:///p HTTP/1.1\r\n\r\n", "alien");
    request("GET http://u@/p HTTP/1.1\r\n\r\n", "alien");
    request("GET http:/h/p HTTP/1.1\r\n\r\n", "alien");
    request("GET ftp://h/p HTTP/1.1\r\n\r\n", "alien");
    request("GET h/p HTTP/1.1\r\n\r\n", "alien");
    request("GET http://h/p HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "alien");
}

static void test_empty_lines_before(void **state)
{
    (void)state;
    request("\r\nGET / HTTP/1.1\r\n\r\n", "GET / 1.1 @");
    request("\r\n\n\r\n\nGET / HTTP/1.1\r\n\r\n", "GET / 1.1 @");
    request("\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\n\r\n", "alien");
    request("\rGET / HTTP/1.1\r\n\r\n", "alien");
    request("\r\r\nGET / HTTP/1.1\r\n\r\n", "alien");
    response("\r\nHTTP/1.1 200 OK\r\n\r\n", "200 1.1");
}

/* Alien at the last byte of the text, and not before it. */
static void alien_at_its_end(bool is_response, struct span text)
{
    struct http_head head;

    begin(&head, is_response);
    feed(&head, span_of(text.ptr, text.len - 1));
    if (head.state != HTTP_HEAD_MORE)
        fail_msg("alien too early: %.*s", (int)text.len, text.ptr);
    feed(&head, span_skip(text, text.len - 1));
    if (head.state != HTTP_HEAD_ALIEN)
        fail_msg("not alien yet: %.*s", (int)text.len, text.ptr);
    check_bytes(is_response, text, 0, "alien");
}

static void test_other_protocols_at_the_first_byte(void **state)
{
    static const struct span requests[] = {
        SPAN_LIT("*"),
        SPAN_LIT("\x16"),
        SPAN_LIT("S"),
        SPAN_LIT("PR"),
        SPAN_LIT("C"),
        SPAN_LIT("T"),
        SPAN_LIT("\0"),
        SPAN_LIT("\x80"),
        SPAN_LIT(" "),
        SPAN_LIT("g"),
        SPAN_LIT("PI"),
        SPAN_LIT("GE\n"),
        SPAN_LIT("GET\t"),
        SPAN_LIT("GETS"),
        SPAN_LIT("GET\r"),
        SPAN_LIT("POST *"),
        SPAN_LIT("GET  "),
        SPAN_LIT("GET ?"),
        SPAN_LIT("GET e"),
        SPAN_LIT("GET /\n"),
        SPAN_LIT("GET /\r"),
        SPAN_LIT("GET /a\x01"),
        SPAN_LIT("GET /a\x7f"),
        SPAN_LIT("GET /?a\t"),
        SPAN_LIT("GET http://h\n"),
        SPAN_LIT("GET http://h/\n"),
        SPAN_LIT("GET / \n"),
        SPAN_LIT("GET /a b"),
        SPAN_LIT("GET / h"),
        SPAN_LIT("GET / HTTP/2"),
        SPAN_LIT("GET / HTTP/0"),
        SPAN_LIT("GET / HTTP/1.2"),
        SPAN_LIT("GET / HTTP/1.1 "),
        SPAN_LIT("GET / HTTP/1.1\rX"),
        SPAN_LIT("GET / HTTP/1.1\r\r"),
        SPAN_LIT("GET / HTTP/1.10"),
        SPAN_LIT("OPTIONS *x"),
    };
    static const struct span responses[] = {
        SPAN_LIT("h"),
        SPAN_LIT("I"),
        SPAN_LIT("HTTP/2"),
        SPAN_LIT("HTTP/1.2"),
        SPAN_LIT("HTTP/1.1\r"),
        SPAN_LIT("HTTP/1.1 0"),
        SPAN_LIT("HTTP/1.1 2x"),
        SPAN_LIT("HTTP/1.1 20\r"),
        SPAN_LIT("HTTP/1.1 2000"),
        SPAN_LIT("HTTP/1.1 200\rX"),
        SPAN_LIT("HTTP/1.1  "),
    };

    (void)state;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        alien_at_its_end(false, requests[i]);
    for (size_t i = 0; i < sizeof responses / sizeof *responses; i++)
        alien_at_its_end(true, responses[i]);
    request("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "alien");
    request("CONNECT h:443 HTTP/1.1\r\n\r\n", "alien");
    request("SSH-2.0-OpenSSH_9.2\r\n", "alien");
    request("*1\r\n$4\r\nPING\r\n", "alien");
    response("SSH-2.0-OpenSSH_9.2\r\n", "alien");
}

static void test_host(void **state)
{
    (void)state;
    lines("Host: h\r\n", "h");
    lines("HOST:h:8080\r\n", "h:8080");
    lines("host: \t [::1]:80 \t\r\n", "[::1]:80");
    lines("Host:\r\n", "");
    lines("Host: h\nX: y\n", "h");
    lines("Hos: a\r\nHostx: b\r\nXHost: c\r\nX-Host: d\r\n", "");
    lines("X: Host: a\r\n", "");
    lines("Host: h\r\nhost: h\r\n", "h");
    lines("Host: h\r\nHost: H\r\n", "h");
    lines("Host: a\r\nHost: b\r\n", "alien");
    lines("Host: a\r\nHost:\r\n", "alien");
    lines("Host:\r\nHost: a\r\n", "alien");
    lines("Host : a\r\n", "alien");
    lines("Host\t: a\r\n", "alien");
    lines("Host: a b\r\n", "alien");
    lines("Host: a\rb\r\n", "alien");
    lines("Host: a\r\r\n", "alien");
    lines("Host a\r\n", "");
    lines("Host\r\n", "");
    lines("Host a: b\r\n", "");
}

static void test_host_as_long_as_it_may_be(void **state)
{
    char host[HTTP_HEAD_HOST_MAX + 2], text[600], expected[600];

    (void)state;
    memset(host, 'h', sizeof host);
    for (int over = 0; over <= 1; over++) {
        host[HTTP_HEAD_HOST_MAX + over] = '\0';
        snprintf(text, sizeof text, "Host: %s\r\n", host);
        lines(text, over ? "alien" : host);
        snprintf(text, sizeof text, "GET http://user@%s/ HTTP/1.1\r\n\r\n", host);
        snprintf(expected, sizeof expected, "GET / 1.1 @%s absolute", host);
        request(text, over ? "alien" : expected);
        host[HTTP_HEAD_HOST_MAX] = 'h';
    }
    /* userinfo may be longer than any host */
    snprintf(text, sizeof text, "GET http://%s@h/ HTTP/1.1\r\n\r\n", host);
    request(text, "GET / 1.1 @h absolute");
}

static void test_content_length(void **state)
{
    (void)state;
    lines("Content-Length: 0\r\n", " length=0");
    lines("content-length:12\r\n", " length=12");
    lines("CONTENT-LENGTH:  0012\t\r\n", " length=12");
    lines("Content-Length: 18446744073709551615\r\n", " length=18446744073709551615");
    lines("Content-Length: 5\r\nContent-Length: 5\r\n", " length=5");
    lines("Content-Length: 5, 5 ,5\r\n", " length=5");
    lines("Content-Length: 5\r\nContent-Length: 05\r\n", " length=5");
    lines("Content-Length: 18446744073709551616\r\n", "alien");
    lines("Content-Length: 99999999999999999999999\r\n", "alien");
    lines("Content-Length: 5\r\nContent-Length: 6\r\n", "alien");
    lines("Content-Length: 5, 6\r\n", "alien");
    lines("Content-Length: 5,\r\n", "alien");
    lines("Content-Length: ,5\r\n", "alien");
    lines("Content-Length:\r\n", "alien");
    lines("Content-Length: -1\r\n", "alien");
    lines("Content-Length: +1\r\n", "alien");
    lines("Content-Length: 1 2\r\n", "alien");
    lines("Content-Length: 0x5\r\n", "alien");
    lines("Content-Length: 5\r\r\n", "alien");
    lines("Content-Length : 5\r\n", "alien");
    lines("Content-Lengt: 5\r\nContent-Lengthy: 6\r\nContent_Length: 7\r\n", "");
    answer("Content-Length: 5\r\n", " length=5");
    answer("Content-Length: 5, 6\r\n", "alien");
}

static void test_transfer_encoding(void **state)
{
    (void)state;
    lines("Transfer-Encoding: chunked\r\n", " chunked");
    lines("transfer-encoding:CHUNKED \r\n", " chunked");
    lines("Transfer-Encoding: gzip, chunked\r\n", " chunked");
    lines("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", " chunked");
    lines("Transfer-Encoding: , chunked ,\r\n", " chunked");
    lines("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", " length=5 chunked");
    lines("Transfer-Encoding: gzip\r\n", "alien");
    lines("Transfer-Encoding: chunked, gzip\r\n", "alien");
    lines("Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n", "alien");
    lines("Transfer-Encoding: xchunked\r\n", "alien");
    lines("Transfer-Encoding : chunked\r\n", "alien");
    answer("Transfer-Encoding: chunked\r\n", " chunked");
    answer("Transfer-Encoding: gzip\r\n", " coded");
    answer("Transfer-Encoding: chunked, gzip\r\n", " coded");
    answer("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", " chunked");
    answer("Transfer-Encoding:\r\n", "");
}

static void test_connection(void **state)
{
    (void)state;
    lines("Connection: close\r\n", " close");
    lines("connection: foo ,CLOSE\r\n", " close");
    lines("Connection: foo\r\nConnection: close\r\n", " close");
    lines("Connection: keep-alive\r\n", "");
    lines("Connection: keep-alive, close\r\n", " close");
    lines("Connection: closed\r\n", "");
    lines("Proxy-Connection: close\r\n", "");
    lines("Connection: Upgrade\r\nUpgrade: websocket\r\n", " upgrade");
    lines("Upgrade: websocket\r\nConnection: keep-alive, upgrade\r\n", " upgrade");
    lines("Upgrade: websocket\r\n", "");
    lines("Connection: upgrade\r\n", "");
    request("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "GET / 1.0 @");
    request("GET / HTTP/1.0\r\nConnection: close\r\n\r\n", "GET / 1.0 @ close");
    response("HTTP/1.0 200 OK\r\n\r\n", "200 1.0 close");
    response("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n\r\n", "200 1.0");
    response("HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
             "101 1.1 upgrade");
}

static void test_status_line(void **state)
{
    (void)state;
    response("HTTP/1.1 200 OK\r\n\r\n", "200 1.1");
    response("HTTP/1.1 200 \r\n\r\n", "200 1.1");
    response("HTTP/1.1 200\r\n\r\n", "200 1.1");
    response("HTTP/1.1 200\n\n", "200 1.1");
    response("HTTP/1.1 100 Continue\r\n\r\n", "100 1.1");
    response("HTTP/1.1 999 What \xe9 \r is that\r\n\r\n", "999 1.1");
    response("HTTP/1.1 404 Not Found\nA: b\n\n", "404 1.1");
    response("HTTP/1.1 099 x\r\n\r\n", "alien");
    response("HTTP/1.1 200 OK\r\nHost: a\r\nHost: b\r\n\r\n", "200 1.1");
    response("HTTP/0.9 200 OK\r\n\r\n", "alien");
    response("ICY 200 OK\r\n\r\n", "alien");
}

/* Hashed however it comes, and never a reason to lose the request. */
static void test_credentials(void **state)
{
    static char text[3000], line[2000];

    (void)state;
    shows_credentials = true;
    request("GET / HTTP/1.1\r\nAuthorization: Bearer sk-1\r\n\r\n", "GET / 1.1 @ key=sk-1");
    request("GET / HTTP/1.1\r\nAccept: a\r\nX-A: b\r\nx-api-key:sk-1 \r\nhost: h\r\n\r\n",
            "GET / 1.1 @h key=sk-1");
    request("GET / HTTP/1.1\nAPI-Key: sk-1\nAuthorization: Bearer sk-2\n\n",
            "GET / 1.1 @ key=sk-1");
    request("GET / HTTP/1.1\nAuthorization: Bearer sk-2\nAPI-Key: sk-1\n\n", "GET / 1.1 @ key=?");
    request("GET /?key=sk-1 HTTP/1.1\r\n\r\n", "GET / 1.1 @ query");
    request("GET / HTTP/1.1\nOcp-Apim-Subscription-Key: sk-1\nHost: h\n\n",
            "GET / 1.1 @h key=sk-1");
    request("GET / HTTP/1.1\nX-Auth-Token: sk-2\nx-api-key: sk-1\n\n", "GET / 1.1 @ key=sk-1");
    request("GET / HTTP/1.1\nx-api-key: sk-1\nCookie: sk-2\n\n", "GET / 1.1 @ key=sk-1");
    request("GET / HTTP/1.1\nX-Auth-Token: sk-1\nCookie: sk-2\n\n", "GET / 1.1 @ key=?");
    request("GET / HTTP/1.1\nAuthorization: Bearer sk-1\n more\nHost: h\n\n",
            "GET / 1.1 @h key=sk-1");
    request("GET / HTTP/1.1\nx-amz-retry-after: 5\nAuthorization : b\n\n", "GET / 1.1 @");
    response("HTTP/1.1 200 OK\r\nAuthorization: Bearer sk-1\r\n\r\n", "200 1.1");
    memset(line, 'k', sizeof line - 1);
    snprintf(text, sizeof text, "GET / HTTP/1.1\r\nAuthorization: %s\r\nHost: h\r\n\r\n", line);
    request(text, "GET / 1.1 @h key=?");
    shows_credentials = false;
}

/* The same for who has the values already. */
static void test_retry_after_of_values(void **state)
{
    static const struct span two = SPAN_LIT(" 2.5 "), ms = SPAN_LIT("300"), amz = SPAN_LIT("400"),
                             bad = SPAN_LIT("soon"),
                             date = SPAN_LIT("Sun, 06 Nov 1994 08:49:37 GMT");

    (void)state;
    assert_int_equal(http_retry_ms(SPAN_NONE, SPAN_NONE, SPAN_NONE, 0), 0);
    assert_int_equal(http_retry_ms(SPAN_NONE, SPAN_NONE, two, 0), 2500);
    assert_int_equal(http_retry_ms(SPAN_NONE, amz, two, 0), 400);
    assert_int_equal(http_retry_ms(ms, amz, two, 0), 300);
    assert_int_equal(http_retry_ms(bad, amz, two, 0), 400);
    assert_int_equal(http_retry_ms(bad, bad, bad, 0), 0);
    assert_int_equal(http_retry_ms(SPAN_NONE, SPAN_NONE, date, 784111770), 7000);
    assert_int_equal(http_retry_ms(SPAN_NONE, SPAN_NONE, date, 784111778), 0);
    assert_int_equal(http_retry_ms(date, date, SPAN_NONE, 784111770), 0);
}

static void test_retry_after(void **state)
{
    (void)state;
    answer("Retry-After: 3\r\n", " retry=3000");
    answer("retry-after:0\r\n", "");
    answer("Retry-After: 1.25\r\n", " retry=1250");
    answer("Retry-After: 1.2345\r\n", " retry=1234");
    answer("Retry-After: 1.2x\r\n", "");
    answer("Retry-After: 86400\r\n", " retry=86400000");
    answer("Retry-After: 86401\r\n", " retry=86400000");
    answer("Retry-After: 99999999999999999999999999\r\n", " retry=86400000");
    answer("Retry-After: 18446744073709551617\r\n", " retry=86400000");
    answer("Retry-After: -3\r\n", "");
    answer("Retry-After: soon\r\n", "");
    answer("Retry-After: 3s\r\n", "");
    answer("Retry-After: 1.\r\n", "");
    answer("Retry-After: .5\r\n", "");
    answer("Retry-After:\r\n", "");
    answer("Retry-After: 3\r\nRetry-After: 4\r\n", " retry=3000");
    answer("Retry-After-Ms: 1500\r\n", " retry=1500");
    answer("retry-after-ms: 12.5\r\n", " retry=12");
    answer("retry-after-ms: 100000000\r\n", " retry=86400000");
    answer("x-amz-retry-after: 700\r\n", " retry=700");
    answer("Retry-After: 9\r\nX-Amz-Retry-After: 700\r\nRetry-After-Ms: 20\r\n", " retry=20");
    answer("Retry-After-Ms: 20\r\nX-Amz-Retry-After: 700\r\nRetry-After: 9\r\n", " retry=20");
    answer("X-Amz-Retry-After: 700\r\nRetry-After: 9\r\n", " retry=700");
    answer("Retry-After-Ms: soon\r\nRetry-After: 9\r\n", " retry=9000");
    answer("Retry-After-Ms: 0\r\nRetry-After: 9\r\n", "");
    answer("Retry-After : 9\r\n", "alien");
    lines("Retry-After: 9\r\nRetry-After : 9\r\n", "");
}

static void test_retry_after_a_date(void **state)
{
    (void)state;
    answer("Retry-After: Sun, 06 Nov 1994 08:49:47 GMT\r\n", " retry=10000");
    answer("Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n", "");
    answer("Retry-After: Sun, 06 Nov 1994 08:49:36 GMT\r\n", "");
    answer("Retry-After-Ms: Sun, 06 Nov 1994 08:49:47 GMT\r\n", "");
    answer("Retry-After: Sun, 06 Nov 1994 09:00:00 GMT\r\n", " retry=623000");
    answer("Retry-After: Mon, 07 Nov 1994 08:49:36 GMT\r\n", " retry=86399000");
    answer("Retry-After: Fri, 31 Dec 9999 23:59:59 GMT\r\n", " retry=86400000");
    answer("Retry-After: Thu, 01 Jan 1970 00:00:00 GMT\r\n", "");
    answer("Retry-After: Sat, 01 Jan 0000 00:00:00 GMT\r\n", "");
    answer("Retry-After: Sun, 06 Nov 1994 08:49:60 GMT\r\n", " retry=23000");
    answer("Retry-After: Sun, 06 Foo 1994 09:00:00 GMT\r\n", "");
    answer("Retry-After: Sun, 31 Nov 1995 09:00:00 GMT\r\n", "");
    answer("Retry-After: Sun, 00 Dec 1994 09:00:00 GMT\r\n", "");
    answer("Retry-After: Sun, 29 Feb 1995 09:00:00 GMT\r\n", "");
    answer("Retry-After: Thu, 29 Feb 1996 09:00:00 GMT\r\n", " retry=86400000");
    answer("Retry-After: Sun, 06 Nov 1994 24:00:00 GMT\r\n", "");
    answer("Retry-After: Sun, 06 Nov 1994 09:60:00 GMT\r\n", "");
    answer("Retry-After: Sun, 06 Nov 1994 09:00:61 GMT\r\n", "");
    answer("Retry-After: Sun, 06 Nov 1994 09:00:00 CET\r\n", "");
    answer("Retry-After: Sun, 06 Nov 1994 09:00:00 GMTx\r\n", "");
    answer("Retry-After: Sunday, 06-Nov-94 09:00:00 GMT\r\n", "");
    answer("Retry-After: Sun, x6 Nov 1994 09:00:00 GMT\r\n", "");
    answer("Retry-After: Sun, 06 Nov 1994 09-00-00 GMT\r\n", "");
}

/* Each month's first second against mktime's arithmetic, over leap years and centuries. */
static void test_dates_as_the_c_library_counts(void **state)
{
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

    (void)state;
    for (int year = 1896; year <= 2104; year++)
        for (int month = 0; month < 12; month++) {
            struct tm tm = {.tm_year = year - 1900, .tm_mon = month, .tm_mday = 28};
            char text[128];
            struct http_head head;
            int len =
                snprintf(text, sizeof text,
                         "HTTP/1.1 503 x\r\nRetry-After: Mon, 28 %s %04d 00:00:00 GMT\r\n\r\n",
                         months[month], year);
            http_head_init_response(&head);
            http_head_feed(&head, span_of(text, (size_t)len));
            assert_int_equal(head.state, HTTP_HEAD_DONE);
            assert_int_equal(http_head_retry_ms(&head.facts, (int64_t)timegm(&tm) - 7), 7000);
        }
}

static void test_clocks_far_off(void **state)
{
    static const int64_t clocks[] = {INT64_MIN, -1, 0, INT64_MAX};
    static const uint32_t expected[] = {86400000, 86400000, 86400000, 0};
    static const char text[] =
        "HTTP/1.1 503 x\r\nRetry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n";

    (void)state;
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        struct http_head head;
        http_head_init_response(&head);
        http_head_feed(&head, span_str(text));
        assert_int_equal(http_head_retry_ms(&head.facts, clocks[i]), expected[i]);
    }
}

static void test_folded_lines(void **state)
{
    (void)state;
    lines("X: a\r\n b\r\n\tContent-Length: 7\r\nHost: h\r\n", "h");
    lines("Host: h\r\n b\r\n", "alien");
    lines("Host: h\r\n\tb\r\n", "alien");
    lines("Content-Length: 5\r\n \r\n", "alien");
    lines("Host: h\r\nX: a\r\n b\r\n c\r\n", "h");
    lines(" Host: h\r\n", "");
    answer("Retry-After: 5\r\n 6\r\n", "alien");
    answer("Host: h\r\n b\r\n", "");
}

static void test_long_header_lines(void **state)
{
    static char text[8192], filler[3001];
    static const struct {
        const char *name;
        int len; /* of the value */
        bool alien;
    } cases[] = {
        {"X-Long: ", 3000, false},         {"Connection: ", 3000, true},
        {"Connection : ", 3000, true},     {"Connection: ", 1024 - 13, false},
        {"Connection: ", 1024 - 12, true}, {" folded", 3000, false},
        {"Connectionx: ", 3000, false},    {"no colon ", 3000, false},
        {"X: y\r\n folded", 3000, false},  {"Upgrade: y\r\n folded", 3000, true},
        {"Retry-After: ", 3000, false},
    };

    (void)state;
    memset(filler, 'a', sizeof filler - 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text, "GET / HTTP/1.1\r\n%s%.*s\r\nHost: h\r\n\r\n", cases[i].name,
                 cases[i].len, filler);
        request(text, cases[i].alien ? "alien" : "GET / 1.1 @h");
    }
    snprintf(text, sizeof text,
             "HTTP/1.1 200 OK\r\nX: %s\r\n continued\r\nContent-Length: 1\r\n\r\n", filler);
    response(text, "200 1.1 length=1");
    snprintf(text, sizeof text, "HTTP/1.1 200 %s\r\nContent-Length: 1\r\n\r\n", filler);
    response(text, "200 1.1 length=1");
}

static void test_long_paths(void **state)
{
    static char text[8192], path[HTTP_HEAD_PATH_MAX + 2], expected[2048];

    (void)state;
    memset(path, 'p', sizeof path - 1);
    path[0] = '/';
    snprintf(text, sizeof text, "POST %s HTTP/1.1\r\nHost: h\r\n\r\n", path);
    request(text, "POST  1.1 @h");
    snprintf(text, sizeof text, "POST http://h%s HTTP/1.1\r\n\r\n", path);
    request(text, "POST  1.1 @h absolute");
    path[HTTP_HEAD_PATH_MAX] = '\0';
    snprintf(text, sizeof text, "POST %s HTTP/1.1\r\nHost: h\r\n\r\n", path);
    snprintf(expected, sizeof expected, "POST %s 1.1 @h", path);
    request(text, expected);
    path[HTTP_HEAD_PATH_MAX] = 'p';
    snprintf(text, sizeof text, "POST /p?%s%s HTTP/1.1\r\nHost: h\r\n\r\n", path, path);
    request(text, "POST /p 1.1 @h");
}

/* A head of exactly so many bytes. */
static void check_size(size_t size, const char *expected)
{
    static char text[HTTP_HEAD_MAX + 16];
    static const char front[] = "GET / HTTP/1.1\r\nHost: h\r\n";
    size_t at = sizeof front - 1;

    memcpy(text, front, at);
    while (at + 2 < size) {
        size_t line = size - 2 - at < 200 ? size - 2 - at : 100;
        memset(text + at, 'x', line);
        text[at + line - 1] = '\n';
        at += line;
    }
    memcpy(text + at, "\r\n", 2);
    assert_int_equal(at + 2, size);
    check_cut(false, span_of(text, size), size, expected, 0, size);
    check_cut(false, span_of(text, size), size, expected, 0, 1);
    check_cut(false, span_of(text, size), size, expected, 0, 4096);
}

static void test_the_whole_head_is_bounded(void **state)
{
    (void)state;
    check_size(HTTP_HEAD_MAX, "GET / 1.1 @h");
    check_size(HTTP_HEAD_MAX + 1, "alien");
}

static void test_what_follows_is_left(void **state)
{
    static const char text[] = "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n\r\nabc";

    (void)state;
    check_bytes(false, span_str(text), 5, "POST / 1.1 @ length=5");
    check_bytes(true, span_str("HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n"), 17, "200 1.1");
}

static void test_bytes_that_are_no_text(void **state)
{
    static const char text[] =
        "GET / HTTP/1.1\r\nX: \0\xff\x01\r\n\0\r\n:\r\n: v\r\nHost: h\r\n\r\n";

    (void)state;
    check_bytes(false, span_of(text, sizeof text - 1), 0, "GET / 1.1 @h");
    check_bytes(false, SPAN_LIT("GET / HTTP/1.1\r\nHost: h\0i\r\n\r\n"), 0, "alien");
    check_bytes(false, SPAN_LIT("GET /\0 HTTP/1.1\r\n\r\n"), 0, "alien");
}

static void test_nothing_fed(void **state)
{
    struct http_head head;

    (void)state;
    begin(&head, false);
    assert_int_equal(http_head_feed(&head, SPAN_NONE), 0);
    assert_int_equal(head.state, HTTP_HEAD_MORE);
    assert_int_equal(http_head_feed(&head, SPAN_LIT("")), 0);
    assert_int_equal(head.state, HTTP_HEAD_MORE);
}

static void test_real_heads(void **state)
{
    (void)state;
    request("POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n"
            "Accept-Encoding: gzip, deflate\r\nConnection: keep-alive\r\n"
            "Accept: application/json\r\nContent-Type: application/json\r\n"
            "User-Agent: OpenAI/Python 1.40.0\r\nX-Stainless-Lang: python\r\n"
            "Authorization: Bearer sk-x\r\nContent-Length: 91\r\n\r\n",
            "POST /v1/chat/completions 1.1 @127.0.0.1:8000 length=91");
    response("HTTP/1.1 429 Too Many Requests\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
             "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
             "x-ratelimit-reset-requests: 6s\r\nretry-after-ms: 1234\r\nretry-after: 2\r\n"
             "Connection: close\r\n\r\n",
             "429 1.1 retry=1234 chunked close");
}

/* --- like the last -------------------------------------------------------------------------------
 */

#define AGAIN(length) "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: " length "\r\nX: y\r\n\r\n"

/* `second` is read after `first`, and says what it says alone. */
static void next(const char *first, const char *second, bool again)
{
    struct http_head head, alone;
    struct span text = span_str(second);
    char expected[4096];

    begin(&alone, false);
    feed(&alone, text);
    snprintf(expected, sizeof expected, "%s", shown(&alone, false));
    for (size_t cut = 0; cut < text.len; cut++) {
        begin(&head, false);
        feed(&head, span_str(first));
        http_head_next_request(&head);
        assert_int_equal(head.state, HTTP_HEAD_MORE);
        size_t used = cut > 0 ? feed(&head, span_of(text.ptr, cut)) : 0;
        if (head.state == HTTP_HEAD_MORE)
            used += feed(&head, span_skip(text, cut));
        assert_string_equal(shown(&head, false), expected);
        if (head.state != HTTP_HEAD_ALIEN)
            assert_int_equal(used, alone.total);
        assert_int_equal(http_head_is_again(&head),
                         again && (cut == 0 || cut >= alone.total)); /* whole, in one piece */
        assert_int_equal(feed(&head, text), 0);
    }
}

static void test_like_the_last(void **state)
{
    (void)state;
    next(AGAIN("12"), AGAIN("12"), true);
    next(AGAIN("12"), AGAIN("9"), true);
    next(AGAIN("12"), AGAIN("1234567890123456789"), true);
    next(AGAIN("12"), AGAIN("12") "POST", true);
    next("\r\n" AGAIN("12"), "\r\n" AGAIN("3"), true);
    next("GET / HTTP/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\n\r\n", true);
}

static void test_nearly_like_the_last(void **state)
{
    (void)state;
    next(AGAIN("12"), AGAIN("18446744073709551615"), false);
    next(AGAIN("12"), AGAIN("18446744073709551616"), false);
    next(AGAIN("12"), AGAIN(""), false);
    next(AGAIN("12"), AGAIN("-1"), false);
    next(AGAIN("12"), AGAIN("12 "), false);
    next(AGAIN("12"), AGAIN("12, 12"), false);
    next(AGAIN("12, 12"), AGAIN("13, 12"), false);
    next(AGAIN("12 , 12"), AGAIN("13 , 12"), false);
    next(AGAIN("12\r\nContent-Length: 12"), AGAIN("13\r\nContent-Length: 12"), false);
    next(AGAIN("12\r\nContent-Length: 12"), AGAIN("12\r\nContent-Length: 13"), false);
    next(AGAIN("12"), "POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 12\r\nX: y\r\n\r\n", false);
    next(AGAIN("12"), "PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 12\r\nX: y\r\n\r\n", false);
    next(AGAIN("12"), "POST /a HTTP/1.1\r\nHost: i\r\nContent-Length: 12\r\nX: y\r\n\r\n", false);
    next(AGAIN("12"), "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 12\r\nX: z\r\n\r\n", false);
    next(AGAIN("12"), "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 12\r\n\r\n", false);
    next(AGAIN("12"),
         "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 12\r\nX: y\r\nExpect: 1\r\n\r\n", false);
    next(AGAIN("12"), "SSH-2.0\r\n", false);
    next("GET / HTTP/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", false);
}

/* What is too long to be kept is read each time. */
static void test_long_heads_are_read_each_time(void **state)
{
    char text[2048], blanks[1100];

    (void)state;
    memset(blanks, ' ', sizeof blanks - 1);
    blanks[sizeof blanks - 1] = '\0';
    snprintf(text, sizeof text, "GET / HTTP/1.1\r\nContent-Length:%.900s1\r\n\r\n", blanks);
    next(text, text, true);
    snprintf(text, sizeof text, "GET / HTTP/1.1\r\nContent-Length:%.1000s1\r\n\r\n", blanks);
    next(text, text, false);
    snprintf(text, sizeof text, "GET / HTTP/1.1\r\nX:%s\r\n\r\n", blanks);
    next(text, text, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_line),
        cmocka_unit_test(test_absolute_form),
        cmocka_unit_test(test_empty_lines_before),
        cmocka_unit_test(test_other_protocols_at_the_first_byte),
        cmocka_unit_test(test_host),
        cmocka_unit_test(test_host_as_long_as_it_may_be),
        cmocka_unit_test(test_content_length),
        cmocka_unit_test(test_transfer_encoding),
        cmocka_unit_test(test_connection),
        cmocka_unit_test(test_status_line),
        cmocka_unit_test(test_credentials),
        cmocka_unit_test(test_retry_after_of_values),
        cmocka_unit_test(test_retry_after),
        cmocka_unit_test(test_retry_after_a_date),
        cmocka_unit_test(test_dates_as_the_c_library_counts),
        cmocka_unit_test(test_clocks_far_off),
        cmocka_unit_test(test_folded_lines),
        cmocka_unit_test(test_long_header_lines),
        cmocka_unit_test(test_long_paths),
        cmocka_unit_test(test_the_whole_head_is_bounded),
        cmocka_unit_test(test_what_follows_is_left),
        cmocka_unit_test(test_bytes_that_are_no_text),
        cmocka_unit_test(test_nothing_fed),
        cmocka_unit_test(test_real_heads),
        cmocka_unit_test(test_like_the_last),
        cmocka_unit_test(test_nearly_like_the_last),
        cmocka_unit_test(test_long_heads_are_read_each_time),
    };

    setlocale(LC_ALL, ""); /* dates and letters must not depend on it */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
