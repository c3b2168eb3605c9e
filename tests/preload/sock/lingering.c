/*
 * lingering.c - to be preloaded behind us: a read that stays on its way back from the kernel for as
 * long as it is told to, as a thread does that gets no core.
 */
#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

atomic_uint linger;    /* 1: they do; who clears it wakes them */
atomic_uint lingering; /* reads so far that did */

ssize_t read(int fd, void *buf, size_t size)
{
    const struct timespec bound = {10, 0};
    ssize_t result = syscall(SYS_read, fd, buf, size);

    if (linger)
        lingering++;
    int kept = errno;
    while (linger && syscall(SYS_futex, &linger, FUTEX_WAIT_PRIVATE, 1, &bound, NULL, 0) == 0)
        ;
    errno = kept;
    return result;
}
