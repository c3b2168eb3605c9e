#include "http/splice.h"

#define CHUNK 4096u /* bytes between two copies of the scanner */

/* --- where the value stands ------------------------------------------------------------------ */

/* The scanner takes forms, too. */
static bool begins_object(struct span body)
{
    if (span_starts(body, SPAN_LIT("\xef\xbb\xbf")))
        body = span_skip(body, 3);
    while (body.len > 0 && memchr(" \t\r\n", body.ptr[0], 4))
        body = span_skip(body, 1);
    return body.len > 0 && body.ptr[0] == '{';
}

/* Halves the bytes in which `scan` finds the value until one is left, its closing quote. Returns
 * where that is. */
static size_t closing_quote(struct model_scan *scan, struct span bytes)
{
    size_t at = 0;

    while (bytes.len - at > 1) {
        struct model_scan ahead = *scan;
        size_t half = (bytes.len - at) / 2;
        if (model_scan_feed(&ahead, span_of(bytes.ptr + at, half)) == MODEL_SCAN_FOUND) {
            bytes.len = at + half;
        } else {
            *scan = ahead;
            at += half;
        }
    }
    return at;
}

/* A quote inside a string has an odd number of backslashes before it; one that opens it has none.
 */
static size_t opening_quote(struct span body, size_t closing)
{
    size_t at = closing;

    for (;;) {
        const char *quote = memrchr(body.ptr, '"', at);
        if (!quote)
            return closing;
        at = (size_t)(quote - body.ptr);
        size_t slashes = 0;
        while (slashes < at && body.ptr[at - slashes - 1] == '\\')
            slashes++;
        if (slashes % 2 == 0)
            return at;
    }
}

bool splice_find(struct span body, struct span name, struct span *value)
{
    struct model_scan scan, before;
    struct span chunk = SPAN_NONE;
    size_t at = 0;

    if (!begins_object(body))
        return false;
    model_scan_init(&scan, name);
    do {
        at += chunk.len;
        chunk = span_skip(body, at);
        chunk.len = chunk.len < CHUNK ? chunk.len : CHUNK;
        before = scan;
    } while (chunk.len > 0 && model_scan_feed(&scan, chunk) == MODEL_SCAN_MORE);
    if (model_scan_state(&scan) != MODEL_SCAN_FOUND)
        return false;
    size_t closing = at + closing_quote(&before, chunk);
    size_t opening = opening_quote(body, closing);
    *value = span_of(body.ptr + opening, closing + 1 - opening);
    return opening < closing;
}

/* --- how the new one is written -------------------------------------------------------------- */

static size_t write_code(unsigned char c, char *buf)
{
    static const char digits[] = "0123456789abcdef";

    memcpy(buf, "\\u00", 4);
    buf[4] = digits[c >> 4];
    buf[5] = digits[c & 0xf];
    return 6;
}

size_t splice_json(struct span text, char *buf)
{
    size_t at = 0;

    buf[at++] = '"';
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if ((unsigned char)c < 0x20) {
            at += write_code((unsigned char)c, buf + at);
            continue;
        }
        if (c == '"' || c == '\\')
            buf[at++] = '\\';
        buf[at++] = c;
    }
    buf[at++] = '"';
    return at;
}

static bool stays_in_path(char c, bool slashes)
{
    char lower = span_lower(c);

    return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
           c == '_' || c == '~' || c == ':' || (slashes && c == '/');
}

size_t splice_path(struct span text, bool slashes, char *buf)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t at = 0;

    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (stays_in_path(text.ptr[i], slashes)) {
            buf[at++] = text.ptr[i];
            continue;
        }
        buf[at++] = '%';
        buf[at++] = digits[c >> 4];
        buf[at++] = digits[c & 0xf];
    }
    return at;
}
