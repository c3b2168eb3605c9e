/*
 * synth_mark.h - the descriptors of synthetic answers that libcurl 7.88.0 and 7.88.1 are about to
 * connect() although they were told that they are connected (FIELD-NOTES 2.4).
 *
 * A mark is set just before libcurl gets the descriptor, taken by the connect hook, and taken away
 * before the descriptor is closed: a stale one would break the next connection with that number. It
 * is for the process that set it alone: a child has descriptors of its own under the same numbers,
 * and a vfork child has our very memory. Thread-safe, no lock, no allocation.
 */
#ifndef BREAKER_PRELOAD_SYNTH_MARK_H
#define BREAKER_PRELOAD_SYNTH_MARK_H

#include <stdbool.h>

/* False: too many at once. */
bool synth_mark_set(int fd);

/* Is it marked? True once per mark. Async-signal-safe; one load when no mark is set anywhere, and
 * only else a system call (getpid). Keeps errno. */
bool synth_mark_take(int fd);

#endif
