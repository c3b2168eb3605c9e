/*
 * connects.c - connects of every kind and what a program may ask about them.
 *
 *   connects MODE PORT HOLE     connects.h tells what these are
 */
#include "connects.h"

#include <sys/un.h>

/* --- refused -------------------------------------------------------------------------------------
 */

static void refused_blocking(void)
{
    unsigned nobody = closed_port();

    for (int i = 0; i < 3; i++) {
        int fd = new_socket(0);
        SHOW(connect_to(fd, nobody));
        SHOW(error_of(fd));
        SHOW(peer_of(fd));
        SHOW(send_quietly(fd));
        SHOW(receive_now(fd));
        SHOW(connect_to(fd, nobody));
        SHOW(connect_to(fd, port)); /* the socket is as good as new */
        SHOW(peer_of(fd));
        SHOW(close(fd));
    }
}

static int pending_refused(void)
{
    int fd = new_socket(SOCK_NONBLOCK);

    SHOW(connect_to(fd, closed_port()));
    SHOW(wait_for(fd, POLLOUT));
    return fd;
}

static void refused_pending(void)
{
    int fd = pending_refused();

    SHOW(error_of(fd));
    SHOW(error_of(fd));
    SHOW(peer_of(fd));
    SHOW(connect_to(fd, closed_port()));
    SHOW(close(fd));
    fd = pending_refused();
    SHOW(connect_to(fd, closed_port()));
    SHOW(error_of(fd));
    SHOW(close(fd));
    fd = pending_refused();
    SHOW(send_quietly(fd));
    SHOW(error_of(fd));
    SHOW(send_quietly(fd));
    SHOW(close(fd));
    fd = pending_refused();
    SHOW(receive_now(fd));
    SHOW(receive_now(fd));
    SHOW(error_of(fd));
    SHOW(close(fd));
    fd = pending_refused();
    SHOW(peer_of(fd));
    SHOW(shutdown(fd, SHUT_RDWR));
    SHOW(close(fd));
}

/* --- good, and none ------------------------------------------------------------------------------
 */

static void good_pending(void)
{
    int fd = new_socket(SOCK_NONBLOCK);

    SHOW(connect_to(fd, port));
    SHOW(wait_for(fd, POLLOUT));
    SHOW(error_of(fd));
    SHOW(peer_of(fd));
    SHOW(connect_to(fd, port));
    SHOW(connect_to(fd, port));
    SHOW(receive_now(fd));
    post(fd, port, "m");
    SHOW(wait_for(fd, POLLIN));
    SHOW(read_status(fd));
    SHOW(close(fd));
    fd = connected(port);
    SHOW(connect_to(fd, port));
    SHOW(connect_to(fd, closed_port()));
    call_on(fd, port, "m");
    SHOW(close(fd));
}

static void black_hole(void)
{
    for (int i = 0; i < 20; i++) {
        int fd = new_socket(SOCK_NONBLOCK);
        int64_t since = now_ms();
        SHOW(connect_to(fd, hole));
        MUST(now_ms() - since < 500, "not at once");
        SHOW(error_of(fd));
        SHOW(peer_of(fd));
        SHOW(connect_to(fd, hole));
        SHOW(send_quietly(fd));
        SHOW(receive_now(fd));
        struct pollfd one = {.fd = fd, .events = POLLOUT | POLLIN};
        SHOW(poll(&one, 1, 0));
        if (i % 2)
            SHOW(shutdown(fd, SHUT_WR));
        SHOW(close(fd));
    }
}

/* A blocking connect with a bound of the program's own. */
static void black_hole_bounded(void)
{
    int fd, result, error;

    do { /* a first one that is begun, and not ended by a stop of the process */
        fd = new_socket(0);
        bound_waits(fd, 200);
        errno = 0;
        result = connect_to(fd, hole);
        error = errno;
    } while (error == EINTR && close(fd) == 0);
    SHOW((errno = error, result));
    do {
        errno = 0;
        result = connect_to(fd, hole);
        error = errno;
    } while (error == EINTR);
    SHOW((errno = error, result));
    SHOW(error_of(fd));
    SHOW(close(fd));
}

static int dissolve(int fd)
{
    struct sockaddr none = {.sa_family = AF_UNSPEC};

    return connect(fd, &none, sizeof none);
}

static void dissolved(void)
{
    int fd = connected(port);

    call_on(fd, port, "m");
    SHOW(dissolve(fd));
    SHOW(peer_of(fd));
    SHOW(send_quietly(fd));
    SHOW(connect_to(fd, port));
    SHOW(peer_of(fd));
    call_on(fd, port, "m");
    SHOW(close(fd));
    fd = new_socket(SOCK_NONBLOCK);
    SHOW(connect_to(fd, hole));
    SHOW(dissolve(fd));
    SHOW(connect_to(fd, port));
    SHOW(wait_for(fd, POLLOUT));
    SHOW(error_of(fd));
    post(fd, port, "m");
    SHOW(wait_for(fd, POLLIN));
    SHOW(read_status(fd));
    SHOW(close(fd));
    fd = new_socket(0);
    SHOW(dissolve(fd)); /* of nothing */
    SHOW(close(fd));
}

/* --- what is no TCP client -----------------------------------------------------------------------
 */

static void udp(void)
{
    char request[512], text[512];
    size_t length = request_for(request, port, "shut");
    struct sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    int server = KEPT(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    int fd = KEPT(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));

    KEPT(bind(server, (struct sockaddr *)&address, size));
    KEPT(getsockname(server, (struct sockaddr *)&address, &size));
    SHOW(connect(fd, (struct sockaddr *)&address, size));
    SHOW((size_t)send(fd, request, length, 0) == length);
    SHOW((size_t)write(fd, request, length) == length);
    for (int i = 0; i < 2; i++) {
        SHOW((size_t)recv(server, text, sizeof text, 0) == length);
        MUST(memcmp(text, request, length) == 0);
    }
    SHOW(connect_to(fd, closed_port())); /* nobody there: told by the second write */
    SHOW(send_quietly(fd));
    SHOW(wait_for(fd, POLLIN));
    SHOW(send_quietly(fd));
    SHOW(dissolve(fd));
    SHOW(send_quietly(fd));
    SHOW(connect_to(fd, port));
    SHOW(peer_of(fd));
    SHOW(close(fd));
    SHOW(close(server));
}

static int unix_connect(int fd, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    strcpy(address.sun_path, path);
    return connect(fd, (struct sockaddr *)&address, sizeof address);
}

static void local(void)
{
    char request[512], text[512];
    size_t length = request_for(request, port, "shut");
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "local.sock"};
    int listener = KEPT(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    int fd = KEPT(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));

    unlink(address.sun_path);
    SHOW(unix_connect(fd, "local.sock"));
    KEPT(bind(listener, (struct sockaddr *)&address, sizeof address));
    SHOW(unix_connect(fd, "local.sock"));
    KEPT(listen(listener, 5));
    SHOW(unix_connect(fd, "local.sock"));
    SHOW(unix_connect(fd, "local.sock"));
    int peer = KEPT(accept(listener, NULL, NULL));
    SHOW((size_t)write(fd, request, length) == length);
    SHOW((size_t)read(peer, text, sizeof text) == length);
    MUST(memcmp(text, request, length) == 0);
    SHOW((size_t)write(peer, request, length) == length);
    SHOW((size_t)read(fd, text, sizeof text) == length);
    MUST(memcmp(text, request, length) == 0);
    SHOW(close(fd));
    SHOW(close(peer));
    SHOW(close(listener));
    SHOW(unlink("local.sock"));
}

/* --- connects that are writes --------------------------------------------------------------------
 */

static void fast_open(void)
{
    char request[512];
    size_t length = request_for(request, port, "m");
    struct sockaddr_in address = loopback(port);
    int fd = new_socket(0), one = 1;

    SHOW(sendto(fd, request, length, MSG_FASTOPEN, (struct sockaddr *)&address, sizeof address) ==
         (ssize_t)length);
    SHOW(read_status(fd));
    SHOW(peer_of(fd));
    SHOW(close(fd));
    fd = new_socket(0);
    struct iovec part = {request, length};
    struct msghdr message = {
        .msg_name = &address, .msg_namelen = sizeof address, .msg_iov = &part, .msg_iovlen = 1};
    SHOW(sendmsg(fd, &message, MSG_FASTOPEN) == (ssize_t)length);
    SHOW(read_status(fd));
    SHOW(close(fd));
    fd = new_socket(0);
    SHOW(setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &one, sizeof one));
    SHOW(connect_to(fd, port));
    SHOW(write(fd, request, length) == (ssize_t)length);
    SHOW(read_status(fd));
    SHOW(close(fd));
    fd = new_socket(0);
    SHOW(sendto(fd, request, length, MSG_FASTOPEN, NULL, 0));
    address.sin_port = htons((uint16_t)closed_port());
    SHOW(sendto(fd, request, length, MSG_FASTOPEN | MSG_NOSIGNAL, (struct sockaddr *)&address,
                sizeof address));
    SHOW(close(fd));
}

/* An IPv6 socket that reaches the server by its IPv4 address. */
static void mapped(void)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        printf("no IPv6\n");
        return;
    }
    MUST(inet_pton(AF_INET6, "::ffff:127.0.0.1", &address.sin6_addr) == 1);
    SHOW(connect(fd, (struct sockaddr *)&address, sizeof address));
    call_on(fd, port, "m");
    SHOW(close(fd));
}

static const struct mode modes[] = {
    {"refused-blocking", refused_blocking},
    {"refused-pending", refused_pending},
    {"good-pending", good_pending},
    {"black-hole", black_hole},
    {"black-hole-bounded", black_hole_bounded},
    {"dissolved", dissolved},
    {"udp", udp},
    {"local", local},
    {"fast-open", fast_open},
    {"mapped", mapped},
};

int main(int argc, char **argv)
{
    run_connects(modes, sizeof modes / sizeof *modes, argc, argv);
    return 0;
}
