/*
 * sock_carried.h - what the descriptors' hooks (sock_watch.c) ask of a connection that is tied
 * (sock_tied.h), or may be: of the bytes that it carries only the beginning is looked at, the
 * peer's first one, their number and their end.
 *
 * The connection is locked.
 */
#ifndef BREAKER_PRELOAD_SOCK_CARRIED_H
#define BREAKER_PRELOAD_SOCK_CARRIED_H

#include "sock_watch.h"

/* How many clients without a descriptor look for their connection: only then ClientHellos are kept.
 */
extern atomic_uint sock_carried_awaited;

static inline bool sock_carried_is_tied(const struct sock_conn *conn)
{
    return atomic_load_explicit(&conn->tied, memory_order_relaxed);
}

/* The first bytes that the program sends. */
void sock_carried_look(struct sock_conn *conn, struct span bytes);
/* Before it sends: was it a ClientHello, and by now nobody will tie it? */
bool sock_carried_never(struct sock_conn *conn);
/* Before it sends: behind a proxy that has answered everything begins anew. */
void sock_carried_pass_proxy(struct sock_conn *conn);
/* Is it tied, or may it be yet? */
static inline bool sock_carried_may_be(const struct sock_conn *conn)
{
    return sock_carried_is_tied(conn) || atomic_load_explicit(&conn->hello, memory_order_relaxed);
}
/* The peer's bytes are there. */
void sock_carried_hear(struct sock_conn *conn);
/* A read while our answer is read above: where the records go through the program's hands one byte,
 * which makes it bring them to the layer and is not looked at there; then the end. */
ssize_t sock_carried_nudge(struct sock_conn *conn, const struct iovec *parts, size_t count,
                           int flags);
/* The descriptor's bytes are at their end, which is the connection's as soon as the layer above has
 * read them. Unlocks. */
void sock_carried_over(struct sock_conn *conn, int fd, enum sock_end how);

/* In the child of a fork. */
void sock_carried_in_child(void);

#endif
