/* A document that stands in one piece is looked over without being understood; one that is cut is
 * read. Both say the same. */
#include "stream_fixture.h"

#include <stdio.h>

static struct stream before_document(void)
{
    static const struct watched json = {API_OPENAI, "application/json", NULL, SPAN_NONE};

    return stream_before(&json);
}

/* What a body says whole, and then at its end, and what it says byte by byte. */
static void compare(struct span body)
{
    struct stream whole = before_document(), cut = before_document();

    feed_copy(&whole, body);
    for (size_t i = 0; i < body.len; i++)
        feed_copy(&cut, span_of(body.ptr + i, 1));
    if (stream_state(&whole) != stream_state(&cut) || stream_end(&whole) != stream_end(&cut))
        fail_msg("whole %d, cut %d: %.*s", stream_state(&whole), stream_state(&cut), (int)body.len,
                 body.ptr);
}

/* Lengths around those of a block, where "error" falls at every place of one. */
static void test_every_alignment(void **state)
{
    char body[400];

    (void)state;
    for (int pad = 0; pad < 140; pad++) {
        struct watched w = {API_OPENAI, "application/json", NULL, SPAN_NONE};
        int len = snprintf(body, sizeof body, "{\"a\":\"%0*d\",\"error\":{\"code\":400}}", pad, 0);
        w.body = span_of(body, (size_t)len);
        check_watched(&w, STREAM_CALLER, STREAM_CALLER);
        len = snprintf(body, sizeof body, "{\"a\":\"%0*d\",\"e\":\"\\\"error\\\"\"}", pad, 0);
        w.body = span_of(body, (size_t)len);
        check_watched(&w, STREAM_BLIND, STREAM_BLIND);
    }
}

/* Documents, and what is none, of random pieces. */
static void test_whole_or_cut(void **state)
{
    static const char *const pieces[] = {
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        "\\\"",
        " ",
        "\n",
        "1",
        "null",
        "\"a\"",
        "\"error\"",
        "\"error\":",
        "\"code\":",
        "429",
        "{}",
        "[]",
        "\"e\"",
        "\"type\":",
        "\"choices\":[{",
        "\"\\u0065rror\":",
        "\"response\":{",
        "\"long, long, long text {[\\\\\"",
    };
    uint32_t random = 1;
    char body[600];

    (void)state;
    for (int round = 0; round < 100000; round++) {
        size_t len = 1;
        body[0] = round % 4 ? '{' : '[';
        for (int i = 0; i < 3 + round % 21; i++) {
            random = random * 1664525 + 1013904223;
            const char *piece = pieces[(random >> 8) % (sizeof pieces / sizeof *pieces)];
            memcpy(body + len, piece, strlen(piece));
            len += strlen(piece);
        }
        compare(span_of(body, len));
    }
}

/* What is there once stays, whatever follows it; and none is looked for deeper than there is room.
 */
static void test_the_first_error_stays(void **state)
{
    static const char *const bodies[] = {
        "{\"choices\":[{\"finish_reason\":\"error\"},{\"finish_reason\":\"stop\"}]}",
        "{\"type\":\"error\",\"error\":null}",
        "[{\"choices\":[{\"error\":{\"error\":{\"error\":{\"error\":{\"error\":null}}}}}]}]",
    };

    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        struct watched w = {API_OPENAI, "application/json", NULL, span_str(bodies[i])};
        check_watched(&w, STREAM_FAILURE, STREAM_FAILURE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_alignment),
        cmocka_unit_test(test_whole_or_cut),
        cmocka_unit_test(test_the_first_error_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
