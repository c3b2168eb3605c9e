/* libFuzzer: a body scanned for its model, whole and in pieces: the same answer, within its bounds.
 * Of a body that jansson takes for an object, the answer is what stands in that.
 *
 * The input: "<kind><3 bytes>\n" and the body, see cut.h. kind: 'm' looks for "model", 'v' for
 * "version", of a body that ends there; in upper case of one that goes on (of another byte: bits 1
 * and 5). '-' and '4' do the same with a document that grows out of the bytes, which is JSON always
 * (without bit 6). */
#include "cut.h"
#include "grow_json.h"

#include "http/model_scan.h"

#include <jansson.h>

static void feed(void *scan, struct span piece)
{
    enum model_scan_state before = model_scan_state(scan), after = model_scan_feed(scan, piece);

    MUST(after == model_scan_state(scan));
    MUST(before == MODEL_SCAN_MORE || after == before); /* a decision is one */
}

static bool is_readable(struct span value)
{
    return value.len >= 1 && value.len <= MODEL_MAX && !span_has_control(value);
}

static void check_value(const struct model_scan *scan)
{
    struct span value = model_scan_value(scan);

    if (model_scan_state(scan) == MODEL_SCAN_FOUND)
        MUST(value.ptr && is_readable(value));
    else
        MUST(!value.ptr);
}

/* jansson keeps the last of members with one name, we take the first: such a body is not compared.
 * What it does not take for JSON we may read all the same. False: it did not take it. */
static bool check_against_parser(const struct model_scan *scan, struct span body, struct span name)
{
    const size_t flags = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DISABLE_EOF_CHECK;
    struct span value = model_scan_value(scan);
    json_error_t error;

    if (span_starts(body, SPAN_LIT("\xef\xbb\xbf")))
        body = span_skip(body, 3);
    json_t *root = json_loadb(body.ptr, body.len, flags, &error);
    if (!root)
        return false;
    json_t *member = json_object_get(root, name.ptr); /* NULL too where it is no object */
    struct span text = json_is_string(member)
                           ? span_of(json_string_value(member), json_string_length(member))
                           : SPAN_NONE;
    if (text.ptr && is_readable(text))
        MUST(value.ptr && span_eq(value, text));
    else
        MUST(!value.ptr);
    json_decref(root);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span body = cut_copy(data, size);
    struct model_scan whole, cut;

    if (!body.ptr)
        return 0;
    struct span name = (data[0] & 2) == ('m' & 2) ? SPAN_LIT("model") : SPAN_LIT("version");
    bool grown = (data[0] & 0x40) == 0;
    if (grown) {
        struct span seed = body;
        body = grow_json(seed, name);
        free((void *)(uintptr_t)seed.ptr);
    }
    memset(&whole, 0xa5, sizeof whole);
    memset(&cut, 0x5a, sizeof cut);
    model_scan_init(&whole, name);
    model_scan_init(&cut, name);
    feed(&whole, body);
    bool taken = check_against_parser(&whole, body, name);
    MUST(taken || !grown);
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
