/*
 * real_libc.c - what stands behind our hooks of libc: another preload's function, else libc's.
 * And libc's own loader functions, for our own questions.
 */
#include "real.h"

#include "base/clock.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Set by real_prepare(), always to the same values; any thread may. */
static _Atomic(connect_function *) found_connect;
static _Atomic(dlopen_function *) found_dlopen, libc_dlopen;
static _Atomic(dlsym_function *) found_dlsym, libc_dlsym;
static _Atomic(getaddrinfo_function *) found_getaddrinfo;

#if defined(__x86_64__)
#define OLDEST_GLIBC "GLIBC_2.2.5"
#else
#define OLDEST_GLIBC "GLIBC_2.17"
#endif

/* By version: that of the symbol since libdl became part of libc, then the oldest. Passes by other
 * preloads, whose symbols have none. */
static void *own_of_libc(const char *name)
{
    void *found = dlvsym(RTLD_NEXT, name, "GLIBC_2.34");

    return found ? found : dlvsym(RTLD_NEXT, name, OLDEST_GLIBC);
}

/* Whatever stands behind us. The answer comes back here, so that RTLD_NEXT means "behind us". */
static void *behind_us(dlsym_function *look_up, const char *name, void *otherwise)
{
    void *found = look_up(RTLD_NEXT, name);

    return found && !real_is_ours(found) ? found : otherwise;
}

/* Last resort when libc has no connect for us: the system call itself. */
static int connect_by_system_call(int fd, const struct sockaddr *address, socklen_t length)
{
    return (int)syscall(SYS_connect, fd, address, length);
}

static int getaddrinfo_nothing(const char *node, const char *service, const struct addrinfo *hints,
                               struct addrinfo **result)
{
    (void)node;
    (void)service;
    (void)hints;
    (void)result;
    return EAI_FAIL;
}

static void *dlopen_nothing(const char *file, int mode)
{
    (void)file;
    (void)mode;
    return NULL;
}

static void *dlsym_nothing(void *handle, const char *name)
{
    (void)handle;
    (void)name;
    return NULL;
}

void real_prepare(void)
{
    dlsym_function *look_up = (dlsym_function *)own_of_libc("dlsym");
    dlopen_function *open = (dlopen_function *)own_of_libc("dlopen");

    if (!look_up)
        look_up = dlsym_nothing;
    if (!open)
        open = dlopen_nothing;
    atomic_store(&libc_dlsym, look_up);
    atomic_store(&libc_dlopen, open);
    atomic_store(&found_dlsym, (dlsym_function *)behind_us(look_up, "dlsym", (void *)look_up));
    atomic_store(&found_dlopen, (dlopen_function *)behind_us(look_up, "dlopen", (void *)open));
    atomic_store(&found_connect,
                 (connect_function *)behind_us(look_up, "connect", (void *)connect_by_system_call));
    atomic_store(&found_getaddrinfo, (getaddrinfo_function *)behind_us(
                                         look_up, "getaddrinfo", (void *)getaddrinfo_nothing));
    /* Not by the newer version first: a look-up that fails allocates. */
    clock_ask((clock_function *)dlvsym(RTLD_NEXT, "clock_gettime", CLOCK_GLIBC));
}

/* Each is asked for before the constructor too (FIELD-NOTES 1.10). */
#define PREPARED(type, function, variable)                                                         \
    type *function(void)                                                                           \
    {                                                                                              \
        type *found = atomic_load_explicit(&variable, memory_order_acquire);                       \
                                                                                                   \
        if (found)                                                                                 \
            return found;                                                                          \
        real_prepare();                                                                            \
        return atomic_load_explicit(&variable, memory_order_acquire);                              \
    }

PREPARED(connect_function, real_connect, found_connect)
PREPARED(dlopen_function, real_dlopen, found_dlopen)
PREPARED(dlsym_function, real_dlsym, found_dlsym)
PREPARED(getaddrinfo_function, real_getaddrinfo, found_getaddrinfo)
PREPARED(dlopen_function, real_libc_dlopen, libc_dlopen)
PREPARED(dlsym_function, real_libc_dlsym, libc_dlsym)

freeaddrinfo_function *real_freeaddrinfo(void)
{
    return (freeaddrinfo_function *)behind_us(real_libc_dlsym(), "freeaddrinfo", NULL);
}
