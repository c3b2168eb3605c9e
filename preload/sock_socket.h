/*
 * sock_socket.h - what the kernel says of a descriptor, where our own notes are not enough. System
 * calls: not for the healthy way. Async-signal-safe; errno is the caller's to keep.
 */
#ifndef BREAKER_PRELOAD_SOCK_SOCKET_H
#define BREAKER_PRELOAD_SOCK_SOCKET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* Is it a TCP socket that leads to `peer`, or has led there, or may yet? */
bool sock_socket_leads_to(int fd, const struct sockaddr_storage *peer);

/* Is it connected? */
bool sock_socket_has_peer(int fd);

/* Was it connected, and is no more (reset, timed out, closed by both ends), with all read that
 * came? */
bool sock_socket_is_over(int fd);

/* Takes its pending error: 0, or how its connect ended. */
int sock_socket_take_error(int fd);

/* Bytes that its peer sent so far, the FIN as one; 0 where the kernel does not tell. */
uint64_t sock_socket_received(int fd);

/* Of them, those that nobody has read yet. */
uint64_t sock_socket_unread(int fd);

/* How long ago something of the peer came last, and the program's last bytes left: 0 while
 * some are still here. UINT64_MAX: some time ago. Where the kernel does not tell: just now, and
 * some time ago. */
struct sock_lull {
    uint64_t came_ns, left_ns;
};
/* `seen`: of the peer's bytes, those that were there before what is looked at now. */
struct sock_lull sock_socket_lull(int fd, uint64_t seen);

#endif
