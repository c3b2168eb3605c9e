/*
 * server.c - an LLM server for thousands of connections, in one thread: POSTs with a Content-Length
 * get a 200 each.
 *
 *   server        prints "PORT HOLE", then serves until its standard input ends; prints
 *                 "CONNECTIONS REQUESTS"
 *
 * HOLE is a port where connects neither succeed nor fail: its backlog is full and nobody accepts.
 */
#include "sock.h"

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>

enum { FDS = 8192, BUFFER = 2048 };

static struct {
    char text[BUFFER];
    size_t have;
} peers[FDS];

static unsigned long connections, requests;
static int epoll;

static int listening(int backlog, unsigned *port)
{
    struct sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    int fd = KEPT(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));

    KEPT(bind(fd, (struct sockaddr *)&address, size));
    KEPT(listen(fd, backlog));
    KEPT(getsockname(fd, (struct sockaddr *)&address, &size));
    *port = ntohs(address.sin_port);
    return fd;
}

static void watch(int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    KEPT(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
}

static unsigned make_hole(void)
{
    unsigned port;
    int one;
    struct pollfd full;

    listening(0, &port);
    do { /* until one is left waiting */
        one = KEPT(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        connect_to(one, port);
        full = (struct pollfd){.fd = one, .events = POLLOUT};
    } while (poll(&full, 1, 100) == 1);
    return port;
}

static void accept_all(int listener)
{
    int fd, one = 1;

    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        if (fd >= FDS) {
            close(fd);
            continue;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        peers[fd].have = 0;
        connections++;
        watch(fd);
    }
}

static void answer(int fd)
{
    static const char text[] = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                               "Content-Length: 11\r\n\r\n{\"ok\":true}";

    if (write(fd, text, sizeof text - 1) == sizeof text - 1)
        requests++;
}

/* Takes whole requests from the buffer; false: what came is none. */
static bool serve(int fd)
{
    char *text = peers[fd].text;

    for (;;) {
        text[peers[fd].have] = '\0';
        char *end = strstr(text, "\r\n\r\n"), *length = strcasestr(text, "\r\nContent-Length:");
        if (!end)
            return peers[fd].have < BUFFER - 1;
        if (!length || length > end)
            return false;
        size_t whole = (size_t)(end + 4 - text) + strtoul(length + 17, NULL, 10);
        if (whole > peers[fd].have)
            return whole < BUFFER;
        answer(fd);
        peers[fd].have -= whole;
        memmove(text, text + whole, peers[fd].have);
    }
}

static void read_from(int fd)
{
    ssize_t count = read(fd, peers[fd].text + peers[fd].have, BUFFER - 1 - peers[fd].have);

    if (count < 0 && errno == EAGAIN)
        return;
    if (count > 0)
        peers[fd].have += (size_t)count;
    if (count <= 0 || !serve(fd))
        close(fd);
}

int main(void)
{
    struct rlimit limit;
    struct epoll_event events[256];
    unsigned port, hole = make_hole();

    signal(SIGPIPE, SIG_IGN); /* a client may have closed what it asked on */
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max < FDS ? limit.rlim_max : FDS;
    setrlimit(RLIMIT_NOFILE, &limit);
    epoll = KEPT(epoll_create1(EPOLL_CLOEXEC));
    int listener = listening(4096, &port);
    watch(listener);
    watch(STDIN_FILENO);
    printf("%u %u\n", port, hole);
    fflush(stdout);
    for (;;) {
        int count = epoll_wait(epoll, events, 256, -1);
        for (int i = 0; i < count; i++)
            if (events[i].data.fd == STDIN_FILENO) {
                printf("%lu %lu\n", connections, requests);
                return 0;
            } else if (events[i].data.fd == listener) {
                accept_all(listener);
            } else {
                read_from(events[i].data.fd);
            }
    }
}
