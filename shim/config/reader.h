/*
 * reader.h - feeds inih line by line and refuses what it would silently cut (FIELD-NOTES 8).
 *
 * inih as Debian builds it cuts lines at 199 bytes and section names at 49, ends at NUL, ignores
 * what stands behind a section's ']', tells its handler neither the line nor a section without
 * keys, and only the first line that it could not read. The reader counts, judges each line before
 * inih sees it, announces sections itself, and swallows comments so that they may be of any length.
 * Private to config/.
 */
#ifndef BREAKER_CONFIG_READER_H
#define BREAKER_CONFIG_READER_H

#include "base/span.h"

#include <stdbool.h>

#define READER_LINE_MAX    199 /* bytes of a line that inih keeps whole */
#define READER_SECTION_MAX 49  /* of a section's name */

struct reader {
    struct span text; /* what is left of the file */
    unsigned line;    /* 1-based number of the line that inih holds */
    bool waiting; /* inih holds an assignment; its handler clears this, else it is told at the next
                     line that it was none */
    /* For a line that is refused; it is then shown to inih as an empty one. */
    void (*refused)(struct reader *reader, struct span key, const char *expected,
                    const char *found);
    /* For a section's head; SPAN_NONE after one that was refused. */
    void (*section)(struct reader *reader, struct span name);
    void *data;
};

/* An ini_reader of inih: `stream` is a struct reader. */
char *reader_next(char *buf, int size, void *stream);

#endif
