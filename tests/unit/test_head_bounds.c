/* Heads of any length and of any bytes: what is too long for us is let go, and what follows is
 * left. */
#include "head_fixture.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folded_lines),
        cmocka_unit_test(test_long_header_lines),
        cmocka_unit_test(test_long_paths),
        cmocka_unit_test(test_the_whole_head_is_bounded),
        cmocka_unit_test(test_what_follows_is_left),
        cmocka_unit_test(test_bytes_that_are_no_text),
        cmocka_unit_test(test_nothing_fed),
    };

    setlocale(LC_ALL, ""); /* dates and letters must not depend on it */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
