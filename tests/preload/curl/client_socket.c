/* client_socket.c - curl_multi_socket_action with epoll, and what there was before it. */
#include "client.h"

#include <stdbool.h>
#include <sys/epoll.h>

static int epoll = -1;
static long timer_ms = -1;

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *data, void *known)
{
    struct epoll_event event = {.data.fd = fd};

    (void)easy;
    if (what == CURL_POLL_REMOVE)
        return epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL) && 0;
    event.events = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);
    if (epoll_ctl(epoll, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) != 0 &&
        epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event) != 0)
        die("epoll_ctl");
    curl_multi_assign(data, fd, &epoll);
    return 0;
}

static int on_timer(CURLM *multi, long ms, void *data)
{
    (void)multi;
    (void)data;
    timer_ms = ms;
    return 0;
}

static void socket_many(prepare_t prepare)
{
    struct request requests[MANY];
    CURLM *multi = curl_multi_init();
    int running, left = MANY;

    epoll = epoll_create1(EPOLL_CLOEXEC);
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, multi);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
    add_many(multi, requests, prepare);
    while (left > 0) {
        struct epoll_event events[16];
        int n =
            epoll_wait(epoll, events, 16, timer_ms >= 0 && timer_ms < 2000 ? (int)timer_ms : 2000);
        if (n == 0)
            curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running);
        for (int i = 0; i < n; i++)
            curl_multi_socket_action(multi, events[i].data.fd,
                                     (events[i].events & EPOLLIN ? CURL_CSELECT_IN : 0) |
                                         (events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0),
                                     &running);
        left -= reap(multi);
    }
    for (int i = 0; i < MANY; i++)
        curl_easy_cleanup(requests[i].easy);
    curl_multi_cleanup(multi);
}

#undef curl_multi_socket /* a macro for curl_multi_socket_action() */

/* Told of no events: libcurl looks itself, at all its sockets or at the one that is named. */
static void drive_old(prepare_t prepare, bool all)
{
    struct request requests[MANY];
    CURLM *multi = curl_multi_init();
    int running, left = MANY;

    epoll = epoll_create1(EPOLL_CLOEXEC);
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, multi);
    add_many(multi, requests, prepare);
    curl_multi_socket_all(multi, &running);
    while ((left -= reap(multi)) > 0) {
        struct epoll_event event;
        int n = epoll_wait(epoll, &event, 1, 10);
        if (n > 0 && !all)
            curl_multi_socket(multi, event.data.fd, &running);
        else
            curl_multi_socket_all(multi, &running);
    }
    for (int i = 0; i < MANY; i++)
        curl_easy_cleanup(requests[i].easy);
    curl_multi_cleanup(multi);
}

static void socket_all(prepare_t prepare)
{
    drive_old(prepare, true);
}

static void socket_one(prepare_t prepare)
{
    drive_old(prepare, false);
}

const struct mode socket_modes[] = {
    {"socket-all", socket_all, prepare_read, NULL},
    {"socket-one", socket_one, prepare_read, NULL},
    {"socket-fields", socket_many, post_fields, NULL},
    {"socket-read", socket_many, prepare_read, NULL},
    {.name = NULL},
};
