/* ${VAR} in the headers of a fallback. */
#include "config/variable.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const char *look_up(const char *name)
{
    static const char *const known[][2] = {{"A", "1"},    {"_b9", "${A}$"},
                                           {"EMPTY", ""}, {"LF", "x\ny"},
                                           {"CR", "x\r"}, {"LONG", "0123456789"}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i][0], name) == 0)
            return known[i][1];
    return NULL;
}

static void variables_are_put_in(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"", ""},
                                           {"plain } text", "plain } text"},
                                           {"${A}", "1"},
                                           {"x${A}${A}y", "x11y"},
                                           {"${_b9}", "${A}$"},
                                           {"$$", "$"},
                                           {"$${A}$$$$", "${A}$$"},
                                           {"$$${A}", "$1"}};
    char buf[64];

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(variable_expand(cases[i][0], look_up, buf, sizeof buf, NULL),
                         VARIABLE_GOOD);
        assert_string_equal(buf, cases[i][1]);
    }
}

static void assert_unset(const char *text, const char *name)
{
    struct span culprit = SPAN_NONE;
    char buf[64] = "x";

    assert_int_equal(variable_expand(text, look_up, buf, sizeof buf, &culprit), VARIABLE_UNSET);
    assert_true(span_eq(culprit, span_str(name)));
    assert_true(culprit.ptr > text && culprit.ptr < text + strlen(text));
    assert_string_equal(buf, "");
    assert_int_equal(variable_expand(text, look_up, buf, sizeof buf, NULL), VARIABLE_UNSET);
}

static void what_is_not_set_is_named(void **state)
{
    (void)state;
    assert_unset("${A} ${GONE}", "GONE");
    assert_unset("${EMPTY}", "EMPTY");
    assert_unset("${LF}", "LF");
    assert_unset("${CR}", "CR");
}

static void what_is_no_variable_is_broken(void **state)
{
    (void)state;
    static const char *const bad[] = {"$",     "x$ ",    "$A",  "${A",    "${}",     "${9}",
                                      "${A-}", "${a b}", "$$$", "${A}${", "${${A}}", "${ A}"};
    struct span culprit = SPAN_NONE;
    char buf[64], longest[200];

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(variable_expand(bad[i], look_up, buf, sizeof buf, &culprit),
                         VARIABLE_BROKEN);
        assert_string_equal(buf, "");
        assert_null(culprit.ptr);
    }
    memset(longest, 'A', sizeof longest);
    memcpy(longest, "${", 2);
    strcpy(longest + 2 + VARIABLE_NAME_MAX, "}");
    assert_int_equal(variable_expand(longest, look_up, buf, sizeof buf, NULL), VARIABLE_UNSET);
    strcpy(longest + 2 + VARIABLE_NAME_MAX, "A}");
    assert_int_equal(variable_expand(longest, look_up, buf, sizeof buf, NULL), VARIABLE_BROKEN);
}

static void nothing_is_written_past_the_buffer(void **state)
{
    (void)state;
    char buf[16];

    for (size_t size = 0; size < sizeof buf; size++) {
        memset(buf, '#', sizeof buf);
        enum variable_result result = variable_expand("a${LONG}b", look_up, buf, size, NULL);
        assert_int_equal(result, size > 12 ? VARIABLE_GOOD : VARIABLE_TOO_LONG);
        for (size_t i = size; i < sizeof buf; i++)
            assert_int_equal(buf[i], '#');
        if (size > 0)
            assert_string_equal(buf, size > 12 ? "a0123456789b" : "");
    }
}

static void names_are_walked_over(void **state)
{
    (void)state;
    struct span text = SPAN_LIT("a$$ ${ONE}b${TWO}"), name;

    assert_true(variable_next(&text, &name) && span_eq(name, SPAN_LIT("ONE")));
    assert_true(variable_next(&text, &name) && span_eq(name, SPAN_LIT("TWO")));
    assert_false(variable_next(&text, &name));
    assert_int_equal(text.len, 0);
    text = SPAN_LIT("${ONE}b$-");
    assert_true(variable_next(&text, &name));
    assert_false(variable_next(&text, &name));
    assert_true(span_eq(text, SPAN_LIT("$-")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_are_put_in),
        cmocka_unit_test(what_is_not_set_is_named),
        cmocka_unit_test(what_is_no_variable_is_broken),
        cmocka_unit_test(nothing_is_written_past_the_buffer),
        cmocka_unit_test(names_are_walked_over),
    };

    return cmocka_run_group_tests_name("variable", tests, NULL, NULL);
}
