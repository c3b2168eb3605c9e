/* libFuzzer: another model put into a body: exactly the old one's bytes change, and a scan finds
 * the new one. And a query without its credentials.
 *
 * The input: "<kind><3 bytes>\n" and the text, see cut.h. kind: 'm' splices "model" with a model
 * made of the 3 bytes, 'v' "version"; 'q' strips a query (of another byte: bits 0 and 2). */
#include "cut.h"

#include "http/secret.h"
#include "http/splice.h"

static struct span value_of(struct model_scan *scan, struct span body, struct span name)
{
    model_scan_init(scan, name);
    model_scan_feed(scan, body);
    return model_scan_value(scan);
}

/* The bytes that were found are the whole of what the scanner read. */
static void check_found(struct span body, struct span name, struct span value)
{
    struct model_scan scan, alone;
    char text[64 + 6 * MODEL_MAX + 2];

    MUST(value.ptr > body.ptr && value.ptr + value.len <= body.ptr + body.len);
    MUST(value.len >= 3 && value.len <= 6 * MODEL_MAX + 2);
    memcpy(text, "{\"a\":", 5);
    memcpy(text + 5, value.ptr, value.len);
    struct span read = value_of(&alone, span_of(text, 5 + value.len), SPAN_LIT("a"));
    MUST(read.ptr && span_eq(read, value_of(&scan, body, name)));
    /* The last byte is the one that decides. */
    MUST(!value_of(&alone, span_of(body.ptr, (size_t)(value.ptr - body.ptr) + value.len - 1), name)
              .ptr);
}

static void check_spliced(struct span body, struct span name, struct span value, struct span model)
{
    char json[SPLICE_JSON_MAX(3)];
    size_t len = splice_json(model, json), front = (size_t)(value.ptr - body.ptr);
    size_t back = body.len - front - value.len;
    char *text = malloc(front + len + back);
    struct span again;
    struct model_scan scan;

    MUST(text && len <= sizeof json);
    memcpy(text, body.ptr, front);
    memcpy(text + front, json, len);
    memcpy(text + front + len, value.ptr + value.len, back);
    struct span spliced = span_of(text, front + len + back);
    MUST(splice_find(spliced, name, &again));
    MUST(again.ptr == text + front && again.len == len);
    MUST(span_eq(value_of(&scan, spliced, name), model));
    free(text);
}

static void check_splice(struct span body, struct span name, const uint8_t *bytes)
{
    struct span value;
    struct model_scan scan;
    char model[3];

    for (size_t i = 0; i < sizeof model; i++)
        model[i] = bytes[i] < 0x20 || bytes[i] == 0x7f ? '"' : (char)bytes[i];
    if (splice_find(body, name, &value)) {
        check_found(body, name, value);
        check_spliced(body, name, value, span_of(model, sizeof model));
    } else {
        MUST(body.ptr[0] != '{' || !value_of(&scan, body, name).ptr);
    }
}

static struct span take_parameter(struct span *query)
{
    const char *end = query->len ? memchr(query->ptr, '&', query->len) : NULL;
    struct span taken = end ? span_of(query->ptr, (size_t)(end - query->ptr)) : *query;

    *query = span_skip(*query, taken.len + 1);
    return taken;
}

static struct span name_of(struct span parameter)
{
    const char *end = parameter.len ? memchr(parameter.ptr, '=', parameter.len) : NULL;

    return end ? span_of(parameter.ptr, (size_t)(end - parameter.ptr)) : parameter;
}

static void check_query(struct span query)
{
    char *stripped = malloc(query.len), *twice = malloc(query.len);
    struct span left, rest = query;

    MUST(stripped && twice);
    left = span_of(stripped, secret_strip_query(query, stripped));
    MUST(left.len <= query.len);
    /* What it leaves, it leaves again. */
    MUST(span_eq(span_of(twice, secret_strip_query(left, twice)), left));
    while (left.len > 0) {
        struct span parameter = take_parameter(&left);
        MUST(!secret_is_parameter(name_of(parameter)));
        while (!span_eq(take_parameter(&rest), parameter))
            MUST(rest.len > 0); /* in the order of the query */
    }
    free(stripped);
    free(twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = cut_copy(data, size);

    if (!text.ptr)
        return 0;
    if (!(data[0] & 4))
        check_query(text);
    else
        check_splice(text, data[0] & 1 ? SPAN_LIT("model") : SPAN_LIT("version"), data + 1);
    free((void *)(uintptr_t)text.ptr);
    return 0;
}
