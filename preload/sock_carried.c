#include "sock_carried.h"

#include <string.h>

#define TLS_HANDSHAKE    0x16
#define TLS_CLIENT_HELLO 1
#define HELLO_TYPE_AT    5
#define HELLO_RANDOM_AT  11

atomic_uint sock_carried_awaited;

/* "CONNECT HOST:PORT ": the place is there. */
static void look_for_tunnel(struct sock_conn *conn, struct span bytes)
{
    static const struct span begin = SPAN_LIT("CONNECT ");
    size_t end = begin.len, colon = 0;
    unsigned port = 0;

    if (bytes.len < begin.len || memcmp(bytes.ptr, begin.ptr, begin.len) != 0)
        return;
    for (; end < bytes.len && (unsigned char)bytes.ptr[end] > ' '; end++)
        if (bytes.ptr[end] == ':')
            colon = end;
    for (size_t i = colon + 1; colon > 0 && i < end; i++)
        port = port > UINT16_MAX || bytes.ptr[i] < '0' || bytes.ptr[i] > '9'
                   ? UINT16_MAX + 1
                   : port * 10 + (unsigned)(bytes.ptr[i] - '0');
    if (end == bytes.len || colon <= begin.len || colon - begin.len >= sizeof conn->place.name ||
        port == 0 || port > UINT16_MAX)
        return;
    conn->place.name_len = (uint16_t)(colon - begin.len);
    memcpy(conn->place.name, bytes.ptr + begin.len, conn->place.name_len);
    conn->place.name[conn->place.name_len] = '\0';
    conn->place.port = (uint16_t)port;
    conn->tunnel = true;
}

void sock_carried_look(struct sock_conn *conn, struct span bytes)
{
    conn->tls = bytes.ptr[0] == TLS_HANDSHAKE;
    if (!conn->tls) {
        look_for_tunnel(conn, bytes);
    } else if (atomic_load_explicit(&sock_carried_awaited, memory_order_relaxed) > 0 &&
               bytes.len >= HELLO_RANDOM_AT + SOCK_HELLO_RANDOM &&
               bytes.ptr[HELLO_TYPE_AT] == TLS_CLIENT_HELLO) {
        memcpy(conn->random, bytes.ptr + HELLO_RANDOM_AT, SOCK_HELLO_RANDOM);
        atomic_store_explicit(&conn->hello, true, memory_order_release);
    }
}

/* A handshake that is one call of the layer's, through functions of the program's own, is looked
 * for when it is over. It takes a client at most two writes once the peer has answered: another
 * ClientHello, and what ends it. */
bool sock_carried_never(struct sock_conn *conn)
{
    return atomic_load_explicit(&conn->hello, memory_order_relaxed) &&
           !sock_carried_is_tied(conn) && sock_conn_seen(conn) > 0 && ++conn->unclaimed > 2;
}

void sock_carried_pass_proxy(struct sock_conn *conn)
{
    if (!conn->tunnel || sock_conn_seen(conn) == 0)
        return;
    conn->tunnel = false;
    if (!sock_carried_is_tied(conn))
        conn->wrote = false;
}

void sock_carried_hear(struct sock_conn *conn)
{
    conn->heard = true;
    if (sock_carried_is_tied(conn))
        atomic_store_explicit(&conn->quiet, true, memory_order_relaxed);
}

ssize_t sock_carried_nudge(struct sock_conn *conn, const struct iovec *parts, size_t count,
                           int flags)
{
    if (!conn->in_memory || conn->nudged)
        return 0;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].iov_len == 0)
            continue;
        if (!(flags & MSG_TRUNC))
            *(char *)parts[i].iov_base = 0;
        conn->nudged = !(flags & MSG_PEEK);
        return 1;
    }
    return 0;
}

void sock_carried_over(struct sock_conn *conn, int fd, enum sock_end how)
{
    conn->over = true;
    conn->how = how;
    if (conn->drained == sock_conn_seen(conn))
        sock_conn_end(conn, fd, how);
    else
        sock_conn_unlock(conn);
}

void sock_carried_in_child(void)
{
    atomic_store_explicit(&sock_carried_awaited, 0, memory_order_relaxed);
}
