/*
 * sock_write.c - the writing hooks. Of an untracked descriptor they cost one look-up; what they do
 * for the others is in sock_watch.c.
 */
#include "guard.h"
#include "real.h"
#include "sock_watch.h"

#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALLER __builtin_return_address(0)

/* The first `allowed` bytes of what the program gave, in one real call; fewer parts than there are
 * make it a short write. */
#define PARTS_MAX 16

static ssize_t write_part(const struct sock_write *write, const struct iovec *parts, size_t count,
                          bool message, int flags)
{
    struct iovec cut[PARTS_MAX];
    size_t left = write->allowed, used = 0;

    for (; used < count && used < PARTS_MAX && left > 0; used++) {
        cut[used] = parts[used];
        if (cut[used].iov_len > left)
            cut[used].iov_len = left;
        left -= cut[used].iov_len;
    }
    if (used == 0)
        return 0;
    if (!message)
        return real_sock()->writev(write->fd, cut, (int)used);
    const struct msghdr cut_message = {.msg_iov = cut, .msg_iovlen = used};
    return real_sock()->sendmsg(write->fd, &cut_message, flags);
}

static bool leaves_whole(const struct sock_write *write)
{
    return write->allowed == write->offered;
}

EXPORT ssize_t write(int fd, const void *buf, size_t size)
{
    if (__builtin_expect(sock_write_passes(fd), 1))
        return real_sock()->write(fd, buf, size);
    const struct iovec part = {(void *)buf, size};
    struct sock_write look = sock_write_look(fd, &part, 1, CALLER);
    return sock_write_done(&look, leaves_whole(&look) ? real_sock()->write(fd, buf, size)
                                                      : write_part(&look, &part, 1, false, 0));
}

EXPORT ssize_t writev(int fd, const struct iovec *parts, int count)
{
    if (__builtin_expect(sock_write_passes(fd), 1) || count < 0)
        return real_sock()->writev(fd, parts, count);
    struct sock_write look = sock_write_look(fd, parts, (size_t)count, CALLER);
    return sock_write_done(&look, leaves_whole(&look)
                                      ? real_sock()->writev(fd, parts, count)
                                      : write_part(&look, parts, (size_t)count, false, 0));
}

/* Connects and urgent data by way of a write: the bytes are not ours to follow. Nor those that the
 * kernel tells of when they have left: of swallowed ones it never would. */
static bool is_odd(int fd, int flags)
{
    if (!(flags & (MSG_FASTOPEN | MSG_OOB | MSG_ZEROCOPY)))
        return false;
    sock_lose_sight(fd);
    return true;
}

static ssize_t send_watched(int fd, const void *buf, size_t size, int flags,
                            const struct sockaddr *address, socklen_t length, const void *caller)
{
    const struct iovec part = {(void *)buf, size};

    if (size > SOCK_PART_MAX) /* whatever its sign: as much of it leaves as there is */
        sock_lose_sight(fd);
    if (size > SOCK_PART_MAX || is_odd(fd, flags))
        return real_sock()->sendto(fd, buf, size, flags, address, length);
    if (sock_write_passes(fd))
        return real_sock()->sendto(fd, buf, size, flags, address, length);
    struct sock_write look = sock_write_look(fd, &part, 1, caller);
    return sock_write_done(&look, leaves_whole(&look)
                                      ? real_sock()->sendto(fd, buf, size, flags, address, length)
                                      : write_part(&look, &part, 1, true, flags));
}

EXPORT ssize_t send(int fd, const void *buf, size_t size, int flags)
{
    if (__builtin_expect(!fdmap_get(fd), 1))
        return real_sock()->send(fd, buf, size, flags);
    return send_watched(fd, buf, size, flags, NULL, 0, CALLER);
}

EXPORT ssize_t sendto(int fd, const void *buf, size_t size, int flags,
                      const struct sockaddr *address, socklen_t length)
{
    if (__builtin_expect(!fdmap_get(fd), 1))
        return real_sock()->sendto(fd, buf, size, flags, address, length);
    return send_watched(fd, buf, size, flags, address, length, CALLER);
}

static ssize_t sendmsg_watched(int fd, const struct msghdr *message, int flags, const void *caller)
{
    if (guard_is_nowhere(message) || is_odd(fd, flags) || sock_write_passes(fd))
        return real_sock()->sendmsg(fd, message, flags);
    struct sock_write look = sock_write_look(fd, message->msg_iov, message->msg_iovlen, caller);
    return sock_write_done(
        &look, leaves_whole(&look)
                   ? real_sock()->sendmsg(fd, message, flags)
                   : write_part(&look, message->msg_iov, message->msg_iovlen, true, flags));
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    if (__builtin_expect(!fdmap_get(fd), 1))
        return real_sock()->sendmsg(fd, message, flags);
    return sendmsg_watched(fd, message, flags, CALLER);
}

static size_t size_of(const struct msghdr *message)
{
    size_t size = 0;

    for (size_t i = 0; i < message->msg_iovlen; i++)
        size += message->msg_iov[i].iov_len;
    return size;
}

/* One by one; as with the kernel a short one, or an error after others (which is not told), ends
 * it. */
EXPORT int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    int kept = errno;
    unsigned done = 0;

    if (__builtin_expect(!fdmap_get(fd), 1) || guard_is_nowhere(messages))
        return real_sock()->sendmmsg(fd, messages, count, flags);
    for (; done < count && done < IOV_MAX; done++) {
        const struct msghdr *message = &messages[done].msg_hdr;
        ssize_t sent = sendmsg_watched(fd, message, flags, CALLER);
        if (sent < 0 && done == 0)
            return -1;
        errno = kept;
        if (sent < 0)
            return (int)done;
        messages[done].msg_len = (unsigned)sent;
        if ((size_t)sent < size_of(message))
            return (int)done + 1;
    }
    return (int)done;
}

/* --- sendfile -----------------------------------------------------------------------------------
 */

#define FILE_PIECE 1024 /* threads may have 16 KB of stack */

/* Nothing more of what is sent is of interest. */
static bool is_lost(const struct sock_write *look)
{
    return !look->conn->flow || look->conn->flow->flow.state == SHIM_FLOW_LOST;
}

/* Shows what the file has there, as the kernel will take it. False: it cannot be read twice. */
static bool show_file(struct sock_write *look, int in, off_t at, size_t count)
{
    char piece[FILE_PIECE];

    if (count > SOCK_PART_MAX)
        count = SOCK_PART_MAX;
    while (count > 0) {
        /* pread() would be a cancellation point, which sendfile is not. */
        ssize_t got =
            real_sock()->syscall(SYS_pread64, in, (long)piece,
                                 (long)(count < sizeof piece ? count : sizeof piece), at, 0, 0);
        if (got < 0)
            return false;
        if (got == 0)
            return true;
        sock_write_show(look, piece, (size_t)got);
        at += got;
        count -= is_lost(look) ? count : (size_t)got;
    }
    return true;
}

/* What was seen of it need not be read again: a big file goes in many short writes. */
static bool look_at_file(struct sock_write *look, int in, off_t at, size_t count)
{
    uint64_t seen = look->conn->flow ? shim_flow_seen(&look->conn->flow->flow) : 0;

    if (seen > count)
        seen = count;
    if (look->conn->flow)
        shim_flow_send_seen(&look->conn->flow->flow, seen);
    look->offered += seen;
    return show_file(look, in, at + (off_t)seen, count - (size_t)seen);
}

static struct sock_write sendfile_look(int out, int in, const off_t *offset, size_t count,
                                       const void *caller)
{
    struct sock_write look;

    GUARD_ERRNO({
        sock_write_begin(&look, out, caller);
        if (look.conn) {
            off_t at = offset ? *offset : lseek(in, 0, SEEK_CUR);
            if (at >= 0 && look_at_file(&look, in, at, count)) {
                sock_write_end(&look);
            } else {
                sock_conn_let_go(look.conn, out, SOCK_END_DROP);
                look.conn = NULL;
            }
        }
    });
    return look;
}

/* A swallowed part moves the file as if it had left. */
static ssize_t skip_file(const struct sock_write *look, int in, off_t *offset)
{
    if (offset)
        *offset += (off_t)look->offered;
    else
        lseek(in, (off_t)look->offered, SEEK_CUR);
    return (ssize_t)look->offered;
}

static ssize_t sendfile_watched(int out, int in, off_t *offset, size_t count, const void *caller)
{
    if (offset && guard_is_nowhere(offset))
        return real_sock()->sendfile(out, in, offset, count);
    struct sock_write look = sendfile_look(out, in, offset, count, caller);

    if (look.conn && look.allowed == 0 && look.offered > 0)
        return skip_file(&look, in, offset);
    /* What belongs to earlier requests leaves, as a short write. */
    size_t allowed = look.conn && look.allowed < look.offered ? look.allowed : count;
    ssize_t result = real_sock()->sendfile(out, in, offset, allowed);
    look.offered = look.allowed;
    return look.conn ? sock_write_done(&look, result) : result;
}

EXPORT ssize_t sendfile(int out, int in, off_t *offset, size_t count)
{
    if (__builtin_expect(!fdmap_get(out), 1))
        return real_sock()->sendfile(out, in, offset, count);
    return sendfile_watched(out, in, offset, count, CALLER);
}

_Static_assert(sizeof(off_t) == sizeof(off64_t), "LP64");

EXPORT ssize_t sendfile64(int out, int in, off64_t *offset, size_t count)
{
    if (__builtin_expect(!fdmap_get(out), 1))
        return real_sock()->sendfile64(out, in, offset, count);
    return sendfile_watched(out, in, offset, count, CALLER);
}
