/*
 * descriptors.c - numbers that change hands: dup and its kin, closes of every kind, reuse.
 *
 *   descriptors MODE PORT
 *
 * Prints "fine" when all went as without a library between, and how many calls of "m" went well
 * that the hooks can see.
 */
#include "called.h"
#include "waiting.h"

#include <linux/close_range.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/un.h>

static void must_be_closed(int fd)
{
    char byte;

    MUST(fcntl(fd, F_GETFD) == -1 && errno == EBADF);
    MUST(read(fd, &byte, 1) == -1 && errno == EBADF);
    MUST(write(fd, "x", 1) == -1 && errno == EBADF);
    MUST(close(fd) == -1 && errno == EBADF);
}

/* What is written to the number, a refused request, arrives at the other end as it is. */
static void must_be_plain_pipe(int write_end, int read_end)
{
    char request[512], text[512];
    size_t length = request_for(request, port, "shut");

    MUST((size_t)KEPT(write(write_end, request, length)) == length);
    MUST((size_t)KEPT(read(read_end, text, sizeof text)) == length);
    MUST(memcmp(text, request, length) == 0);
}

/* The same for a file, opened anew on the number `fd`. */
static void must_be_plain_file(int fd)
{
    char request[512], text[512], path[] = "reused-XXXXXX";
    size_t length = request_for(request, port, "shut");

    MUST(mkostemp(path, O_CLOEXEC) == fd);
    MUST((size_t)KEPT(write(fd, request, length)) == length);
    MUST((size_t)KEPT(pread(fd, text, sizeof text, 0)) == length);
    MUST(memcmp(text, request, length) == 0);
    MUST(lseek(fd, 0, SEEK_SET) == 0);
    MUST((size_t)KEPT(read(fd, text, sizeof text)) == length);
    MUST(memcmp(text, request, length) == 0);
    KEPT(unlink(path));
    KEPT(close(fd));
}

static void dup2_over(void)
{
    int fd = called(), ends[2];

    KEPT(pipe2(ends, O_CLOEXEC));
    MUST(KEPT(dup2(ends[1], fd)) == fd);
    must_be_plain_pipe(fd, ends[0]);
    KEPT(close(fd));
    KEPT(close(ends[0]));
    KEPT(close(ends[1]));
}

static void dup3_over(void)
{
    int fd = called(), ends[2];

    KEPT(pipe2(ends, O_CLOEXEC));
    MUST(KEPT(dup3(ends[1], fd, O_CLOEXEC)) == fd);
    MUST(KEPT(fcntl(fd, F_GETFD)) == FD_CLOEXEC);
    must_be_plain_pipe(fd, ends[0]);
    MUST(dup3(fd, fd, 0) == -1 && errno == EINVAL);
    MUST(KEPT(dup2(fd, fd)) == fd);
    must_be_plain_pipe(fd, ends[0]);
    MUST(dup2(-1, fd) == -1 && errno == EBADF);
    must_be_plain_pipe(fd, ends[0]);
    KEPT(close(fd));
    KEPT(close(ends[0]));
    KEPT(close(ends[1]));
}

/* One connection over another: the one below lives on under its other number. */
static void dup2_onto_another(void)
{
    int a = called(), b = called();

    MUST(KEPT(dup2(a, b)) == b);
    call_again(b);
    call_again(a);
    KEPT(close(a));
    call_again(b);
    KEPT(close(b));
    must_be_closed(b);
}

static void dup_and_close(void)
{
    int fd = called(), other = KEPT(dup(fd));

    KEPT(close(fd));
    must_be_closed(fd);
    call_again(other);
    post(other, port, "m");
    int third = KEPT(fcntl(other, F_DUPFD_CLOEXEC, 50));
    MUST(third >= 50);
    KEPT(close(other));
    MUST(read_status(third) == 200);
    calls++;
    call_again(third);
    int fourth = KEPT(fcntl(third, F_DUPFD, 60));
    MUST(fourth >= 60);
    KEPT(close(third));
    call_again(fourth);
    MUST(KEPT(dup2(fourth, fd)) == fd);
    KEPT(close(fourth));
    call_again(fd);
    KEPT(close(fd));
}

/* Written by one number, read by another, in turns. */
static void dup_in_turns(void)
{
    int fd = called(), other = KEPT(dup(fd));

    for (int i = 0; i < 5; i++) {
        post(i % 2 ? fd : other, port, "m");
        MUST(read_status(i % 2 ? other : fd) == 200);
        calls++;
    }
    KEPT(close(fd));
    KEPT(close(other));
}

static void range_over(void)
{
    int first = called(), second = called(), third = called(), low = KEPT(dup(0)), kept = called();

    KEPT(close_range((unsigned)first, (unsigned)third, 0));
    must_be_closed(first);
    must_be_closed(second);
    must_be_closed(third);
    call_again(kept);
    must_be_plain_file(first);
    KEPT(close_range((unsigned)kept, (unsigned)kept, CLOSE_RANGE_CLOEXEC)); /* closes nothing */
    call_again(kept);
    MUST(close_range(9, 5, 0) == -1 && errno == EINVAL);
    call_again(kept);
    KEPT(close_range((unsigned)first, ~0u, 0));
    must_be_closed(kept);
    must_be_closed(low);
    must_be_plain_file(first);
}

static void unshared_range(void)
{
    int first = called(), kept = called();

    KEPT(close_range((unsigned)first, (unsigned)first, CLOSE_RANGE_UNSHARE));
    must_be_closed(first);
    call_again(kept);
    KEPT(close(kept));
}

static void from(void)
{
    int first = called(), second = called(), third = called();

    MUST(first < second && second < third);
    closefrom(second);
    must_be_closed(second);
    must_be_closed(third);
    call_again(first);
    must_be_plain_file(second);
    closefrom(first);
    must_be_closed(first);
    must_be_plain_file(first);
}

static void by_syscall(void)
{
    int fd = called();

    KEPT(syscall(SYS_close, fd));
    must_be_closed(fd);
    must_be_plain_file(fd);
    fd = called();
    KEPT(syscall(SYS_close_range, fd, fd, 0));
    must_be_plain_file(fd);
    MUST(syscall(SYS_close, -1) == -1 && errno == EBADF);
    MUST(KEPT(syscall(SYS_getpid)) == getpid());
}

/* Past every hook: libc closes from within. The number then is somebody else's. */
static void reused_by_file(void)
{
    int fd = called();
    FILE *stream = fdopen(fd, "r+");

    MUST(stream && fclose(stream) == 0);
    must_be_plain_file(fd);
}

static void reused_by_pipe(void)
{
    int fd = called(), ends[2];

    MUST(fclose(fdopen(fd, "r+")) == 0);
    KEPT(pipe2(ends, O_CLOEXEC));
    MUST(ends[0] == fd);
    must_be_plain_pipe(ends[1], ends[0]);
    KEPT(close(ends[0]));
    KEPT(close(ends[1]));
    fd = called(); /* and with the writing end on the number */
    int other = called();
    MUST(other == fd + 1 && fclose(fdopen(other, "r+")) == 0 && fclose(fdopen(fd, "r+")) == 0);
    KEPT(pipe2(ends, O_CLOEXEC));
    MUST(ends[1] == other);
    must_be_plain_pipe(ends[1], ends[0]);
    KEPT(close(ends[0]));
    KEPT(close(ends[1]));
}

static void reused_by_pair(void)
{
    int fd = called(), ends[2];

    MUST(fclose(fdopen(fd, "r+")) == 0);
    KEPT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
    MUST(ends[0] == fd);
    must_be_plain_pipe(ends[0], ends[1]);
    must_be_plain_pipe(ends[1], ends[0]);
    KEPT(close(ends[0]));
    KEPT(close(ends[1]));
}

/* An accepted connection on the number of an outgoing one: a server's answers are no calls. */
static void reused_by_accept(void)
{
    struct sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    int listener = KEPT(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));

    KEPT(bind(listener, (struct sockaddr *)&address, size));
    KEPT(listen(listener, 5));
    KEPT(getsockname(listener, (struct sockaddr *)&address, &size));
    int fd = called(), client = connected(ntohs(address.sin_port));
    MUST(fclose(fdopen(fd, "r+")) == 0);
    MUST(KEPT(accept(listener, NULL, NULL)) == fd);
    must_be_plain_pipe(fd, client);
    KEPT(close(fd));
    KEPT(close(client));
    KEPT(close(listener));
}

/* The number stays with the file that it is, through all that a program does to it. */
static void reused_by_map(void)
{
    int fd = called();

    MUST(fclose(fdopen(fd, "r+")) == 0);
    MUST(KEPT(memfd_create("reused", MFD_CLOEXEC)) == fd);
    KEPT(ftruncate(fd, 4096));
    char *map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0), request[512];
    MUST(map != MAP_FAILED);
    size_t length = request_for(request, port, "shut");
    MUST((size_t)KEPT(write(fd, request, length)) == length);
    MUST(memcmp(map, request, length) == 0);
    MUST(munmap(map, 4096) == 0);
    KEPT(close(fd));
}

/* Another connection on the number, after a close that no hook saw: its calls count. */
static void reused_by_connection(void)
{
    for (int i = 0; i < 5; i++) {
        int fd = called();
        post(fd, port, "m"); /* its answer is never read */
        MUST(fclose(fdopen(fd, "r+")) == 0);
        MUST((fd = called()) >= 0);
        call_again(fd);
        KEPT(close(fd));
    }
}

/* --- what no hook sees --------------------------------------------------------------------------
 */

/* A duplicate that came through another socket. Whatever is known of the connection goes stale. */
static int passed(int fd)
{
    char byte = 'x', room[CMSG_SPACE(sizeof fd)] = "";
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    int ends[2], other;

    *header = (struct cmsghdr){CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    KEPT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
    MUST(KEPT(sendmsg(ends[0], &message, 0)) == 1);
    MUST(KEPT(recvmsg(ends[1], &message, MSG_CMSG_CLOEXEC)) == 1);
    header = CMSG_FIRSTHDR(&message);
    MUST(header && header->cmsg_type == SCM_RIGHTS);
    memcpy(&other, CMSG_DATA(header), sizeof other);
    KEPT(close(ends[0]));
    KEPT(close(ends[1]));
    return other;
}

static void by_another_way(void)
{
    int fd = called(), other = passed(fd);

    for (int i = 0; i < 3; i++) {
        call_on(other, port, "m"); /* unseen */
        post(other, port, "m");
        MUST(read_status(fd) == 200); /* an answer without a question */
        post(fd, port, "m");
        MUST(read_status(other) == 200); /* a question without an answer */
    }
    KEPT(close(fd));
    call_on(other, port, "m");
    KEPT(close(other));
}

/* stdio reads and writes past every hook. The last connection grows older than hang_after. */
static void by_stdio(void)
{
    char text[512], line[512];
    size_t length = request_for(text, port, "m");
    int fd = called(), writer = called();
    FILE *in = fdopen(fd, "r"), *out = fdopen(KEPT(dup(writer)), "w");

    MUST(in && out);
    for (int i = 0; i < 3; i++) {
        MUST(fwrite(text, 1, length, out) == length && fflush(out) == 0);
        MUST(read_status(writer) == 200);
    }
    MUST(fclose(out) == 0);
    KEPT(close(writer));
    for (int i = 0; i < 3; i++) {
        write_all(fd, text, length);
        do
            MUST(fgets(line, sizeof line, in));
        while (line[0] != '\r');
        MUST(fread(line, 1, 11, in) == 11 && memcmp(line, "{\"ok\":true}", 11) == 0);
    }
    let_pass_ms(1100); /* the last one was answered long ago */
    KEPT(shutdown(fd, SHUT_RDWR));
    MUST(fclose(in) == 0);
}

/* A question whose answer nobody saw, and then the number is a file's: what is read of that is no
 * answer. */
static void read_elsewhere(void)
{
    char text[512], path[] = "elsewhere-XXXXXX";

    for (int i = 0; i < 5; i++) {
        int fd = called();
        post(fd, port, "m");
        FILE *stream = fdopen(fd, "r");
        MUST(stream && fread(text, 1, 20, stream) == 20 && fclose(stream) == 0);
        strcpy(path, "elsewhere-XXXXXX");
        MUST(mkostemp(path, O_CLOEXEC) == fd);
        MUST(KEPT(pwrite(fd, "[section]\nkey = value\n", 22, 0)) == 22);
        MUST(KEPT(read(fd, text, 10)) == 10 && memcmp(text, "[section]\n", 10) == 0);
        MUST(KEPT(read(fd, text, sizeof text)) == 12 && KEPT(read(fd, text, sizeof text)) == 0);
        KEPT(unlink(path));
        KEPT(close(fd));
    }
}

/* As high as a number may be. */
static void high_numbers(void)
{
    struct rlimit limit;

    MUST(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = limit.rlim_max;
    MUST(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    int fd = called(), high = KEPT(fcntl(fd, F_DUPFD_CLOEXEC, (int)limit.rlim_max - 2));
    KEPT(close(fd));
    MUST(high >= (int)limit.rlim_max - 2);
    call_on(high, port, "m");
    MUST(KEPT(dup2(high, fd)) == fd);
    KEPT(close(high));
    call_on(fd, port, "m");
    KEPT(close(fd));
    must_be_closed(high);
}

/* Numbers that were closed past every hook and come back as duplicates, more often than connections
 * can be tracked at a time: each is one less to be tracked, not one more. */
static void closed_past_us(void)
{
    int kept = connected(port);

    for (unsigned i = 0; i < 17000; i++) {
        int fd = connected(port);
        MUST(fclose(fdopen(fd, "r")) == 0);
        MUST(KEPT(dup(kept)) == fd);
        KEPT(close(fd));
    }
    whole_call(port, "m");
    KEPT(close(kept));
    calls++;
}

static const struct mode modes[] = {
    {"closed-past-us", closed_past_us},
    {"dup2-over", dup2_over},
    {"dup3-over", dup3_over},
    {"dup2-onto-another", dup2_onto_another},
    {"dup-and-close", dup_and_close},
    {"dup-in-turns", dup_in_turns},
    {"close-range", range_over},
    {"close-range-unshare", unshared_range},
    {"closefrom", from},
    {"syscall", by_syscall},
    {"reused-by-file", reused_by_file},
    {"reused-by-pipe", reused_by_pipe},
    {"reused-by-pair", reused_by_pair},
    {"reused-by-accept", reused_by_accept},
    {"reused-by-map", reused_by_map},
    {"reused-by-connection", reused_by_connection},
    {"another-way", by_another_way},
    {"stdio", by_stdio},
    {"read-elsewhere", read_elsewhere},
    {"high-numbers", high_numbers},
};

int main(int argc, char **argv)
{
    MUST(argc == 3);
    port = (unsigned)atoi(argv[2]);
    unsigned before = open_descriptors();
    RUN_MODE(modes, argv[1]);
    printf("fine %u\n", calls);
    MUST(open_descriptors() == before);
    return 0;
}
