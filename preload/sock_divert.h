/*
 * sock_divert.h - a connect that its host's breaker refuses goes to the host's fallback_address,
 * whose own breaker decides next; there it stays, for one connection (FIELD-NOTES 3.9).
 *
 * The socket is the program's: an IPv4 one goes to an IPv4 address, an IPv6 one to an IPv6 address
 * or, where it may, to an IPv4 one v4-mapped. Resolves nothing: see sock_fallback.h.
 */
#ifndef BREAKER_PRELOAD_SOCK_DIVERT_H
#define BREAKER_PRELOAD_SOCK_DIVERT_H

#include "sock_conn.h"

/* The connection that becomes of `conn`, which was judged, is not tracked and is given back then:
 * to its `peer`. NULL: it is not refused, or there is nowhere to go; `conn` is as before. Inside.
 */
struct sock_conn *sock_divert(struct sock_conn *conn, int fd);

/* The connect of a diverted connection failed, by the peer's fault. Inside. */
void sock_divert_failed(const struct sock_conn *conn);

#endif
