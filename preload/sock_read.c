/*
 * sock_read.c - the reading hooks. Of an untracked descriptor they cost one look-up; what they do
 * for the others is in sock_watch.c.
 */
#include "guard.h"
#include "real.h"
#include "sock_watch.h"

#include <unistd.h>

/* The fortified ones end a program whose buffer is too small, in libc and before anything is read.
 */
ssize_t __read_chk(int fd, void *buf, size_t size, size_t room);
ssize_t __recv_chk(int fd, void *buf, size_t size, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *buf, size_t size, size_t room, int flags,
                       struct sockaddr *address, socklen_t *length);

/* As the kernel does for a stream. */
static void tell_no_address(socklen_t *length)
{
    if (!guard_is_nowhere(length))
        *length = 0;
}

EXPORT ssize_t read(int fd, void *buf, size_t size)
{
    if (__builtin_expect(!fdmap_get(fd), 1))
        return real_sock()->read(fd, buf, size);
    const struct iovec part = {buf, size};
    const struct sock_read begun = sock_read_begin(fd);
    ssize_t answer;

    if (sock_read_answer(&begun, &part, 1, 0, &answer))
        return answer;
    return sock_read_done(&begun, &part, 1, 0, real_sock()->read(fd, buf, size));
}

EXPORT ssize_t __read_chk(int fd, void *buf, size_t size, size_t room)
{
    if (__builtin_expect(!fdmap_get(fd), 1) || size > room)
        return real_sock()->__read_chk(fd, buf, size, room);
    const struct iovec part = {buf, size};
    const struct sock_read begun = sock_read_begin(fd);
    ssize_t answer;

    if (sock_read_answer(&begun, &part, 1, 0, &answer))
        return answer;
    return sock_read_done(&begun, &part, 1, 0, real_sock()->__read_chk(fd, buf, size, room));
}

EXPORT ssize_t recv(int fd, void *buf, size_t size, int flags)
{
    if (__builtin_expect(!fdmap_get(fd), 1))
        return real_sock()->recv(fd, buf, size, flags);
    const struct iovec part = {buf, size};
    const struct sock_read begun = sock_read_begin(fd);
    ssize_t answer;

    if (sock_read_answer(&begun, &part, 1, flags, &answer))
        return answer;
    return sock_read_done(&begun, &part, 1, flags, real_sock()->recv(fd, buf, size, flags));
}

EXPORT ssize_t __recv_chk(int fd, void *buf, size_t size, size_t room, int flags)
{
    if (__builtin_expect(!fdmap_get(fd), 1) || size > room)
        return real_sock()->__recv_chk(fd, buf, size, room, flags);
    const struct iovec part = {buf, size};
    const struct sock_read begun = sock_read_begin(fd);
    ssize_t answer;

    if (sock_read_answer(&begun, &part, 1, flags, &answer))
        return answer;
    return sock_read_done(&begun, &part, 1, flags,
                          real_sock()->__recv_chk(fd, buf, size, room, flags));
}

EXPORT ssize_t recvfrom(int fd, void *restrict buf, size_t size, int flags,
                        struct sockaddr *restrict address, socklen_t *restrict length)
{
    if (__builtin_expect(!fdmap_get(fd), 1))
        return real_sock()->recvfrom(fd, buf, size, flags, address, length);
    const struct iovec part = {buf, size};
    const struct sock_read begun = sock_read_begin(fd);
    ssize_t answer;

    if (sock_read_answer(&begun, &part, 1, flags, &answer)) {
        tell_no_address(length);
        return answer;
    }
    return sock_read_done(&begun, &part, 1, flags,
                          real_sock()->recvfrom(fd, buf, size, flags, address, length));
}

EXPORT ssize_t __recvfrom_chk(int fd, void *buf, size_t size, size_t room, int flags,
                              struct sockaddr *address, socklen_t *length)
{
    if (__builtin_expect(!fdmap_get(fd), 1) || size > room)
        return real_sock()->__recvfrom_chk(fd, buf, size, room, flags, address, length);
    const struct iovec part = {buf, size};
    const struct sock_read begun = sock_read_begin(fd);
    ssize_t answer;

    if (sock_read_answer(&begun, &part, 1, flags, &answer)) {
        tell_no_address(length);
        return answer;
    }
    return sock_read_done(&begun, &part, 1, flags,
                          real_sock()->__recvfrom_chk(fd, buf, size, room, flags, address, length));
}

EXPORT ssize_t readv(int fd, const struct iovec *parts, int count)
{
    ssize_t answer;

    if (__builtin_expect(!fdmap_get(fd), 1) || count < 0)
        return real_sock()->readv(fd, parts, count);
    const struct sock_read begun = sock_read_begin(fd);
    if (sock_read_answer(&begun, parts, (size_t)count, 0, &answer))
        return answer;
    return sock_read_done(&begun, parts, (size_t)count, 0, real_sock()->readv(fd, parts, count));
}

/* As a stream's message without anything beside its bytes. */
static void fill_rest(struct msghdr *message)
{
    message->msg_namelen = 0;
    message->msg_controllen = 0;
    message->msg_flags = 0;
}

static ssize_t recvmsg_watched(int fd, struct msghdr *message, int flags)
{
    const struct sock_read begun = sock_read_begin(fd);
    ssize_t result;

    if (guard_is_nowhere(message))
        return real_sock()->recvmsg(fd, message, flags);
    if (sock_read_answer(&begun, message->msg_iov, message->msg_iovlen, flags, &result)) {
        fill_rest(message);
        return result;
    }
    return sock_read_done(&begun, message->msg_iov, message->msg_iovlen, flags,
                          real_sock()->recvmsg(fd, message, flags));
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    if (__builtin_expect(!fdmap_get(fd), 1))
        return real_sock()->recvmsg(fd, message, flags);
    return recvmsg_watched(fd, message, flags);
}

/* Of a stream it is one recvmsg after the other. With one message we know when it is over. */
EXPORT int recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags,
                    struct timespec *timeout)
{
    if (__builtin_expect(!fdmap_get(fd), 1) || count == 0 || guard_is_nowhere(messages))
        return real_sock()->recvmmsg(fd, messages, count, flags, timeout);
    ssize_t result = recvmsg_watched(fd, &messages[0].msg_hdr, flags & ~MSG_WAITFORONE);
    if (result < 0)
        return -1;
    messages[0].msg_len = (unsigned)result;
    return 1;
}
