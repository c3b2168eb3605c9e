/* libFuzzer: a chunked body, read whole and in pieces, ends where a slow reader of whole lines
 * says, with the same payload.
 *
 * The input: "<kind><3 bytes>\n" and the body, see cut.h. kind: any byte. */
#include "cut.h"

#include "http/body.h"

#include <regex.h>

enum { INPUT_MAX = 32 * 1024 }; /* below what a line may have */

struct reading {
    struct http_body body;
    char payload[INPUT_MAX];
    size_t len, consumed;
};

static void feed(void *to, struct span piece)
{
    struct reading *reading = to;

    while (piece.len > 0 && reading->body.state == HTTP_BODY_MORE) {
        struct span payload = SPAN_NONE;
        size_t used = http_body_feed(&reading->body, piece, &payload);
        MUST(used > 0 && used <= piece.len && payload.len <= used);
        memcpy(reading->payload + reading->len, payload.ptr, payload.len);
        reading->len += payload.len;
        reading->consumed += used;
        piece = span_skip(piece, used);
    }
}

static void begin(struct reading *reading)
{
    const struct http_head_facts head = {.status = 200, .minor = 1, .chunked = true};

    memset(reading, 0xa5, sizeof *reading);
    http_body_init_response(&reading->body, &head, false);
    reading->len = reading->consumed = 0;
}

/* --- the slow reader -------------------------------------------------------------------------- */

static bool matches(struct span text, bool whole)
{
    static const char *const patterns[2] = {"^([0-9a-fA-F]+[ \t]*(\r|;[^\n]*)?)?$",
                                            "^[0-9a-fA-F]+[ \t]*(\r|;[^\n]*)?$"};
    static regex_t compiled[2];
    static bool ready[2];
    static char copy[INPUT_MAX + 1]; /* ASan looks for the end of a string */
    regmatch_t match = {.rm_so = 0, .rm_eo = (regoff_t)text.len};

    if (!ready[whole])
        MUST(regcomp(&compiled[whole], patterns[whole], REG_EXTENDED) == 0);
    ready[whole] = true;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    return regexec(&compiled[whole], copy, 1, &match, REG_STARTEND) == 0;
}

/* A line up to its LF, or what is there of it. */
static bool is_size_line(struct span line, bool whole)
{
    size_t zeros = 0, digits = 0;

    while (zeros < line.len && line.ptr[zeros] == '0')
        zeros++;
    while (zeros + digits < line.len &&
           strchr("0123456789abcdefABCDEF", line.ptr[zeros + digits]) && line.ptr[zeros + digits])
        digits++;
    return digits <= 16 && matches(line, whole);
}

static bool take_line(struct span *rest, struct span *line)
{
    bool whole = rest->len > 0 && memchr(rest->ptr, '\n', rest->len);

    *line = span_take(rest, '\n');
    return whole;
}

/* Behind the last chunk: lines up to an empty one. */
static enum http_body_state slow_trailer(struct span *rest)
{
    struct span line;
    bool whole;

    do {
        whole = take_line(rest, &line);
        if (line.len > 1 && line.ptr[0] == '\r')
            return HTTP_BODY_ALIEN;
        if (!whole)
            return HTTP_BODY_MORE;
    } while (line.len > 0 && !span_eq(line, SPAN_LIT("\r")));
    return HTTP_BODY_DONE;
}

/* The line's end behind a chunk. */
static enum http_body_state slow_chunk_end(struct span *rest)
{
    if (rest->len == 0 || span_eq(*rest, SPAN_LIT("\r")))
        return HTTP_BODY_MORE;
    size_t len = span_starts(*rest, SPAN_LIT("\r\n")) ? 2 : span_starts(*rest, SPAN_LIT("\n"));
    *rest = span_skip(*rest, len);
    return len > 0 ? HTTP_BODY_DONE : HTTP_BODY_ALIEN;
}

static enum http_body_state slow_read(struct span *rest, struct reading *into)
{
    char digits[INPUT_MAX + 1];
    struct span line;

    for (;;) {
        bool whole = take_line(rest, &line);
        if (!is_size_line(line, whole))
            return HTTP_BODY_ALIEN;
        if (!whole)
            return HTTP_BODY_MORE;
        memcpy(digits, line.ptr, line.len);
        digits[line.len] = '\0';
        unsigned long long size = strtoull(digits, NULL, 16);
        if (size == 0)
            return slow_trailer(rest);
        size_t len = size < rest->len ? (size_t)size : rest->len;
        memcpy(into->payload + into->len, rest->ptr, len);
        into->len += len;
        *rest = span_skip(*rest, len);
        if (len < size)
            return HTTP_BODY_MORE;
        enum http_body_state end = slow_chunk_end(rest);
        if (end != HTTP_BODY_DONE)
            return end;
    }
}

static void check(const struct reading *reading, enum http_body_state state,
                  const struct reading *slow)
{
    MUST(reading->body.state == state);
    MUST(state != HTTP_BODY_DONE || reading->consumed == slow->consumed);
    MUST(reading->len == slow->len && memcmp(reading->payload, slow->payload, slow->len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct reading whole, cut, slow;
    struct span stream = size <= INPUT_MAX ? cut_copy(data, size) : SPAN_NONE, rest = stream;

    if (!stream.ptr)
        return 0;
    begin(&slow);
    enum http_body_state state = slow_read(&rest, &slow);
    slow.consumed = stream.len - rest.len;
    begin(&whole);
    feed(&whole, stream);
    check(&whole, state, &slow);
    begin(&cut);
    cut_read(feed, &cut, stream, data + 1);
    check(&cut, state, &slow);
    free((void *)(uintptr_t)stream.ptr);
    return 0;
}
