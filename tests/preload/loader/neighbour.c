/*
 * neighbour.c - another preload, before or after libbreaker: it has a connect, a dlopen and a dlsym
 * of its own (as proxychains, torsocks and the like), and asks what stands behind it.
 */
#include <dlfcn.h>
#include <string.h>
#include <sys/socket.h>

int neighbour_connects, neighbour_opens, neighbour_lookups;

typedef void *dlsym_function(void *, const char *);

/* The next one, whosever it is: past our own name only. */
static dlsym_function *next_dlsym(void)
{
    return (dlsym_function *)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
}

static void *next(const char *name)
{
    void *found = next_dlsym()(RTLD_NEXT, name);

    return found;
}

int connect(int fd, const struct sockaddr *address, socklen_t length)
{
    int (*real)(int, const struct sockaddr *, socklen_t) =
        (int (*)(int, const struct sockaddr *, socklen_t))next("connect");

    neighbour_connects++;
    return real(fd, address, length);
}

void *dlopen(const char *file, int mode)
{
    void *(*real)(const char *, int) = (void *(*)(const char *, int))next("dlopen");

    neighbour_opens++;
    void *object = real(file, mode);
    return object;
}

/* A jump, as every hook of dlsym must be. */
__attribute__((optimize("O2", "optimize-sibling-calls"))) void *dlsym(void *restrict handle,
                                                                      const char *restrict name)
{
    neighbour_lookups++;
    return next_dlsym()(handle, name);
}
