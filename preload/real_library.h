/*
 * real_library.h - every libcurl that a call came to, once; never removed: handles may live as long
 * as the process, and a dlopen reference keeps the code mapped.
 */
#ifndef BREAKER_PRELOAD_REAL_LIBRARY_H
#define BREAKER_PRELOAD_REAL_LIBRARY_H

#include "real.h"

#include <stdatomic.h>
#include <stdint.h>

/* A libcurl is known by its curl_easy_init. */
#define LIBRARY_PROBE "curl_easy_init"

/* The library whose curl_easy_init, exported as `version` (NULL: plainly), is at `probe`. Makes it
 * known. NULL: `probe` is NULL or inside ourselves, it is no whole libcurl, or no memory. */
const struct curl_real *library_at(void *probe, const char *version);

/* The same for the object that holds `address`, if that defines curl_easy_init itself and is no
 * other copy of libbreaker. */
const struct curl_real *library_inside(const void *address, const char *version);

/* The known libraries, linked by curl_real.next. Push-only; one is complete before the release that
 * pushes it, and constant afterwards. Each acquire pairs with that push. */
extern _Atomic(const struct curl_real *) library_first;

/* A known libcurl that `address` is inside of: a call from there is that libcurl's own inner one.
 * No loader call, no lock. */
static inline const struct curl_real *library_known(const void *address)
{
    const struct curl_real *known = atomic_load_explicit(&library_first, memory_order_acquire);

    while (known &&
           ((uintptr_t)address - (uintptr_t)known->begin >= known->size || known->is_breaker))
        known = known->next;
    return known;
}

/* Is this thread inside a transfer of a known libcurl? Set by library_enter(), put back to what
 * that returned by library_leave(). A C++ exception that is thrown through libcurl leaves it set.
 */
extern __thread bool library_entered __attribute__((tls_model("initial-exec")));

static inline bool library_enter(void)
{
    bool before = library_entered;

    library_entered = true;
    return before;
}

static inline void library_leave(bool before)
{
    library_entered = before;
}

/* Does another object's connect stand before ours: proxychains', a sanitizer's in the program? Then
 * calls come to us from there, whoever made them. Told before a library is pushed, since socket
 * calls, which signal handlers make, ask no loader; relaxed, that push's release goes with it. */
extern atomic_bool library_hidden;

/* Is a socket call that comes from `caller` a known libcurl's own? Where libcurl is hidden, those
 * of the application's callbacks are taken for it as well: they run uncovered. */
static inline bool library_calls(const void *caller)
{
    return library_known(caller) ||
           (library_entered && atomic_load_explicit(&library_hidden, memory_order_relaxed));
}

/* Small numbers that stand for libraries: from 1 in the order they became known; NULL for others.
 */
unsigned library_number(const struct curl_real *real);
const struct curl_real *library_of_number(unsigned number);

#endif
