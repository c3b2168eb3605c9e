/*
 * post.h - a client without libcurl that posts on demand, timed by itself; whoever includes it says
 * how bytes travel.
 *
 *   bench_NAME PORT PATH [fresh]
 *
 * As bench_client.c: reads lines "COUNT" from stdin, makes COUNT POSTs of a 2 KB chat request to
 * 127.0.0.1 over one kept connection (or connect, POST, close each), one send and as many receives
 * as the answer takes, and answers each line with "NS STATUS MARKED CONNECTS"; 1 is the status of
 * calls whose connect was refused. An answer must have a Content-Length.
 */
#ifndef BREAKER_BENCH_POST_H
#define BREAKER_BENCH_POST_H

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Of a connection that stands, or none (fd < 0); as send(2) and recv(2). */
static bool link_begin(int fd);
static ssize_t link_send(int fd, const void *bytes, size_t size);
static ssize_t link_receive(int fd, void *bytes, size_t size);
static void link_end(int fd);

#define BODY_SIZE    2048
#define HEAD_MAX     512
#define ANSWER_MAX   8192
#define COUNT_MAX    1000000
#define RECV_SECONDS 10
#define REFUSED      1

static char request[HEAD_MAX + BODY_SIZE];
static size_t request_len;
static struct sockaddr_in provider = {.sin_family = AF_INET};

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The model stands last, behind the prompt, as openai-python writes it. */
static bool make_request(const char *path)
{
    static const char begin[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"";
    static const char end[] = "\"}],\"model\":\"bench\"}";
    static const char words[] = "the quick brown fox jumps over the lazy dog. ";
    size_t room = BODY_SIZE - (sizeof begin - 1) - (sizeof end - 1);
    int head = snprintf(request, HEAD_MAX,
                        "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nAccept: */*\r\n"
                        "Content-Type: application/json\r\nContent-Length: %u\r\n\r\n",
                        path, ntohs(provider.sin_port), (unsigned)BODY_SIZE);

    if (head < 0 || head >= HEAD_MAX)
        return false;
    char *body = request + head;
    memcpy(body, begin, sizeof begin - 1);
    for (size_t i = 0; i < room; i++)
        body[sizeof begin - 1 + i] = words[i % (sizeof words - 1)];
    memcpy(body + BODY_SIZE - (sizeof end - 1), end, sizeof end - 1);
    request_len = (size_t)head + BODY_SIZE;
    return true;
}

static int open_connection(void)
{
    struct timeval limit = {.tv_sec = RECV_SECONDS};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 &&
        (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) ||
         connect(fd, (struct sockaddr *)&provider, sizeof provider) || !link_begin(fd))) {
        int trouble = errno;
        close(fd);
        errno = trouble;
        return -1;
    }
    return fd;
}

/* The length of the whole answer, once its head is there; 0 before, and for what is no answer. */
static size_t answer_len(const char *answer, bool *marked)
{
    const char *end = strstr(answer, "\r\n\r\n");
    const char *length = end ? strcasestr(answer, "\r\nContent-Length:") : NULL;
    const char *mark = end ? strcasestr(answer, "\r\nX-Breaker-State:") : NULL;

    *marked = mark && mark < end;
    if (!length || length >= end)
        return 0;
    return (size_t)(end + 4 - answer) + strtoul(length + 17, NULL, 10);
}

/* The status; -1 when there was no whole answer. */
static long post(int fd, unsigned *marked)
{
    char answer[ANSWER_MAX + 1];
    size_t have = 0, wanted = 0;
    bool mark = false;

    if (link_send(fd, request, request_len) != (ssize_t)request_len)
        return -1;
    while (have < ANSWER_MAX && (wanted == 0 || have < wanted)) {
        ssize_t got = link_receive(fd, answer + have, ANSWER_MAX - have);
        if (got < 0 && errno == EINTR)
            continue; /* a bounded wait, by a stop and a continuation (signal(7)) */
        if (got <= 0)
            return -1;
        have += (size_t)got;
        answer[have] = '\0';
        if (wanted == 0)
            wanted = answer_len(answer, &mark);
    }
    *marked += mark;
    return have == wanted && strncmp(answer, "HTTP/1.1 ", 9) == 0 ? strtol(answer + 9, NULL, 10)
                                                                  : -1;
}

static void block(unsigned long count, bool fresh)
{
    static int fd = -1;
    long status = -1, connects = 0;
    unsigned marked = 0;
    uint64_t begun = now_ns();

    for (unsigned long i = 0; i < count; i++) {
        if (fd < 0) {
            fd = open_connection();
            connects++;
        }
        long got = fd >= 0 ? post(fd, &marked) : errno == ECONNREFUSED ? REFUSED : -1;
        status = i == 0 || status == got ? got : 0;
        if (fd >= 0 && (fresh || got < 0)) {
            link_end(fd);
            close(fd);
            fd = -1;
        }
    }
    uint64_t took = now_ns() - begun;
    printf("%llu %ld %u %ld\n", (unsigned long long)took, status < 0 ? 0 : status, marked,
           connects);
    fflush(stdout);
}

static int post_main(int argc, char **argv)
{
    unsigned long port = argc >= 3 ? strtoul(argv[1], NULL, 10) : 0;
    char line[64];

    provider.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    provider.sin_port = htons((uint16_t)port);
    if (argc < 3 || argc > 4 || port == 0 || port > UINT16_MAX || !make_request(argv[2])) {
        fprintf(stderr, "usage: %s PORT PATH [fresh]\n", argv[0]);
        return 2;
    }
    while (fgets(line, sizeof line, stdin)) {
        unsigned long count = strtoul(line, NULL, 10);
        if (count == 0 || count > COUNT_MAX)
            break;
        block(count, argc == 4);
    }
    return 0;
}

#endif
