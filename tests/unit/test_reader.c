/* The reader shows inih nothing that it would cut, and counts lines as people do. */
#include "config/reader.h"

#include <ini.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

static char told[512]; /* "LINE:SECTION|" and "LINE!KEY|" in order */

static void tell(unsigned line, char kind, struct span what)
{
    size_t len = strlen(told);

    snprintf(told + len, sizeof told - len, "%u%c%.*s|", line, kind, (int)what.len,
             what.ptr ? what.ptr : "");
}

static void refused(struct reader *reader, struct span key, const char *expected, const char *found)
{
    assert_non_null(expected);
    assert_non_null(found);
    tell(reader->line, '!', key);
}

static void section(struct reader *reader, struct span name)
{
    if (name.ptr)
        tell(reader->line, ':', name);
}

static int handle(void *data, const char *ignored, const char *name, const char *value)
{
    struct reader *reader = data;

    (void)ignored;
    (void)value;
    reader->waiting = false;
    tell(reader->line, '=', span_str(name));
    return 1;
}

static struct reader reader_of(const char *text, size_t len)
{
    told[0] = '\0';
    return (struct reader){.text = {text, len}, .refused = refused, .section = section};
}

static void assert_told(const char *text, const char *expected)
{
    struct reader reader = reader_of(text, strlen(text));

    ini_parse_stream(reader_next, &reader, handle, &reader);
    assert_string_equal(told, expected);
}

static void lines_are_counted(void **state)
{
    (void)state;
    assert_told("", "");
    assert_told("[a]\n\n; x\nk = v\r\n[b c]\nl=", "1:a|4=k|5:b c|6=l|");
    assert_told("\xef\xbb\xbf[a]\r\n\r\nk=v", "1:a|3=k|");
    assert_told("\xef\xbb\xbf"
                "k=v",
                "1=k|");
    assert_told("[a]\n \xef\xbb\xbf"
                "k=v",
                "1:a|2=\xef\xbb\xbf"
                "k|");
    assert_told("nothing\nk=v\nnothing", "1!line|2=k|3!line|");
    assert_told("[a]x\nk=v", "1![a]x|2=k|");
    assert_told("k = v\n   l = m\n", "1=k|2=l|");
    assert_told("\n\n\n[a", "4![a|");
}

static void what_inih_gets_fits(void **state)
{
    (void)state;
    char *text = malloc(1000);
    char buf[200];

    assert_non_null(text);
    for (size_t len = 190; len <= 1000; len++) {
        memset(text, 'k', len);
        text[1] = '=';
        struct reader reader = reader_of(text, len);
        assert_ptr_equal(reader_next(buf, sizeof buf, &reader), buf);
        assert_int_equal(strlen(buf), len <= READER_LINE_MAX ? len : 0);
        assert_string_equal(told, len <= READER_LINE_MAX ? "" : "1!line|");
        /* A smaller buffer than Debian's. */
        reader = reader_of(text, len);
        reader_next(buf, 100, &reader);
        assert_string_equal(told, "1!line|");
        /* Sections and comments are not shown, however long. */
        text[0] = '[';
        text[2] = ']';
        text[3] = ';';
        reader = reader_of(text, len);
        assert_int_equal(strlen(reader_next(buf, 10, &reader)), 0);
        assert_string_equal(told, "1:=|");
    }
    free(text);
}

static void nul_bytes_end_nothing(void **state)
{
    (void)state;
    static const char text[] = "k=\0v\n[\0]\n;\0\nl=v";
    struct reader reader = reader_of(text, sizeof text - 1);

    ini_parse_stream(reader_next, &reader, handle, &reader);
    assert_string_equal(told, "1!line|2!line|3!line|4=l|");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_counted),
        cmocka_unit_test(what_inih_gets_fits),
        cmocka_unit_test(nul_bytes_end_nothing),
    };

    return cmocka_run_group_tests_name("reader", tests, NULL, NULL);
}
