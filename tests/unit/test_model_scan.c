/* The model in a JSON body: which member it is, and the same answer however the bytes are cut. */
#include "http/model_scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

static void assert_answer(const struct model_scan *scan, enum model_scan_state state,
                          struct span expected, struct span body, size_t split)
{
    struct span value = model_scan_value(scan);
    bool right = state == model_scan_state(scan) &&
                 (expected.ptr ? state == MODEL_SCAN_FOUND && span_eq(value, expected)
                               : state == MODEL_SCAN_ABSENT && !value.ptr);

    if (!right)
        fail_msg("split at %zu: state %d, value '%.*s' of: %.*s", split, state, (int)value.len,
                 value.ptr ? value.ptr : "", (int)(body.len < 300 ? body.len : 300), body.ptr);
}

static struct span copy_of(struct span bytes)
{
    return span_of(memcpy(malloc(bytes.len + 1), bytes.ptr, bytes.len), bytes.len);
}

/* Fed in two parts, each a heap block of its own so that a sanitizer sees every byte too far. */
static void check_split(struct span body, struct span expected, size_t split)
{
    struct span front = copy_of(span_of(body.ptr, split)), back = copy_of(span_skip(body, split));
    struct model_scan scan;

    model_scan_init(&scan, SPAN_LIT("model"));
    model_scan_feed(&scan, front);
    free((void *)(uintptr_t)front.ptr);
    struct model_scan moved = scan; /* plain bytes */
    model_scan_feed(&moved, back);
    free((void *)(uintptr_t)back.ptr);
    assert_answer(&moved, model_scan_end(&moved), expected, body, split);
}

static void check(struct span body, struct span expected)
{
    struct model_scan scan;

    for (size_t split = 0; split <= body.len; split++)
        check_split(body, expected, split);
    model_scan_init(&scan, SPAN_LIT("model"));
    for (size_t i = 0; i < body.len; i++)
        model_scan_feed(&scan, span_of(body.ptr + i, 1));
    assert_answer(&scan, model_scan_end(&scan), expected, body, body.len);
}

static void found(const char *body, const char *model)
{
    check(span_str(body), span_str(model));
}

static void absent(const char *body)
{
    check(span_str(body), SPAN_NONE);
}

static void test_where_it_stands(void **state)
{
    (void)state;
    found("{\"model\":\"gpt-4o\"}", "gpt-4o");
    found(" \t\r\n{ \"model\" \n:\t \"gpt-4o\" , \"x\":1}", "gpt-4o");
    found("{\"max_tokens\":10,\"messages\":[],\"model\":\"claude-3\"}", "claude-3");
    found("{\"a\":1.5e-3,\"b\":true,\"c\":null,\"d\":\"\",\"e\":{},\"f\":[],\"model\":\"m\"}", "m");
    found("{\"stream\":false ,\"input\":\"text\" ,\"model\":\"o/n:free@x\"}", "o/n:free@x");
    found("\xef\xbb\xbf{\"model\":\"bom\"}", "bom");
    found("{\"model\":\"first\",\"model\":\"second\"}", "first");
    found("{\"model\":\"known at once\"", "known at once");
    found("{\"modelx\":\"a\",\"mode\":\"b\",\"xmodel\":\"c\",\"Model\":\"d\",\"model\":\"e\"}",
          "e");
    found("{\"\":\"a\",\"model\":\"e\"}", "e");
}

static void test_prompts_that_speak_of_it(void **state)
{
    (void)state;
    found("{\"prompt\":\"{\\\"model\\\":\\\"x\\\"}\",\"model\":\"real\"}", "real");
    found("{\"messages\":[{\"content\":\"say \\\"model\\\": \\\"x\\\"\\\\\"}],\"model\":\"real\"}",
          "real");
    found("{\"messages\":[{\"model\":\"x\"},[{\"model\":\"y\"}]],\"model\":\"real\"}", "real");
    found("{\"metadata\":{\"model\":\"x\",\"a\":{\"model\":[1]}},\"model\":\"real\"}", "real");
    found("{\"a\":\"model\",\"b\":[\"model\",\"x\"],\"model\":\"real\"}", "real");
    found("{\"a\":\"}],{[\\\\\",\"b\":[\"]}\\\\\\\"\",{\"c\":\"}\"}],\"model\":\"real\"}", "real");
    absent("{\"prompt\":\"\\\"model\\\":\\\"x\\\"\"}");
    absent("{\"metadata\":{\"model\":\"x\"}}");
    absent("{\"messages\":[{\"model\":\"x\"}]}");
    /* what follows the object is not in it */
    absent("{\"a\":1}{\"model\":\"x\"}");
    absent("{\"a\":1},\"model\":\"x\"");
}

static void test_escapes(void **state)
{
    (void)state;
    found("{\"mo\\u0064el\":\"m\"}", "m");
    found("{\"\\u006d\\u006F\\u0064\\u0065\\u006C\":\"m\"}", "m");
    found("{\"mo\\u0064ex\":\"a\",\"model\":\"m\"}", "m");
    found("{\"model\\u0000\":\"a\",\"model\\\\\":\"b\",\"model\":\"m\"}", "m");
    found("{\"model\":\"a\\/b\\\"c\\\\d\\u0041\"}", "a/b\"c\\dA");
    found("{\"model\":\"\\u00e9\\u20ac\\uD83D\\uDE00\"}", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    found("{\"model\":\"\xc3\xa9\xe2\x82\xac\"}", "\xc3\xa9\xe2\x82\xac");
    /* half a surrogate pair becomes U+FFFD, as json modules that do not refuse it write it */
    found("{\"model\":\"\\uD83Dx\"}", "\xef\xbf\xbdx");
    found("{\"model\":\"\\uDE00x\"}", "\xef\xbf\xbdx");
    found("{\"model\":\"\\uD83D\\uD83D\\uDE00\"}", "\xef\xbf\xbd\xf0\x9f\x98\x80");
    found("{\"model\":\"\\uD83D\\/\"}", "\xef\xbf\xbd/");
    found("{\"model\":\"\\uD83D\"}", "\xef\xbf\xbd");
    absent("{\"model\":\"a\\x\"}");
    absent("{\"model\":\"a\\u12G4\"}");
}

static void test_what_cannot_be_a_model(void **state)
{
    static const char *const values[] = {"1",       "-0.5", "null", "true", "{\"id\":\"m\"}",
                                         "[\"m\"]", "\"\""};
    char body[128];

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        snprintf(body, sizeof body, "{\"a\":0,\"model\":%s,\"model\":\"m\"}", values[i]);
        absent(body);
    }
    absent("{\"model\":\"a\\nb\"}");
    absent("{\"model\":\"a\nb\"}");
    absent("{\"model\":\"a\\u0000b\"}");
    absent("{\"model\":\"a\x7f\"}");
    absent("{\"model\":\"a\\u001fb\"}");
    check(SPAN_LIT("{\"model\":\"a\0b\"}"), SPAN_NONE);
}

static void test_length_of_the_model(void **state)
{
    char body[400], model[300];

    (void)state;
    for (size_t len = MODEL_MAX - 1; len <= MODEL_MAX + 1; len++) {
        memset(model, 'm', len);
        model[len] = '\0';
        snprintf(body, sizeof body, "{\"model\":\"%s\"}", model);
        if (len <= MODEL_MAX)
            found(body, model);
        else
            absent(body);
    }
    /* the limit is in bytes of UTF-8, and no character is cut */
    memset(model, 'm', MODEL_MAX - 1);
    model[MODEL_MAX - 1] = '\0';
    snprintf(body, sizeof body, "{\"model\":\"%s\\u00e9\"}", model);
    absent(body);
}

static void test_what_is_no_object(void **state)
{
    (void)state;
    absent("");
    absent("   ");
    absent("[{\"model\":\"m\"}]");
    absent("\"model\":\"m\"");
    absent("model=m&prompt=x");
    absent("null");
    absent("-1");
    absent("\x28\xb5\x2f\xfd\x24{\"model\":\"m\"}"); /* zstd */
    absent("\xef\xbb{\"model\":1}");
    absent("\xef\xbb\xbf\xef\xbb\xbf{\"model\":\"m\"}");
    absent("{}");
    absent("{model:\"m\"}");
    absent("{\"model\" \"m\"}");
    absent("{\"a\":1]");
}

static void test_truncated(void **state)
{
    static const char body[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":\"a\\\"b\"}],\"t\":1.5,"
        "\"mo\\u0064el\":\"g\\u0070t\"";

    (void)state;
    found(body, "gpt");
    for (size_t len = 0; len < sizeof body - 1; len++)
        check(span_of(body, len), SPAN_NONE);
}

static void test_deep_nesting_needs_no_stack(void **state)
{
    enum { DEPTH = 200000 };
    static char body[2 * DEPTH + 64];
    size_t len = 0;

    (void)state;
    len += (size_t)sprintf(body, "{\"a\":");
    for (int i = 0; i < DEPTH; i++)
        body[len++] = i % 3 ? '[' : '{';
    for (int i = DEPTH - 1; i >= 0; i--)
        body[len++] = i % 3 ? ']' : '}';
    len += (size_t)sprintf(body + len, ",\"model\":\"deep\"}");
    for (size_t split = 0; split < len; split += 9973)
        check_split(span_of(body, len), SPAN_LIT("deep"), split);
}

/* Everything interesting at every place of a 64-byte block. */
static void test_every_alignment(void **state)
{
    static const char *const middles[] = {
        "\\\"",
        "\\\\\\\"",
        "\\\\\",\"b\":\"",
        "\"}],\"x\":[{\"y\":\"",
        "]}\\\"{[",
        "\"},{\"a\":[[[]]],\"b\":{\"c\":{}},\"d\":\"",
        "\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\",
    };
    char body[512];

    (void)state;
    for (size_t m = 0; m < sizeof middles / sizeof *middles; m++)
        for (int pad = 0; pad < 130; pad++) {
            snprintf(body, sizeof body,
                     "{\"messages\":[{\"c\":\"%*s%s\"}],\"q\":\"%*s\\\\\",\"model\":\"m\"}", pad,
                     "", middles[m], pad, "");
            check(span_str(body), SPAN_LIT("m"));
        }
}

/* Long texts are passed over by other means than short ones, until something stands in them. */
static void test_long_texts(void **state)
{
    static const char *const middles[] = {"", "\\\"", "\\\\", "\\\\\\\"",
                                          "\\\", \\\"model\\\":\\\"x\\\""};
    static const char *const bodies[] = {"{\"q\":\"%*s%s%*s\",\"model\":\"m\"}",
                                         "{\"q\":[\"%*s%s%*s\"],\"model\":\"m\"}"};
    char body[2048];

    (void)state;
    for (size_t m = 0; m < sizeof middles / sizeof *middles; m++)
        for (size_t b = 0; b < 2; b++)
            for (int pad = 240; pad < 400; pad += 7) {
                int len =
                    snprintf(body, sizeof body, bodies[b], pad, "", middles[m], 640 - pad, "");
                for (size_t split = 0; split <= (size_t)len; split += 61)
                    check_split(span_str(body), SPAN_LIT("m"), split);
            }
}

/* However many blanks stand between: each is looked at a few times, not once per blank. */
static void test_long_runs_of_blanks(void **state)
{
    static const char *const ends[] = {"}", ",\"model\":\"m\"}", "\"model\" : \"m\"}", "\"other"};
    enum { BLANKS = 4000000, SPAN = 100000 };
    char *body = malloc(BLANKS + 100);

    (void)state;
    for (size_t e = 0; e < sizeof ends / sizeof *ends; e++) {
        struct model_scan scan;
        size_t len = (size_t)sprintf(body, "{\"a\":{}");
        memset(body + len, ' ', BLANKS);
        len += BLANKS;
        len += (size_t)sprintf(body + len, "%s", ends[e]);
        model_scan_init(&scan, SPAN_LIT("model"));
        for (size_t at = 0; at < len; at += SPAN)
            model_scan_feed(&scan, span_of(body + at, len - at < SPAN ? len - at : SPAN));
        model_scan_end(&scan);
        assert_int_equal(model_scan_value(&scan).ptr != NULL, e == 1 || e == 2);
    }
    free(body);
}

static void test_another_member(void **state)
{
    static const char body[] = "{\"model\":\"a\",\"version\":\"b\"}";
    struct model_scan scan;

    (void)state;
    model_scan_init(&scan, SPAN_LIT("version"));
    assert_int_equal(model_scan_feed(&scan, span_str(body)), MODEL_SCAN_FOUND);
    assert_true(span_eq(model_scan_value(&scan), SPAN_LIT("b")));
}

static void test_answers_early_and_stays(void **state)
{
    struct model_scan scan;

    (void)state;
    model_scan_init(&scan, SPAN_LIT("model"));
    assert_int_equal(model_scan_state(&scan), MODEL_SCAN_MORE);
    assert_null(model_scan_value(&scan).ptr);
    assert_int_equal(model_scan_feed(&scan, SPAN_LIT("{\"model\":\"m")), MODEL_SCAN_MORE);
    assert_null(model_scan_value(&scan).ptr);
    assert_int_equal(model_scan_feed(&scan, SPAN_LIT("\"")), MODEL_SCAN_FOUND);
    assert_int_equal(model_scan_feed(&scan, SPAN_LIT("}{\"model\":1")), MODEL_SCAN_FOUND);
    assert_int_equal(model_scan_end(&scan), MODEL_SCAN_FOUND);
    assert_true(span_eq(model_scan_value(&scan), SPAN_LIT("m")));
    model_scan_init(&scan, SPAN_LIT("model"));
    assert_int_equal(model_scan_feed(&scan, SPAN_LIT("{}")), MODEL_SCAN_ABSENT);
    assert_int_equal(model_scan_feed(&scan, SPAN_LIT("{\"model\":\"m\"}")), MODEL_SCAN_ABSENT);
}

/* Broken or not, the answer never depends on how the bytes were cut. */
static void test_noise_is_judged_alike_however_cut(void **state)
{
    static const char *const words[] = {
        "{",          "}",     "[",     "]",     "\"",
        "\\",         ",",     ":",     "model", "\"model\"",
        "\"model\":", "\"m\"", "u0064", "\\u",   "d83d",
        " ",          "1",     "-",     "\n",    "abcdefghijklmnopqrstuvwxyz",
        "\\\"",       "y"};
    unsigned random = 12345;
    char body[400];

    (void)state;
    for (int round = 0; round < 3000; round++) {
        size_t len = (size_t)sprintf(body, round % 3 ? "{\"a\":[" : "{");
        while (len < 60 + random % 300) {
            random = random * 1103515245u + 12345u;
            len += (size_t)sprintf(body + len, "%s",
                                   words[(random >> 16) % (sizeof words / sizeof *words)]);
        }
        struct model_scan bytewise;
        model_scan_init(&bytewise, SPAN_LIT("model"));
        for (size_t i = 0; i < len; i++)
            model_scan_feed(&bytewise, span_of(body + i, 1));
        model_scan_end(&bytewise);
        struct span expected = model_scan_value(&bytewise);
        for (size_t split = 0; split <= len; split += 1 + random % 7)
            check_split(span_of(body, len), expected, split);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_where_it_stands),
        cmocka_unit_test(test_prompts_that_speak_of_it),
        cmocka_unit_test(test_escapes),
        cmocka_unit_test(test_what_cannot_be_a_model),
        cmocka_unit_test(test_length_of_the_model),
        cmocka_unit_test(test_what_is_no_object),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_deep_nesting_needs_no_stack),
        cmocka_unit_test(test_every_alignment),
        cmocka_unit_test(test_long_texts),
        cmocka_unit_test(test_long_runs_of_blanks),
        cmocka_unit_test(test_another_member),
        cmocka_unit_test(test_answers_early_and_stays),
        cmocka_unit_test(test_noise_is_judged_alike_however_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
