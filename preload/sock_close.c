/*
 * sock_close.c - the hooks that end, double or half-close descriptors. Nothing here changes what
 * the real call does; it is noted before the descriptor can be anybody else's.
 *
 * Where nothing is tracked each hook is a jump, here and in the other files: a frame of ours under
 * a system call costs more than all of the look-up (what the processor knew of returns is gone).
 */
#include "guard.h"
#include "real.h"
#include "sock_socket.h"
#include "sock_watch.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

static __attribute__((noinline)) void note_close(int fd)
{
    GUARD_ERRNO(if (fdmap_is_ours()) sock_conn_closed(fd));
}

void sock_close_note(unsigned first, unsigned last)
{
    int fd;

    for (unsigned at = first; (fd = fdmap_next(at, last)) >= 0; at = (unsigned)fd + 1)
        note_close(fd);
}

/* What still leads from `to` was closed past us (fclose). */
static __attribute__((noinline)) int note_duplicate(int from, int to)
{
    GUARD_ERRNO(if (to >= 0 && to != from && fdmap_get(from) && fdmap_is_ours()) {
        if (fdmap_get(to))
            sock_lose_sight(to);
        sock_conn_duplicated(from, to);
    });
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
    if (__builtin_expect(fdmap_any_from(first), 0) && !((unsigned)flags & CLOSE_RANGE_CLOEXEC))
        GUARD_ERRNO(sock_close_note(first, last));
    return real_sock()->close_range(first, last, flags);
}

EXPORT void closefrom(int first)
{
    unsigned from = first > 0 ? (unsigned)first : 0;

    if (__builtin_expect(fdmap_any_from(from), 0))
        GUARD_ERRNO(sock_close_note(from, FDMAP_MAX - 1));
    real_sock()->closefrom(first);
}

EXPORT int dup(int fd)
{
    if (__builtin_expect(!fdmap_get(fd), 1))
        return real_sock()->dup(fd);
    return note_duplicate(fd, real_sock()->dup(fd));
}

/* What `to` was is closed by the real call: noted before it, like any close. */
EXPORT int dup2(int from, int to)
{
    if (__builtin_expect(fdmap_get(to) != NULL, 0) && from != to)
        note_close(to);
    if (__builtin_expect(!fdmap_get(from), 1))
        return real_sock()->dup2(from, to);
    return note_duplicate(from, real_sock()->dup2(from, to));
}

EXPORT int dup3(int from, int to, int flags)
{
    if (__builtin_expect(fdmap_get(to) != NULL, 0) && from != to)
        note_close(to);
    if (__builtin_expect(!fdmap_get(from), 1))
        return real_sock()->dup3(from, to, flags);
    return note_duplicate(from, real_sock()->dup3(from, to, flags));
}

/* One argument, whatever its type (FIELD-NOTES 1.8). libc's is variadic; a variadic one of ours
 * could not be a jump. */
#define FCNTL_HOOK(name)                                                                           \
    EXPORT int sock_##name(int fd, int command, void *argument) __asm__(#name);                    \
    int sock_##name(int fd, int command, void *argument)                                           \
    {                                                                                              \
        if (__builtin_expect(!fdmap_get(fd), 1) ||                                                 \
            (command != F_DUPFD && command != F_DUPFD_CLOEXEC))                                    \
            return real_sock()->name(fd, command, argument);                                       \
        return note_duplicate(fd, real_sock()->name(fd, command, argument));                       \
    }

FCNTL_HOOK(fcntl)
FCNTL_HOOK(fcntl64)

/* The kernel dissolves a connection that is still coming about, whatever half is meant: the program
 * gave it up. */
static __attribute__((noinline)) void note_shutdown(int fd, int how)
{
    struct sock_conn *conn = sock_conn_lock(fd);

    if (!conn)
        return;
    if (conn->connecting && sock_socket_has_peer(fd))
        sock_conn_connected(conn, fd, 0);
    /* A request that is cut short gets no answer, by whose fault is plain. */
    if (how == SHUT_WR && !conn->connecting &&
        !(conn->flow && shim_flow_sends(&conn->flow->flow))) {
        conn->shut = conn->flow && conn->flow->flow.state == SHIM_FLOW_FOLLOWED;
        sock_conn_unlock(conn);
    } else {
        sock_conn_end(conn, fd, SOCK_END_CLOSE);
    }
}

EXPORT int shutdown(int fd, int how)
{
    if (__builtin_expect(fdmap_get(fd) != NULL, 0) && how >= SHUT_RD && how <= SHUT_RDWR)
        GUARD_ERRNO(note_shutdown(fd, how));
    return real_sock()->shutdown(fd, how);
}
