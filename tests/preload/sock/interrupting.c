/*
 * interrupting.c - to be preloaded behind us: a signal in the middle of our own work, where we ask
 * the kernel something. Once, when it is told to.
 */
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

atomic_bool interrupt;

int getsockopt(int fd, int level, int name, void *value, socklen_t *size)
{
    if (atomic_exchange(&interrupt, 0))
        raise(SIGUSR1);
    return (int)syscall(SYS_getsockopt, fd, level, name, value, size);
}
