/*
 * reader.h - feeds inih line by line and refuses what it would silently cut (FIELD-NOTES 8).
 *
 * inih as Debian builds it cuts lines at 199 bytes and section names at 49, ends at NUL, and does
 * not tell its handler the line. The reader counts, judges each line before inih sees it, and
 * swallows comments itself so that they may be of any length. Private to config/.
 */
#ifndef BREAKER_CONFIG_READER_H
#define BREAKER_CONFIG_READER_H

#include "base/span.h"

#include <stdbool.h>

#define READER_LINE_MAX 198 /* bytes of a line that inih keeps whole, its newline not counted */

struct reader {
    struct span text; /* what is left of the file */
    unsigned line;    /* 1-based number of the line that inih holds */
    /* Called for a line that is refused; the line is then shown to inih as an empty one. */
    void (*refused)(struct reader *reader, const char *expected, const char *found);
    void *data;
};

/* An ini_reader of inih: `stream` is a struct reader. */
char *reader_next(char *buf, int size, void *stream);

#endif
