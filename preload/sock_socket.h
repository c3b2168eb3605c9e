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

/* Takes its pending error: 0, or how its connect ended. */
int sock_socket_take_error(int fd);

/* Bytes that its peer sent so far, the FIN as one; 0 where the kernel does not tell. */
uint64_t sock_socket_received(int fd);

/* Of them, those that nobody has read yet. */
uint64_t sock_socket_unread(int fd);

/* How long ago its peer sent something; 0: just now, or the kernel does not tell. */
uint64_t sock_socket_idle_ns(int fd);

#endif
