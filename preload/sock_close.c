/*
 * sock_close.c - the hooks that end, double or half-close descriptors. Nothing here changes what
 * the real call does; it is noted before the descriptor can be anybody else's.
 */
#include "guard.h"
#include "real.h"
#include "sock_watch.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

static void note_close(int fd)
{
    GUARD_ERRNO(if (fdmap_is_ours()) sock_conn_closed(fd));
}

void sock_close_note(unsigned first, unsigned last)
{
    int fd;

    for (unsigned at = first; (fd = fdmap_next(at, last)) >= 0; at = (unsigned)fd + 1)
        note_close(fd);
}

static int note_duplicate(int from, int to)
{
    GUARD_ERRNO(if (to >= 0 && to != from && fdmap_get(from) && fdmap_is_ours())
                    sock_conn_duplicated(from, to));
    return to;
}

EXPORT int close(int fd)
{
    if (__builtin_expect(fdmap_get(fd) != NULL, 0))
        note_close(fd);
    return real_sock()->close(fd);
}

EXPORT int close_range(unsigned first, unsigned last, int flags)
{
    if (!((unsigned)flags & CLOSE_RANGE_CLOEXEC))
        GUARD_ERRNO(sock_close_note(first, last));
    return real_sock()->close_range(first, last, flags);
}

EXPORT void closefrom(int first)
{
    GUARD_ERRNO(sock_close_note(first > 0 ? (unsigned)first : 0, FDMAP_MAX - 1));
    real_sock()->closefrom(first);
}

EXPORT int dup(int fd)
{
    return note_duplicate(fd, real_sock()->dup(fd));
}

/* What `to` was is closed by the real call: noted before it, like any close. */
EXPORT int dup2(int from, int to)
{
    if (__builtin_expect(fdmap_get(to) != NULL, 0) && from != to)
        note_close(to);
    return note_duplicate(from, real_sock()->dup2(from, to));
}

EXPORT int dup3(int from, int to, int flags)
{
    if (__builtin_expect(fdmap_get(to) != NULL, 0) && from != to)
        note_close(to);
    return note_duplicate(from, real_sock()->dup3(from, to, flags));
}

static int note_fcntl(int fd, int command, int result)
{
    return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? note_duplicate(fd, result) : result;
}

/* One argument, whatever its type (FIELD-NOTES 1.8). */
#define FCNTL_HOOK(name)                                                                           \
    EXPORT int name(int fd, int command, ...)                                                      \
    {                                                                                              \
        va_list arguments;                                                                         \
        va_start(arguments, command);                                                              \
        void *argument = va_arg(arguments, void *);                                                \
        va_end(arguments);                                                                         \
        return note_fcntl(fd, command, real_sock()->name(fd, command, argument));                  \
    }

FCNTL_HOOK(fcntl)
FCNTL_HOOK(fcntl64)

EXPORT int shutdown(int fd, int how)
{
    if (__builtin_expect(fdmap_get(fd) != NULL, 0) && how != SHUT_WR)
        GUARD_ERRNO({
            struct sock_conn *conn = sock_conn_lock(fd);
            if (conn && conn->connecting) /* it fails, or goes on */
                sock_conn_unlock(conn);
            else if (conn)
                sock_conn_let_go(conn, fd, SOCK_END_CLOSE);
        });
    return real_sock()->shutdown(fd, how);
}
