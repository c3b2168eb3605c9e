/*
 * connects.c - connects of every kind and what a program may ask about them.
 *
 *   connects MODE PORT HOLE
 *
 * Prints each value and errno: a run with the library prints the same. HOLE is a port where nobody
 * answers (server.c).
 */
#include "sock.h"

#include <poll.h>
#include <sys/sendfile.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>

static unsigned port, hole;

/* errno tells something after a failure only; after a success it must be as it was. */
#define SHOW(call)                                                                                 \
    __extension__({                                                                                \
        errno = 0;                                                                                 \
        long shown = (long)(call);                                                                 \
        printf("%s = %ld, errno %d\n", #call, shown, errno);                                       \
        shown;                                                                                     \
    })

static int new_socket(int flags)
{
    return KEPT(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
}

/* A port where every connect is refused: bound, never listening. */
static unsigned closed_port(void)
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

static int error_of(int fd)
{
    int error = -1;
    socklen_t size = sizeof error;

    MUST(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && size == sizeof error);
    return error;
}

static int peer_of(int fd)
{
    struct sockaddr_in address = {0};
    socklen_t size = sizeof address;

    if (getpeername(fd, (struct sockaddr *)&address, &size) != 0)
        return -1;
    return ntohs(address.sin_port) == port ? 1 : 0;
}

static int wait_for(int fd, short events)
{
    struct pollfd one = {.fd = fd, .events = events};

    return poll(&one, 1, BOUND_S * 1000) == 1 ? one.revents : -1;
}

static ssize_t send_quietly(int fd)
{
    return send(fd, "x", 1, MSG_NOSIGNAL);
}

static ssize_t receive_now(int fd)
{
    char byte;

    return recv(fd, &byte, 1, MSG_DONTWAIT);
}

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

static void bad_arguments(void)
{
    struct sockaddr_in address = loopback(port);
    const struct sockaddr *good = (struct sockaddr *)&address;
    struct sockaddr_in6 long_address = {.sin6_family = AF_INET6,
                                        .sin6_port = htons((uint16_t)port)};
    struct sockaddr odd = {.sa_family = 77};
    int fd = new_socket(0), file = KEPT(open("/dev/null", O_RDWR | O_CLOEXEC));

    SHOW(connect(-1, good, sizeof address));
    SHOW(connect(9999999, good, sizeof address));
    SHOW(connect(file, good, sizeof address));
    SHOW(connect(fd, NULL, sizeof address));
    SHOW(connect(fd, NULL, 0));
    SHOW(connect(fd, good, 0));
    SHOW(connect(fd, good, 1));
    SHOW(connect(fd, good, 4));
    SHOW(connect(fd, good, 15));
    SHOW(connect(fd, good, 4096));
    SHOW(connect(fd, good, (socklen_t)-1));
    SHOW(connect(fd, &odd, sizeof odd));
    SHOW(connect(fd, (struct sockaddr *)&long_address, sizeof long_address));
    SHOW(connect_to(fd, 0));
    SHOW(error_of(fd));
    SHOW(getsockopt(fd, SOL_SOCKET, SO_ERROR, NULL, NULL));
    SHOW(getpeername(fd, NULL, NULL));
    SHOW(dup2(fd, -1));
    SHOW(dup2(fd, 9999999));
    SHOW(fcntl(fd, F_DUPFD, 9999999));
    SHOW(close(-1));
    SHOW(shutdown(file, SHUT_RD));
    SHOW(shutdown(fd, 17));
    SHOW(connect_to(fd, port)); /* after all of it */
    call_on(fd, port, "m");
    SHOW(close(fd));
    SHOW(close(file));
    int listener = new_socket(0);
    SHOW(listen(listener, 5));
    SHOW(connect_to(listener, port));
    SHOW(close(listener));
}

/* Counts that the kernel refuses, lengths of nothing, and a buffer that is not there: on a
 * connection that is followed, and nothing is lost. */
static void bad_buffers(void)
{
    int fd = connected(port);
    char a[4] = "", *nowhere = (char *)8;
    struct iovec parts[] = {{NULL, 0}, {a, 4}};
    struct mmsghdr message = {.msg_hdr = {.msg_iov = NULL, .msg_iovlen = 1}};
    int file = KEPT(open("/dev/zero", O_RDONLY | O_CLOEXEC));

    SHOW(write(fd, NULL, 0));
    SHOW(send(fd, NULL, 0, 0));
    SHOW(writev(fd, NULL, 0));
    SHOW(writev(fd, parts, -1));
    SHOW(writev(fd, parts, 1));
    SHOW(writev(fd, parts, 1 << 30));
    SHOW(sendfile(fd, file, (off_t *)nowhere, 10));
    SHOW(sendmmsg(fd, &message, 1, 0));
    SHOW(read(fd, NULL, 0));
    post(fd, port, "m");
    SHOW(wait_for(fd, POLLIN));
    SHOW(read(fd, nowhere, 100));
    SHOW(recv(fd, nowhere, 100, MSG_PEEK));
    SHOW(readv(fd, parts, -1));
    SHOW(readv(fd, parts, 1 << 30));
    SHOW(read(fd, NULL, 0));
    SHOW(recv(fd, NULL, 0, 0));
    SHOW(readv(fd, NULL, 0));
    SHOW(read_status(fd));
    call_on(fd, port, "m");
    SHOW(close(fd));
    SHOW(close(file));
}

/* --- the other side goes away --------------------------------------------------------------------
 */

static volatile sig_atomic_t pipes;

static void on_pipe(int number)
{
    (void)number;
    pipes++;
}

/* One end of a connection to a listener of this program; *peer is the other. */
static int connected_here(int *peer)
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

static void reset(int peer)
{
    struct linger hard = {.l_onoff = 1, .l_linger = 0};

    KEPT(setsockopt(peer, SOL_SOCKET, SO_LINGER, &hard, sizeof hard));
    KEPT(close(peer));
}

/* What a program writes that did not look at the -1 of its read, amid a body, where every byte is
 * looked at. */
static void no_lengths(void)
{
    char text[512] =
        "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n"
        "{\"messages\":[\"";
    struct iovec parts[] = {{text, 4}, {text, (size_t)-1}};
    struct mmsghdr messages[] = {{.msg_hdr = {.msg_iov = parts, .msg_iovlen = 1}},
                                 {.msg_hdr = {.msg_iov = (void *)8, .msg_iovlen = 1}}};
    int fd = connected(port), peer;

    write_all(fd, text, strlen(text));
    SHOW(write(fd, text, (size_t)-1));
    SHOW(writev(fd, parts, 2));
    SHOW(KEPT(sendmmsg(fd, messages, 2, 0)));
    SHOW(read(fd, text, (size_t)-1));
    SHOW(close(fd));
    fd = connected_here(&peer);
    write_all(fd, text, strlen(text));
    SHOW(send(fd, text + sizeof text, (size_t)-1, MSG_DONTWAIT) != 0); /* some of it, or an error */
    SHOW(close(fd));
    SHOW(close(peer));
}

/* From here on the number is a file's, and no hook saw it happen. */
static void become_file(int fd, int file)
{
    FILE *stream = fdopen(fd, "r");

    MUST(stream && fclose(stream) == 0);
    MUST(KEPT(fcntl(file, F_DUPFD, fd)) == fd);
}

/* What comes of connects and handshakes past our hooks: a file's end is no peer's, its close no
 * connect's; and an answer that a system call reads is no hang. */
static void handshake_elsewhere(void)
{
    int file = KEPT(open("/dev/null", O_RDONLY)), peer, fd = new_socket(SOCK_NONBLOCK);
    char answer[4];

    SHOW(connect_to(fd, hole));
    become_file(fd, file);
    SHOW(close(fd));
    fd = connected_here(&peer);
    SHOW(write(fd, "\x16\x03\x01", 3));
    become_file(fd, file);
    SHOW(read(fd, answer, 1));
    SHOW(close(fd));
    SHOW(close(file));
    SHOW(close(peer));
    fd = connected_here(&peer);
    SHOW(write(fd, "\x16\x03\x01", 3));
    SHOW(write(peer, "\x16\x03\x03", 3));
    SHOW(syscall(SYS_read, fd, answer, 3));
    SHOW(close(fd));
    SHOW(close(peer));
}

static void gone(void)
{
    int peer, fd = connected_here(&peer);
    char text[512];
    struct sigaction action = {.sa_handler = on_pipe};

    sigaction(SIGPIPE, &action, NULL);
    post(fd, port, "m");
    reset(peer);
    SHOW(wait_for(fd, POLLIN));
    SHOW(read(fd, text, sizeof text));
    SHOW(read(fd, text, sizeof text));
    SHOW(write(fd, "x", 1));
    SHOW(pipes);
    SHOW(send(fd, "x", 1, MSG_NOSIGNAL));
    SHOW(pipes);
    SHOW(close(fd));
    fd = connected_here(&peer);
    post(fd, port, "m");
    SHOW(read(peer, text, sizeof text) > 0);
    KEPT(close(peer));
    SHOW(wait_for(fd, POLLIN));
    SHOW(read(fd, text, sizeof text));
    SHOW(read(fd, text, sizeof text));
    SHOW(shutdown(fd, SHUT_WR));
    SHOW(write(fd, "x", 1));
    SHOW(pipes);
    SHOW(close(fd));
    fd = connected_here(&peer);
    post(fd, port, "m");
    SHOW(shutdown(fd, SHUT_RD));
    SHOW(read(fd, text, sizeof text));
    SHOW(read(peer, text, sizeof text) > 0);
    SHOW(close(fd));
    SHOW(close(peer));
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
    {"bad-arguments", bad_arguments},
    {"bad-buffers", bad_buffers},
    {"no-lengths", no_lengths},
    {"handshake-elsewhere", handshake_elsewhere},
    {"gone", gone},
    {"fast-open", fast_open},
    {"mapped", mapped},
};

int main(int argc, char **argv)
{
    MUST(argc == 4);
    port = (unsigned)atoi(argv[2]);
    hole = (unsigned)atoi(argv[3]);
    unsigned before = (closed_port(), open_descriptors());
    RUN_MODE(modes, argv[1]);
    MUST(open_descriptors() == before);
    return 0;
}
