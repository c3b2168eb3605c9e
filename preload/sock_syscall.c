/*
 * sock_syscall.c - syscall(), by which libuv closes its descriptors, to have no cancellation point;
 * and the calls that make a child with our very memory (FIELD-NOTES 1.9), or one that no handler of
 * pthread_atfork() makes fresh: from then on it is asked whose descriptors are meant. Everything
 * else of them is a jump.
 */
#include "fdmap.h"
#include "guard.h"
#include "real.h"
#include "sock_conn.h"
#include "sock_fence.h"
#include "tail.h"

#include <linux/close_range.h>
#include <sched.h>
#include <sys/syscall.h>

/* libc's are variadic, or return twice; as functions of six register arguments and one on the stack
 * they can be jumped through, whatever the caller gave. */
long sock_syscall(long number, long a, long b, long c, long d, long e, long f) __asm__("syscall");
int sock_clone(void *function, void *stack, long flags, void *argument, long a, long b,
               long c) __asm__("clone");
int sock_vfork(void) __asm__("vfork");
int sock_Fork(void) __asm__("_Fork");

static __attribute__((noinline)) void note_syscall(long number, long a, long b, long c)
{
    if (number == SYS_close && !fdmap_get((int)a))
        return;
    GUARD_ERRNO({
        if (number == SYS_close)
            sock_close_note((unsigned)a, (unsigned)a);
        else if (number == SYS_close_range && !(c & CLOSE_RANGE_CLOEXEC))
            sock_close_note((unsigned)a, (unsigned)b);
    });
}

/* By the flags of clone. A child with memory of its own takes the mark along: the parent's goes as
 * if it had waited. Never less doubt than before: the parent of one that goes on beside it may
 * vfork.
 */
static void doubt(long flags)
{
    if ((flags & (CLONE_VM | CLONE_VFORK)) == CLONE_VM)
        fdmap_doubt = FDMAP_SHARED;
    else if (fdmap_doubt == FDMAP_SURE)
        fdmap_doubt = FDMAP_VFORKED;
}

/* Those by the plain calls; what the flags of clone3 are lies in memory. */
static __attribute__((noinline)) void note_child(long number, long flags)
{
    if (number == SYS_clone3)
        flags = CLONE_VM;
    else if (number != SYS_clone)
        flags = CLONE_VFORK;
    doubt(flags);
}

static bool makes_a_child(long number)
{
#ifdef SYS_fork
    if (number == SYS_fork || number == SYS_vfork)
        return true;
#endif
    return number == SYS_clone || number == SYS_clone3;
}

TAIL_FUNCTION long sock_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    if (__builtin_expect(number == SYS_close || number == SYS_close_range, 0))
        note_syscall(number, a, b, c);
    else if (__builtin_expect(makes_a_child(number), 0))
        note_child(number, a);
    else if (__builtin_expect(sock_fence_may_be(number, a), 0))
        TAIL_RETURN(sock_fence_syscall(number, a, b, c, d, e, f));
    TAIL_RETURN(real_sock()->syscall(number, a, b, c, d, e, f));
}

TAIL_FUNCTION int sock_clone(void *function, void *stack, long flags, void *argument, long a,
                             long b, long c)
{
    doubt(flags);
    TAIL_RETURN(real_sock()->clone(function, stack, flags, argument, a, b, c));
}

TAIL_FUNCTION int sock_vfork(void)
{
    doubt(CLONE_VM | CLONE_VFORK);
    TAIL_RETURN(real_sock()->vfork());
}

TAIL_FUNCTION int sock_Fork(void)
{
    doubt(0);
    TAIL_RETURN(real_sock()->_Fork());
}
