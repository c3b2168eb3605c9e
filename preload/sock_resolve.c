/*
 * sock_resolve.c - getaddrinfo: the real one, whose answer is read and noted. The list is its
 * maker's: never built, changed or freed here.
 *
 * Where the host that the program asks for is not simply healthy, and has a fallback_address that
 * is a name, that is resolved now as well: this call waits anyway, a connect never may.
 */
#include "sock_resolve.h"

#include "guard.h"
#include "real.h"
#include "real_library.h"
#include "shim.h"
#include "sock_fallback.h"
#include "sock_lock.h"
#include "sock_names.h"

#include <pthread.h>

/* This thread asks for a fallback's name: what stands behind us may come back to our entry. */
static __thread bool asking __attribute__((tls_model("initial-exec")));

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
    bool entered =
        sock_enter(); /* false: in a signal handler; then what cannot be kept is marked */
    sock_names_learn(node, hints ? hints->ai_family : AF_UNSPEC, list, shim_mono_ns());
    if (entered)
        sock_leave();
}

/* --- names of fallbacks -------------------------------------------------------------------------
 */

#define FALLBACKS_MAX 4 /* of one name */

static bool is_due(const union sock_name *name)
{
    bool due = false;

    if (sock_enter()) {
        due = sock_fallback_is_due(name, shim_mono_ns());
        sock_leave();
    }
    return due;
}

static void note(const union sock_name *name, const struct addrinfo *list)
{
    if (sock_enter()) {
        sock_fallback_learn(name, list, shim_mono_ns());
        sock_leave();
    }
}

/* Not to be cancelled in: the program's own list would be lost. */
static void ask(const union sock_name *name)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    freeaddrinfo_function *release = real_freeaddrinfo();
    struct addrinfo *list = NULL;
    int state;

    if (!release)
        return;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    asking = true;
    bool found = real_getaddrinfo()(name->text, NULL, &hints, &list) == 0;
    asking = false;
    note(name, found ? list : NULL);
    if (found)
        release(list);
    pthread_setcancelstate(state, NULL);
}

/* The host as it will be called at the connect, and its port, if it was asked for with one. */
static struct span host_of(const char *node, const struct addrinfo *list,
                           char text[SOCK_ADDRESS_TEXT_SIZE], uint16_t *port)
{
    struct sock_address address;

    *port = 0;
    if (!list || !sock_address_of(list->ai_addr, list->ai_addrlen, &address, port))
        return SPAN_NONE;
    if (!sock_name_is_numeric(node))
        return span_str(node);
    return span_of(text, sock_address_text(&address, text));
}

static void resolve_fallbacks(const char *node, const struct addrinfo *list)
{
    struct span names[FALLBACKS_MAX];
    char text[SOCK_ADDRESS_TEXT_SIZE];
    union sock_name own, name;
    uint16_t port;
    struct span host = host_of(node, list, text, &port);
    unsigned count = host.ptr ? shim_fallbacks_wanted(host, port, names, FALLBACKS_MAX) : 0;

    for (unsigned i = 0; i < count; i++) {
        if (sock_fallback_name(names[i], &name) == 0 || !is_due(&name))
            continue;
        if (sock_name_of(node, &own) > 0 && memcmp(&own, &name, sizeof name) == 0)
            note(&name, list); /* another port of the same host */
        else
            ask(&name);
    }
}

/* Whom an address was asked for that needs no resolving does not expect to wait. */
static bool may_wait(const char *node, const struct addrinfo *hints, const void *caller)
{
    return node && !(hints && (hints->ai_flags & AI_NUMERICHOST)) && !shim_disabled() &&
           !real_sock_other_decides && !library_known(caller);
}

EXPORT int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **result)
{
    int error = real_getaddrinfo()(node, service, hints, result);

    if (error == 0 && !asking)
        GUARD_ERRNO({
            learn(node, hints, *result);
            if (may_wait(node, hints, __builtin_return_address(0)))
                resolve_fallbacks(node, *result);
        });
    return error;
}
