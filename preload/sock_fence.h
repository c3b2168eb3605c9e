/*
 * sock_fence.h - a program that fences itself in by seccomp may be ended for a system call that it
 * does not make by itself, or find it refused. It is noticed where it asks for it: prctl(), and
 * syscall(), by which libseccomp does; at that moment all is let go, and from then on the process
 * runs uncovered (shim_fence).
 *
 * Not noticed: a filter that was there before us, one by another way (a system call instruction of
 * the program's own), and landlock, which forbids no call.
 */
#ifndef BREAKER_PRELOAD_SOCK_FENCE_H
#define BREAKER_PRELOAD_SOCK_FENCE_H

#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* Does syscall(number, a, ...) ask for a fence, good or bad? */
static inline bool sock_fence_may_be(long number, long a)
{
    return number == SYS_seccomp || (number == SYS_prctl && a == PR_SET_SECCOMP);
}

/* Makes that call. */
long sock_fence_syscall(long number, long a, long b, long c, long d, long e, long f);

#endif
