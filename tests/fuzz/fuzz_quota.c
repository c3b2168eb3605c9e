/* libFuzzer: a 429's body read for a spent quota, whole and in pieces: the same answer. And a text
 * looked for in the first 4 KiB of it, as memmem() finds it.
 *
 * The input: "<kind><3 bytes>\n" and the body, see cut.h. kind: its bits 0 to 2 choose the dialect
 * ('p' OpenAI, 'r' Gemini, 's' Bedrock, 'u' Cohere, …); the text is the first of the 3 bytes, or
 * all of them (bit 5). */
#include "cut.h"

#include "http/quota.h"

struct reader {
    struct quota quota;
    struct body_search search;
    struct span text;
};

static void feed(void *to, struct span piece)
{
    struct reader *reader = to;
    enum quota_state before = (enum quota_state)reader->quota.state;
    enum quota_state after = quota_feed(&reader->quota, piece);

    MUST(before == QUOTA_MORE || after == before); /* a decision is one */
    bool found = body_search_feed(&reader->search, piece, &reader->text, 1);
    MUST(found == reader->search.found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span body = cut_copy(data, size);
    struct reader whole = {0}, cut;
    enum api api = (enum api)((data[0] & 7) % (API_MISTRAL + 1));

    if (!body.ptr)
        return 0;
    whole.text = span_of((const char *)data + 1, data[0] & 0x20 ? 3 : 1);
    quota_init(&whole.quota, api, SPAN_NONE);
    cut = whole;
    size_t first = body.len < BODY_SEARCH_LIMIT ? body.len : BODY_SEARCH_LIMIT;
    bool there = memmem(body.ptr, first, whole.text.ptr, whole.text.len) != NULL;
    feed(&whole, body);
    cut_read(feed, &cut, body, data + 1);
    free((void *)(uintptr_t)body.ptr);
    MUST(whole.search.found == there && cut.search.found == there);
    MUST(whole.quota.state == cut.quota.state);
    MUST(quota_end(&whole.quota) == quota_end(&cut.quota));
    MUST(whole.quota.state != QUOTA_MORE);
    return 0;
}
