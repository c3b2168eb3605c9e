/* The model scan over a 1 MB body with the model last, beside one memchr over the same bytes and
 * beside a whole parse by jsmn and the look for the member in its tokens, interleaved: medians and
 * ratio (goals: prose 12, base64 5, tool schemas 25). */
#define JSMN_STATIC
#define JSMN_STRICT
#define JSMN_PARENT_LINKS

#include "lib/by_value.h"
#include "base/clock.h"
#include "http/model_scan.h"

#include <jsmn.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 75, CALLS = 2, BODY = 1 << 20, TAIL = 64, TOKENS = 1 << 18 };

static char body[BODY + 1];
static size_t body_len;
static volatile size_t sink; /* keeps the work from being optimised away */

static void put(const char *text)
{
    size_t len = strlen(text);

    if (body_len + len <= BODY) {
        memcpy(body + body_len, text, len);
        body_len += len;
    }
}

/* Repeats the pieces in turn until only the tail has room, then ends the body with the model. */
static void fill(const char *head, const char *const *pieces, const char *tail)
{
    body_len = 0;
    put(head);
    for (size_t i = 0; body_len + 512 + TAIL < BODY; i++) {
        if (!pieces[i])
            i = 0;
        put(pieces[i]);
    }
    put(tail);
    put(",\"model\":\"gpt-4o-mini\"}");
}

static void make_prose(void)
{
    static const char *const lines[] = {
        "It was the best of times, it was the worst of times, it was the age of wisdom, it was the "
        "age of foolishness, it was the epoch of belief.\\n",
        "He said \\\"we had everything before us\\\", and then: \\\"we had nothing before "
        "us\\\".\\n",
        "Call the function with {\\\"model\\\": \\\"other\\\"} and mind the [brackets].\\n\\n",
        "In short, the period was so far like the present period, that some of its noisiest "
        "authorities insisted on its being received in the superlative degree.\\n",
        NULL,
    };

    fill("{\"messages\":[{\"role\":\"user\",\"content\":\"", lines, "\"}]");
}

static void make_base64(void)
{
    static char line[257];
    static const char *const lines[] = {line, NULL};
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < sizeof line - 1; i++)
        line[i] = digits[(i * 37 + i / 7) % 64];
    fill("{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":"
         "{\"url\":\"data:image/png;base64,",
         lines, "\"}}]}]");
}

static void make_schemas(void)
{
    static const char *const tools[] = {
        "{\"type\":\"function\",\"function\":{\"name\":\"get_weather\",\"description\":\"Weather "
        "of "
        "a place\",\"parameters\":{\"type\":\"object\",\"properties\":{\"location\":{\"type\":"
        "\"string\",\"description\":\"City, country\"},\"units\":{\"type\":\"string\",\"enum\":"
        "[\"celsius\",\"fahrenheit\"]},\"days\":{\"type\":\"array\",\"items\":{\"type\":"
        "\"integer\"}}},\"required\":[\"location\",\"units\"],\"additionalProperties\":false},"
        "\"strict\":true}},",
        NULL,
    };

    fill("{\"tools\":[", tools, "{}]");
}

static double time_of_scan(void)
{
    uint64_t begin = clock_system.mono_ns();

    for (int i = 0; i < CALLS; i++) {
        struct model_scan scan;
        model_scan_init(&scan, SPAN_LIT("model"));
        if (model_scan_feed(&scan, span_of(body, body_len)) != MODEL_SCAN_FOUND)
            exit(1);
        sink = model_scan_value(&scan).len;
    }
    return (double)(clock_system.mono_ns() - begin) / CALLS;
}

/* The value of the root's member "model", by the tokens of the whole body. */
static const jsmntok_t *parse_for_model(void)
{
    static jsmntok_t tokens[TOKENS];
    jsmn_parser parser;

    jsmn_init(&parser);
    int count = jsmn_parse(&parser, body, body_len, tokens, TOKENS);
    for (int i = 1; i + 1 < count; i++)
        if (tokens[i].parent == 0 && tokens[i].end - tokens[i].start == 5 &&
            memcmp(body + tokens[i].start, "model", 5) == 0)
            return &tokens[i + 1];
    return NULL;
}

static double time_of_jsmn(void)
{
    uint64_t begin = clock_system.mono_ns();

    for (int i = 0; i < CALLS; i++) {
        const jsmntok_t *model = parse_for_model();
        if (!model)
            exit(1);
        sink = (size_t)(model->end - model->start);
    }
    return (double)(clock_system.mono_ns() - begin) / CALLS;
}

static double time_of_memchr(void)
{
    uint64_t begin = clock_system.mono_ns();

    for (int i = 0; i < CALLS; i++) {
        body[0] = '{'; /* a store between the calls: none of them can be merged */
        sink = memchr(body, i % 2 ? '\1' : '\2', body_len) != NULL;
    }
    return (double)(clock_system.mono_ns() - begin) / CALLS;
}

int main(void)
{
    static const struct {
        const char *name;
        void (*make)(void);
        double goal;
    } bodies[] = {
        {"prose", make_prose, 12}, {"base64", make_base64, 5}, {"tool schemas", make_schemas, 25}};
    double scan[ROUNDS], bare[ROUNDS], parse[ROUNDS];

    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        bodies[i].make();
        for (int round = 0; round < ROUNDS; round++) {
            bare[round] = time_of_memchr();
            scan[round] = time_of_scan();
            parse[round] = time_of_jsmn();
        }
        qsort(bare, ROUNDS, sizeof *bare, by_value);
        qsort(scan, ROUNDS, sizeof *scan, by_value);
        qsort(parse, ROUNDS, sizeof *parse, by_value);
        printf("model scan: %s, %zu bytes: %.1f us, memchr %.1f us, jsmn %.1f us, %.1f x (goal "
               "%.0f x)\n",
               bodies[i].name, body_len, scan[ROUNDS / 2] / 1000, bare[ROUNDS / 2] / 1000,
               parse[ROUNDS / 2] / 1000, scan[ROUNDS / 2] / bare[ROUNDS / 2], bodies[i].goal);
    }
    return 0;
}
