/* Heads that are the last one again, but for their length: known by their bytes, they say what they
 * say alone. */
#include "head_fixture.h"

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
        cmocka_unit_test(test_like_the_last),
        cmocka_unit_test(test_nearly_like_the_last),
        cmocka_unit_test(test_long_heads_are_read_each_time),
    };

    setlocale(LC_ALL, ""); /* dates and letters must not depend on it */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
