/* The headers that a fallback adds, with their variables in. */
#include "route/fallback.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

static char long_value[FALLBACK_HEADER_MAX];

static const char *look_up(const char *name)
{
    return strcmp(name, "KEY") == 0 ? "sk-1" : strcmp(name, "LONG") == 0 ? long_value : NULL;
}

static enum fallback_misfit header_of(const char *line, char buf[FALLBACK_HEADER_MAX],
                                      struct span *culprit)
{
    const char *lines[] = {"X-First: 1", line};
    struct config_fallback fallback = {.headers = lines, .header_count = 2};

    return fallback_header(&fallback, 1, look_up, buf, culprit);
}

static void headers(void **state)
{
    static char buf[FALLBACK_HEADER_MAX];
    struct span culprit = SPAN_NONE;

    (void)state;
    assert_int_equal(header_of("Authorization: Bearer ${KEY}", buf, &culprit), FALLBACK_FITS);
    assert_string_equal(buf, "Authorization: Bearer sk-1");
    assert_null(culprit.ptr);
    assert_int_equal(header_of("X: ${KEY} ${NONE}", buf, &culprit), FALLBACK_VARIABLE);
    assert_true(span_eq(culprit, SPAN_LIT("NONE")));
    assert_string_equal(buf, "");
    assert_int_equal(header_of("X: ${NONE}", buf, NULL), FALLBACK_VARIABLE);
    assert_int_equal(header_of("X: ${", buf, NULL), FALLBACK_VARIABLE);
    memset(long_value, 'v', FALLBACK_HEADER_MAX - 1 - strlen("X: "));
    assert_int_equal(header_of("X: ${LONG}", buf, NULL), FALLBACK_FITS);
    assert_int_equal(strlen(buf), FALLBACK_HEADER_MAX - 1);
    assert_int_equal(header_of("X: ${LONG}v", buf, NULL), FALLBACK_TOO_LONG);
    assert_string_equal(buf, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
