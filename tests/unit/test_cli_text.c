/* What the command shows of names that anybody chose, and of times. */
#include "cli/cli.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void assert_shown(const char *text, const char *expected)
{
    char shown[64];

    assert_int_equal(cli_text_safe(span_str(text), shown, sizeof shown), strlen(expected));
    assert_string_equal(shown, expected);
}

static void test_text_is_shown(void **state)
{
    (void)state;
    assert_shown("gpt-4o", "gpt-4o");
    assert_shown("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
}

static void test_nothing_reaches_the_terminal(void **state)
{
    (void)state;
    assert_shown("a\x1b[2J\n\x7f", "a\\x1b[2J\\x0a\\x7f");
    assert_shown("\xc2\x9b"
                 "2J",
                 "\\xc2\\x9b2J");                    /* C1 of UTF-8 */
    assert_shown("\xe2\x80\xae", "\\xe2\\x80\\xae"); /* turns what follows around */
    assert_shown("\x9b", "\\x9b");                   /* C1 alone */
    assert_shown("\xe2\x82", "\\xe2\\x82");          /* cut */
    assert_shown("\xe2(\xa1", "\\xe2(\\xa1");        /* broken off */
    assert_shown("\xc1\x81", "\\xc1\\x81");          /* overlong */
    assert_shown("\xe0\x81\x81", "\\xe0\\x81\\x81");
    assert_shown("\xed\xa0\x80", "\\xed\\xa0\\x80");          /* a surrogate */
    assert_shown("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"); /* beyond the last */
    assert_shown("\xff", "\\xff");
}

static void test_what_does_not_fit_is_cut_whole(void **state)
{
    char shown[8];

    (void)state;
    assert_int_equal(cli_text_safe(SPAN_LIT("abcdefghi"), shown, sizeof shown), 7);
    assert_string_equal(shown, "abcdefg");
    assert_int_equal(cli_text_safe(SPAN_LIT("abcdef\xc3\xa9"), shown, sizeof shown), 6);
    assert_string_equal(shown, "abcdef");
    assert_int_equal(cli_text_safe(SPAN_LIT("abcd\x1b"), shown, sizeof shown), 4);
    assert_string_equal(shown, "abcd");
}

static void test_durations(void **state)
{
    static const struct {
        uint64_t ms;
        const char *text;
    } cases[] = {{0, "0ms"},        {999, "999ms"},
                 {12345, "12.3s"},  {99999, "99.9s"},
                 {100000, "1m"},    {5999999, "99m"},
                 {6000000, "1h"},   {172799999, "47h"},
                 {172800000, "2d"}, {UINT64_MAX, "213503982334d"}};
    char text[32];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(cli_text_duration(cases[i].ms, text, sizeof text), cases[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_is_shown),
        cmocka_unit_test(test_nothing_reaches_the_terminal),
        cmocka_unit_test(test_what_does_not_fit_is_cut_whole),
        cmocka_unit_test(test_durations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
