#include "sock_watch.h"

#include "guard.h"
#include "real.h"
#include "real_library.h"
#include "sock_socket.h"
#include "sock_carried.h"

#include <sys/socket.h>

/* The kernel's word that there is nothing to say of the connection. */
static bool is_passing(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR || error == EINPROGRESS ||
           error == EALREADY || error == ENOTCONN || error == EFAULT || error == EINVAL ||
           error == EMSGSIZE || error == ENOBUFS || error == ENOMEM || error == EOPNOTSUPP;
}

/* From here on readers get our answer; who waits in poll, select, epoll or recv wakes up, and the
 * registrations stay (FIELD-NOTES 3.6). Unlocks. */
static void begin_answer(struct sock_conn *conn, int fd)
{
    atomic_store_explicit(&conn->answering, true, memory_order_release);
    sock_conn_unlock(conn);
    GUARD_ERRNO(real_sock()->shutdown(fd, SHUT_RD));
}

void sock_watch_leave(struct sock_conn *conn, int fd)
{
    if (conn->flow && shim_flow_answer_due(&conn->flow->flow) &&
        !atomic_load_explicit(&conn->answering, memory_order_relaxed))
        begin_answer(conn, fd);
    else
        sock_conn_unlock(conn);
}

/* --- writes -------------------------------------------------------------------------------------
 */

/* Sockets of a libcurl that our curl hooks know are theirs to judge (also those that the
 * application connected for it). */
static bool is_libcurls(const struct sock_conn *conn, const void *caller)
{
    return !conn->wrote && library_calls(caller);
}

/* Programs may write without having asked how the connect went. Before there is a peer no request
 * asks for anything: the connect's admission is the connect's until it has ended, and an error is
 * the write's to tell. */
static bool is_blind(struct sock_conn *conn, int fd)
{
    if (!conn->connecting || !conn->judged)
        return false;
    if (!sock_socket_has_peer(fd))
        return true;
    sock_conn_connected(conn, fd, 0);
    return false;
}

void sock_write_begin(struct sock_write *write, int fd, const void *caller)
{
    struct sock_conn *conn = fdmap_get(fd);

    *write = (struct sock_write){.fd = fd};
    if (!conn || sock_is_quiet(conn) || !(conn = sock_conn_lock(fd)))
        return;
    if (conn->shut) { /* EPIPE, as the kernel will say */
        sock_conn_unlock(conn);
        return;
    }
    if (is_libcurls(conn, caller) || sock_carried_never(conn)) {
        sock_conn_let_go(conn, fd, SOCK_END_DROP);
        return;
    }
    sock_carried_pass_proxy(conn);
    write->blind = is_blind(conn, fd) || sock_carried_is_tied(conn);
    if (!write->blind && !conn->wrote && !conn->flow && !sock_conn_follow(conn) &&
        !sock_conn_unfollow(conn, fd))
        return;
    write->conn = conn;
    write->connecting = conn->connecting;
    write->generation = atomic_load_explicit(&conn->generation, memory_order_relaxed);
    if (conn->flow && !write->blind)
        shim_flow_send_begin(&conn->flow->flow);
}

void sock_write_show(struct sock_write *write, const void *bytes, size_t len)
{
    struct sock_conn *conn = write->conn;

    write->offered += len;
    if (!conn || len == 0 || write->blind)
        return;
    if (!conn->wrote) {
        conn->wrote = true;
        sock_carried_look(conn, span_of(bytes, len));
    }
    if (conn->flow)
        shim_flow_send(&conn->flow->flow, span_of(bytes, len));
}

/* Nothing is swallowed but of the socket that it is meant for. */
static bool may_refuse(struct sock_conn *conn, int fd)
{
    struct shim_flow *flow = &conn->flow->flow;

    if (flow->state != SHIM_FLOW_REFUSED)
        return true;
    if (!sock_conn_same_socket(conn, fd))
        return false;
    shim_flow_obeyed(flow);
    return true;
}

void sock_write_end(struct sock_write *write)
{
    struct sock_conn *conn = write->conn;

    write->allowed = write->offered;
    if (!conn)
        return;
    if (!conn->flow || write->blind) {
        sock_conn_unlock(conn);
        return;
    }
    uint64_t allowed = shim_flow_send_end(&conn->flow->flow);
    if (!may_refuse(conn, write->fd)) {
        sock_conn_let_go(conn, write->fd, SOCK_END_DROP);
        write->conn = NULL;
    } else if (conn->flow->flow.state == SHIM_FLOW_LOST) {
        if (sock_conn_unfollow(conn, write->fd))
            sock_conn_unlock(conn);
        else
            write->conn = NULL;
    } else {
        write->allowed = allowed;
        write->timed = shim_flow_times(&conn->flow->flow);
        sock_watch_leave(conn, write->fd);
    }
}

void sock_lose_sight(int fd)
{
    struct sock_conn *conn;

    GUARD_ERRNO(if ((conn = sock_conn_lock(fd))) sock_conn_let_go(conn, fd, SOCK_END_DROP));
}

/* Is there a part too long to be looked at, of which some may leave? Of what is no length at all
 * nothing does. */
static bool is_overlong(const struct iovec *parts, size_t count)
{
    for (size_t i = 0; i < count && count <= IOV_MAX && !guard_is_nowhere(parts); i++)
        if (parts[i].iov_len > SOCK_PART_MAX && parts[i].iov_len <= SSIZE_MAX)
            return true;
    return false;
}

struct sock_write sock_write_look(int fd, const struct iovec *parts, size_t count,
                                  const void *caller)
{
    struct sock_write write;

    if (!sock_parts_lead(parts, count)) {
        if (is_overlong(parts, count))
            sock_lose_sight(fd);
        return (struct sock_write){.fd = fd};
    }
    GUARD_ERRNO({
        sock_write_begin(&write, fd, caller);
        for (size_t i = 0; i < count; i++)
            sock_write_show(&write, parts[i].iov_base, parts[i].iov_len);
        sock_write_end(&write);
    });
    return write;
}

void sock_watch_note_write(const struct sock_write *write, ssize_t result, int error)
{
    struct sock_conn *conn = sock_conn_lock_again(write->fd, write->conn, write->generation);

    if (!conn)
        return;
    if (conn->connecting && (result >= 0 || !is_passing(error)) &&
        !sock_conn_connected(conn, write->fd, result >= 0 ? 0 : error))
        return;
    if (write->blind && result > 0 && !sock_carried_is_tied(conn)) { /* it came about meanwhile */
        sock_conn_let_go(conn, write->fd, SOCK_END_DROP);
        return;
    }
    if (conn->flow && !write->blind) {
        uint64_t sent = result > 0 ? (uint64_t)result : 0;
        if (sent < write->allowed)
            shim_flow_unsent(&conn->flow->flow, write->allowed - sent);
        if (result < 0 && !is_passing(error))
            conn->flow->flow.send_failed = true; /* what it still has to say is to be read yet */
        if (write->timed)
            shim_flow_sent(&conn->flow->flow);
    }
    sock_watch_leave(conn, write->fd);
}

ssize_t sock_write_done(const struct sock_write *write, ssize_t result)
{
    int error = errno;
    bool all = result >= 0 && (uint64_t)result == write->allowed;

    if (!write->conn)
        return result;
    if (!all || write->connecting || write->timed)
        GUARD_ERRNO(sock_watch_note_write(write, result, error));
    return all ? (ssize_t)write->offered : result;
}

/* --- reads --------------------------------------------------------------------------------------
 */

/* Of a stream MSG_TRUNC throws bytes away, wherever the parts lead. */
static bool takes_bytes(const struct iovec *parts, size_t count, int flags)
{
    return (flags & MSG_TRUNC) || sock_parts_lead(parts, count);
}

ssize_t sock_watch_hand_out(struct sock_conn *conn, const struct iovec *parts, size_t count,
                            int flags)
{
    struct shim_flow *flow = &conn->flow->flow;
    size_t total = 0;

    for (size_t i = 0; i < count; i++) {
        char *buf = flags & MSG_TRUNC ? NULL : parts[i].iov_base;
        size_t got = shim_flow_answer(flow, total, buf, parts[i].iov_len);
        total += got;
        if (got < parts[i].iov_len)
            break;
    }
    if (!(flags & MSG_PEEK))
        shim_flow_answer_taken(flow, total);
    return (ssize_t)total;
}

/* Of a tied one the layer above hands it out, and the program need only come to ask it. */
static ssize_t answer(struct sock_conn *conn, const struct iovec *parts, size_t count, int flags)
{
    return sock_carried_is_tied(conn) ? sock_carried_nudge(conn, parts, count, flags)
                                      : sock_watch_hand_out(conn, parts, count, flags);
}

bool sock_watch_answer(int fd, const struct iovec *parts, size_t count, int flags, ssize_t *result)
{
    struct sock_conn *conn = fdmap_get(fd);
    bool ours = false;

    if (!conn || !atomic_load_explicit(&conn->answering, memory_order_acquire) ||
        (flags & (MSG_ERRQUEUE | MSG_OOB)) || !takes_bytes(parts, count, flags))
        return false;
    GUARD_ERRNO({
        conn = sock_conn_lock(fd);
        ours = conn && conn->flow && sock_conn_same_socket(conn, fd) &&
               atomic_load_explicit(&conn->answering, memory_order_relaxed);
        if (ours)
            *result = answer(conn, parts, count, flags);
        if (conn && !ours)
            sock_conn_let_go(conn, fd, SOCK_END_DROP);
        else if (conn)
            sock_conn_unlock(conn);
    });
    return ours;
}

static void show_received(struct sock_conn *conn, const struct iovec *parts, size_t count,
                          size_t len)
{
    for (size_t i = 0; i < count && len > 0; i++) {
        size_t part = parts[i].iov_len < len ? parts[i].iov_len : len;
        shim_flow_received(&conn->flow->flow, span_of(parts[i].iov_base, part));
        len -= part;
    }
}

static const char *first_byte(const struct iovec *parts, size_t count)
{
    size_t i = 0;

    while (i + 1 < count && parts[i].iov_len == 0)
        i++;
    return parts[i].iov_base;
}

void sock_watch_look_closer(struct sock_conn *conn, int fd, uint64_t seen)
{
    struct sock_lull lull = sock_socket_lull(fd, seen);

    shim_flow_left(&conn->flow->flow, lull.left_ns);
    shim_flow_lay(&conn->flow->flow, lull.came_ns);
}

/* Bytes of the peer. Unlocks. */
static void note_bytes(struct sock_conn *conn, int fd, const struct iovec *parts, size_t count,
                       size_t len)
{
    sock_conn_connected(conn, fd, 0);
    atomic_fetch_add_explicit(&conn->seen, len, memory_order_relaxed);
    if (sock_carried_may_be(conn)) {
        sock_carried_hear(conn);
        sock_watch_leave(conn, fd);
        return;
    }
    if (conn->flow && shim_flow_is_odd(&conn->flow->flow, span_of(first_byte(parts, count), 1)) &&
        !sock_conn_same_socket(conn, fd)) {
        sock_conn_let_go(conn, fd, SOCK_END_DROP);
        return;
    }
    if (!conn->flow) {
        if (conn->judged) {
            shim_received(&conn->host);
            shim_drop(&conn->host);
        }
        if (!sock_conn_unfollow(conn, fd))
            return;
    } else {
        if (shim_flow_is_late(&conn->flow->flow)) /* or it was asked late, or looked for */
            sock_watch_look_closer(conn, fd, sock_conn_seen(conn) - len);
        show_received(conn, parts, count, len);
        if (conn->flow->flow.state == SHIM_FLOW_LOST && !sock_conn_unfollow(conn, fd))
            return;
    }
    sock_watch_leave(conn, fd);
}

/* *result may become our answer. Unlocks. */
static void note_end(struct sock_conn *conn, int fd, const struct iovec *parts, size_t count,
                     int flags, ssize_t *result, int error)
{
    /* Somebody else's write was refused while this read waited. */
    if (*result == 0 && conn->flow &&
        atomic_load_explicit(&conn->answering, memory_order_relaxed)) {
        if (takes_bytes(parts, count, flags))
            *result = answer(conn, parts, count, flags);
        sock_conn_unlock(conn);
    } else if (*result == 0 || sock_conn_connected(conn, fd, error)) {
        enum sock_end end = *result == 0                      ? SOCK_END_EOF
                            : sock_conn_is_peers_fault(error) ? SOCK_END_RESET
                                                              : SOCK_END_DROP; /* no route, say */
        if (sock_carried_is_tied(conn) && (conn->heard || !conn->judged))
            sock_carried_over(conn, fd, end);
        else
            sock_conn_end(conn, fd, end);
    }
}

static size_t size_of(const struct iovec *parts, size_t count)
{
    size_t size = 0;

    for (size_t i = 0; i < count; i++)
        size += parts[i].iov_len;
    return size;
}

ssize_t sock_watch_read(const struct sock_read *read, const struct iovec *parts, size_t count,
                        int flags, ssize_t result)
{
    int error = errno, fd = read->fd;

    if ((result < 0 && is_passing(error)) || (result > 0 && (flags & MSG_PEEK)) ||
        (flags & (MSG_ERRQUEUE | MSG_OOB)) || (result == 0 && size_of(parts, count) == 0))
        return result;
    GUARD_ERRNO({
        struct sock_conn *conn = sock_conn_lock_again(fd, read->conn, read->generation);
        if (!conn)
            ;
        else if (result > 0 && (flags & MSG_TRUNC)) /* bytes that we cannot see */
            sock_conn_let_go(conn, fd, SOCK_END_DROP);
        else if (result > 0)
            note_bytes(conn, fd, parts, count, (size_t)result);
        else
            note_end(conn, fd, parts, count, flags, &result, error);
    });
    return result;
}
