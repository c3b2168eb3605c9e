/*
 * tls_real.h - which libssl a call belongs to: the one that the loader would have bound the caller
 * to, had we not been there.
 *
 * Several may be in one process (a wheel brings its own beside the system's), and most are loaded
 * RTLD_LOCAL, so behind us in the global scope there may be none, or another (FIELD-NOTES 1.18).
 * The search goes by the SSL object, whose method is a table of the library that made it: the place
 * that calls may be far from any libssl (wrappers that end in a jump into it, called by a program
 * or by code that a JIT made). Where that says nothing, by the object that the call comes from:
 * what its own dependencies define, but in the global scope the same version comes first. Whoever
 * got our entry by dlsym needs no libssl; such calls go to the one library that the entries are
 * given out for. What was found is kept for each place that calls, some 500 of them: a few ns.
 * Those of further ones search each time.
 *
 * No header of OpenSSL: what is used of it is the same in 1.1 and 3, and declared here and in
 * hooks.def. A function that a libssl lacks is NULL.
 *
 * Limits: a wrapper of single functions that is preloaded behind us is passed by. An object that
 * took the place of an unloaded one to the byte, and needs another libssl, is not told apart.
 */
#ifndef BREAKER_PRELOAD_TLS_REAL_H
#define BREAKER_PRELOAD_TLS_REAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct ssl_st SSL;

/* Of CRYPTO_get_ex_new_index(): ours are called for every SSL of that library. In 1.1 `from` is the
 * same pointer to a pointer, declared as void *. */
typedef int tls_dup_function(void *to, const void *from, void **data, int index, long number,
                             void *argument);
typedef void tls_free_function(void *parent, void *data, void *all, int index, long number,
                               void *argument);

#define TLS_ERROR_SSL         1
#define TLS_ERROR_WANT_READ   2
#define TLS_ERROR_SYSCALL     5
#define TLS_ERROR_ZERO_RETURN 6
#define TLS_RECEIVED_SHUTDOWN 2

/* One libssl: its own functions. */
struct tls_real {
    int index; /* of our ex_data in its SSLs */
#define TLS_HOOK(type, name, parameters)   type(*name) parameters;
#define TLS_REAL(type, name, parameters)   type(*name) parameters;
#define TLS_CRYPTO(type, name, parameters) type(*name) parameters;
#include "hooks.def"
};

/* What a place in the program that calls is told. */
struct tls_site {
    const struct tls_real *real; /* NULL: none is found */
    bool passes; /* nothing of these calls is ours: a libcurl that our curl hooks know, the libssl's
                    own inner ones, another libbreaker decides, or we are disabled */
};

/* Such a place. Whoever sets `site` from NULL has it for good, and sets `caller` then, with
 * release; acquire on read. One that is left in between serves nobody. */
struct tls_place {
    _Atomic(const void *) caller;
    _Atomic(const struct tls_site *) site;
};

#define TLS_PLACES 512u /* of two */
#define TLS_PROBES 64u

extern struct tls_place tls_places[TLS_PLACES];

static inline struct tls_place *tls_place_at(const void *caller, unsigned probe)
{
    unsigned hash = (unsigned)((uintptr_t)caller * 0x9e3779b97f4a7c15u >> 48);

    return &tls_places[(hash + probe) % TLS_PLACES];
}

static inline bool tls_place_is(const struct tls_place *place, const void *caller)
{
    return atomic_load_explicit(&place->caller, memory_order_acquire) == caller;
}

/* Not at the first place that it may have: at another, or searches, which takes the loader's locks
 * and may call malloc. Keeps errno and dlerror(). */
const struct tls_site *tls_site_search(const void *caller, const SSL *ssl);

/* Of a return address, and the object that the call is about. Never NULL. */
static inline const struct tls_site *tls_site_of(const void *caller, const SSL *ssl)
{
    const struct tls_place *first = tls_place_at(caller, 0);

    if (__builtin_expect(tls_place_is(first, caller), 1))
        return atomic_load_explicit(&first->site, memory_order_relaxed);
    return tls_site_search(caller, ssl);
}

/* May dlsym() answer with an entry of ours in place of `real`, a function of some libssl? Only
 * where a call by it comes back to that library. Keeps errno; leaves no dlerror(). */
bool tls_real_serves(void *real);

/* tls_entries.c: our entry of that name (with its "SSL_"); NULL when not hooked. */
void *tls_entry(const char *name);

#endif
