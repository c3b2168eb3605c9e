/*
 * sock_resolve.c - getaddrinfo: the real one, whose answer is read and noted. The list is its
 * maker's: never built, changed or freed here.
 */
#include "sock_resolve.h"

#include "guard.h"
#include "real.h"
#include "shim.h"
#include "sock_names.h"

#include <pthread.h>

static void register_atfork(void)
{
    pthread_atfork(sock_names_before_fork, sock_names_after_fork, sock_names_in_child);
}

void sock_resolve_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, register_atfork);
}

static void learn(const char *node, const struct addrinfo *hints, const struct addrinfo *list)
{
    if (shim_disabled())
        return;
    sock_resolve_prepare();
    sock_names_learn(node, hints ? hints->ai_family : AF_UNSPEC, list, shim_mono_ns());
}

EXPORT int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **result)
{
    int error = real_getaddrinfo()(node, service, hints, result);

    if (error == 0)
        GUARD_ERRNO(learn(node, hints, *result));
    return error;
}
