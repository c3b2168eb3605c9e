/*
 * sock_syscall.c - syscall(): libuv closes its descriptors by it, to have no cancellation point.
 * Everything else is a jump.
 */
#include "fdmap.h"
#include "guard.h"
#include "real.h"
#include "sock_conn.h"
#include "tail.h"

#include <sys/syscall.h>

/* libc's is variadic; as a function of six register arguments and one on the stack it can be jumped
 * through, whatever the caller gave. */
long sock_syscall(long number, long a, long b, long c, long d, long e, long f) __asm__("syscall");

static __attribute__((noinline)) void note_close(long fd)
{
    GUARD_ERRNO(if (fd >= 0 && fd < (long)FDMAP_MAX && fdmap_get((int)fd) && fdmap_is_ours())
                    sock_conn_closed((int)fd));
}

TAIL_FUNCTION long sock_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    if (__builtin_expect(number == SYS_close, 0))
        note_close(a);
    TAIL_RETURN(real_sock()->syscall(number, a, b, c, d, e, f));
}
