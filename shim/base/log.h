/*
 * log.h - the event log: one JSON line per event, appended by a single write, no descriptor kept.
 *
 * Never carries a secret: callers pass keys, names and causes only. A log that cannot be written is
 * no trouble of the application: the line is dropped in silence (the fail-open path). Only a
 * regular file at an absolute path is written to (no FIFO, no device, no symlink: a relative one
 * would be a file in whatever directory the program is in), 0600 when created; nothing is written
 * past RLIMIT_FSIZE (the kernel would kill the application with SIGXFSZ). Keeps errno.
 */
#ifndef BREAKER_BASE_LOG_H
#define BREAKER_BASE_LOG_H

#include "base/span.h"

#include <stdint.h>

/* Members with a NULL pointer (or SPAN_NONE) are left out of the line. time, pid and program are
 * added: "time" RFC 3339 UTC with ms, "pid" the raw getpid, "program" the base name of the program.
 */
struct log_event {
    const char *event; /* "transition", "refused", "config", "table" */
    struct span key;
    const char *from; /* state before; of "refused": the state that refuses */
    const char *to;
    const char *cause;      /* "status 503", "connect", "manual", … */
    const char *detail;     /* free text: "file:line: key: …" */
    uint64_t refused_total; /* of the key's slot, by all processes, as long as its table lives; left
                               out when 0. How many a burst had: the difference of two lines */
};

#define LOG_LINE_MAX 2048 /* longer values are cut so that the line stays whole */

/* Renders into `buf`, '\n' at the end, valid JSON whatever the bytes; returns the length. */
size_t log_render(const struct log_event *event, int64_t wall_ms, int pid, const char *program,
                  char *buf, size_t size);
void log_write(const char *path, const struct log_event *event, int64_t wall_ms);

/* JSON string escaping, without the quotes; invalid UTF-8 becomes U+FFFD. Cuts at `size`; returns
 * the length written, no NUL. Used by every writer of JSON in the project but the cli (jansson is
 * not needed for lines this small). */
size_t log_json_escape(struct span text, char *buf, size_t size);

#endif
