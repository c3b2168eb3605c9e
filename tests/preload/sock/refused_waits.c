/*
 * refused_waits.c - one refused POST in many ways of waiting for what comes of it.
 *
 *   refused_waits MODE PORT KEPT     refused.h tells what these are
 */
#include "refused.h"
#include "waiting.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>

/* --- waiting -------------------------------------------------------------------------------------
 */

static void wait_by_poll(void)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};

    post_shut();
    MUST(KEPT(poll(&one, 1, AT_ONCE_MS)) == 1 && one.revents & POLLIN, "revents %x", one.revents);
    read_rest();
}

/* Readable in the midst, too: no byte was read yet, then some. */
static void wait_by_poll_between_reads(void)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    char byte;
    ssize_t count;

    MUST(KEPT(poll(&one, 1, 0)) == 0);
    post_shut();
    do {
        MUST(KEPT(poll(&one, 1, AT_ONCE_MS)) == 1 && one.revents & POLLIN);
        count = KEPT(read(fd, &byte, 1));
        take(&byte, count);
    } while (count > 0);
}

static void wait_by_select(void)
{
    fd_set set;
    struct timeval bound = {.tv_sec = AT_ONCE_MS / 1000};

    FD_ZERO(&set);
    FD_SET(fd, &set);
    post_shut();
    MUST(KEPT(select(fd + 1, &set, NULL, NULL, &bound)) == 1 && FD_ISSET(fd, &set));
    read_rest();
}

static int watched(uint32_t events)
{
    int epoll = KEPT(epoll_create1(EPOLL_CLOEXEC));
    struct epoll_event event = {.events = events, .data.fd = fd};

    KEPT(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
    return epoll;
}

static void wait_in(int epoll)
{
    struct epoll_event event;

    MUST(KEPT(await_events(epoll, &event, 1, AT_ONCE_MS)) == 1);
    MUST(event.data.fd == fd && event.events & EPOLLIN, "events %x", event.events);
}

static void wait_by_epoll(void)
{
    post_shut();
    int epoll = watched(EPOLLIN);
    wait_in(epoll);
    wait_in(epoll); /* level triggered: still so */
    read_rest();
    close(epoll);
}

static void wait_by_edge(void)
{
    post_shut();
    int epoll = watched(EPOLLIN | EPOLLET);
    wait_in(epoll);
    read_rest();
    close(epoll);
}

static void registered_before(uint32_t events)
{
    int epoll = watched(events);
    struct epoll_event event;

    MUST(KEPT(await_events(epoll, &event, 1, 0)) == 0);
    post_shut();
    wait_in(epoll);
    read_rest();
    close(epoll);
}

static void epoll_before(void)
{
    registered_before(EPOLLIN);
}

static void edge_before(void)
{
    registered_before(EPOLLIN | EPOLLET);
}

static void exclusive_before(void)
{
    registered_before(EPOLLIN | EPOLLEXCLUSIVE);
}

/* --- another thread waits already ----------------------------------------------------------------
 */

static _Atomic pid_t reader;

static void await_sleep(void)
{
    int64_t end = now_ms() + BOUND_S * 1000;

    while (!reader || !sleeps_for_bytes(reader)) {
        MUST(now_ms() < end);
        sched_yield();
    }
}

static void *read_in_thread(void *unused)
{
    (void)unused;
    reader = (pid_t)syscall(SYS_gettid);
    read_rest();
    return NULL;
}

static void *poll_in_thread(void *unused)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};

    (void)unused;
    reader = (pid_t)syscall(SYS_gettid);
    MUST(KEPT(poll(&one, 1, BOUND_S * 1000)) == 1);
    read_rest();
    return NULL;
}

static void *epoll_in_thread(void *unused)
{
    struct epoll_event event;
    int epoll = watched(EPOLLIN | EPOLLET);

    (void)unused;
    reader = (pid_t)syscall(SYS_gettid);
    MUST(KEPT(await_events(epoll, &event, 1, BOUND_S * 1000)) == 1);
    read_rest();
    close(epoll);
    return NULL;
}

static void with_thread(void *(*body)(void *))
{
    pthread_t thread;

    MUST(pthread_create(&thread, NULL, body, NULL) == 0);
    await_sleep();
    int64_t since = now_ms();
    post_shut();
    MUST(pthread_join(thread, NULL) == 0);
    MUST(now_ms() - since < AT_ONCE_MS);
}

static void reader_thread(void)
{
    with_thread(read_in_thread);
}

static void poller_thread(void)
{
    with_thread(poll_in_thread);
}

static void epoller_thread(void)
{
    with_thread(epoll_in_thread);
}

/* --- behind a request that is answered -----------------------------------------------------------
 */

/* Both in one write. */
static void post_both(void)
{
    char both[1024];
    size_t first = request_for(both, port, "m");

    memcpy(both + first, request, length);
    pipelined = true;
    write_all(fd, both, first + length);
}

static void behind_blocking(void)
{
    post_both();
    read_rest();
}

static void behind_in_thread(void)
{
    pthread_t thread;

    pipelined = true;
    MUST(pthread_create(&thread, NULL, read_in_thread, NULL) == 0);
    await_sleep();
    post_both();
    MUST(pthread_join(thread, NULL) == 0);
}

/* All that is there, without blocking; false at the end of the stream. */
static bool drain(void)
{
    char text[64];
    ssize_t count;

    while ((count = recv(fd, text, sizeof text, MSG_DONTWAIT)) > 0)
        take(text, count);
    MUST(count == 0 || errno == EAGAIN);
    return count != 0;
}

static void behind_poll(void)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};

    post_both();
    do
        MUST(KEPT(poll(&one, 1, AT_ONCE_MS)) == 1 && one.revents & POLLIN);
    while (drain());
}

static void behind_events(uint32_t events)
{
    int epoll = watched(events);

    post_both();
    do
        wait_in(epoll);
    while (drain());
    close(epoll);
}

static void behind_edge(void)
{
    behind_events(EPOLLIN | EPOLLET);
}

static void behind_level(void)
{
    behind_events(EPOLLIN);
}

/* Armed anew after each event, as many loops have it. */
static void behind_one_shot(void)
{
    int epoll = watched(EPOLLIN | EPOLLONESHOT);
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.fd = fd};

    post_both();
    for (;;) {
        wait_in(epoll);
        if (!drain())
            break;
        KEPT(epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event));
    }
    close(epoll);
}

static const struct mode modes[] = {
    {"poll", wait_by_poll},
    {"poll-before", wait_by_poll_between_reads},
    {"select", wait_by_select},
    {"epoll", wait_by_epoll},
    {"epoll-edge", wait_by_edge},
    {"epoll-before", epoll_before},
    {"epoll-edge-before", edge_before},
    {"epoll-exclusive", exclusive_before},
    {"reader-thread", reader_thread},
    {"poller-thread", poller_thread},
    {"epoller-thread", epoller_thread},
    {"behind-blocking", behind_blocking},
    {"behind-thread", behind_in_thread},
    {"behind-poll", behind_poll},
    {"behind-edge", behind_edge},
    {"behind-level", behind_level},
    {"behind-one-shot", behind_one_shot},
};

int main(int argc, char **argv)
{
    run_refused(modes, sizeof modes / sizeof *modes, argc, argv);
    end_refused();
    return 0;
}
