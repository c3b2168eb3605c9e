/*
 * early.c - every call that the socket layer hooks, in the constructor of a library, which runs
 * before those of preloads, and again in main. Built as a library (LIBRARY), and as the program
 * that needs it and prints both stories: two lines, which are the same.
 */
#define _GNU_SOURCE
#include <stdio.h>

#ifdef LIBRARY
#include "sock.h"

#include <sched.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

ssize_t __read_chk(int fd, void *buf, size_t size, size_t room);
ssize_t __recv_chk(int fd, void *buf, size_t size, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *buf, size_t size, size_t room, int flags,
                       struct sockaddr *address, socklen_t *length);

static char *at, *end;
static char bytes[64];

static void say(const char *call, long result)
{
    int error = errno, length = 0;

    while (call[length] && call[length] != '(')
        length++;
    at += snprintf(at, (size_t)(end - at), "%.*s %ld/%d %.4s, ", length, call, result,
                   result < 0 ? error : 0, bytes);
    MUST(at < end);
    memset(bytes, 0, sizeof bytes);
}
#define SAY(call) say(#call, (long)(call))

static void by_pipe(void)
{
    struct iovec parts[] = {{bytes, 1}, {bytes + 1, 2}}, text[] = {{"x", 1}, {"yz", 2}};
    int ends[2], high;

    MUST(pipe2(ends, O_CLOEXEC) == 0);
    SAY(write(ends[1], "abc", 3));
    SAY(read(ends[0], bytes, 2));
    SAY(__read_chk(ends[0], bytes, 1, sizeof bytes));
    SAY(writev(ends[1], text, 2));
    SAY(readv(ends[0], parts, 2));
    SAY(write(ends[0], "x", 1));
    SAY(write(-1, "x", 1));
    SAY(read(-1, bytes, 1));
    SAY(high = fcntl(ends[1], F_DUPFD_CLOEXEC, 200));
    SAY(fcntl(high, F_GETFD));
    SAY(fcntl64(high, F_GETFL) & O_ACCMODE);
    SAY(dup2(ends[1], 201));
    SAY(dup2(201, 201));
    SAY(dup2(202, 202));
    SAY(dup3(ends[1], 202, O_CLOEXEC));
    SAY(dup3(202, 202, 0));
    SAY(close(202));
    SAY(close(202));
    SAY(close_range(200, 201, 0));
    SAY(fcntl(201, F_GETFD));
    SAY(close(dup(ends[1])));
    SAY(dup(-1));
    MUST(dup2(ends[1], 1000) == 1000);
    closefrom(1000);
    SAY(fcntl(1000, F_GETFD));
    SAY(close(ends[0]));
    SAY(close(ends[1]));
}

static void by_pair(void)
{
    struct iovec part = {bytes, 3}, text = {"pqr", 3};
    struct msghdr message = {.msg_iov = &text, .msg_iovlen = 1};
    struct mmsghdr messages = {.msg_hdr = message};
    socklen_t length = sizeof(int);
    int ends[2], type = 0, file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    off_t offset = 1;

    MUST(file >= 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    SAY(send(ends[0], "abc", 3, 0));
    SAY(recv(ends[1], bytes, 2, MSG_PEEK));
    SAY(__recv_chk(ends[1], bytes, 3, sizeof bytes, 0));
    SAY(sendto(ends[0], "defg", 4, MSG_DONTWAIT, NULL, 0));
    SAY(recvfrom(ends[1], bytes, 2, 0, NULL, NULL));
    SAY(__recvfrom_chk(ends[1], bytes, 2, sizeof bytes, 0, NULL, NULL));
    SAY(sendmsg(ends[0], &message, MSG_NOSIGNAL));
    message.msg_iov = &part;
    SAY(recvmsg(ends[1], &message, 0));
    SAY(sendmmsg(ends[0], &messages, 1, 0));
    messages.msg_hdr.msg_iov = &part;
    SAY(recvmmsg(ends[1], &messages, 1, 0, NULL));
    SAY(sendfile(ends[0], file, &offset, 3));
    SAY(recv(ends[1], bytes, 3, 0));
    SAY(sendfile64(ends[0], file, &offset, 3));
    SAY(offset);
    SAY(recv(ends[1], bytes, 3, 0));
    SAY(recv(ends[1], bytes, 3, MSG_DONTWAIT));
    SAY(getsockopt(ends[0], SOL_SOCKET, SO_TYPE, &type, &length));
    SAY(type);
    SAY(getpeername(file, (struct sockaddr *)bytes, &length));
    SAY(shutdown(ends[0], SHUT_WR));
    SAY(shutdown(file, SHUT_WR));
    SAY(read(ends[1], bytes, 3));
    SAY(close(ends[0]));
    SAY(close(ends[1]));
    SAY(syscall(SYS_close, file));
    SAY(syscall(SYS_close, file));
    SAY(syscall(SYS_lseek, -1, 0, 0));
}

static int end_with_three(void *nothing)
{
    (void)nothing;
    _exit(3);
}

static void by_child(void)
{
    static _Alignas(16) char stack[65536];
    int status = 0;
    pid_t pid = vfork();

    if (pid == 0)
        _exit(2);
    MUST(pid > 0 && waitpid(pid, &status, 0) == pid);
    SAY(WEXITSTATUS(status));
    pid = _Fork();
    if (pid == 0)
        _exit(4);
    MUST(pid > 0 && waitpid(pid, &status, 0) == pid);
    SAY(WEXITSTATUS(status));
    pid = clone(end_with_three, stack + sizeof stack, SIGCHLD, NULL);
    MUST(pid > 0 && waitpid(pid, &status, 0) == pid);
    SAY(WEXITSTATUS(status));
}

void tell(char *story, size_t size)
{
    at = story;
    end = story + size;
    by_pipe();
    by_pair();
    by_child();
}

char early_story[8192];

static __attribute__((constructor)) void before_everybody(void)
{
    tell(early_story, sizeof early_story);
}

#else

extern char early_story[8192];
void tell(char *story, size_t size);

int main(void)
{
    static char story[8192];

    tell(story, sizeof story);
    printf("%s\n%s\n", early_story, story);
    return 0;
}

#endif
