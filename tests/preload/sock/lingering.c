/*
 * lingering.c - to be preloaded behind us: a read that stays on its way back from the kernel for as
 * long as it is told to, as a thread does that gets no core.
 */
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

atomic_bool linger;
atomic_uint lingering; /* reads so far that did */

ssize_t read(int fd, void *buf, size_t size)
{
    const struct timespec step = {0, 1000000};
    ssize_t result = syscall(SYS_read, fd, buf, size);

    if (linger)
        lingering++;
    for (int i = 0; i < 10000 && linger; i++)
        nanosleep(&step, NULL);
    return result;
}
