/* libFuzzer: a body scanned for its model, whole and in pieces: the same answer, within its bounds.
 *
 * The input: "<kind><3 bytes>\n" and the body, see cut.h. kind: 'm' looks for "model", 'v' for
 * "version", of a body that ends there; in upper case of one that goes on (of another byte: bits 1
 * and 5). */
#include "cut.h"

#include "http/model_scan.h"

static void feed(void *scan, struct span piece)
{
    enum model_scan_state before = model_scan_state(scan), after = model_scan_feed(scan, piece);

    MUST(after == model_scan_state(scan));
    MUST(before == MODEL_SCAN_MORE || after == before); /* a decision is one */
}

static void check_value(const struct model_scan *scan)
{
    struct span value = model_scan_value(scan);

    if (model_scan_state(scan) != MODEL_SCAN_FOUND) {
        MUST(!value.ptr);
        return;
    }
    MUST(value.ptr && value.len >= 1 && value.len <= MODEL_MAX);
    for (size_t i = 0; i < value.len; i++)
        MUST((unsigned char)value.ptr[i] >= 0x20 && value.ptr[i] != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span body = cut_copy(data, size);
    struct model_scan whole, cut;

    if (!body.ptr)
        return 0;
    struct span name = (data[0] & 2) == ('m' & 2) ? SPAN_LIT("model") : SPAN_LIT("version");
    memset(&whole, 0xa5, sizeof whole);
    memset(&cut, 0x5a, sizeof cut);
    model_scan_init(&whole, name);
    model_scan_init(&cut, name);
    feed(&whole, body);
    cut_read(feed, &cut, body, data + 1);
    free((void *)(uintptr_t)body.ptr);
    if (data[0] & 0x20) {
        MUST(model_scan_end(&whole) != MODEL_SCAN_MORE);
        MUST(model_scan_end(&cut) != MODEL_SCAN_MORE);
    }
    MUST(model_scan_state(&whole) == model_scan_state(&cut));
    check_value(&whole);
    check_value(&cut);
    MUST(span_eq(model_scan_value(&whole), model_scan_value(&cut)));
    return 0;
}
