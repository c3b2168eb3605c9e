/*
 * real_next.h - what stands behind us in the global scope, for many names at once: dlsym(RTLD_NEXT)
 * costs a thousand instructions for each, in every process that starts.
 *
 * Reads what the loader keeps: the objects of the program in the order of its look-ups, each with
 * its GNU hash table. Only for the constructor, while nothing is loaded or unloaded.
 */
#ifndef BREAKER_PRELOAD_REAL_NEXT_H
#define BREAKER_PRELOAD_REAL_NEXT_H

#include <stdbool.h>

/* The definition of `name` that dlsym(RTLD_NEXT) would give us; NULL: none that is told by this
 * reading with certainty (no such symbol, or one that only the loader can resolve): ask the loader.
 */
void *real_next(const char *name);

/* Does one object behind us define both, be it as names of versions? Asks no loader: where it
 * cannot read, the answer is no. After a real_next(), which reads them. */
bool real_next_together(const char *one, const char *other);

#endif
