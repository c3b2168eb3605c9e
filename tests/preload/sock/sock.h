/*
 * sock.h - what the C programs with their own sockets share: calls of an LLM server on loopback,
 * and a strict eye on errno.
 *
 * Each program prints what it saw; the tests compare that with a run without the library, or with
 * what must be. What must never be ends it with status 3 and a line on stderr.
 */
#ifndef BREAKER_TESTS_SOCK_H
#define BREAKER_TESTS_SOCK_H

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define BOUND_S 10 /* no wait of many is longer; one on a single socket is its test's to bound */

#define MUST(what, ...)                                                                            \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "%s:%d: not %s, errno %d ", __FILE__, __LINE__, #what, errno);         \
            fprintf(stderr, " " __VA_ARGS__);                                                      \
            fputc('\n', stderr);                                                                   \
            _exit(3);                                                                              \
        }                                                                                          \
    } while (0)

/* The value of a call that has to succeed and to leave errno alone (FIELD-NOTES 1.12). */
#define KEPT(call)                                                                                 \
    __extension__({                                                                                \
        errno = 0;                                                                                 \
        __auto_type kept_value = (call);                                                           \
        MUST(kept_value >= 0 && errno == 0, "in %s", #call);                                       \
        kept_value;                                                                                \
    })

struct mode {
    const char *name;
    void (*run)(void);
};

static inline void run_mode(const struct mode *modes, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(modes[i].name, name) == 0) {
            modes[i].run();
            return;
        }
    MUST(!"a mode", "%s", name);
}
#define RUN_MODE(modes, name) run_mode(modes, sizeof(modes) / sizeof *(modes), name)

static inline int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static inline unsigned open_descriptors(void)
{
    DIR *listing = opendir("/proc/self/fd");
    unsigned count = 0;

    MUST(listing);
    while (readdir(listing))
        count++;
    closedir(listing);
    return count - 3; /* ".", "..", and the listing's own */
}

static inline struct sockaddr_in loopback(unsigned port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* epoll_wait(), which a continuation ends, too. */
static inline int await_events(int epoll, struct epoll_event *events, int count, int ms)
{
    int ready;

    do {
        errno = 0;
        ready = epoll_wait(epoll, events, count, ms);
    } while (ready < 0 && errno == EINTR);
    return ready;
}

static inline int connect_to(int fd, unsigned port)
{
    struct sockaddr_in address = loopback(port);

    return connect(fd, (struct sockaddr *)&address, sizeof address);
}

/* For tests of such bounds: by them, a stop and a continuation (of a debugger, of a freezer of
 * containers) end a wait with EINTR (signal(7)), whereas a wait without goes on. */
static inline void bound_waits(int fd, unsigned ms)
{
    struct timeval bound = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof bound);
}

/* A connected blocking socket. */
static inline int connected(unsigned port)
{
    int fd = KEPT(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), one = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    KEPT(connect_to(fd, port));
    return fd;
}

/* A whole request, in `text` of at least 512 bytes; returns its length. */
static inline size_t request_for(char *text, unsigned port, const char *model)
{
    char body[128];
    int length = snprintf(body, sizeof body, "{\"messages\":[],\"model\":\"%s\"}", model);

    return (size_t)snprintf(text, 512,
                            "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n"
                            "Content-Length: %d\r\n\r\n%s",
                            port, length, body);
}

static inline void write_all(int fd, const char *data, size_t length)
{
    while (length > 0) {
        ssize_t count = KEPT(write(fd, data, length));
        data += count;
        length -= (size_t)count;
    }
}

static inline void post(int fd, unsigned port, const char *model)
{
    char text[512];

    write_all(fd, text, request_for(text, port, model));
}

/* The status of one whole answer (with a Content-Length); 0: the stream ended, -1: it failed. */
static inline int read_status(int fd)
{
    char text[4096];
    size_t have = 0;

    while (have < sizeof text - 1) {
        ssize_t count = read(fd, text + have, sizeof text - 1 - have);
        if (count <= 0)
            return (int)count;
        have += (size_t)count;
        text[have] = '\0';
        char *end = strstr(text, "\r\n\r\n"), *length = strcasestr(text, "\r\nContent-Length:");
        if (end && length && have >= (size_t)(end + 4 - text) + strtoul(length + 17, NULL, 10))
            return atoi(text + 9);
    }
    return -1;
}

/* One call on an open connection, which must go well. */
static inline void call_on(int fd, unsigned port, const char *model)
{
    post(fd, port, model);
    int status = read_status(fd);
    MUST(status == 200, "but %d", status);
}

static inline void whole_call(unsigned port, const char *model)
{
    int fd = connected(port);

    call_on(fd, port, model);
    KEPT(close(fd));
}

#endif
