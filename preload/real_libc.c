/*
 * real_libc.c - libc's own connect, dlopen and dlsym, behind ours.
 */
#include "real.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Atomic(connect_function *) found_connect;
static _Atomic(dlopen_function *) found_dlopen;
static _Atomic(dlsym_function *) found_dlsym;

#if defined(__x86_64__)
#define OLDEST_GLIBC "GLIBC_2.2.5"
#else
#define OLDEST_GLIBC "GLIBC_2.17"
#endif

/* Whatever stands behind us, another preload included; never ourselves. `moved`: the version of the
 * symbol since libdl became part of libc, or NULL. */
static void *behind_us(const char *name, const char *moved)
{
    void *found = moved ? dlvsym(RTLD_NEXT, name, moved) : NULL;

    if (!found)
        found = dlvsym(RTLD_NEXT, name, OLDEST_GLIBC);
    return found && !real_is_ours(found) ? found : NULL;
}

/* Last resort when libc has no connect for us: the system call itself. */
static int connect_by_system_call(int fd, const struct sockaddr *address, socklen_t length)
{
    return (int)syscall(SYS_connect, fd, address, length);
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
    connect_function *connect_found = (connect_function *)behind_us("connect", NULL);
    dlopen_function *dlopen_found = (dlopen_function *)behind_us("dlopen", "GLIBC_2.34");
    dlsym_function *dlsym_found = (dlsym_function *)behind_us("dlsym", "GLIBC_2.34");

    atomic_store(&found_connect, connect_found ? connect_found : connect_by_system_call);
    atomic_store(&found_dlopen, dlopen_found ? dlopen_found : dlopen_nothing);
    atomic_store(&found_dlsym, dlsym_found ? dlsym_found : dlsym_nothing);
}

connect_function *real_connect(void)
{
    connect_function *found = atomic_load_explicit(&found_connect, memory_order_acquire);

    if (found)
        return found;
    real_prepare();
    return atomic_load(&found_connect);
}

dlopen_function *real_dlopen(void)
{
    dlopen_function *found = atomic_load_explicit(&found_dlopen, memory_order_acquire);

    if (found)
        return found;
    real_prepare();
    return atomic_load(&found_dlopen);
}

dlsym_function *real_dlsym(void)
{
    dlsym_function *found = atomic_load_explicit(&found_dlsym, memory_order_acquire);

    if (found)
        return found;
    real_prepare();
    return atomic_load(&found_dlsym);
}
