#include "config/reader.h"

#include <stdio.h>

/* inih is given a buffer of INI_MAX_LINE bytes; ours must fit whatever its build says. */
static struct span take_line(struct reader *reader)
{
    const char *end = memchr(reader->text.ptr, '\n', reader->text.len);
    size_t len = end ? (size_t)(end - reader->text.ptr) : reader->text.len;
    struct span line = span_of(reader->text.ptr, len);

    reader->text = span_skip(reader->text, end ? len + 1 : len);
    reader->line++;
    if (line.len > 0 && line.ptr[line.len - 1] == '\r')
        line.len--;
    return line;
}

static struct span without_indent(struct span line)
{
    while (line.len > 0 && (line.ptr[0] == ' ' || line.ptr[0] == '\t'))
        line = span_skip(line, 1);
    return line;
}

static bool is_comment(struct span line)
{
    return line.len == 0 || line.ptr[0] == ';' || line.ptr[0] == '#';
}

/* inih takes an indented line for the continuation of the value before: a surprise here, since
 * lists may repeat their key. Shown to inih without its indent. */
char *reader_next(char *buf, int size, void *stream)
{
    struct reader *reader = stream;
    char found[64];

    if (reader->text.len == 0)
        return NULL;
    struct span line = take_line(reader);
    struct span shown = without_indent(line);
    if (reader->line == 1 && span_starts(line, SPAN_LIT("\xef\xbb\xbf")))
        shown = without_indent(span_skip(line, 3));
    if (memchr(line.ptr, '\0', line.len)) {
        reader->refused(reader, "text", "a NUL byte");
        shown = SPAN_LIT("");
    } else if (is_comment(shown)) {
        shown = SPAN_LIT("");
    } else if (shown.len > READER_LINE_MAX || (int)shown.len + 2 > size) {
        snprintf(found, sizeof found, "one of %zu", shown.len);
        reader->refused(reader, "a line of at most 198 bytes (a list may repeat its key)", found);
        shown = SPAN_LIT("");
    }
    memcpy(buf, shown.ptr, shown.len);
    buf[shown.len] = '\n';
    buf[shown.len + 1] = '\0';
    return buf;
}
