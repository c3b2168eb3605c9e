/*
 * refused_reads.c - one refused POST in many ways of reading what comes of it.
 *
 *   refused_reads MODE PORT KEPT     refused.h tells what these are
 */
#include "refused.h"

#include <sys/uio.h>

static void by_read(void)
{
    post_shut();
    read_rest();
}

/* A size that the compiler does not know, into a buffer whose size it does: __read_chk and such. */
static void by_checked(ssize_t (*checked)(char buffer[static 64], size_t size))
{
    char buffer[64];
    ssize_t count;
    volatile size_t size = 1; /* or it knows that this fits, and calls read() */

    post_shut();
    for (; (count = checked(buffer, size)) > 0; size = 1 + have % sizeof buffer)
        take(buffer, count);
    read_rest();
}

static ssize_t read_some(char *out, size_t size)
{
    char buffer[64];
    ssize_t count = KEPT(read(fd, buffer, size));

    memcpy(out, buffer, (size_t)count);
    return count;
}

static ssize_t recv_some(char *out, size_t size)
{
    char buffer[64];
    ssize_t count =
        KEPT(size % 2 ? recv(fd, buffer, size, 0) : recvfrom(fd, buffer, size, 0, NULL, NULL));

    memcpy(out, buffer, (size_t)count);
    return count;
}

static void by_read_chk(void)
{
    by_checked(read_some);
}

static void by_recv_chk(void)
{
    by_checked(recv_some);
}

static void by_recv(void)
{
    char text[100];
    ssize_t count;

    post_shut();
    while ((count = KEPT(recv(fd, text, sizeof text, 0))) > 0)
        take(text, count);
}

static void by_recvfrom(void)
{
    char text[100];
    struct sockaddr_storage from;
    ssize_t count;

    post_shut();
    do {
        socklen_t size = sizeof from;
        count = KEPT(recvfrom(fd, text, sizeof text, 0, (struct sockaddr *)&from, &size));
        take(text, count);
        MUST(size == 0, "a stream has no address: %u", size);
    } while (count > 0);
}

static void byte_by_byte(void)
{
    char byte[2] = {0, 'x'};

    post_shut();
    while (KEPT(recv(fd, byte, 1, 0)) == 1) {
        take(byte, 1);
        MUST(byte[1] == 'x');
    }
}

static void by_readv(void)
{
    char a[1], b[7], c[64];
    struct iovec parts[] = {{a, 1}, {NULL, 0}, {b, 7}, {c, 64}};
    ssize_t count;

    post_shut();
    while ((count = KEPT(readv(fd, parts, 4))) > 0) {
        take(a, 1);
        take(b, count > 1 ? (count < 8 ? count - 1 : 7) : 0);
        take(c, count > 8 ? count - 8 : 0);
    }
}

static void by_recvmsg(void)
{
    char a[3], b[100], control[64];
    struct iovec parts[] = {{a, 3}, {b, 100}};
    ssize_t count;

    post_shut();
    do {
        struct msghdr message = {.msg_iov = parts,
                                 .msg_iovlen = 2,
                                 .msg_control = control,
                                 .msg_controllen = sizeof control,
                                 .msg_flags = ~0};
        count = KEPT(recvmsg(fd, &message, 0));
        MUST(message.msg_controllen == 0 && (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0);
        take(a, count < 3 ? count : 3);
        take(b, count > 3 ? count - 3 : 0);
    } while (count > 0);
}

static void by_recvmmsg(void)
{
    char text[2][100];
    struct iovec parts[] = {{text[0], 100}, {text[1], 100}};
    struct mmsghdr messages[2] = {{.msg_hdr = {.msg_iov = &parts[0], .msg_iovlen = 1}},
                                  {.msg_hdr = {.msg_iov = &parts[1], .msg_iovlen = 1}}};
    bool ended = false;

    post_shut();
    while (!ended) {
        int count = KEPT(recvmmsg(fd, messages, 2, MSG_WAITFORONE, NULL));
        MUST(count > 0);
        for (int i = 0; i < count && !ended; i++) {
            take(text[i], messages[i].msg_len);
            ended = messages[i].msg_len == 0;
        }
    }
}

/* The same bytes, however often one looks, and then they are read once. */
static void by_peek(void)
{
    char seen[150], again[150];
    ssize_t count;

    post_shut();
    while ((count = KEPT(recv(fd, seen, sizeof seen, MSG_PEEK))) > 0) {
        struct iovec part = {again, sizeof again};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
        MUST(KEPT(recv(fd, again, 5, MSG_PEEK)) == (count < 5 ? count : 5) &&
             memcmp(seen, again, 5) == 0);
        MUST(KEPT(recvmsg(fd, &message, MSG_PEEK)) == count &&
             memcmp(seen, again, (size_t)count) == 0);
        MUST(KEPT(recv(fd, again, (size_t)count, 0)) == count);
        MUST(memcmp(seen, again, (size_t)count) == 0);
        take(again, count);
    }
}

/* More than there is: all that there is, since the stream ends. */
static void by_wait_all(void)
{
    char text[sizeof got];

    post_shut();
    take(text, KEPT(recv(fd, text, sizeof text, MSG_WAITALL)));
    read_rest();
}

static void by_dont_wait(void)
{
    char text[100];
    ssize_t count;

    post_shut();
    while ((count = KEPT(recv(fd, text, sizeof text, MSG_DONTWAIT))) > 0)
        take(text, count);
}

static void by_dup(void)
{
    post_shut();
    int other = KEPT(dup(fd));
    KEPT(close(fd));
    fd = other;
    read_rest();
}

/* Written by one number, read by the other. */
static void by_duped_before(void)
{
    int other = KEPT(fcntl(fd, F_DUPFD_CLOEXEC, 100));

    post_shut();
    fd = other;
    read_rest();
}

static const struct mode modes[] = {
    {"read", by_read},         {"read-chk", by_read_chk},         {"recv", by_recv},
    {"recv-chk", by_recv_chk}, {"recvfrom", by_recvfrom},         {"one-byte", byte_by_byte},
    {"readv", by_readv},       {"recvmsg", by_recvmsg},           {"recvmmsg", by_recvmmsg},
    {"peek", by_peek},         {"wait-all", by_wait_all},         {"dont-wait", by_dont_wait},
    {"dup", by_dup},           {"duped-before", by_duped_before},
};

int main(int argc, char **argv)
{
    run_refused(modes, sizeof modes / sizeof *modes, argc, argv);
    if (strcmp(argv[1], "duped-before") != 0) /* which has two numbers open */
        end_refused();
    return 0;
}
