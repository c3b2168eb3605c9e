/*
 * fence.h - filters of system calls for the programs here: what they do not name ends the program.
 */
#ifndef BREAKER_TESTS_FENCE_H
#define BREAKER_TESTS_FENCE_H

#include "sock.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define NUMBER           BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define RETURN(what)     BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_##what)
#define IF(number, then) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##number, 0, 1), RETURN(then)

/* What a program needs that only speaks over what it has open. */
static const struct sock_filter speaks_only[] = {
    NUMBER,
    IF(read, ALLOW),
    IF(write, ALLOW),
    IF(exit, ALLOW),
    IF(exit_group, ALLOW),
    IF(rt_sigreturn, ALLOW),
    RETURN(KILL_PROCESS),
};

/* What a program that opens connections and forks does without, and the library needs. */
static const struct sock_filter no_questions[] = {
    NUMBER,
    IF(getpid, KILL_PROCESS),
    IF(getsockopt, KILL_PROCESS),
    IF(getpeername, KILL_PROCESS),
    IF(ioctl, KILL_PROCESS),
    IF(mmap, KILL_PROCESS),
    IF(openat, KILL_PROCESS),
    IF(fstat, KILL_PROCESS),
    IF(statx, KILL_PROCESS),
    IF(newfstatat, KILL_PROCESS),
    IF(statfs, KILL_PROCESS),
    IF(fstatfs, KILL_PROCESS),
#ifdef SYS_readlink
    IF(readlink, KILL_PROCESS),
#endif
    IF(readlinkat, KILL_PROCESS),
    IF(geteuid, KILL_PROCESS),
    IF(clock_gettime, KILL_PROCESS),
    IF(clock_nanosleep, KILL_PROCESS),
    IF(recvmsg, KILL_PROCESS),
    IF(shutdown, KILL_PROCESS),
#ifdef SYS_poll
    IF(poll, KILL_PROCESS),
#endif
    RETURN(ALLOW),
};

/* As many sandboxes do it: what is not known to be needed is there, but fails. */
static const struct sock_filter no_answers[] = {
    NUMBER,
    IF(getpid, ERRNO | ENOSYS),
    IF(getsockopt, ERRNO | EPERM),
    IF(getpeername, ERRNO | EPERM),
    IF(ioctl, ERRNO | EPERM),
    IF(statfs, ERRNO | ENOSYS),
    IF(fstatfs, ERRNO | ENOSYS),
#ifdef SYS_readlink
    IF(readlink, ERRNO | EPERM),
#endif
    IF(readlinkat, ERRNO | EPERM),
    IF(geteuid, ERRNO | EPERM),
    IF(getegid, ERRNO | EPERM),
    IF(clock_nanosleep, ERRNO | EPERM),
    IF(recvmsg, ERRNO | EPERM),
    IF(shutdown, ERRNO | EPERM),
#ifdef SYS_poll
    IF(poll, ERRNO | EPERM),
#endif
    RETURN(ALLOW),
};

#define PROGRAM(of)                                                                                \
    {                                                                                              \
        .len = sizeof(of) / sizeof *(of), .filter = (struct sock_filter *)(of)                     \
    }
static const struct sock_fprog speaking = PROGRAM(speaks_only), unasking = PROGRAM(no_questions),
                               unanswered = PROGRAM(no_answers);

static inline void fence_by_prctl(const struct sock_fprog *program)
{
    KEPT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    KEPT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0));
}

static inline void fence_by_seccomp(const struct sock_fprog *program, unsigned flags)
{
    KEPT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    KEPT(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, program));
}

/* No stdio: it may ask for memory, or what its descriptor is. */
static inline void told(int number)
{
    char text[16];
    int at = sizeof text;

    text[--at] = '\n';
    for (int left = number; left > 0 || at == sizeof text - 1; left /= 10)
        text[--at] = (char)('0' + left % 10);
    MUST(write(1, text + at, sizeof text - (size_t)at) == (ssize_t)sizeof text - at);
}

#endif
