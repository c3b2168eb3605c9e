/*
 * arguments.c - what the kernel refuses: arguments, buffers and lengths of nothing.
 *
 *   arguments MODE PORT HOLE     connects.h tells what these are
 */
#include "connects.h"

#include <sys/sendfile.h>
#include <sys/uio.h>

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

static const struct mode modes[] = {
    {"bad-arguments", bad_arguments},
    {"bad-buffers", bad_buffers},
    {"no-lengths", no_lengths},
};

int main(int argc, char **argv)
{
    run_connects(modes, sizeof modes / sizeof *modes, argc, argv);
    return 0;
}
