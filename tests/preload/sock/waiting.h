/*
 * waiting.h - until another thread waits, which /proc tells, or until a time is over.
 */
#ifndef BREAKER_TESTS_WAITING_H
#define BREAKER_TESTS_WAITING_H

#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The system call that this thread of ours sleeps in; -1: it runs, or is gone. */
static inline long sleeps_in(pid_t thread)
{
    char path[64], text[64] = "";

    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", (int)thread);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool told = fd >= 0 && read(fd, text, sizeof text - 1) > 0 && isdigit((unsigned char)*text);
    if (fd >= 0)
        close(fd);
    return told ? atol(text) : -1;
}

/* Not in a lock, nor while it begins. */
static inline bool sleeps_for_bytes(pid_t thread)
{
    static const long calls[] = {
        SYS_read, SYS_readv,  SYS_recvfrom,   SYS_recvmsg, SYS_ppoll, SYS_pselect6, SYS_epoll_pwait,
#ifdef SYS_poll
        SYS_poll, SYS_select, SYS_epoll_wait,
#endif
    };
    long call = sleeps_in(thread);

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (call == calls[i])
            return true;
    return false;
}

/* For tests of the time itself: nothing happens that could be waited for instead. */
static inline void let_pass_ms(long ms)
{
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&time, NULL);
}

#endif
