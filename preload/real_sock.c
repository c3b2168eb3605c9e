/*
 * real_sock.c - what stands behind the socket layer's hooks: another preload's function, else
 * libc's.
 *
 * Other libraries' constructors, and allocators that are just starting, call read, close or syscall
 * before ours has run; asking the loader there may allocate, and so come back (FIELD-NOTES 1.10).
 * Until the constructor has asked for all of them they are the plain system calls (real_raw.h).
 */
#include "real.h"

#include "guard.h"
#include "real_next.h"
#include "real_raw.h"

#include <dlfcn.h>
#include <string.h>

struct real_sock real_sock_found = {
#define X(type, name, parameters) .name = raw_##name,
    REAL_SOCK(X)
#undef X
};

/* Their names, in the order of the members. One text, since the loader would have to relocate the
 * address of each. */
static const char names[] =
#define X(type, name, parameters) #name "\0"
    REAL_SOCK(X)
#undef X
    ;
_Static_assert(sizeof(struct real_sock) % sizeof(void *) == 0,
               "struct real_sock holds addresses alone");

/* Where libc lacks one nobody is linked to it, and the system call serves whoever calls it anyway.
 */
static void find_all(void)
{
    void **member = (void **)&real_sock_found;

    for (const char *name = names; *name; name += strlen(name) + 1, member++) {
        void *found = real_next(name);
        if (!found)
            found = real_libc_dlsym()(RTLD_NEXT, name);
        if (found && !real_is_ours(found))
            __atomic_store_n(member, found, __ATOMIC_RELAXED);
    }
}

/* Told by what no libcurl has: the version nodes of several TLS libraries. */
static bool is_breaker_behind(void)
{
    return real_next_together("CURL_NSS_3", "CURL_RUSTLS_4");
}

bool real_sock_other_decides;

void real_sock_prepare(void)
{
    GUARD_ERRNO({
        find_all();
        real_sock_other_decides = is_breaker_behind();
    });
}
