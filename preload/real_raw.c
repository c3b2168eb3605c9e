#include "real_raw.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/syscall.h>

/* libc's syscall() leads to our own hook. */
static long raw_call(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;

    __asm__ volatile("svc #0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
#else
#error "no system call for this machine yet: see syscall(2), Architecture calling conventions"
#endif
}

long raw_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    long result = raw_call(number, a, b, c, d, e, f);

    if (result < 0 && result > -4096) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

/* A name, its type and parameters, and the call's number and arguments. */
#define RAW(type, name, parameters, number, a, b, c, d, e, f)                                      \
    type raw_##name parameters                                                                     \
    {                                                                                              \
        return (type)raw_syscall(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e),    \
                                 (long)(f));                                                       \
    }

RAW(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *size), SYS_getsockopt,
    fd, level, name, value, size, 0)
RAW(int, getpeername, (int fd, struct sockaddr *address, socklen_t *length), SYS_getpeername, fd,
    address, length, 0, 0, 0)
RAW(int, close, (int fd), SYS_close, fd, 0, 0, 0, 0, 0)
RAW(int, close_range, (unsigned first, unsigned last, int flags), SYS_close_range, first, last,
    flags, 0, 0, 0)
RAW(int, shutdown, (int fd, int how), SYS_shutdown, fd, how, 0, 0, 0, 0)
RAW(int, dup, (int fd), SYS_dup, fd, 0, 0, 0, 0, 0)
RAW(int, prctl, (int option, long a, long b, long c, long d), SYS_prctl, option, a, b, c, d, 0)
RAW(int, dup3, (int from, int to, int flags), SYS_dup3, from, to, flags, 0, 0, 0)
RAW(ssize_t, write, (int fd, const void *buf, size_t size), SYS_write, fd, buf, size, 0, 0, 0)
RAW(ssize_t, writev, (int fd, const struct iovec *parts, int count), SYS_writev, fd, parts, count,
    0, 0, 0)
RAW(ssize_t, send, (int fd, const void *buf, size_t size, int flags), SYS_sendto, fd, buf, size,
    flags, 0, 0)
RAW(ssize_t, sendto,
    (int fd, const void *buf, size_t size, int flags, const struct sockaddr *address,
     socklen_t length),
    SYS_sendto, fd, buf, size, flags, address, length)
RAW(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), SYS_sendmsg, fd, message,
    flags, 0, 0, 0)
RAW(int, sendmmsg, (int fd, struct mmsghdr *messages, unsigned count, int flags), SYS_sendmmsg, fd,
    messages, count, flags, 0, 0)
RAW(ssize_t, sendfile, (int out, int in, off_t *offset, size_t count), SYS_sendfile, out, in,
    offset, count, 0, 0)
RAW(ssize_t, sendfile64, (int out, int in, off64_t *offset, size_t count), SYS_sendfile, out, in,
    offset, count, 0, 0)
RAW(ssize_t, read, (int fd, void *buf, size_t size), SYS_read, fd, buf, size, 0, 0, 0)
RAW(ssize_t, readv, (int fd, const struct iovec *parts, int count), SYS_readv, fd, parts, count, 0,
    0, 0)
RAW(ssize_t, recv, (int fd, void *buf, size_t size, int flags), SYS_recvfrom, fd, buf, size, flags,
    0, 0)
RAW(ssize_t, recvfrom,
    (int fd, void *buf, size_t size, int flags, struct sockaddr *address, socklen_t *length),
    SYS_recvfrom, fd, buf, size, flags, address, length)
RAW(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), SYS_recvmsg, fd, message, flags,
    0, 0, 0)
RAW(int, recvmmsg,
    (int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout),
    SYS_recvmmsg, fd, messages, count, flags, timeout, 0)

void raw_closefrom(int first)
{
    raw_close_range(first > 0 ? (unsigned)first : 0, UINT32_MAX, 0);
}

int raw__Fork(void)
{
    return (int)raw_syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0, 0);
}

/* A function that returns twice cannot be written here; a child with memory of its own will do. */
int raw_vfork(void)
{
    return raw__Fork();
}

/* Nor one whose child goes on elsewhere: the loader is asked after all. */
int raw_clone(void *function, void *stack, long flags, void *argument, long a, long b, long c)
{
    real_sock_prepare();
    if (real_sock()->clone != raw_clone)
        return real_sock()->clone(function, stack, flags, argument, a, b, c);
    errno = ENOSYS;
    return -1;
}

/* dup3 says EINVAL where dup2 has nothing to do but to look whether the descriptor is open. */
int raw_dup2(int from, int to)
{
    if (from == to)
        return raw_syscall(SYS_fcntl, from, F_GETFD, 0, 0, 0, 0) < 0 ? -1 : to;
    return raw_dup3(from, to, 0);
}

#define RAW_FCNTL(name)                                                                            \
    int raw_##name(int fd, int command, ...)                                                       \
    {                                                                                              \
        va_list arguments;                                                                         \
        va_start(arguments, command);                                                              \
        long argument = (long)va_arg(arguments, void *);                                           \
        va_end(arguments);                                                                         \
        return (int)raw_syscall(SYS_fcntl, fd, command, argument, 0, 0, 0);                        \
    }
RAW_FCNTL(fcntl)
RAW_FCNTL(fcntl64)

/* What libc does for a buffer that is too small, it does after our constructor: here it is an
 * error. */
static bool has_room(size_t size, size_t room)
{
    if (size > room)
        errno = EFAULT;
    return size <= room;
}

ssize_t raw___read_chk(int fd, void *buf, size_t size, size_t room)
{
    return has_room(size, room) ? raw_read(fd, buf, size) : -1;
}

ssize_t raw___recv_chk(int fd, void *buf, size_t size, size_t room, int flags)
{
    return has_room(size, room) ? raw_recv(fd, buf, size, flags) : -1;
}

ssize_t raw___recvfrom_chk(int fd, void *buf, size_t size, size_t room, int flags,
                           struct sockaddr *address, socklen_t *length)
{
    return has_room(size, room) ? raw_recvfrom(fd, buf, size, flags, address, length) : -1;
}
