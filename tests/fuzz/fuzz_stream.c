/* libFuzzer: the body of an answer watched whole and in pieces: the same state, within its bounds.
 *
 * The input: "<kind><3 bytes>\n" and the body, see cut.h. kind: 's' text/event-stream, 'q'
 * application/json, 'r' application/x-ndjson of Ollama, 'p' Bedrock's frames (of another byte: bits
 * 0 and 1); in upper case its transport does not end (bit 5). */
#include "cut.h"

#include "http/stream.h"

static void feed(void *stream, struct span piece)
{
    enum stream_state before = stream_state(stream), after = stream_feed(stream, piece);

    MUST(after == stream_state(stream));
    MUST(before == STREAM_RUNNING || after == before); /* a decision is one */
}

/* As application programs may: the same bytes a second time, of which the first was forgotten. */
static void feed_again(void *stream, struct span piece)
{
    struct stream copy = *(struct stream *)stream;

    feed(&copy, piece);
    feed(stream, piece);
    MUST(copy.state == ((struct stream *)stream)->state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct span types[] = {
        SPAN_LIT("application/vnd.amazon.eventstream"), SPAN_LIT("application/json"),
        SPAN_LIT("application/x-ndjson"), SPAN_LIT("text/event-stream; charset=utf-8")};
    struct span body = cut_copy(data, size);
    struct stream whole, cut;

    if (!body.ptr)
        return 0;
    memset(&whole, 0xa5, sizeof whole);
    memset(&cut, 0x5a, sizeof cut);
    stream_init(&whole, API_OLLAMA, 200, types[data[0] & 3], SPAN_NONE);
    stream_init(&cut, API_OLLAMA, 200, types[data[0] & 3], SPAN_NONE);
    feed(&whole, body);
    cut_read(feed_again, &cut, body, data + 1);
    free((void *)(uintptr_t)body.ptr);
    MUST(stream_state(&whole) == stream_state(&cut));
    if (data[0] & 0x20)
        MUST(stream_end(&whole) == stream_end(&cut));
    MUST(stream_state(&whole) <= STREAM_QUOTA);
    return 0;
}
