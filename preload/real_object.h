/*
 * real_object.h - the loaded objects of the process, as far as the search for libcurl needs them.
 *
 * All of it takes the loader's locks: not async-signal-safe. May leave a pending dlerror(); whoever
 * asks clears it.
 */
#ifndef BREAKER_PRELOAD_REAL_OBJECT_H
#define BREAKER_PRELOAD_REAL_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

/* The addresses of one loaded object. */
struct object_range {
    const char *begin, *end;
};

static inline bool object_holds(const struct object_range *range, const void *address)
{
    return (const char *)address >= range->begin && (const char *)address < range->end;
}

/* The object that holds `address`; false, *range untouched: none (a JIT's memory, a static one). */
bool object_range_of(const void *address, struct object_range *range);

/* A counted dlopen() handle on the object that holds `address`; NULL when there is none. */
void *object_hold(const void *address);

/* A counted handle on a loaded object by its soname or path; never loads one. */
void *object_hold_named(const char *name);

void object_release(void *hold); /* NULL is fine */

/* The paths of loaded objects whose file name begins with "libcurl". */
#define OBJECT_NAMES_MAX 8
struct object_names {
    unsigned count;
    char name[OBJECT_NAMES_MAX][256];
};
void object_libcurls(struct object_names *names);

/* Moves whenever an object was loaded or unloaded: while it stands, an address belongs to the
 * object that it belonged to. */
uint64_t object_epoch(void);

#endif
