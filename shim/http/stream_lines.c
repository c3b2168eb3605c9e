/*
 * stream_lines.c - text/event-stream (WHATWG HTML 9.2.6).
 *
 * Two ways to the same answer. Most of a stream is events that stand here whole and say nothing: an
 * event line at most, one data line of a JSON object without the bytes "error", an empty line.
 * These are looked over 64 bytes at a time. Everything else, and what a piece cuts, goes through
 * the state machine; the fuzzer compares both.
 */
#include "http/stream_parts.h"

enum step {
    STEP_NAME,  /* inside a field's name */
    STEP_SPACE, /* behind its colon: one space belongs to neither */
    STEP_DATA,
    STEP_EVENT,
    STEP_IGNORED,
};

#define BOM_LEN 3
#define NO_BOM  (BOM_LEN + 1)

/* --- what an event says ---------------------------------------------------------------------- */

enum meaning {
    MEANS_NOTHING,
    MEANS_ERROR,
    MEANS_END,
};

static enum meaning meaning_of(struct span event)
{
    static const struct {
        struct span name;
        enum meaning meaning;
    } events[] = {
        {SPAN_LIT("error"), MEANS_ERROR},
        {SPAN_LIT("response.failed"), MEANS_ERROR},
        {SPAN_LIT("message_stop"), MEANS_END},
        {SPAN_LIT("response.completed"), MEANS_END},
        {SPAN_LIT("response.incomplete"), MEANS_END},
        {SPAN_LIT("message-end"), MEANS_END},
    };

    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        if (span_eq(event, events[i].name))
            return events[i].meaning;
    return MEANS_NOTHING;
}

/* The empty line behind an event, or the stream's end. */
static void end_event(struct stream *stream)
{
    struct stream_lines *lines = &stream->lines;
    struct span begin = span_of(lines->begin, lines->begin_len);
    enum meaning meaning = meaning_of(kept_word_span(&lines->event));

    if (meaning == MEANS_ERROR || (meaning == MEANS_END && json_error_ended_badly(&stream->json)))
        stream_fail(stream, json_error_kind(&stream->json));
    else
        stream_judge_document(stream);
    if (stream->state == STREAM_RUNNING &&
        (meaning == MEANS_END || span_eq(begin, SPAN_LIT("[DONE]"))))
        stream_set(stream, STREAM_OVER);
    stream->json = (struct json_error){0};
    lines->event.len = lines->begin_len = 0;
    lines->data = false;
}

/* --- byte by byte ---------------------------------------------------------------------------- */

/* Adds to what is kept of a text, as far as there is room. */
static uint8_t keep(char *text, size_t len, size_t room, struct span bytes)
{
    size_t more = bytes.len < room - len ? bytes.len : room - len;

    memcpy(text + len, bytes.ptr, more);
    return (uint8_t)(len + more);
}

/* The field's name is complete. */
static enum step step_of_field(struct stream *stream)
{
    struct stream_lines *lines = &stream->lines;
    struct span name = span_of(lines->name, lines->name_len);

    if (span_eq(name, SPAN_LIT("data"))) {
        if (lines->data) /* another line of the same document */
            json_error_feed(&stream->json, SPAN_LIT("\n"));
        lines->data = true;
        return STEP_DATA;
    }
    if (span_eq(name, SPAN_LIT("event"))) {
        lines->event.len = 0;
        return STEP_EVENT;
    }
    return STEP_IGNORED;
}

static void end_line(struct stream *stream)
{
    struct stream_lines *lines = &stream->lines;

    if (lines->step == STEP_NAME && lines->name_len == 0)
        end_event(stream);
    else if (lines->step == STEP_NAME)
        step_of_field(stream); /* a name without a colon: an empty value */
    lines->step = STEP_NAME;
    lines->name_len = 0;
}

static void take_data(struct stream *stream, struct span run)
{
    struct stream_lines *lines = &stream->lines;

    lines->begin_len = keep(lines->begin, lines->begin_len, sizeof lines->begin, run);
    json_error_feed(&stream->json, run);
}

/* A part of one line, at least a byte. */
static void take_run(struct stream *stream, struct span run)
{
    struct stream_lines *lines = &stream->lines;

    if (lines->step == STEP_NAME) {
        struct span name = span_until(run, ':');
        lines->name_len = keep(lines->name, lines->name_len, sizeof lines->name, name);
        if (name.len == run.len)
            return;
        lines->step = STEP_SPACE;
        run = span_skip(run, name.len + 1);
    }
    if (lines->step == STEP_SPACE && run.len > 0) {
        lines->step = (uint8_t)step_of_field(stream);
        run = span_skip(run, run.ptr[0] == ' ');
    }
    if (lines->step == STEP_DATA)
        take_data(stream, run);
    else if (lines->step == STEP_EVENT)
        kept_word_add(&lines->event, run);
}

/* Where the first CR or LF stands, or the end of `bytes`. */
static size_t line_end(struct span bytes)
{
    size_t at = 0;

    for (; bytes.len - at >= BLOCK; at += BLOCK) {
        struct block v = block_load(bytes.ptr + at);
        struct block ends = block_or(block_compare(v, '\n'), block_compare(v, '\r'));
        if (block_any(ends))
            return at + (size_t)__builtin_ctzll(block_bits(ends));
    }
    while (at < bytes.len && bytes.ptr[at] != '\n' && bytes.ptr[at] != '\r')
        at++;
    return at;
}

/* The stream's first bytes, while they can be a BOM. Returns how many were taken. */
static size_t skip_bom(struct stream_lines *lines, struct span bytes)
{
    static const char bom[] = "\xef\xbb\xbf";
    size_t taken = 0;

    while (taken < bytes.len && lines->bom < BOM_LEN) {
        if (bytes.ptr[taken] != bom[lines->bom]) {
            /* Part of one would be the beginning of a name that none of ours has. */
            lines->name_len = lines->bom;
            memcpy(lines->name, bom, lines->bom);
            lines->bom = NO_BOM;
            break;
        }
        lines->bom++;
        taken++;
    }
    return taken;
}

/* Up to the end of a line or of the piece. Returns how many bytes were taken, at least one. */
static size_t take_line(struct stream *stream, struct span bytes)
{
    struct stream_lines *lines = &stream->lines;

    if (lines->after_cr) {
        lines->after_cr = false;
        if (bytes.ptr[0] == '\n')
            return 1;
    }
    size_t len = line_end(bytes);
    if (len > 0)
        take_run(stream, span_of(bytes.ptr, len));
    if (len == bytes.len)
        return len;
    lines->after_cr = bytes.ptr[len] == '\r';
    if (lines->step == STEP_SPACE) /* a colon was the line's last byte */
        lines->step = (uint8_t)step_of_field(stream);
    end_line(stream);
    return len + 1;
}

/* --- whole events that say nothing ----------------------------------------------------------- */

#define NOWHERE SIZE_MAX

/* One block that stands at `at`, or at `from` a copy with a byte more. Is the line's end told? */
static inline bool look_at(struct span bytes, size_t at, const char *from, size_t *line_ends)
{
    struct block v = block_load(from);
    struct block ends = block_or(block_compare(v, '\n'), block_compare(v, '\r'));
    struct block names = stream_quoted_e(v, from);

    if (!block_any(block_or(ends, names)))
        return false;
    uint64_t end = block_bits(ends), before = end ? (end & -end) - 1 : UINT64_MAX;
    bool named = stream_names_error(bytes, at, block_bits(names) & before);
    *line_ends = named || !end ? NOWHERE : at + (size_t)__builtin_ctzll(end);
    return named || end;
}

/* The end of the line that goes on at `at`; NOWHERE if it is not here, or "error" is before it. */
static size_t plain_line_end(struct span bytes, size_t at)
{
    size_t end;

    for (; bytes.len - at > BLOCK; at += BLOCK)
        if (look_at(bytes, at, bytes.ptr + at, &end))
            return end;
    char tail[BLOCK + 1] = {0};
    memcpy(tail, bytes.ptr + at, bytes.len - at);
    return look_at(bytes, at, tail, &end) ? end : NOWHERE;
}

/* The length of the line's end that stands here whole: LF or CRLF, else 0. */
static size_t ending(struct span bytes, size_t at)
{
    if (at < bytes.len && bytes.ptr[at] == '\n')
        return 1;
    return span_starts(span_skip(bytes, at), SPAN_LIT("\r\n")) ? 2 : 0;
}

/* The length of the field's name and colon at `at` and the space behind them, else 0. */
static size_t field(struct span bytes, size_t at, struct span name)
{
    struct span rest = span_skip(bytes, at);

    if (!span_starts(rest, name))
        return 0;
    return name.len + (rest.len > name.len && rest.ptr[name.len] == ' ');
}

/* The length of an event that is here whole and says nothing; 0: it is to be read. */
static size_t plain_event(struct span bytes)
{
    size_t at = 0, name = field(bytes, 0, SPAN_LIT("event:")), end, len;

    if (name > 0) {
        end = plain_line_end(bytes, name);
        len = end != NOWHERE ? ending(bytes, end) : 0;
        if (len == 0 || meaning_of(span_of(bytes.ptr + name, end - name)) != MEANS_NOTHING)
            return 0;
        at = end + len;
    }
    len = field(bytes, at, SPAN_LIT("data:"));
    if (len == 0 || at + len == bytes.len || bytes.ptr[at + len] != '{')
        return 0;
    end = plain_line_end(bytes, at + len);
    len = end != NOWHERE ? ending(bytes, end) : 0;
    if (len == 0)
        return 0;
    at = end + len;
    len = ending(bytes, at);
    return len > 0 ? at + len : 0;
}

/* Before an event of which nothing was read yet? */
static bool between_events(const struct stream_lines *lines)
{
    return lines->step == STEP_NAME && lines->name_len == 0 && lines->event.len == 0 &&
           !lines->data && !lines->after_cr;
}

/* --------------------------------------------------------------------------------------------- */

void stream_feed_lines(struct stream *stream, struct span bytes)
{
    struct stream_lines *lines = &stream->lines;

    bytes = span_skip(bytes, skip_bom(lines, bytes));
    while (bytes.len > 0 && stream->state == STREAM_RUNNING) {
        size_t taken = between_events(lines) ? plain_event(bytes) : 0;
        if (taken == 0)
            taken = take_line(stream, bytes);
        bytes = span_skip(bytes, taken);
    }
}

void stream_end_lines(struct stream *stream)
{
    if (stream->lines.step == STEP_EVENT) /* half a name is another one */
        stream->lines.event.len = 0;
    end_event(stream);
}
