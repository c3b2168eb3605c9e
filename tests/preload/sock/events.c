/*
 * events.c - one event loop with a thousand connections.
 *
 *   events TRIGGER PORT CONNECTIONS CALLS
 *
 * TRIGGER: level or edge. Each connection is made without blocking, makes CALLS calls of "m", and
 * is closed. Prints what came of it, in sums that no order changes.
 */
#include "sock.h"

#include <sys/epoll.h>
#include <sys/resource.h>

struct connection {
    int fd;
    unsigned left;
    size_t have;
    bool open; /* SO_ERROR has been asked */
    char text[1024];
};

static struct {
    unsigned pending, at_once, opened, requests, answers, other, ended;
} sums;

static unsigned port;
static int epoll;
static uint32_t trigger;

static void start(struct connection *connection, unsigned calls)
{
    int fd = KEPT(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    struct epoll_event event = {.events = EPOLLOUT | trigger, .data.ptr = connection};
    int64_t since = now_ms();

    *connection = (struct connection){.fd = fd, .left = calls};
    if (connect_to(fd, port) == 0)
        sums.at_once++;
    else {
        MUST(errno == EINPROGRESS);
        sums.pending++;
    }
    MUST(now_ms() - since < 500, "not at once");
    KEPT(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
}

static void ask(struct connection *connection)
{
    char request[512];
    size_t length = request_for(request, port, "m");
    struct epoll_event event = {.events = EPOLLIN | trigger, .data.ptr = connection};

    MUST((size_t)KEPT(send(connection->fd, request, length, MSG_NOSIGNAL)) == length);
    sums.requests++;
    KEPT(epoll_ctl(epoll, EPOLL_CTL_MOD, connection->fd, &event));
}

static void on_connected(struct connection *connection)
{
    int error = -1;
    socklen_t size = sizeof error;

    KEPT(getsockopt(connection->fd, SOL_SOCKET, SO_ERROR, &error, &size));
    MUST(error == 0, "but %d", error);
    connection->open = true;
    sums.opened++;
    ask(connection);
}

/* False when the connection is closed. */
static bool on_answer(struct connection *connection)
{
    ssize_t count;

    while ((count = recv(connection->fd, connection->text + connection->have,
                         sizeof connection->text - 1 - connection->have, 0)) > 0)
        connection->have += (size_t)count;
    MUST(count < 0 && errno == EAGAIN, "%zd", count);
    connection->text[connection->have] = '\0';
    if (!strstr(connection->text, "{\"ok\":true}"))
        return true;
    sums.answers += memcmp(connection->text, "HTTP/1.1 200", 12) == 0;
    sums.other += memcmp(connection->text, "HTTP/1.1 200", 12) != 0;
    connection->have = 0;
    if (--connection->left > 0) {
        ask(connection);
        return true;
    }
    KEPT(close(connection->fd));
    sums.ended++;
    return false;
}

int main(int argc, char **argv)
{
    struct epoll_event events[128];
    struct rlimit limit;

    MUST(argc == 5);
    trigger = strcmp(argv[1], "edge") == 0 ? EPOLLET : 0;
    port = (unsigned)atoi(argv[2]);
    unsigned count = (unsigned)atoi(argv[3]), calls = (unsigned)atoi(argv[4]);
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    MUST(limit.rlim_max > count + 50 && setrlimit(RLIMIT_NOFILE, &limit) == 0);
    unsigned before = open_descriptors();
    epoll = KEPT(epoll_create1(EPOLL_CLOEXEC));
    struct connection *connections = calloc(count, sizeof *connections);
    for (unsigned i = 0; i < count; i++)
        start(&connections[i], calls);
    for (unsigned open = count; open > 0;) {
        int ready = KEPT(await_events(epoll, events, 128, BOUND_S * 1000));
        MUST(ready > 0, "%u are left", open);
        for (int i = 0; i < ready; i++) {
            struct connection *connection = events[i].data.ptr;
            if (!connection->open)
                on_connected(connection);
            else if (!on_answer(connection))
                open--;
        }
    }
    free(connections);
    KEPT(close(epoll));
    printf("pending+at-once %u opened %u requests %u answers %u other %u ended %u\n",
           sums.pending + sums.at_once, sums.opened, sums.requests, sums.answers, sums.other,
           sums.ended);
    MUST(open_descriptors() == before);
    return 0;
}
