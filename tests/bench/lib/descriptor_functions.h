/*
 * descriptor_functions.h - the functions whose calls bench_descriptor tells of, as the program was
 * linked to them and as libc itself has them.
 */
#ifndef BREAKER_BENCH_DESCRIPTOR_FUNCTIONS_H
#define BREAKER_BENCH_DESCRIPTOR_FUNCTIONS_H

#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* What _FORTIFY_SOURCE makes of read, recv and recvfrom. */
extern ssize_t __read_chk(int fd, void *buffer, size_t count, size_t size);
extern ssize_t __recv_chk(int fd, void *buffer, size_t count, size_t size, int flags);
extern ssize_t __recvfrom_chk(int fd, void *buffer, size_t count, size_t size, int flags,
                              struct sockaddr *from, socklen_t *len);

#define FUNCTIONS(F)                                                                               \
    F(read)                                                                                        \
    F(__read_chk)                                                                                  \
    F(readv)                                                                                       \
    F(write)                                                                                       \
    F(writev)                                                                                      \
    F(sendfile)                                                                                    \
    F(sendfile64)                                                                                  \
    F(close)                                                                                       \
    F(close_range)                                                                                 \
    F(closefrom)                                                                                   \
    F(dup)                                                                                         \
    F(dup2)                                                                                        \
    F(dup3)                                                                                        \
    F(fcntl)                                                                                       \
    F(fcntl64)                                                                                     \
    F(syscall)                                                                                     \
    F(prctl)                                                                                       \
    F(connect)                                                                                     \
    F(shutdown)                                                                                    \
    F(getsockopt)                                                                                  \
    F(getpeername)                                                                                 \
    F(send)                                                                                        \
    F(sendto)                                                                                      \
    F(sendmsg)                                                                                     \
    F(sendmmsg)                                                                                    \
    F(recv)                                                                                        \
    F(__recv_chk)                                                                                  \
    F(recvfrom)                                                                                    \
    F(__recvfrom_chk)                                                                              \
    F(recvmsg)                                                                                     \
    F(recvmmsg)

struct functions {
#define F(name) __typeof__(name) *name;
    FUNCTIONS(F)
#undef F
};

static const struct functions seen = {
#define F(name) .name = name,
    FUNCTIONS(F)
#undef F
};
static struct functions bare;

static inline bool find_bare(void)
{
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    bool found = libc != NULL;

#define F(name) found = found && (*(void **)&bare.name = dlsym(libc, #name));
    FUNCTIONS(F)
#undef F
    return found;
}

#endif
