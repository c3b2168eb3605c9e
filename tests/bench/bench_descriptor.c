/*
 * bench_descriptor.c - libc calls on descriptors that are nobody's LLM connection, one by one.
 *
 *   bench_descriptor ways                  a line per way: "WAY FUNCTION..." (what a round calls)
 *   bench_descriptor calls COUNT           COUNT rounds of every way: for strace, from outside
 *   bench_descriptor times ROUNDS COUNT    ROUNDS lines per way: "WAY BARE SEEN", ns of COUNT
 *   bench_descriptor instructions          a line per way: "WAY BARE SEEN", user-mode instructions
 *                                          of one round; x86-64 only, elsewhere exits 77
 *
 * SEEN are the functions that the program was linked to, a preload's where there is one; BARE the
 * same of libc itself. Both are called in one process on the same descriptors, in turns: what
 * differs is the preload's, and nothing without one. A way is named by its function, and by its
 * descriptor where that matters: "unix" one of a socketpair, "accepted" the server's end of a TCP
 * connection, "forgotten" the client's end of one whose first bytes were no HTTP. Each takes the
 * cheapest form that the kernel answers at once. A round whose result is not the expected one
 * fails the whole run: nothing would be told by its cost.
 */
#include "lib/descriptor_functions.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <ucontext.h>

#define COUNT_MAX 10000000
#define WARM_UP   100

/* --- the descriptors ------------------------------------------------------------------------ */

static int null, zero, file, unix_end, other_end, alone, spare, accepted, forgotten;

static char byte[1];
static struct iovec one_byte = {byte, 1};
static struct msghdr one_message = {.msg_iov = &one_byte, .msg_iovlen = 1};
static struct msghdr no_bytes; /* sends nothing */
static struct mmsghdr one_of_many, none_of_many;
static struct sockaddr_storage peer;
static socklen_t peer_len;

static bool open_connection(void)
{
    static const char no_http[] = "SSH-2.0-bench\r\n";
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof address;
    char got[sizeof no_http - 1];
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    forgotten = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&address, len) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&address, &len) ||
        connect(forgotten, (struct sockaddr *)&address, len) ||
        (accepted = accept(listener, NULL, NULL)) < 0 ||
        send(forgotten, no_http, sizeof got, 0) != (ssize_t)sizeof got ||
        recv(accepted, got, sizeof got, MSG_WAITALL) != (ssize_t)sizeof got)
        return false;
    close(listener);
    return fcntl(forgotten, F_SETFL, O_NONBLOCK) == 0 && fcntl(accepted, F_SETFL, O_NONBLOCK) == 0;
}

static bool open_all(void)
{
    int pair[2];

    null = open("/dev/null", O_RDWR | O_CLOEXEC);
    zero = open("/dev/zero", O_RDWR | O_CLOEXEC);
    file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    alone = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (null < 0 || zero < 0 || file < 0 || alone < 0 || (spare = dup(null)) < 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair))
        return false;
    unix_end = pair[0];
    other_end = pair[1];
    one_of_many.msg_hdr = one_message;
    return open_connection();
}

/* --- the ways ------------------------------------------------------------------------------- */

static bool would_block(ssize_t got)
{
    return got < 0 && errno == EAGAIN;
}

static bool connect_unix(const struct functions *f)
{
    static const struct sockaddr_un nobody = {.sun_family = AF_UNIX}; /* too short: no address */

    return f->connect(alone, (const struct sockaddr *)&nobody, sizeof nobody.sun_family) < 0;
}

static bool get_error(const struct functions *f, int fd)
{
    int value;
    socklen_t len = sizeof value;

    return f->getsockopt(fd, SOL_SOCKET, SO_ERROR, &value, &len) == 0;
}

static bool get_peer(const struct functions *f, int fd)
{
    peer_len = sizeof peer;
    return f->getpeername(fd, (struct sockaddr *)&peer, &peer_len) == 0;
}

static bool closes(const struct functions *f, int fd)
{
    return fd >= 0 && f->close(fd) == 0;
}

static bool there_and_back(const struct functions *f, int from, int to)
{
    return f->send(from, byte, 1, 0) == 1 && f->recv(to, byte, 1, 0) == 1;
}

/* W(way, the functions that one round calls, the round) */
#define WAYS(W)                                                                                    \
    W(nothing, "", true)                                                                           \
    W(read, "read", f->read(zero, byte, 1) == 1)                                                   \
    W(__read_chk, "__read_chk", f->__read_chk(zero, byte, 1, sizeof byte) == 1)                    \
    W(readv, "readv", f->readv(zero, &one_byte, 1) == 1)                                           \
    W(write, "write", f->write(null, byte, 1) == 1)                                                \
    W(writev, "writev", f->writev(null, &one_byte, 1) == 1)                                        \
    W(sendfile, "sendfile", f->sendfile(null, file, NULL, 0) == 0)                                 \
    W(sendfile64, "sendfile64", f->sendfile64(null, file, NULL, 0) == 0)                           \
    W(dup_close, "dup close", closes(f, f->dup(null)))                                             \
    W(dup2, "dup2", f->dup2(null, spare) == spare)                                                 \
    W(dup2_itself, "dup2", f->dup2(null, null) == null)                                            \
    W(dup3, "dup3", f->dup3(null, spare, O_CLOEXEC) == spare)                                      \
    W(fcntl, "fcntl", f->fcntl(null, F_GETFD) >= 0)                                                \
    W(fcntl64, "fcntl64", f->fcntl64(null, F_GETFD) >= 0)                                          \
    W(fcntl_dup_close, "fcntl close", closes(f, f->fcntl(null, F_DUPFD_CLOEXEC, 3)))               \
    W(fcntl64_dup_close, "fcntl64 close", closes(f, f->fcntl64(null, F_DUPFD_CLOEXEC, 3)))         \
    W(close_range, "close_range", f->close_range(1000000, ~0U, 0) == 0)                            \
    W(closefrom, "closefrom", (f->closefrom(1000000), true))                                       \
    W(syscall, "syscall", f->syscall(SYS_getppid) >= 0)                                            \
    W(prctl, "prctl", f->prctl(PR_GET_DUMPABLE) >= 0)                                              \
    W(dup_syscall_close, "dup syscall", f->syscall(SYS_close, f->dup(null)) == 0)                  \
    W(connect_unix, "connect", connect_unix(f))                                                    \
    W(shutdown_unix, "shutdown", f->shutdown(alone, SHUT_RD) == 0)                                 \
    W(getsockopt_unix, "getsockopt", get_error(f, unix_end))                                       \
    W(getpeername_unix, "getpeername", get_peer(f, unix_end))                                      \
    W(send_unix, "send", f->send(unix_end, byte, 0, 0) == 0)                                       \
    W(sendto_unix, "sendto", f->sendto(unix_end, byte, 0, 0, NULL, 0) == 0)                        \
    W(sendmsg_unix, "sendmsg", f->sendmsg(unix_end, &no_bytes, 0) == 0)                            \
    W(sendmmsg_unix, "sendmmsg", f->sendmmsg(unix_end, &none_of_many, 1, 0) == 1)                  \
    W(recv_unix, "recv", would_block(f->recv(unix_end, byte, 1, 0)))                               \
    W(__recv_chk_unix, "__recv_chk", would_block(f->__recv_chk(unix_end, byte, 1, 1, 0)))          \
    W(recvfrom_unix, "recvfrom", would_block(f->recvfrom(unix_end, byte, 1, 0, NULL, NULL)))       \
    W(__recvfrom_chk_unix, "__recvfrom_chk",                                                       \
      would_block(f->__recvfrom_chk(unix_end, byte, 1, 1, 0, NULL, NULL)))                         \
    W(recvmsg_unix, "recvmsg", would_block(f->recvmsg(unix_end, &one_message, 0)))                 \
    W(recvmmsg_unix, "recvmmsg", would_block(f->recvmmsg(unix_end, &one_of_many, 1, 0, NULL)))     \
    W(read_accepted, "read", would_block(f->read(accepted, byte, 1)))                              \
    W(recv_accepted, "recv", would_block(f->recv(accepted, byte, 1, 0)))                           \
    W(send_accepted, "send", f->send(accepted, byte, 0, 0) == 0)                                   \
    W(getsockopt_accepted, "getsockopt", get_error(f, accepted))                                   \
    W(read_forgotten, "read", would_block(f->read(forgotten, byte, 1)))                            \
    W(recv_forgotten, "recv", would_block(f->recv(forgotten, byte, 1, 0)))                         \
    W(send_forgotten, "send", f->send(forgotten, byte, 0, 0) == 0)                                 \
    W(getsockopt_forgotten, "getsockopt", get_error(f, forgotten))                                 \
    W(getpeername_forgotten, "getpeername", get_peer(f, forgotten))                                \
    W(send_recv_unix, "send recv", there_and_back(f, unix_end, other_end))

struct way {
    const char *name, *functions;
    bool (*round)(const struct functions *f);
};

#define W(name, called, round)                                                                     \
    static bool way_##name(const struct functions *f)                                              \
    {                                                                                              \
        (void)f;                                                                                   \
        return round;                                                                              \
    }
WAYS(W)
#undef W

static const struct way ways[] = {
#define W(name, called, round) {#name, called, way_##name},
    WAYS(W)
#undef W
};
#define WAY_COUNT (sizeof ways / sizeof ways[0])

static bool rounds(const struct way *way, const struct functions *f, unsigned long count)
{
    bool as_expected = true;

    for (unsigned long i = 0; i < count; i++)
        as_expected &= way->round(f);
    if (!as_expected)
        fprintf(stderr, "bench_descriptor: %s did not end as expected\n", way->name);
    return as_expected;
}

/* --- what is told of them ------------------------------------------------------------------- */

static int list(void)
{
    for (size_t i = 0; i < WAY_COUNT; i++)
        printf("%s %s\n", ways[i].name, ways[i].functions);
    return 0;
}

static int calls(const struct functions *f, unsigned long count)
{
    for (size_t i = 0; i < WAY_COUNT; i++)
        if (!rounds(&ways[i], f, count))
            return 1;
    return 0;
}

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* One line; the turn decides who goes first, so that none is always behind the other. */
static bool time_both(const struct way *way, unsigned long turn, unsigned long count)
{
    const struct functions *const both[2] = {&bare, &seen};
    unsigned long long took[2];

    for (unsigned i = 0; i < 2; i++) {
        unsigned which = (turn + i) % 2;
        uint64_t begun = now_ns();
        if (!rounds(way, both[which], count))
            return false;
        took[which] = now_ns() - begun;
    }
    printf("%s %llu %llu\n", way->name, took[0], took[1]);
    return true;
}

static int times(unsigned long turns, unsigned long count)
{
    if (calls(&bare, WARM_UP) || calls(&seen, WARM_UP))
        return 1;
    for (size_t i = 0; i < WAY_COUNT; i++)
        for (unsigned long turn = 0; turn < turns; turn++)
            if (!time_both(&ways[i], turn, count))
                return 1;
    return 0;
}

#ifdef __x86_64__
#define TRAP_FLAG 0x100

static unsigned long steps;
static volatile sig_atomic_t stepping;

static void on_start(int number, siginfo_t *info, void *data)
{
    ucontext_t *context = data;

    (void)number;
    (void)info;
    context->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

static void on_step(int number, siginfo_t *info, void *data)
{
    ucontext_t *context = data;

    (void)number;
    (void)info;
    if (stepping)
        steps++;
    else
        context->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

/* Not inlined: both are to be counted by the same code. */
static __attribute__((noinline)) unsigned long instructions_of(const struct way *way,
                                                               const struct functions *f)
{
    steps = 0;
    stepping = 1;
    kill(getpid(), SIGUSR1); /* each instruction after it traps */
    way->round(f);
    stepping = 0;
    return steps;
}

static int instructions(void)
{
    struct sigaction start = {.sa_sigaction = on_start, .sa_flags = SA_SIGINFO};
    struct sigaction step = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};

    if (calls(&bare, WARM_UP) || calls(&seen, WARM_UP) || sigaction(SIGUSR1, &start, NULL) ||
        sigaction(SIGTRAP, &step, NULL))
        return 1;
    for (size_t i = 0; i < WAY_COUNT; i++)
        printf("%s %lu %lu\n", ways[i].name, instructions_of(&ways[i], &bare),
               instructions_of(&ways[i], &seen));
    return 0;
}
#else
static int instructions(void)
{
    return 77;
}
#endif

static unsigned long number(const char *text)
{
    unsigned long n = strtoul(text, NULL, 10);

    return n <= COUNT_MAX ? n : 0;
}

int main(int argc, char **argv)
{
    unsigned long first = argc >= 3 ? number(argv[2]) : 0, second = argc >= 4 ? number(argv[3]) : 0;

    if (!find_bare() || !open_all()) {
        fprintf(stderr, "bench_descriptor: cannot set up: %m\n");
        return 1;
    }
    if (argc == 2 && strcmp(argv[1], "ways") == 0)
        return list();
    if (argc == 2 && strcmp(argv[1], "instructions") == 0)
        return instructions();
    if (argc == 3 && strcmp(argv[1], "calls") == 0 && first)
        return calls(&seen, first);
    if (argc == 4 && strcmp(argv[1], "times") == 0 && first && second)
        return times(first, second);
    fprintf(stderr,
            "usage: bench_descriptor ways | calls COUNT | times ROUNDS COUNT | instructions\n");
    return 2;
}
