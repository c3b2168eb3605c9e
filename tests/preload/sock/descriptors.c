/*
 * descriptors.c - numbers that change hands: dup and its kin, closes of every kind.
 *
 *   descriptors MODE PORT     descriptors.h tells what it prints
 */
#include "descriptors.h"

#include <linux/close_range.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static void must_be_closed(int fd)
{
    char byte;

    MUST(fcntl(fd, F_GETFD) == -1 && errno == EBADF);
    MUST(read(fd, &byte, 1) == -1 && errno == EBADF);
    MUST(write(fd, "x", 1) == -1 && errno == EBADF);
    MUST(close(fd) == -1 && errno == EBADF);
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

static const struct mode modes[] = {
    {"dup2-over", dup2_over},
    {"dup3-over", dup3_over},
    {"dup2-onto-another", dup2_onto_another},
    {"dup-and-close", dup_and_close},
    {"dup-in-turns", dup_in_turns},
    {"close-range", range_over},
    {"close-range-unshare", unshared_range},
    {"closefrom", from},
    {"syscall", by_syscall},
    {"high-numbers", high_numbers},
};

int main(int argc, char **argv)
{
    MUST(argc == 3);
    run_called(modes, sizeof modes / sizeof *modes, argv[1], argv[2]);
    return 0;
}
