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
 * given out for. What was found is kept for each place that calls: a few ns.
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
#define TLS_HOOK(type, name, parameters)   type(*name) parameters;
#define TLS_REAL(type, name, parameters)   type(*name) parameters;
#define TLS_CRYPTO(type, name, parameters) type(*name) parameters;
#include "hooks.def"
    int index; /* of our ex_data in its SSLs */
};

/* A place in the program that calls. */
struct tls_site {
    const void *caller;
    const struct tls_real *real; /* NULL: none is found */
    bool passes; /* nothing of these calls is ours: a libcurl that our curl hooks know, the libssl's
                    own inner ones, another libbreaker decides, or we are disabled */
};

#define TLS_SITES  512u /* of two */
#define TLS_PROBES 8u

/* Filled once each, never emptied. Release on set, acquire on read. */
extern _Atomic(const struct tls_site *) tls_sites[TLS_SITES];

static inline unsigned tls_site_slot(const void *caller, unsigned probe)
{
    return ((unsigned)((uintptr_t)caller * 0x9e3779b97f4a7c15u >> 48) + probe) % TLS_SITES;
}

/* Searches. Takes the loader's locks and may call malloc. Keeps errno and dlerror(). */
const struct tls_site *tls_site_search(const void *caller, const SSL *ssl);

/* Of a return address, and the object that the call is about. Never NULL. */
static inline const struct tls_site *tls_site_of(const void *caller, const SSL *ssl)
{
    for (unsigned i = 0; i < TLS_PROBES; i++) {
        const struct tls_site *site =
            atomic_load_explicit(&tls_sites[tls_site_slot(caller, i)], memory_order_acquire);
        if (!site)
            break;
        if (site->caller == caller)
            return site;
    }
    return tls_site_search(caller, ssl);
}

/* May dlsym() answer with an entry of ours in place of `real`, a function of some libssl? Only
 * where a call by it comes back to that library. Keeps errno; leaves no dlerror(). */
bool tls_real_serves(void *real);

/* tls_entries.c: our entry of that name (with its "SSL_"); NULL when not hooked. */
void *tls_entry(const char *name);

#endif
