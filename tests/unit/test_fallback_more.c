/* What else a fallback needs: its headers with their variables in, and the place of an address; and
 * whether a call has a chain at all. */
#include "route/fallback.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

/* --- headers --------------------------------------------------------------------------------- */

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

/* --- the address ----------------------------------------------------------------------------- */

static bool address_of(const char *key, const char *address, struct span *host, uint16_t *port)
{
    struct policy policy = {.fallback_address = address, .allow_fallbacks = true};

    return fallback_address(&policy, span_str(key), host, port);
}

static void addresses(void **state)
{
    struct policy stopped = {.fallback_address = "b.example:443"};
    struct span host;
    uint16_t port;

    (void)state;
    assert_true(address_of("a.example", "b.example:443", &host, &port));
    assert_true(span_eq(host, SPAN_LIT("b.example")));
    assert_int_equal(port, 443);
    assert_true(address_of("a.example:80", "a.example:8000", &host, &port));
    assert_int_equal(port, 8000);
    assert_true(address_of("a.example", "[::1]:80", &host, &port));
    assert_true(span_eq(host, SPAN_LIT("[::1]")));
    assert_false(address_of("a.example", "a.example:443", &host, &port));
    assert_false(address_of("a.example:80", "a.example:80", &host, &port));
    assert_false(address_of("a.example", "", &host, &port));
    assert_false(fallback_address(&stopped, SPAN_LIT("a.example"), &host, &port));
}

/* --- is there a chain? ----------------------------------------------------------------------- */

static void chains(void **state)
{
    struct policy policy = {.fallback = "", .fallback_address = "", .allow_fallbacks = true};

    (void)state;
    assert_false(route_has_chain(&policy, MODEL_IN_BODY));
    policy.fallback = "one";
    assert_true(route_has_chain(&policy, MODEL_IN_BODY));
    assert_true(route_has_chain(&policy, MODEL_IN_PATH));
    assert_false(route_has_chain(&policy, MODEL_NONE));
    policy.fallback = "";
    policy.fallback_address = "b:1";
    assert_true(route_has_chain(&policy, MODEL_IN_BODY));
    policy.allow_fallbacks = false;
    assert_false(route_has_chain(&policy, MODEL_IN_BODY));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers),
        cmocka_unit_test(addresses),
        cmocka_unit_test(chains),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
