/*
 * connects.h - for programs that print each value and errno of what they do with a connection: a
 * run with the library prints the same.
 *
 *   PROGRAM MODE PORT HOLE
 *
 * HOLE is a port where nobody answers (server.c).
 */
#ifndef BREAKER_TESTS_CONNECTS_H
#define BREAKER_TESTS_CONNECTS_H

#include "sock.h"

#include <poll.h>

static unsigned port, hole;

/* errno tells something after a failure only; after a success it must be as it was. */
#define SHOW(call)                                                                                 \
    __extension__({                                                                                \
        errno = 0;                                                                                 \
        long shown = (long)(call);                                                                 \
        printf("%s = %ld, errno %d\n", #call, shown, errno);                                       \
        shown;                                                                                     \
    })

static inline int new_socket(int flags)
{
    return KEPT(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
}

/* A port where every connect is refused: bound, never listening. */
static inline unsigned closed_port(void)
{
    static int holder = -1;
    struct sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;

    if (holder < 0) {
        holder = new_socket(0);
        KEPT(bind(holder, (struct sockaddr *)&address, size));
    }
    KEPT(getsockname(holder, (struct sockaddr *)&address, &size));
    return ntohs(address.sin_port);
}

static inline int error_of(int fd)
{
    int error = -1;
    socklen_t size = sizeof error;

    MUST(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && size == sizeof error);
    return error;
}

static inline int peer_of(int fd)
{
    struct sockaddr_in address = {0};
    socklen_t size = sizeof address;

    if (getpeername(fd, (struct sockaddr *)&address, &size) != 0)
        return -1;
    return ntohs(address.sin_port) == port ? 1 : 0;
}

static inline int wait_for(int fd, short events)
{
    struct pollfd one = {.fd = fd, .events = events};

    return poll(&one, 1, BOUND_S * 1000) == 1 ? one.revents : -1;
}

static inline ssize_t send_quietly(int fd)
{
    return send(fd, "x", 1, MSG_NOSIGNAL);
}

static inline ssize_t receive_now(int fd)
{
    char byte;

    return recv(fd, &byte, 1, MSG_DONTWAIT);
}

/* One end of a connection to a listener of this program; *peer is the other. */
static inline int connected_here(int *peer)
{
    struct sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    int listener = new_socket(0), fd = new_socket(0);

    KEPT(bind(listener, (struct sockaddr *)&address, size));
    KEPT(listen(listener, 5));
    KEPT(getsockname(listener, (struct sockaddr *)&address, &size));
    KEPT(connect(fd, (struct sockaddr *)&address, size));
    *peer = KEPT(accept(listener, NULL, NULL));
    KEPT(close(listener));
    return fd;
}

/* The mode of that name, which leaves no descriptor behind. */
static inline void run_connects(const struct mode *modes, size_t count, int argc, char **argv)
{
    MUST(argc == 4);
    port = (unsigned)atoi(argv[2]);
    hole = (unsigned)atoi(argv[3]);
    unsigned before = (closed_port(), open_descriptors());
    run_mode(modes, count, argv[1]);
    MUST(open_descriptors() == before);
}

#endif
