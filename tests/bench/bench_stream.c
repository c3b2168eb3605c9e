/* The watcher over 1 MB of deltas of each provider, whole and an event at a time, beside memchr for
 * the same line ends, interleaved: medians and ratio (goal 3). */
#include "lib/by_value.h"
#include "base/clock.h"
#include "http/stream.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 75, CALLS = 2, BODY = 1 << 20 };

static char body[BODY];
static size_t body_len, event_len;
static volatile size_t sink; /* keeps the work from being optimised away */

static void fill(const char *event)
{
    event_len = strlen(event);
    for (body_len = 0; body_len + event_len <= BODY; body_len += event_len)
        memcpy(body + body_len, event, event_len);
}

static void watch(size_t piece)
{
    struct stream stream;

    stream_init(&stream, API_OPENAI, 200, SPAN_LIT("text/event-stream"), SPAN_NONE);
    for (size_t at = 0; at < body_len; at += piece)
        stream_feed(&stream, span_of(body + at, piece < body_len - at ? piece : body_len - at));
    if (stream_state(&stream) != STREAM_RUNNING)
        exit(1);
}

static double time_of_watch(size_t piece)
{
    uint64_t begin = clock_system.mono_ns();

    for (int i = 0; i < CALLS; i++)
        watch(piece);
    return (double)(clock_system.mono_ns() - begin) / CALLS;
}

static double time_of_memchr(void)
{
    uint64_t begin = clock_system.mono_ns();

    for (int i = 0; i < CALLS; i++) {
        const char *at = body, *end = body + body_len, *found;
        size_t count = 0;
        while ((found = memchr(at, '\n', (size_t)(end - at)))) {
            at = found + 1;
            count++;
        }
        sink = count;
    }
    return (double)(clock_system.mono_ns() - begin) / CALLS;
}

int main(void)
{
    static const struct {
        const char *name, *event;
    } streams[] = {
        {"OpenAI",
         "data: {\"id\":\"chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT\",\"object\":"
         "\"chat.completion.chunk\",\"created\":1741569952,\"model\":\"gpt-4.1-2025-04-14\","
         "\"service_tier\":\"default\",\"system_fingerprint\":\"fp_b376dfbbd5\",\"choices\":[{"
         "\"index\":0,\"delta\":{\"content\":\" everything\"},\"logprobs\":null,"
         "\"finish_reason\":null}]}\n\n"},
        {"Anthropic",
         "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":"
         "0,\"delta\":{\"type\":\"text_delta\",\"text\":\" everything\"}}\n\n"},
        {"Gemini",
         "data: {\"candidates\": [{\"content\": {\"parts\": [{\"text\": \" everything that we "
         "had before us, and nothing else but what came to be\"}],\"role\": \"model\"},"
         "\"index\": 0}],\"usageMetadata\": {\"promptTokenCount\": 8,\"candidatesTokenCount\": "
         "20,\"totalTokenCount\": 28},\"modelVersion\": \"gemini-2.5-flash\"}\r\n\r\n"},
    };
    double whole[ROUNDS], cut[ROUNDS], bare[ROUNDS];

    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
        fill(streams[i].event);
        for (int round = 0; round < ROUNDS; round++) {
            bare[round] = time_of_memchr();
            whole[round] = time_of_watch(body_len);
            cut[round] = time_of_watch(event_len);
        }
        qsort(bare, ROUNDS, sizeof *bare, by_value);
        qsort(whole, ROUNDS, sizeof *whole, by_value);
        qsort(cut, ROUNDS, sizeof *cut, by_value);
        double line_ends = bare[ROUNDS / 2];
        printf("stream: %s, %zu bytes in events of %zu: %.1f us, memchr %.1f us, %.1f x (goal "
               "3 x); an event at a time %.1f us, %.1f x\n",
               streams[i].name, body_len, event_len, whole[ROUNDS / 2] / 1000, line_ends / 1000,
               whole[ROUNDS / 2] / line_ends, cut[ROUNDS / 2] / 1000, cut[ROUNDS / 2] / line_ends);
    }
    return 0;
}
