/*
 * unusual_reads.c - reads, numbers and ends that few programs make of a connection, and that must
 * not hide it.
 *
 *   unusual_reads MODE PORT
 *
 * To be compiled with -O2 -D_FORTIFY_SOURCE=2. Prints "fine" when all went as without a library
 * between, and how many calls of "m" went well that the hooks can see.
 */
#include "called.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/uio.h>

/* --- reads --------------------------------------------------------------------------------------
 */

/* The size of the buffer is known when this is compiled, how much of it is asked for is not. */
static size_t take(int fd, int way, char *out)
{
    char buffer[64];
    volatile size_t wanted = sizeof buffer;
    struct sockaddr_storage from;
    socklen_t size = sizeof from;
    ssize_t count =
        KEPT(way == 0   ? read(fd, buffer, wanted)
             : way == 1 ? recv(fd, buffer, wanted, 0)
                        : recvfrom(fd, buffer, wanted, 0, (struct sockaddr *)&from, &size));

    MUST(count > 0);
    memcpy(out, buffer, (size_t)count);
    return (size_t)count;
}

static bool is_whole(char *text, size_t have)
{
    text[have] = '\0';
    char *end = strstr(text, "\r\n\r\n"), *length = strcasestr(text, "\r\nContent-Length:");

    return end && length && have >= (size_t)(end + 4 - text) + strtoul(length + 17, NULL, 10);
}

static void fortified(void)
{
    int fd = connected(port);
    char text[4096];

    for (int way = 0; way < 3; way++) {
        size_t have = 0;
        post(fd, port, "m");
        do
            have += take(fd, way, text + have);
        while (!is_whole(text, have));
        MUST(atoi(text + 9) == 200);
        calls++;
    }
    KEPT(close(fd));
}

/* The first byte of an answer is looked at: it is not in the first part. */
static void empty_parts(void)
{
    int fd = called();
    char text[4096];
    size_t have = 0;

    post(fd, port, "m");
    do {
        struct iovec parts[] = {{NULL, 0}, {text, 0}, {text + have, sizeof text - 1 - have}};
        have += (size_t)KEPT(readv(fd, parts, 3));
    } while (!is_whole(text, have));
    MUST(atoi(text + 9) == 200);
    calls++;
    call_again(fd);
    KEPT(close(fd));
}

static void messages(void)
{
    int fd = called();
    char text[4096];
    struct iovec part = {text, sizeof text - 1};
    struct mmsghdr two[2] = {{.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}},
                             {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}}};
    size_t have = 0;

    MUST(recvmsg(fd, NULL, 0) == -1 && errno == EFAULT);
    MUST(recvmmsg(fd, two, 2, MSG_DONTWAIT, NULL) == -1 && errno == EAGAIN);
    call_again(fd);
    post(fd, port, "m");
    do {
        part = (struct iovec){text + have, sizeof text - 1 - have};
        MUST(KEPT(recvmmsg(fd, two, 1, 0, NULL)) == 1 && two[0].msg_len > 0);
        have += two[0].msg_len;
    } while (!is_whole(text, have));
    MUST(atoi(text + 9) == 200);
    calls++;
    call_again(fd);
    KEPT(close(fd));
}

/* --- numbers ------------------------------------------------------------------------------------
 */

static void dup3_of(void)
{
    int fd = called(), other = 70;

    MUST(KEPT(dup3(fd, other, O_CLOEXEC)) == other);
    MUST(KEPT(fcntl(other, F_GETFD)) == FD_CLOEXEC);
    post(fd, port, "m");
    KEPT(close(fd));
    MUST(read_status(other) == 200);
    calls++;
    call_again(other);
    KEPT(close(other));
}

/* More than a thousand between two of them, of which none was ever used. */
static int moved_far(int fd)
{
    struct rlimit limit;
    int far = 3000;

    MUST(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = limit.rlim_max;
    MUST(setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > (rlim_t)far);
    MUST(KEPT(fcntl(fd, F_DUPFD_CLOEXEC, far)) == far);
    KEPT(close(fd));
    return far;
}

static void far_apart(void)
{
    char request[512], text[512], path[] = "far-XXXXXX";
    int fd = called(), far = moved_far(called());

    call_again(far);
    KEPT(close_range((unsigned)fd, ~0u, 0)); /* both are files' from now on */
    size_t length = request_for(request, port, "shut");
    MUST(mkostemp(path, O_CLOEXEC) == fd);
    MUST(KEPT(dup2(fd, far)) == far);
    MUST((size_t)KEPT(write(far, request, length)) == length);
    MUST((size_t)KEPT(pread(fd, text, sizeof text, 0)) == length && !memcmp(text, request, length));
    KEPT(unlink(path));
    KEPT(close(far));
    KEPT(close(fd));
}

/* --- ends ---------------------------------------------------------------------------------------
 */

/* Of a server that says nothing for longer than hang_after, and then is given up. */
static void given_up(void)
{
    int fd = connected(port);
    struct pollfd one = {fd, POLLIN, 0};

    post(fd, port, "m");
    MUST(poll(&one, 1, 600) == 0);
    KEPT(close(fd));
}

/* The same of one that all are closed with. */
static void given_up_far(void)
{
    int low = connected(port), far = moved_far(connected(port));
    struct pollfd one = {far, POLLIN, 0};

    post(far, port, "m");
    MUST(poll(&one, 1, 600) == 0);
    KEPT(close_range((unsigned)low, ~0u, 0));
}

static void patient(void)
{
    int fd = called();

    KEPT(close(fd));
}

static const struct mode modes[] = {
    {"fortified", fortified},       {"empty-parts", empty_parts},
    {"messages", messages},         {"dup3", dup3_of},
    {"far-apart", far_apart},       {"given-up", given_up},
    {"given-up-far", given_up_far}, {"patient", patient},
};

int main(int argc, char **argv)
{
    MUST(argc == 3);
    run_called(modes, sizeof modes / sizeof *modes, argv[1], argv[2]);
    return 0;
}
