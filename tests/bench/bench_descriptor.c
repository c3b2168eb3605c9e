/*
 * bench_descriptor.c - libc calls on descriptors that are nobody's LLM connection, one by one.
 *
 *   bench_descriptor                 reads lines "WAY COUNT", answers each with the ns they took
 *   bench_descriptor ways            one line per way: "WAY FUNCTION..." (what one round calls)
 *   bench_descriptor calls COUNT     COUNT rounds of every way: for strace, from outside
 *   bench_descriptor instructions    one line per way: "WAY INSTRUCTIONS" of one round in user
 * mode, by single-stepping; x86-64 only, elsewhere exits 77
 *
 * The same program runs with and without a preload; what differs is the preload's. A way is named
 * by its function, and by its descriptor where that matters: "unix" one of a socketpair, "accepted"
 * the server's end of a TCP connection, "forgotten" the client's end of one whose first bytes were
 * no HTTP. Each takes the cheapest form that the kernel answers at once. A round whose result is
 * not the expected one fails the whole run: nothing would be told by its time.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define COUNT_MAX 10000000
#define WARM_UP   100

/* What _FORTIFY_SOURCE makes of read and recv. */
extern ssize_t __read_chk(int fd, void *buffer, size_t count, size_t size);
extern ssize_t __recv_chk(int fd, void *buffer, size_t count, size_t size, int flags);
extern ssize_t __recvfrom_chk(int fd, void *buffer, size_t count, size_t size, int flags,
                              struct sockaddr *from, socklen_t *len);

/* --- the descriptors ------------------------------------------------------------------------ */

static int null, zero, file, unix_end, alone, spare, accepted, forgotten;

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
    one_of_many.msg_hdr = one_message;
    return open_connection();
}

/* --- the ways ------------------------------------------------------------------------------- */

static bool would_block(ssize_t got)
{
    return got < 0 && errno == EAGAIN;
}

static bool connect_unix(void)
{
    static const struct sockaddr_un nobody = {.sun_family = AF_UNIX, .sun_path = "/dev/null/x"};

    return connect(alone, (const struct sockaddr *)&nobody, sizeof nobody) < 0;
}

static bool get_option(int fd, int option)
{
    int value;
    socklen_t len = sizeof value;

    return getsockopt(fd, SOL_SOCKET, option, &value, &len) == 0;
}

static bool get_peer(int fd)
{
    peer_len = sizeof peer;
    return getpeername(fd, (struct sockaddr *)&peer, &peer_len) == 0;
}

static bool closes(int fd)
{
    return fd >= 0 && close(fd) == 0;
}

static bool closes_raw(int fd)
{
    return fd >= 0 && syscall(SYS_close, fd) == 0;
}

static bool there_and_back(int from, int to)
{
    return send(from, byte, 1, 0) == 1 && recv(to, byte, 1, 0) == 1;
}

/* W(way, the functions that one round calls, the round). A round of two calls is two calls' price.
 */
#define WAYS(W)                                                                                    \
    W(nothing, "", true)                                                                           \
    W(read, "read", read(zero, byte, 1) == 1)                                                      \
    W(__read_chk, "__read_chk", __read_chk(zero, byte, 1, sizeof byte) == 1)                       \
    W(readv, "readv", readv(zero, &one_byte, 1) == 1)                                              \
    W(write, "write", write(null, byte, 1) == 1)                                                   \
    W(writev, "writev", writev(null, &one_byte, 1) == 1)                                           \
    W(sendfile, "sendfile", sendfile(null, file, NULL, 0) == 0)                                    \
    W(sendfile64, "sendfile64", sendfile64(null, file, NULL, 0) == 0)                              \
    W(dup_close, "dup close", closes(dup(null)))                                                   \
    W(dup2, "dup2", dup2(null, spare) == spare)                                                    \
    W(dup2_itself, "dup2", dup2(null, null) == null)                                               \
    W(dup3, "dup3", dup3(null, spare, O_CLOEXEC) == spare)                                         \
    W(fcntl, "fcntl", fcntl(null, F_GETFD) >= 0)                                                   \
    W(fcntl64, "fcntl64", fcntl64(null, F_GETFD) >= 0)                                             \
    W(fcntl_dup_close, "fcntl close", closes(fcntl(null, F_DUPFD_CLOEXEC, 3)))                     \
    W(fcntl64_dup_close, "fcntl64 close", closes(fcntl64(null, F_DUPFD_CLOEXEC, 3)))               \
    W(close_range, "close_range", close_range(1000000, ~0U, 0) == 0)                               \
    W(syscall, "syscall", syscall(SYS_getppid) >= 0)                                               \
    W(dup_syscall_close, "dup syscall", closes_raw(dup(null)))                                     \
    W(connect_unix, "connect", connect_unix())                                                     \
    W(shutdown_unix, "shutdown", shutdown(alone, SHUT_RD) == 0)                                    \
    W(getsockopt_unix, "getsockopt", get_option(unix_end, SO_ERROR))                               \
    W(getpeername_unix, "getpeername", get_peer(unix_end))                                         \
    W(send_unix, "send", send(unix_end, byte, 0, 0) == 0)                                          \
    W(sendto_unix, "sendto", sendto(unix_end, byte, 0, 0, NULL, 0) == 0)                           \
    W(sendmsg_unix, "sendmsg", sendmsg(unix_end, &no_bytes, 0) == 0)                               \
    W(sendmmsg_unix, "sendmmsg", sendmmsg(unix_end, &none_of_many, 1, 0) == 1)                     \
    W(recv_unix, "recv", would_block(recv(unix_end, byte, 1, 0)))                                  \
    W(__recv_chk_unix, "__recv_chk", would_block(__recv_chk(unix_end, byte, 1, 1, 0)))             \
    W(recvfrom_unix, "recvfrom", would_block(recvfrom(unix_end, byte, 1, 0, NULL, NULL)))          \
    W(__recvfrom_chk_unix, "__recvfrom_chk",                                                       \
      would_block(__recvfrom_chk(unix_end, byte, 1, 1, 0, NULL, NULL)))                            \
    W(recvmsg_unix, "recvmsg", would_block(recvmsg(unix_end, &one_message, 0)))                    \
    W(recvmmsg_unix, "recvmmsg", would_block(recvmmsg(unix_end, &one_of_many, 1, 0, NULL)))        \
    W(read_accepted, "read", would_block(read(accepted, byte, 1)))                                 \
    W(recv_accepted, "recv", would_block(recv(accepted, byte, 1, 0)))                              \
    W(send_accepted, "send", send(accepted, byte, 0, 0) == 0)                                      \
    W(getsockopt_accepted, "getsockopt", get_option(accepted, SO_ERROR))                           \
    W(read_forgotten, "read", would_block(read(forgotten, byte, 1)))                               \
    W(recv_forgotten, "recv", would_block(recv(forgotten, byte, 1, 0)))                            \
    W(send_forgotten, "send", send(forgotten, byte, 0, 0) == 0)                                    \
    W(getsockopt_forgotten, "getsockopt", get_option(forgotten, SO_ERROR))                         \
    W(getpeername_forgotten, "getpeername", get_peer(forgotten))                                   \
    W(send_recv_forgotten, "send recv", there_and_back(forgotten, accepted))                       \
    W(send_recv_accepted, "send recv", there_and_back(accepted, forgotten))

struct way {
    const char *name, *functions;
    bool (*round)(void);
};

#define W(name, functions, round)                                                                  \
    static bool way_##name(void)                                                                   \
    {                                                                                              \
        return round;                                                                              \
    }
WAYS(W)
#undef W

static const struct way ways[] = {
#define W(name, functions, round) {#name, functions, way_##name},
    WAYS(W)
#undef W
};
#define WAY_COUNT (sizeof ways / sizeof ways[0])

static bool rounds(const struct way *way, unsigned long count)
{
    bool as_expected = true;

    for (unsigned long i = 0; i < count; i++)
        as_expected &= way->round();
    return as_expected;
}

static const struct way *way_of(const char *name)
{
    for (size_t i = 0; i < WAY_COUNT; i++)
        if (strcmp(ways[i].name, name) == 0)
            return &ways[i];
    return NULL;
}

/* --- what is told of them ------------------------------------------------------------------- */

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int blocks(void)
{
    char line[128], name[64];
    unsigned long count;

    while (fgets(line, sizeof line, stdin)) {
        const struct way *way;
        if (sscanf(line, "%63s %lu", name, &count) != 2 || count > COUNT_MAX ||
            !(way = way_of(name)))
            return 2;
        uint64_t begun = now_ns();
        bool as_expected = rounds(way, count);
        uint64_t took = now_ns() - begun;
        if (!as_expected)
            return 1;
        printf("%llu\n", (unsigned long long)took);
        fflush(stdout);
    }
    return 0;
}

static int all(unsigned long count)
{
    for (size_t i = 0; i < WAY_COUNT; i++)
        if (!rounds(&ways[i], count)) {
            fprintf(stderr, "bench_descriptor: %s did not end as expected\n", ways[i].name);
            return 1;
        }
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

static unsigned long instructions_of(const struct way *way)
{
    steps = 0;
    stepping = 1;
    kill(getpid(), SIGUSR1); /* each instruction after it traps */
    way->round();
    stepping = 0;
    return steps;
}

static int instructions(void)
{
    struct sigaction start = {.sa_sigaction = on_start, .sa_flags = SA_SIGINFO};
    struct sigaction step = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};

    if (all(WARM_UP) || sigaction(SIGUSR1, &start, NULL) || sigaction(SIGTRAP, &step, NULL))
        return 1;
    for (size_t i = 0; i < WAY_COUNT; i++)
        printf("%s %lu\n", ways[i].name, instructions_of(&ways[i]));
    return 0;
}
#else
static int instructions(void)
{
    return 77;
}
#endif

static int list(void)
{
    for (size_t i = 0; i < WAY_COUNT; i++)
        printf("%s %s\n", ways[i].name, ways[i].functions);
    return 0;
}

int main(int argc, char **argv)
{
    unsigned long count = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;

    if (!open_all()) {
        perror("bench_descriptor");
        return 1;
    }
    if (argc == 1)
        return blocks();
    if (argc == 2 && strcmp(argv[1], "ways") == 0)
        return list();
    if (argc == 2 && strcmp(argv[1], "instructions") == 0)
        return instructions();
    if (strcmp(argv[1], "calls") == 0 && count > 0 && count <= COUNT_MAX)
        return all(count);
    fprintf(stderr, "usage: bench_descriptor [ways | calls COUNT | instructions]\n");
    return 2;
}
