/*
 * sock_connect.c - connect and what tells of its outcome. A connect that H refuses goes to the
 * host's fallback_address, or fails at once with ECONNREFUSED, on non-blocking sockets too:
 * EINPROGRESS would oblige us to lie further (FIELD-NOTES 3.1).
 *
 * Answers 0, once, for the descriptor of a synthetic answer, which libcurl 7.88.0 and 7.88.1
 * connect although they were told that it is connected (FIELD-NOTES 2.4).
 */
#include "guard.h"
#include "real.h"
#include "real_library.h"
#include "sock_attempt.h"
#include "sock_divert.h"
#include "sock_socket.h"
#include "synth_mark.h"

#include <netinet/in.h>
#include <string.h>

static bool is_tcp_ip(const struct sockaddr *address, socklen_t length)
{
    return length >= sizeof(struct sockaddr_in) && !guard_is_nowhere(address) &&
           (address->sa_family == AF_INET || address->sa_family == AF_INET6);
}

/* Asks H, if the host is known to count: only what it is named by is known yet. */
static enum shim_verdict ask_host(struct sock_conn *conn, int fd)
{
    const struct shim_request request = {
        .scheme = SPAN_LIT("https"),
        .host = span_of(conn->place.name, conn->place.name_len),
        .port = conn->place.port,
        .path = SPAN_LIT(""),
    };

    if (conn->place.shared || shim_open(&conn->host, &request) == SHIM_UNCOVERED ||
        !sock_conn_same_socket(conn, fd))
        return SHIM_ADMITTED;
    conn->judged = true;
    return sock_attempt_admit(conn);
}

/* Is the connect to ask how an earlier one went? Of one that went elsewhere the address does not
 * tell, even when it has long ended. */
static bool asks_again(const struct sock_conn *conn, int fd)
{
    if (conn->connecting ? !conn->judged && !conn->diverted
                         : !conn->diverted || !sock_socket_has_peer(fd))
        return false;
    return sock_conn_same_socket(conn, fd);
}

/* A second connect of a socket that we know. */
static struct sock_conn *known(int fd)
{
    struct sock_conn *conn = sock_conn_lock(fd);

    if (conn && asks_again(conn, fd))
        return conn;
    if (conn)
        sock_conn_let_go(conn, fd, SOCK_END_DROP);
    return NULL;
}

struct connecting {
    struct sock_conn *conn; /* NULL: it passes */
    unsigned generation;
    bool refused;
    socklen_t length; /* of `elsewhere`, where it goes instead; 0: where the program says */
    struct sockaddr_in6 elsewhere;
};

static void go_elsewhere(struct connecting *begun, const struct sock_conn *conn)
{
    begun->length = conn->peer.ss_family == AF_INET ? (socklen_t)sizeof(struct sockaddr_in)
                                                    : (socklen_t)sizeof begun->elsewhere;
    memcpy(&begun->elsewhere, &conn->peer, begun->length);
}

static void begin_new(struct connecting *begun, int fd, const struct sockaddr *address,
                      socklen_t length)
{
    struct sock_conn *conn = sock_conn_make(), *diverted;

    if (!conn)
        return;
    if (length > sizeof conn->peer)
        length = sizeof conn->peer;
    memcpy(&conn->peer, address, length);
    if (!sock_names_find(address, length, conn->started_ns, &conn->place)) {
        sock_conn_give(conn);
        return;
    }
    begun->refused = ask_host(conn, fd) == SHIM_REFUSED;
    if (conn->judged && (diverted = sock_divert(conn, fd))) {
        begun->refused = false;
        conn = diverted;
        go_elsewhere(begun, conn);
    }
    if (begun->refused) {
        shim_obeyed(&conn->host);
        sock_conn_give(conn);
        return;
    }
    /* Before it is tracked: then others may end it. */
    begun->generation = atomic_load_explicit(&conn->generation, memory_order_relaxed);
    if (sock_conn_track(conn, fd))
        begun->conn = conn;
}

static struct connecting begin_connect(int fd, const struct sockaddr *address, socklen_t length,
                                       const void *caller)
{
    struct connecting begun = {.conn = NULL};
    struct sock_conn *conn;

    if (shim_disabled() || real_sock_other_decides || !fdmap_is_ours())
        return begun;
    if ((conn = known(fd))) {
        begun.conn = conn;
        begun.generation = atomic_load_explicit(&conn->generation, memory_order_relaxed);
        sock_conn_unlock(conn);
    } else if (!library_calls(caller) && sock_enter()) {
        begin_new(&begun, fd, address, length);
        sock_leave();
    }
    return begun;
}

static bool is_pending(int error)
{
    return error == EINPROGRESS || error == EALREADY || error == EINTR;
}

static void end_connect(const struct connecting *begun, int fd, int error)
{
    struct sock_conn *conn;

    if (is_pending(error))
        return;
    conn = sock_conn_lock_again(fd, begun->conn, begun->generation);
    if (conn && sock_conn_connected(conn, fd, error == EISCONN ? 0 : error))
        sock_conn_unlock(conn);
}

EXPORT int connect(int fd, const struct sockaddr *address, socklen_t length)
{
    struct connecting begun;

    if (synth_mark_take(fd))
        return 0;
    if (!is_tcp_ip(address, length))
        return real_connect()(fd, address, length);
    GUARD_ERRNO(begun = begin_connect(fd, address, length, __builtin_return_address(0)));
    if (begun.refused) {
        errno = ECONNREFUSED;
        return -1;
    }
    int result = begun.length > 0
                     ? real_connect()(fd, (const struct sockaddr *)&begun.elsewhere, begun.length)
                     : real_connect()(fd, address, length);
    if (begun.conn)
        GUARD_ERRNO(end_connect(&begun, fd, result == 0 ? 0 : guard_saved_errno));
    return result;
}

/* --- what tells of a pending one
 * ------------------------------------------------------------------
 */

/* SO_ERROR 0 is success only where there is a peer: it is 0 as well while the connect goes on. */
static void note_error(int fd, int error)
{
    struct sock_conn *conn = sock_conn_lock(fd);

    if (!conn)
        return;
    if (!conn->connecting || !conn->judged || (error == 0 && !sock_socket_has_peer(fd)) ||
        sock_conn_connected(conn, fd, error))
        sock_conn_unlock(conn);
}

EXPORT int getsockopt(int fd, int level, int name, void *restrict value, socklen_t *restrict size)
{
    if (__builtin_expect(!fdmap_get(fd), 1))
        return real_sock()->getsockopt(fd, level, name, value, size);
    int result = real_sock()->getsockopt(fd, level, name, value, size);
    if (result == 0 && level == SOL_SOCKET && name == SO_ERROR && *size >= sizeof(int))
        GUARD_ERRNO(note_error(fd, *(const int *)value));
    return result;
}

EXPORT int getpeername(int fd, struct sockaddr *restrict address, socklen_t *restrict length)
{
    if (__builtin_expect(!fdmap_get(fd), 1))
        return real_sock()->getpeername(fd, address, length);
    int result = real_sock()->getpeername(fd, address, length);
    if (result == 0)
        GUARD_ERRNO(note_error(fd, 0));
    return result;
}
