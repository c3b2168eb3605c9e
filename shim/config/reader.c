/*
 * reader.c - see reader.h.
 */
#include "config/reader.h"

#include <stdio.h>

static struct span take_line(struct reader *reader)
{
    struct span line = span_take(&reader->text, '\n');

    if (++reader->line == 1 && span_starts(line, SPAN_LIT("\xef\xbb\xbf")))
        line = span_skip(line, 3);
    return line;
}

/* To inih, too: a line that begins with any of these it would take for a continuation. */
static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct span without_blanks(struct span text)
{
    while (text.len > 0 && is_blank(text.ptr[0]))
        text = span_skip(text, 1);
    while (text.len > 0 && is_blank(text.ptr[text.len - 1]))
        text.len--;
    return text;
}

static bool is_comment(struct span line)
{
    return line.len == 0 || line.ptr[0] == ';' || line.ptr[0] == '#';
}

static void refuse_long(struct reader *reader, struct span key, const char *expected, size_t len)
{
    char found[32];

    snprintf(found, sizeof found, "%zu", len);
    reader->refused(reader, key, expected, found);
}

/* "[name]", maybe with a comment behind it. Never shown to inih, which would not tell of it. */
static void judge_section(struct reader *reader, struct span line)
{
    const char *end = memchr(line.ptr, ']', line.len);
    struct span name = span_of(line.ptr + 1, end ? (size_t)(end - line.ptr) - 1 : 0);
    struct span key = span_of(line.ptr, line.len < 40 ? line.len : 40);

    if (!end || !is_comment(without_blanks(span_skip(line, name.len + 2)))) {
        bool address = end && span_starts(name, SPAN_LIT("target ["));
        reader->refused(reader, key, "[section]",
                        address ? "an IPv6 address, which goes into match =, below a [target NAME] "
                                  "without brackets"
                        : end   ? "more behind the ']'"
                                : "no ']'");
    } else if (name.len > READER_SECTION_MAX) {
        refuse_long(reader, key,
                    "a section name of at most 49 bytes (a short name, and the pattern in match =)",
                    name.len);
    } else {
        reader->section(reader, name);
        return;
    }
    reader->section(reader, SPAN_NONE);
}

/* May inih have it? */
static bool judge(struct reader *reader, struct span line, size_t room)
{
    if (memchr(line.ptr, '\0', line.len)) {
        reader->refused(reader, SPAN_LIT("line"), "text", "a NUL byte");
        return false;
    }
    if (is_comment(line))
        return false;
    if (line.ptr[0] == '[') {
        judge_section(reader, line);
        return false;
    }
    if (line.len > room) {
        refuse_long(reader, SPAN_LIT("line"),
                    "at most 199 bytes in a line (a list may repeat its key)", line.len);
        return false;
    }
    reader->waiting = true;
    return true;
}

/* Lines are shown without their indent: inih takes an indented one for the continuation of the
 * value before, which nobody expects of this file. */
char *reader_next(char *buf, int size, void *stream)
{
    struct reader *reader = stream;
    size_t room = size > READER_LINE_MAX ? READER_LINE_MAX : (size_t)size - 1;

    if (reader->waiting)
        reader->refused(reader, SPAN_LIT("line"), "[section], key = value, or a comment",
                        "something else");
    reader->waiting = false;
    if (reader->text.len == 0)
        return NULL;
    struct span line = without_blanks(take_line(reader));
    if (!judge(reader, line, room))
        line.len = 0;
    memcpy(buf, line.ptr, line.len);
    buf[line.len] = '\0';
    return buf;
}
