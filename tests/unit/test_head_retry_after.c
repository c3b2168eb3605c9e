/* When an answer says to come again: seconds, milliseconds or a date, and never a harm. */
#include "head_fixture.h"

#include <time.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_retry_after_of_values),
        cmocka_unit_test(test_retry_after),
        cmocka_unit_test(test_retry_after_a_date),
        cmocka_unit_test(test_dates_as_the_c_library_counts),
        cmocka_unit_test(test_clocks_far_off),
    };

    setlocale(LC_ALL, ""); /* dates and letters must not depend on it */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
