/* HTTP/1.x heads: what is read of them, what is let go, and the same answer however they are cut.
 */
#include "head_fixture.h"

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

static const struct span no_requests[] = {
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

static const struct span no_responses[] = {
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

static void test_other_protocols_at_the_first_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof no_requests / sizeof *no_requests; i++)
        alien_at_its_end(false, no_requests[i]);
    for (size_t i = 0; i < sizeof no_responses / sizeof *no_responses; i++)
        alien_at_its_end(true, no_responses[i]);
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
        cmocka_unit_test(test_real_heads),
    };

    setlocale(LC_ALL, ""); /* dates and letters must not depend on it */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
