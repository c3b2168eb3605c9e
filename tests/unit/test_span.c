/* Spans, the absent and the empty one. UBSan sees whether libc gets a null pointer. */
#include "base/span.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static const struct span word = {"open", 4};

static void test_begins_and_ends(void **state)
{
    (void)state;
    assert_true(span_starts(word, SPAN_LIT("op")));
    assert_true(span_starts(word, word));
    assert_false(span_starts(word, SPAN_LIT("Op")));
    assert_false(span_starts(word, SPAN_LIT("opened")));
    assert_true(span_ends(word, SPAN_LIT("en")));
    assert_true(span_ends(word, word));
    assert_false(span_ends(word, SPAN_LIT("eN")));
    assert_false(span_ends(word, SPAN_LIT("reopen")));
}

static void test_absent_has_only_the_empty_one(void **state)
{
    volatile size_t none = 0; /* not known to the compiler */
    struct span absent = {NULL, none}, empty = {"", none};

    (void)state;
    assert_true(span_eq(absent, empty));
    assert_true(span_starts(absent, empty));
    assert_true(span_starts(absent, absent));
    assert_true(span_starts(word, absent));
    assert_true(span_ends(absent, empty));
    assert_true(span_ends(absent, absent));
    assert_true(span_ends(word, absent));
    assert_false(span_starts(absent, word));
    assert_false(span_ends(absent, word));
    assert_ptr_equal(span_until(absent, ':').ptr, NULL);
    assert_int_equal(span_trim(absent).len, 0);
    assert_false(span_has_control(absent));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_begins_and_ends),
        cmocka_unit_test(test_absent_has_only_the_empty_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
