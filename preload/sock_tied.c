#include "sock_tied.h"

#include "base/clock.h"
#include "real.h"
#include "sock_socket.h"

#include <string.h>

#define HTTPS_PORT 443

/* --- tying --------------------------------------------------------------------------------------
 */

/* Locked. False: somebody has it, or it has begun with something else. */
static bool tie_conn(struct sock_tie *tie, struct sock_conn *conn, int fd)
{
    if (sock_carried_is_tied(conn) || conn->flow)
        return false;
    conn->wrote = conn->tls = true;
    conn->tunnel = false;
    atomic_store_explicit(&conn->hello, false, memory_order_relaxed);
    atomic_store_explicit(&conn->tied, true, memory_order_relaxed);
    if (!conn->judged)
        atomic_store_explicit(&conn->quiet, true, memory_order_relaxed);
    tie->generation = atomic_load_explicit(&conn->generation, memory_order_relaxed);
    tie->in_memory = false;
    atomic_store_explicit(&tie->fd, fd, memory_order_relaxed);
    atomic_store_explicit(&tie->conn, conn, memory_order_relaxed);
    return true;
}

static void set_name(struct sock_place *place, struct span name)
{
    while (name.len > 0 && name.ptr[name.len - 1] == '.')
        name.len--;
    if (name.len == 0 || name.len >= sizeof place->name)
        return;
    for (size_t i = 0; i < name.len; i++)
        place->name[i] =
            (char)(name.ptr[i] >= 'A' && name.ptr[i] <= 'Z' ? name.ptr[i] | 0x20 : name.ptr[i]);
    place->name[name.len] = '\0';
    place->name_len = (uint16_t)name.len;
}

/* Let go of long ago, or never seen: a tunnel through what is no HTTP proxy, if the name is another
 * than the address has. Inside. */
static bool tie_untracked(struct sock_tie *tie, int fd, struct span name)
{
    struct sock_conn *conn = sock_conn_make();
    socklen_t length = sizeof conn->peer;

    if (!conn)
        return false;
    conn->connecting = false;
    if (real_sock()->getpeername(fd, (struct sockaddr *)&conn->peer, &length) != 0 ||
        !sock_conn_same_socket(conn, fd) ||
        !sock_names_find((struct sockaddr *)&conn->peer, length, conn->started_ns, &conn->place)) {
        sock_conn_give(conn);
        return false;
    }
    if (!span_ieq(name, span_of(conn->place.name, conn->place.name_len)) && !conn->place.shared)
        conn->place.port = HTTPS_PORT;
    return tie_conn(tie, conn, fd) && sock_conn_track(conn, fd);
}

bool sock_tied_by_descriptor(struct sock_tie *tie, int fd, struct span name)
{
    struct sock_conn *conn;
    bool tied = false;

    if (shim_disabled() || real_sock_other_decides || !fdmap_is_ours())
        return false;
    GUARD_ERRNO({
        if ((conn = sock_conn_lock(fd))) {
            tied = (!conn->wrote || conn->tunnel) && tie_conn(tie, conn, fd);
            if (tied)
                sock_conn_unlock(conn);
            else
                sock_conn_let_go(conn, fd, SOCK_END_DROP);
        } else if (!fdmap_get(fd) && name.len > 0 && sock_enter()) {
            tied = tie_untracked(tie, fd, name);
            sock_leave();
        }
    });
    if (!tied)
        sock_tied_forget(tie);
    return tied;
}

static bool tie_if_it_is(struct sock_tie *tie, int fd, const unsigned char *random)
{
    struct sock_conn *conn = fdmap_get(fd);
    bool tied;

    if (!conn || !atomic_load_explicit(&conn->hello, memory_order_acquire) ||
        !(conn = sock_conn_lock(fd)))
        return false;
    tied = atomic_load_explicit(&conn->hello, memory_order_relaxed) &&
           memcmp(conn->random, random, SOCK_HELLO_RANDOM) == 0 && tie_conn(tie, conn, fd);
    conn->in_memory = conn->in_memory || tied;
    tie->in_memory = tied;
    if (tied && sock_conn_seen(conn) > 0)
        sock_carried_hear(conn);
    sock_conn_unlock(conn);
    return tied;
}

bool sock_tied_by_random(struct sock_tie *tie, const unsigned char random[SOCK_HELLO_RANDOM])
{
    int fd;
    bool tied = false;

    GUARD_ERRNO(for (unsigned at = 0; !tied && (fd = fdmap_next(at, FDMAP_MAX - 1)) >= 0;
                     at = (unsigned)fd + 1) tied = tie_if_it_is(tie, fd, random));
    return tied;
}

/* --- the layer's side ---------------------------------------------------------------------------
 */

/* The descriptor was closed, and others may still lead there. -1: none. */
static int another_descriptor(const struct sock_conn *conn, unsigned generation)
{
    int fd = -1;

    if (atomic_load_explicit(&conn->generation, memory_order_relaxed) == generation)
        do
            fd = fdmap_next((unsigned)fd + 1, FDMAP_MAX - 1);
        while (fd >= 0 && fdmap_get(fd) != conn);
    return fd;
}

/* NULL: not to be had, and so no more tied. */
static struct sock_conn *lock(struct sock_tie *tie)
{
    struct sock_conn *conn = atomic_load_explicit(&tie->conn, memory_order_relaxed), *locked;
    int fd = sock_tied_descriptor(tie);

    if (!conn)
        return NULL;
    locked = sock_conn_lock_again(fd, conn, tie->generation);
    if (!locked && fdmap_get(fd) != conn) {
        fd = another_descriptor(conn, tie->generation);
        atomic_store_explicit(&tie->fd, fd, memory_order_relaxed);
        locked = sock_conn_lock_again(fd, conn, tie->generation);
    }
    if (!locked)
        sock_tied_forget(tie);
    return locked;
}

static void note_drained(struct sock_conn *conn)
{
    if (conn->in_memory)
        conn->drained = sock_conn_seen(conn);
}

static bool follow(struct sock_tie *tie, struct span name)
{
    struct sock_conn *conn = lock(tie);

    if (!conn)
        return false;
    sock_conn_connected(conn, sock_tied_descriptor(tie), 0);
    sock_carried_hear(conn);
    note_drained(conn); /* before the first request nothing of an answer can lie there */
    if (!conn->diverted)
        set_name(&conn->place, name);
    if (!sock_conn_follow(conn)) {
        sock_conn_let_go(conn, sock_tied_descriptor(tie), SOCK_END_DROP);
        return false;
    }
    shim_flow_secure(&conn->flow->flow, name.len > 0);
    sock_conn_unlock(conn);
    return true;
}

bool sock_tied_follow(struct sock_tie *tie, struct span name)
{
    bool follows;

    GUARD_ERRNO(follows = follow(tie, name));
    if (!follows)
        sock_tied_forget(tie);
    return follows;
}

struct sock_write sock_tied_write_look(struct sock_tie *tie, const void *buf, size_t size)
{
    const struct iovec part = {(void *)buf, size};
    struct sock_write write = {.fd = sock_tied_descriptor(tie)};
    struct sock_conn *conn;

    if (!sock_parts_lead(&part, 1)) {
        sock_tied_end(tie, SOCK_END_DROP);
        return write;
    }
    GUARD_ERRNO({
        if ((conn = lock(tie))) {
            write.conn = conn;
            write.generation = tie->generation;
            write.fd = sock_tied_descriptor(tie);
            conn->seen_before = sock_conn_seen(conn);
            shim_flow_send_begin(&conn->flow->flow);
        }
        sock_write_show(&write, buf, size);
        sock_write_end(&write);
    });
    if (!write.conn)
        sock_tied_forget(tie);
    return write;
}

void sock_tied_write_done(const struct sock_write *write, uint64_t sent, int error)
{
    if (write->conn && (error != 0 || sent != write->allowed || write->timed))
        GUARD_ERRNO(sock_watch_note_write(write, error != 0 ? -1 : (ssize_t)sent, error));
}

static bool is_answering(const struct sock_tie *tie)
{
    const struct sock_conn *conn = atomic_load_explicit(&tie->conn, memory_order_relaxed);

    return conn && atomic_load_explicit(&conn->answering, memory_order_acquire);
}

/* Locked; NULL: its reads are not answered by us. */
static struct sock_conn *lock_answering(struct sock_tie *tie)
{
    struct sock_conn *conn = lock(tie);

    if (!conn || (conn->flow && atomic_load_explicit(&conn->answering, memory_order_relaxed)))
        return conn;
    sock_conn_unlock(conn);
    return NULL;
}

bool sock_tied_answer(struct sock_tie *tie, void *buf, size_t size, bool peek, size_t *got)
{
    const struct iovec part = {buf, size};
    struct sock_conn *conn;

    if (!is_answering(tie) || !sock_parts_lead(&part, 1))
        return false;
    GUARD_ERRNO({
        if ((conn = lock_answering(tie))) {
            *got = (size_t)sock_watch_hand_out(conn, &part, 1, peek ? MSG_PEEK : 0);
            sock_conn_unlock(conn);
        }
    });
    return conn;
}

bool sock_tied_answer_left(struct sock_tie *tie, size_t *left)
{
    struct sock_conn *conn;

    if (!is_answering(tie))
        return false;
    GUARD_ERRNO({
        if ((conn = lock_answering(tie))) {
            *left = shim_flow_answer(&conn->flow->flow, 0, NULL, SIZE_MAX);
            sock_conn_unlock(conn);
        }
    });
    return conn;
}

static void end_locked(struct sock_tie *tie, struct sock_conn *conn, enum sock_end end)
{
    sock_conn_end(conn, sock_tied_descriptor(tie), end);
    sock_tied_forget(tie);
}

static void receive(struct sock_tie *tie, const void *buf, size_t size, bool drained)
{
    struct sock_conn *conn = lock(tie);

    if (!conn)
        return;
    if (shim_flow_is_late(&conn->flow->flow)) /* or it was asked late, or looked for */
        sock_watch_look_closer(conn, sock_tied_descriptor(tie), conn->seen_before);
    shim_flow_received(&conn->flow->flow, span_of(buf, size));
    if (conn->flow->flow.state == SHIM_FLOW_LOST) {
        sock_conn_let_go(conn, sock_tied_descriptor(tie), SOCK_END_DROP);
        sock_tied_forget(tie);
        return;
    }
    if (drained)
        note_drained(conn);
    if (drained && conn->over)
        end_locked(tie, conn, conn->how);
    else
        sock_watch_leave(conn, sock_tied_descriptor(tie));
}

void sock_tied_received(struct sock_tie *tie, const void *buf, size_t size, bool drained)
{
    GUARD_ERRNO(receive(tie, buf, size, drained));
}

void sock_tied_drained(struct sock_tie *tie)
{
    struct sock_conn *conn;

    GUARD_ERRNO({
        if ((conn = lock(tie))) {
            note_drained(conn);
            if (conn->over)
                end_locked(tie, conn, conn->how);
            else
                sock_conn_unlock(conn);
        }
    });
}

void sock_tied_end(struct sock_tie *tie, enum sock_end end)
{
    struct sock_conn *conn;

    GUARD_ERRNO(if ((conn = lock(tie))) end_locked(tie, conn, end));
}
