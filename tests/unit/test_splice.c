/* Another model in a body: where the old one stands, and that nothing else changes. */
#include "http/splice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

static struct span heap_copy(struct span bytes)
{
    return span_of(memcpy(malloc(bytes.len + 1), bytes.ptr, bytes.len), bytes.len);
}

static void release(struct span bytes)
{
    free((void *)(uintptr_t)bytes.ptr);
}

/* `front`, `value` and `back` make the body. */
static void assert_found(const char *name, const char *front, const char *value, const char *back)
{
    size_t len = strlen(front) + strlen(value) + strlen(back);
    char *text = malloc(len + 1);
    struct span found = SPAN_NONE;

    snprintf(text, len + 1, "%s%s%s", front, value, back);
    struct span body = heap_copy(span_of(text, len));
    free(text);
    if (!splice_find(body, span_str(name), &found) || found.ptr != body.ptr + strlen(front) ||
        !span_eq(found, span_str(value)))
        fail_msg("found '%.*s' at %td of: %s%s%s", (int)found.len, found.ptr ? found.ptr : "",
                 found.ptr ? found.ptr - body.ptr : -1, front, value, back);
    release(body);
}

static void assert_absent(const char *text)
{
    struct span body = heap_copy(span_str(text)), found;

    if (splice_find(body, SPAN_LIT("model"), &found))
        fail_msg("found '%.*s' of: %s", (int)found.len, found.ptr, text);
    release(body);
}

static void where_it_stands(void **state)
{
    (void)state;
    assert_found("model", "{\"model\":", "\"gpt-4o\"", "}");
    assert_found("model", "{\"model\":", "\"m\"", "");
    assert_found("model", " \r\n\t{ \"model\" \n:\t ", "\"gpt-4o\"", " , \"x\":1}");
    assert_found("model", "\xef\xbb\xbf {\"a\":[1,{}],\"model\":", "\"gpt-4o\"", "}\n");
    assert_found("model", "{\"m\\u006fdel\":", "\"gpt-4o\"", "}");
    assert_found("model", "{\"model\":", "\"first\"", ",\"model\":\"second\"}");
    assert_found("model", "{\"a\":{\"model\":\"x\"},\"b\":[{\"model\":\"y\"}],\"model\":", "\"m\"",
                 ",\"c\":{\"model\":\"z\"}}");
    assert_found("model", "{\"p\":\"{\\\"model\\\":\\\"x\\\"}\",\"model\":", "\"m\"", "}");
    assert_found("version", "{\"model\":\"x\",\"version\":", "\"0123\"", ",\"input\":{}}");
}

static void escapes_in_the_value(void **state)
{
    (void)state;
    assert_found("model", "{\"model\":", "\"a\\\"b\"", ",\"x\":\"y\"}");
    assert_found("model", "{\"model\":", "\"\\\"\"", "}");
    assert_found("model", "{\"model\":", "\"\\\"\\\"\"", "}");
    assert_found("model", "{\"model\":", "\"\\\\\"", "}");
    assert_found("model", "{\"model\":", "\"\\\\\\\"\"", "}");
    assert_found("model", "{\"model\":", "\"a\\\\\"", ",\"b\":\"\\\"\"}");
    assert_found("model", "{\"\\\\\":\"\\\\\",\"model\":", "\"\\u0041\\/\\ud83d\\ude00\"", "}");
    assert_found("model", "{\"model\":", "\"\\ud83d\"", "}");
}

static void bodies_without_one(void **state)
{
    static const char *const bodies[] = {
        "",
        " ",
        "{",
        "{}",
        "[{\"model\":\"m\"}]",
        "\"model\"",
        "model=m",
        "{\"model\":1}",
        "{\"model\":null,\"model\":\"m\"}",
        "{\"model\":{\"model\":\"m\"}}",
        "{\"model\":\"\"}",
        "{\"model\":\"m",
        "{\"model\":\"a\\x\"}",
        "{\"model\":\"a\\u0007\"}",
        "{\"a\":1}{\"model\":\"m\"}",
        "{\"Model\":\"m\"}",
        "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n--b--\r\n",
        "\r\n--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n--b--\r\n",
        "\x28\xb5\x2f\xfd",
    };
    struct span found;

    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        assert_absent(bodies[i]);
    assert_false(splice_find(SPAN_NONE, SPAN_LIT("model"), &found));
}

/* A value at each place around the ends of the pieces that the body is scanned in. */
static void far_into_the_body(void **state)
{
    static const size_t middles[] = {4096, 8192, 1u << 20};
    char *front = malloc((1u << 20) + 2048), value[1600] = "\"", *end = value + 1;

    (void)state;
    for (unsigned i = 0; i < MODEL_MAX; i++)
        end += sprintf(end, "%s", "\\u0041");
    strcpy(end, "\"");
    for (size_t m = 0; m < sizeof middles / sizeof *middles; m++)
        for (size_t len = middles[m] - 40; len < middles[m] + 20; len += m == 2 ? 13 : 1) {
            memset(front, 'p', len);
            memcpy(front, "{\"p\":\"", 6);
            memcpy(front + len - 10, "\",\"model\":", 11);
            assert_found("model", front, "\"gpt-4o\\\\\"", ",\"x\":1}");
            assert_found("model", front, value, "}");
        }
    free(front);
}

static void assert_json(struct span text, const char *expected)
{
    char *buf = malloc(SPLICE_JSON_MAX(text.len));
    size_t len = splice_json(text, buf);

    if (!span_eq(span_of(buf, len), span_str(expected)))
        fail_msg("%.*s is not %s", (int)len, buf, expected);
    free(buf);
}

static void as_json(void **state)
{
    (void)state;
    assert_json(SPAN_LIT(""), "\"\"");
    assert_json(SPAN_NONE, "\"\"");
    assert_json(SPAN_LIT("openai/gpt-4o:free"), "\"openai/gpt-4o:free\"");
    assert_json(SPAN_LIT("a\"b\\c"), "\"a\\\"b\\\\c\"");
    assert_json(SPAN_LIT("\0\n\x1f\x7f"), "\"\\u0000\\u000a\\u001f\x7f\"");
    assert_json(SPAN_LIT("\xc3\xa9\xff"), "\"\xc3\xa9\xff\"");
}

static void assert_path(struct span text, bool slashes, const char *expected)
{
    char *buf = malloc(3 * text.len + 1);
    size_t len = splice_path(text, slashes, buf);

    if (!span_eq(span_of(buf, len), span_str(expected)))
        fail_msg("%.*s is not %s", (int)len, buf, expected);
    free(buf);
}

static void as_path(void **state)
{
    (void)state;
    assert_path(SPAN_LIT(""), false, "");
    assert_path(SPAN_LIT("AZaz09-._~:"), false, "AZaz09-._~:");
    assert_path(SPAN_LIT("org/name"), false, "org%2Fname");
    assert_path(SPAN_LIT("org/name"), true, "org/name");
    assert_path(SPAN_LIT(" %?#&+;=@\"\\"), true, "%20%25%3F%23%26%2B%3B%3D%40%22%5C");
    assert_path(SPAN_LIT("\0\xc3\xa9\xff"), false, "%00%C3%A9%FF");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_it_stands),
        cmocka_unit_test(escapes_in_the_value),
        cmocka_unit_test(bodies_without_one),
        cmocka_unit_test(far_into_the_body),
        cmocka_unit_test(as_json),
        cmocka_unit_test(as_path),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
