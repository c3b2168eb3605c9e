/* Values out of text: the same in every locale, exact at the bounds. */
#include "config/place.h"
#include "config/values.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void assert_number(enum config_option option, const char *text, uint64_t expected)
{
    struct value value;

    assert_true(value_parse(&options[option], span_str(text), &value));
    assert_int_equal(value.number, expected);
}

static void assert_none(enum config_option option, const char *text)
{
    struct value value = {.number = 42};

    assert_false(value_parse(&options[option], span_str(text), &value));
    assert_int_equal(value.number, 42);
}

static void numbers(void **state)
{
    (void)state;
    assert_number(OPTION_failure_threshold, "0", 0);
    assert_number(OPTION_failure_threshold, "\t007 ", 7);
    assert_number(OPTION_failure_threshold, "500", 500);
    assert_none(OPTION_failure_threshold, "501");
    assert_none(OPTION_failure_threshold, "5.0");
    assert_none(OPTION_failure_threshold, "");
    assert_none(OPTION_failure_threshold, "0x5");
    assert_none(OPTION_failure_threshold, "+5");
    assert_none(OPTION_failure_threshold, "5 5");
    assert_number(OPTION_open_seconds, "0.1", 100000000);
    assert_number(OPTION_open_seconds, "0.1000001", 100000000);
    assert_number(OPTION_open_seconds, "86400", UINT64_C(86400000000000));
    assert_none(OPTION_open_seconds, "86400.000001");
    assert_none(OPTION_open_seconds, "0.099999");
    assert_none(OPTION_open_seconds, ".");
    assert_none(OPTION_open_seconds, "1.2.3");
    assert_none(OPTION_open_seconds, "inf");
    assert_none(OPTION_open_seconds, "18446744073709551616");
    assert_number(OPTION_hang_after, ".5", 500000000);
    assert_number(OPTION_hang_after, "5.", UINT64_C(5000000000));
    assert_number(OPTION_jitter, "1", 1000000);
    assert_number(OPTION_backoff, "1.25", 1250000);
    assert_none(OPTION_backoff, "0.99");
}

/* Seconds as ever, or the one word. */
static void leases(void **state)
{
    (void)state;
    assert_number(OPTION_probe_lease, "0.1", 100000000);
    assert_number(OPTION_probe_lease, "86400", UINT64_C(86400000000000));
    assert_number(OPTION_probe_lease, "call", VALUE_LEASE_OF_CALL);
    assert_number(OPTION_probe_lease, " Call", VALUE_LEASE_OF_CALL);
    assert_none(OPTION_probe_lease, "0.09");
    assert_none(OPTION_probe_lease, "86401");
    assert_none(OPTION_probe_lease, "calls");
    assert_none(OPTION_probe_lease, "call 30");
    assert_none(OPTION_probe_lease, "call, 30");
    assert_none(OPTION_probe_lease, "");
    assert_none(OPTION_open_seconds, "call");
}

static void no_locale_matters(void **state)
{
    (void)state;
    /* Whichever the machine has; with none of them the test says nothing more than numbers(). */
    if (!setlocale(LC_ALL, "de_DE.UTF-8") && !setlocale(LC_ALL, "tr_TR.UTF-8"))
        setlocale(LC_ALL, "");
    numbers(state);
    struct value value;
    assert_true(value_parse(&options[OPTION_mode], SPAN_LIT("ENFORCE"), &value));
    setlocale(LC_ALL, "C");
}

static void words(void **state)
{
    (void)state;
    assert_number(OPTION_should_retry, "TRUE", 1);
    assert_number(OPTION_should_retry, "on", 1);
    assert_number(OPTION_should_retry, "1", 1);
    assert_number(OPTION_should_retry, "No", 0);
    assert_none(OPTION_should_retry, "2");
    assert_none(OPTION_should_retry, "");
    assert_number(OPTION_match, "all", MATCH_ALL);
    assert_number(OPTION_when_exhausted, "pass", EXHAUSTED_PASS);
    assert_number(OPTION_deepbind, "keep", DEEPBIND_KEEP);
    assert_none(OPTION_match, "al");
    assert_none(OPTION_match, "all,");
    assert_number(OPTION_log, "", 0);
    assert_none(OPTION_log, "./x");
}

static void lists_add_up(void **state)
{
    (void)state;
    const struct option *option = &options[OPTION_failure_status];
    struct value value;
    char full[VALUE_TEXT_MAX + 1];

    assert_true(value_parse(option, SPAN_LIT(" 500 ,502-503, 100 599 "), &value));
    assert_true(value_append(option, SPAN_LIT("408"), &value));
    for (unsigned status = 0; status < 1024; status++) {
        bool in = status == 500 || status == 502 || status == 503 || status == 100 ||
                  status == 599 || status == 408;
        assert_int_equal(status_set_has(&value.statuses, status), in);
    }
    assert_string_equal(value.text, "500 ,502-503, 100 599, 408");
    static const char *const bad[] = {"99",       "600",  "5000", "500-", "-500",     "500-499",
                                      "500,,501", ",500", "5x0",  "500;", "500--501", "500 - 501"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_none(OPTION_failure_status, bad[i]);
        assert_false(value_append(option, span_str(bad[i]), &value));
    }
    assert_string_equal(value.text, "500 ,502-503, 100 599, 408");
    for (size_t i = 0; i < sizeof full; i++)
        full[i] = "500,"[i % 4];
    assert_false(value_parse(option, span_of(full, sizeof full), &value));
    assert_false(value_append(option, span_of(full, VALUE_TEXT_MAX - 10), &value));
    assert_false(value_append(&options[OPTION_mode], SPAN_LIT("off"), &value));
}

static void assert_text(enum config_option option, const char *text, const char *expected)
{
    struct value value;

    assert_true(value_parse(&options[option], span_str(text), &value));
    assert_string_equal(value.text, expected);
}

/* They stand in JSON as they are. */
static void codes_need_no_escape(void **state)
{
    static const char *const bad[] = {"",     " ",     "a\"b", "a\\b",        "'a'",
                                      "a\tb", "a\x01", "\x7f", "caf\xc3\xa9", "a\nb"};
    char longest[CONFIG_CODE_MAX + 2];

    (void)state;
    assert_text(OPTION_error_code, " provider-circuit-open\t", "provider-circuit-open");
    assert_text(OPTION_error_code, "x", "x");
    assert_text(OPTION_error_code, "{a, b}: c~", "{a, b}: c~");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_none(OPTION_error_code, bad[i]);
    memset(longest, 'c', sizeof longest);
    longest[CONFIG_CODE_MAX + 1] = '\0';
    assert_none(OPTION_error_code, longest);
    assert_text(OPTION_error_code, longest + 1, longest + 1);
}

static void names_are_taken_off_a_list(void **state)
{
    static const char *const expected[] = {"one", "two", "", "three", "four"};
    struct span list = SPAN_LIT(" one, two,,\tthree four ,"), name;

    (void)state;
    for (unsigned i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_true(config_next_name(&list, &name));
        assert_true(span_eq(name, span_str(expected[i])));
    }
    assert_false(config_next_name(&list, &name));
    list = SPAN_NONE;
    assert_false(config_next_name(&list, &name));
    list = SPAN_LIT(" \t");
    assert_false(config_next_name(&list, &name));
}

static void names_are_listed_in_one_way(void **state)
{
    (void)state;
    const struct option *option = &options[OPTION_fallback];
    struct value value;
    char full[VALUE_TEXT_MAX];

    assert_text(OPTION_fallback, "", "");
    assert_text(OPTION_fallback, " a ", "a");
    assert_text(OPTION_fallback, "a,b\tc , d,", "a, b, c, d");
    assert_none(OPTION_fallback, ",");
    assert_none(OPTION_fallback, "a,,b");
    assert_none(OPTION_fallback, "a\x7f");
    assert_true(value_parse(option, SPAN_LIT(""), &value));
    assert_true(value_append(option, SPAN_LIT("a b"), &value));
    assert_true(value_append(option, SPAN_LIT(""), &value));
    assert_true(value_append(option, SPAN_LIT("c"), &value));
    assert_false(value_append(option, SPAN_LIT("d,,e"), &value));
    assert_string_equal(value.text, "a, b, c");
    for (size_t i = 0; i < sizeof full; i++)
        full[i] = "a,"[i % 2];
    assert_true(value_parse(option, span_of(full, 2 * 170), &value));
    assert_int_equal(strlen(value.text), 3 * 170 - 2);
    assert_false(value_parse(option, span_of(full, 2 * 171 + 1), &value));
    assert_false(value_append(option, SPAN_LIT("b,c"), &value));
    assert_int_equal(strlen(value.text), 3 * 170 - 2);
}

static void texts_are_separated_by_commas_alone(void **state)
{
    (void)state;
    const struct option *option = &options[OPTION_neutral_body];
    struct value value;
    char longest[130];

    assert_text(OPTION_neutral_body, "", "");
    assert_text(OPTION_neutral_body, " too long\t", "too long");
    assert_text(OPTION_neutral_body, "Too  long,\tcode \"x\" ,c,", "Too  long, code \"x\", c");
    assert_text(OPTION_neutral_body, "zu gro\xc3\x9f", "zu gro\xc3\x9f");
    assert_none(OPTION_neutral_body, ",");
    assert_none(OPTION_neutral_body, "a, ,b");
    assert_none(OPTION_neutral_body, "a\tb");
    assert_none(OPTION_neutral_body, "a\nb");
    memset(longest, 'x', sizeof longest);
    assert_true(value_parse(option, span_of(longest, 128), &value));
    assert_false(value_append(option, span_of(longest, 129), &value));
    assert_true(value_append(option, span_of(longest, 128), &value));
    assert_true(value_append(option, span_of(longest, 128), &value));
    assert_false(value_append(option, span_of(longest, 122), &value)); /* 512 bytes in all */
    assert_true(value_append(option, span_of(longest, 121), &value));
    assert_int_equal(strlen(value.text), VALUE_TEXT_MAX - 1);

    assert_true(value_parse(option, SPAN_LIT("a,b,c,d,e,f,g,h,i,j,k,l"), &value));
    assert_false(value_append(option, SPAN_LIT("m,n,o,p,q"), &value)); /* 17 */
    assert_true(value_append(option, SPAN_LIT("m,n,o,p"), &value));
    assert_false(value_append(option, SPAN_LIT("q"), &value));
    assert_int_equal(value.number, CONFIG_TEXTS_MAX);
    assert_string_equal(value.text, "a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p");
}

static void texts_are_taken_off_a_list(void **state)
{
    (void)state;
    static const char *const expected[] = {"maximum context length", "b", "", "c"};
    struct span list = SPAN_LIT(" maximum context length ,b,\t, c,"), text;

    for (unsigned i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_true(config_next_text(&list, &text));
        assert_true(span_eq(text, span_str(expected[i])));
    }
    assert_false(config_next_text(&list, &text));
    list = SPAN_NONE;
    assert_false(config_next_text(&list, &text));
}

static void addresses_are_spelled_as_keys(void **state)
{
    (void)state;
    static const char *const none[] = {
        "h",
        "h:",
        "h:0",
        "h:08",
        "h:65536",
        "h:1x",
        "h:+1",
        ":80",
        ".:80",
        "::1:80",
        "[::1]",
        "[::1]80",
        "[]:80",
        "[::g]:80",
        "[1.2.3.4]:80",
        "[fe80::1%eth0]:80",
        "h%41:80",
        "http://h:80",
        "h/x:80",
        "u@h:80",
        "a b:80",
        "[1:2:3:4:5:6:7]:80",
        "[1:2:3:4:5:6:7:8:9]:80",
        "[1::2::3]:80",
        "[12345::]:80",
        "[:::]:80",
    };

    assert_text(OPTION_fallback_address, "", "");
    assert_text(OPTION_fallback_address, " GPU2.Internal.:8000 ", "gpu2.internal:8000");
    assert_text(OPTION_fallback_address, "h:443", "h:443");
    assert_text(OPTION_fallback_address, "10.0.0.1:65535", "10.0.0.1:65535");
    assert_text(OPTION_fallback_address, "[FE80::1]:1", "[fe80::1]:1");
    assert_text(OPTION_fallback_address, "[::ffff:1.2.3.4]:1", "[::ffff:1.2.3.4]:1");
    assert_text(OPTION_fallback_address, "[1:2:3:4:5:6:7:8]:1", "[1:2:3:4:5:6:7:8]:1");
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_none(OPTION_fallback_address, none[i]);
}

static void this_machine_is_known(void **state)
{
    (void)state;
    static const char *const here[] = {"localhost",        "LocalHost.",      "a.localhost",
                                       "127.0.0.1",        "127.255.255.255", "[::1]",
                                       "[0:0:0:0:0:0:0:1]"};
    static const char *const elsewhere[] = {"",
                                            "localhost.example",
                                            "notlocalhost",
                                            "127.example",
                                            "127.0.0.1.example",
                                            "128.0.0.1",
                                            "127.0.0.256",
                                            "127.0.0",
                                            "[::]",
                                            "[::2]",
                                            "[1::1]",
                                            "[::1",
                                            "::1",
                                            "[::ffff:127.0.0.1]"};

    for (size_t i = 0; i < sizeof here / sizeof *here; i++)
        if (!place_is_loopback(span_str(here[i])))
            fail_msg("%s", here[i]);
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (place_is_loopback(span_str(elsewhere[i])))
            fail_msg("%s", elsewhere[i]);
}

static void every_default_is_a_value(void **state)
{
    (void)state;
    struct value value;

    for (unsigned i = 0; i < OPTION_COUNT; i++)
        assert_true(value_parse(&options[i], span_str(options[i].fallback), &value));
}

static void keys_are_found(void **state)
{
    (void)state;
    assert_int_equal(option_find(SPAN_LIT("jitter")), OPTION_jitter);
    assert_int_equal(option_find(SPAN_LIT("Jitter")), OPTION_COUNT);
    assert_int_equal(option_find(SPAN_LIT("")), OPTION_COUNT);
    assert_string_equal(option_nearest(SPAN_LIT("failure-treshold")), "failure_threshold");
    assert_string_equal(option_nearest(SPAN_LIT("open_second")), "open_seconds");
    assert_null(option_nearest(SPAN_LIT("")));
    assert_null(option_nearest(SPAN_LIT("bogus")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),
        cmocka_unit_test(leases),
        cmocka_unit_test(no_locale_matters),
        cmocka_unit_test(words),
        cmocka_unit_test(lists_add_up),
        cmocka_unit_test(codes_need_no_escape),
        cmocka_unit_test(names_are_taken_off_a_list),
        cmocka_unit_test(names_are_listed_in_one_way),
        cmocka_unit_test(texts_are_separated_by_commas_alone),
        cmocka_unit_test(texts_are_taken_off_a_list),
        cmocka_unit_test(addresses_are_spelled_as_keys),
        cmocka_unit_test(this_machine_is_known),
        cmocka_unit_test(every_default_is_a_value),
        cmocka_unit_test(keys_are_found),
    };

    return cmocka_run_group_tests_name("values", tests, NULL, NULL);
}
