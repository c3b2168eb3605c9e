/*
 * untold.c - to be preloaded behind us: a system that tells nothing of its TCP connections.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int getsockopt(int fd, int level, int name, void *value, socklen_t *size)
{
    if (level != IPPROTO_TCP || name != TCP_INFO)
        return (int)syscall(SYS_getsockopt, fd, level, name, value, size);
    errno = ENOPROTOOPT;
    return -1;
}
