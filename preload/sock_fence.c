#include "sock_fence.h"

#include "easymap.h"
#include "guard.h"
#include "real.h"
#include "sock_attempt.h"
#include "sock_conn.h"
#include "tail.h"

#include <linux/seccomp.h>
#include <stdatomic.h>
#include <sys/single_threaded.h>
#include <time.h>

/* libc's is variadic; as a function of its five register arguments it can be jumped through. */
int sock_fence_prctl(int option, long a, long b, long c, long d) __asm__("prctl");

/* What is asked for. */
struct fence {
    bool strict, filter;
    unsigned long flags; /* of seccomp() */
    const void *argument;
};

static struct fence fence_of_prctl(long mode, long argument)
{
    return (struct fence){.strict = mode == SECCOMP_MODE_STRICT,
                          .filter = mode == SECCOMP_MODE_FILTER,
                          .argument = mode == SECCOMP_MODE_FILTER ? (const void *)argument : NULL};
}

static struct fence fence_of_seccomp(long operation, long flags, long argument)
{
    return (struct fence){.strict = operation == SECCOMP_SET_MODE_STRICT,
                          .filter = operation == SECCOMP_SET_MODE_FILTER,
                          .flags = (unsigned)flags,
                          .argument = (const void *)argument};
}

/* Programs find out what the kernel knows by asking for what it must refuse. */
static bool may_succeed(const struct fence *fence)
{
    return (fence->strict && fence->flags == 0 && !fence->argument) ||
           (fence->filter && !guard_is_nowhere(fence->argument));
}

/* A positive result names the thread that could not be fenced in, or is a descriptor. */
static bool has_succeeded(const struct fence *fence, long result)
{
    return result == 0 || (result > 0 && (fence->flags & SECCOMP_FILTER_FLAG_NEW_LISTENER));
}

/* An answer of ours that the program has not read to its end breaks off. */
static void let_all_go(void)
{
    int fd;

    for (unsigned at = 0; (fd = fdmap_next(at, FDMAP_MAX - 1)) >= 0; at = (unsigned)fd + 1) {
        struct sock_conn *there = fdmap_get(fd), *conn = sock_conn_lock(fd);
        if (conn)
            sock_conn_let_go(conn, fd, SOCK_END_DROP);
        if (there) /* not to be had */
            fdmap_clear(fd, there);
    }
    sock_attempt_drop();
}

/* Other threads that get the same fence may be at our work: what has a lock was waited for, and who
 * has none is done in microseconds, if it gets a core. */
#define OTHERS_NS 1000000

/* Never within a fence that stands: it may forbid the wait, and what was at work is done. Relaxed:
 * who is in it set it. */
static atomic_bool stands;

static void wait_for_others(void)
{
    const struct timespec step = {0, OTHERS_NS};

    real_sock()->syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, (long)&step, 0, 0, 0);
}

/* False: nothing is done. What a child does that shares our memory is not ours to note. */
static bool prepare(const struct fence *fence)
{
    bool switched_off = shim_disabled() && !shim_fenced();

    if (switched_off || !may_succeed(fence) || !fdmap_is_ours())
        return false;
    shim_fence(); /* first: nothing new comes about */
    let_all_go();
    if (__libc_single_threaded) /* what others have under way they hand back where it ends */
        easymap_drop_calls();
    else if (fence->flags & SECCOMP_FILTER_FLAG_TSYNC &&
             !atomic_load_explicit(&stands, memory_order_relaxed))
        wait_for_others();
    return true;
}

static bool begin(const struct fence *fence)
{
    bool prepared;

    GUARD_ERRNO(prepared = prepare(fence));
    return prepared;
}

/* From here on no system call, if it stands. */
static void end(const struct fence *fence, bool prepared, long result)
{
    if (!prepared)
        return;
    if (has_succeeded(fence, result))
        atomic_store_explicit(&stands, true, memory_order_relaxed);
    else
        shim_unfence();
}

long sock_fence_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    const struct fence fence =
        number == SYS_seccomp ? fence_of_seccomp(a, b, c) : fence_of_prctl(b, c);
    bool prepared = begin(&fence);
    long result = real_sock()->syscall(number, a, b, c, d, e, f);

    end(&fence, prepared, result);
    return result;
}

static __attribute__((noinline)) int set_seccomp(int option, long a, long b, long c, long d)
{
    const struct fence fence = fence_of_prctl(a, b);
    bool prepared = begin(&fence);
    int result = real_sock()->prctl(option, a, b, c, d);

    end(&fence, prepared, result);
    return result;
}

TAIL_FUNCTION int sock_fence_prctl(int option, long a, long b, long c, long d)
{
    if (__builtin_expect(option == PR_SET_SECCOMP, 0))
        TAIL_RETURN(set_seccomp(option, a, b, c, d));
    TAIL_RETURN(real_sock()->prctl(option, a, b, c, d));
}
