/*
 * refused.c - one refused POST in many ways of waiting, reading and writing.
 *
 *   refused MODE PORT KEPT
 *
 * KEPT 1: a call of the model "m" goes well on the connection first. Then a POST of "shut", which
 * the library has to refuse. Prints all that is read of it; the stream has to end behind.
 */
#include "sock.h"
#include "waiting.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum { AT_ONCE_MS = 2000 };

static unsigned port;
static int fd;

static char request[512];
static size_t length;

static bool pipelined; /* another answer comes before */
static char got[8192];
static size_t have;

static void take(const void *data, ssize_t count)
{
    MUST(count >= 0, "%zd", count);
    MUST(have + (size_t)count <= sizeof got);
    memcpy(got + have, data, (size_t)count);
    have += (size_t)count;
    MUST(pipelined || memcmp(got, "HTTP/1.1 503", have < 12 ? have : 12) == 0, "refused: %.12s",
         got);
}

static void post_shut(void)
{
    write_all(fd, request, length);
}

/* What is left, to the end of the stream; then the end again, and again. */
static void read_rest(void)
{
    char text[1024];
    ssize_t count;

    while ((count = KEPT(read(fd, text, sizeof text))) > 0)
        take(text, count);
    MUST(KEPT(read(fd, text, sizeof text)) == 0);
    MUST(KEPT(recv(fd, text, sizeof text, MSG_PEEK)) == 0);
}

/* --- waiting -------------------------------------------------------------------------------------
 */

static void wait_by_poll(void)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};

    post_shut();
    MUST(KEPT(poll(&one, 1, AT_ONCE_MS)) == 1 && one.revents & POLLIN, "revents %x", one.revents);
    read_rest();
}

/* Readable in the midst, too: no byte was read yet, then some. */
static void wait_by_poll_between_reads(void)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    char byte;
    ssize_t count;

    MUST(KEPT(poll(&one, 1, 0)) == 0);
    post_shut();
    do {
        MUST(KEPT(poll(&one, 1, AT_ONCE_MS)) == 1 && one.revents & POLLIN);
        count = KEPT(read(fd, &byte, 1));
        take(&byte, count);
    } while (count > 0);
}

static void wait_by_select(void)
{
    fd_set set;
    struct timeval bound = {.tv_sec = AT_ONCE_MS / 1000};

    FD_ZERO(&set);
    FD_SET(fd, &set);
    post_shut();
    MUST(KEPT(select(fd + 1, &set, NULL, NULL, &bound)) == 1 && FD_ISSET(fd, &set));
    read_rest();
}

static int watched(uint32_t events)
{
    int epoll = KEPT(epoll_create1(EPOLL_CLOEXEC));
    struct epoll_event event = {.events = events, .data.fd = fd};

    KEPT(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
    return epoll;
}

static void wait_in(int epoll)
{
    struct epoll_event event;

    MUST(KEPT(await_events(epoll, &event, 1, AT_ONCE_MS)) == 1);
    MUST(event.data.fd == fd && event.events & EPOLLIN, "events %x", event.events);
}

static void wait_by_epoll(void)
{
    post_shut();
    int epoll = watched(EPOLLIN);
    wait_in(epoll);
    wait_in(epoll); /* level triggered: still so */
    read_rest();
    close(epoll);
}

static void wait_by_edge(void)
{
    post_shut();
    int epoll = watched(EPOLLIN | EPOLLET);
    wait_in(epoll);
    read_rest();
    close(epoll);
}

static void registered_before(uint32_t events)
{
    int epoll = watched(events);
    struct epoll_event event;

    MUST(KEPT(await_events(epoll, &event, 1, 0)) == 0);
    post_shut();
    wait_in(epoll);
    read_rest();
    close(epoll);
}

static void epoll_before(void)
{
    registered_before(EPOLLIN);
}

static void edge_before(void)
{
    registered_before(EPOLLIN | EPOLLET);
}

static void exclusive_before(void)
{
    registered_before(EPOLLIN | EPOLLEXCLUSIVE);
}

/* --- reading -------------------------------------------------------------------------------------
 */

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

/* --- writing -------------------------------------------------------------------------------------
 */

enum { CUT = 60 }; /* in the middle of the head */

static struct iovec *in_pieces(void)
{
    static struct iovec pieces[4];

    pieces[0] = (struct iovec){request, CUT};
    pieces[1] = (struct iovec){NULL, 0};
    pieces[2] = (struct iovec){request + CUT, length - CUT - 4}; /* to within the model's name */
    pieces[3] = (struct iovec){request + length - 4, 4};
    return pieces;
}

static void write_whole(void)
{
    MUST((size_t)KEPT(write(fd, request, length)) == length);
    read_rest();
}

static void write_pieces(void)
{
    MUST((size_t)KEPT(writev(fd, in_pieces(), 4)) == length);
    read_rest();
}

static void send_whole(void)
{
    MUST((size_t)KEPT(send(fd, request, length, MSG_NOSIGNAL | MSG_DONTWAIT)) == length);
    read_rest();
}

static void send_to(void)
{
    MUST((size_t)KEPT(sendto(fd, request, length, MSG_NOSIGNAL, NULL, 0)) == length);
    read_rest();
}

static void send_message(void)
{
    struct msghdr message = {.msg_iov = in_pieces(), .msg_iovlen = 4};

    MUST((size_t)KEPT(sendmsg(fd, &message, MSG_NOSIGNAL)) == length);
    read_rest();
}

static void send_messages(void)
{
    struct iovec *pieces = in_pieces();
    struct mmsghdr messages[] = {{.msg_hdr = {.msg_iov = &pieces[0], .msg_iovlen = 1}},
                                 {.msg_hdr = {.msg_iov = &pieces[2], .msg_iovlen = 2}}};

    MUST(KEPT(sendmmsg(fd, messages, 2, 0)) == 2);
    MUST(messages[0].msg_len == CUT && messages[1].msg_len == length - CUT);
    read_rest();
}

/* The body from a file, whose position moves on as if it had been sent. */
static void send_file(void)
{
    char *end = strstr(request, "\r\n\r\n");
    size_t head = (size_t)(end + 4 - request), body = length - head;
    FILE *file = tmpfile();

    MUST(file && fwrite(request, 1, length, file) == length && fflush(file) == 0);
    write_all(fd, request, head);
    MUST(lseek(fileno(file), (off_t)head, SEEK_SET) == (off_t)head);
    MUST((size_t)KEPT(sendfile(fd, fileno(file), NULL, body)) == body);
    MUST(lseek(fileno(file), 0, SEEK_CUR) == (off_t)length);
    read_rest();
    fclose(file);
}

static void send_file64(void)
{
    char *end = strstr(request, "\r\n\r\n");
    size_t head = (size_t)(end + 4 - request), body = length - head;
    off64_t offset = (off64_t)head;
    FILE *file = tmpfile();

    MUST(file && fwrite(request, 1, length, file) == length && fflush(file) == 0);
    write_all(fd, request, head);
    MUST((size_t)KEPT(sendfile64(fd, fileno(file), &offset, body)) == body);
    MUST(offset == (off64_t)length);
    read_rest();
    fclose(file);
}

static void without_blocking(void)
{
    char byte;

    KEPT(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK));
    MUST(read(fd, &byte, 1) == -1 && errno == EAGAIN);
    post_shut();
    read_rest();
    MUST(fcntl(fd, F_GETFL) & O_NONBLOCK);
}

/* --- another thread waits already ----------------------------------------------------------------
 */

static _Atomic pid_t reader;

static void await_sleep(void)
{
    int64_t end = now_ms() + BOUND_S * 1000;

    while (!reader || !sleeps_for_bytes(reader)) {
        MUST(now_ms() < end);
        sched_yield();
    }
}

static void *read_in_thread(void *unused)
{
    (void)unused;
    reader = (pid_t)syscall(SYS_gettid);
    read_rest();
    return NULL;
}

static void *poll_in_thread(void *unused)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};

    (void)unused;
    reader = (pid_t)syscall(SYS_gettid);
    MUST(KEPT(poll(&one, 1, BOUND_S * 1000)) == 1);
    read_rest();
    return NULL;
}

static void *epoll_in_thread(void *unused)
{
    struct epoll_event event;
    int epoll = watched(EPOLLIN | EPOLLET);

    (void)unused;
    reader = (pid_t)syscall(SYS_gettid);
    MUST(KEPT(await_events(epoll, &event, 1, BOUND_S * 1000)) == 1);
    read_rest();
    close(epoll);
    return NULL;
}

static void with_thread(void *(*body)(void *))
{
    pthread_t thread;

    MUST(pthread_create(&thread, NULL, body, NULL) == 0);
    await_sleep();
    int64_t since = now_ms();
    post_shut();
    MUST(pthread_join(thread, NULL) == 0);
    MUST(now_ms() - since < AT_ONCE_MS);
}

static void reader_thread(void)
{
    with_thread(read_in_thread);
}

static void poller_thread(void)
{
    with_thread(poll_in_thread);
}

static void epoller_thread(void)
{
    with_thread(epoll_in_thread);
}

/* --- afterwards ----------------------------------------------------------------------------------
 */

/* A program that has not read its answer yet may go on writing: all is swallowed. */
static void write_again(void)
{
    post_shut();
    for (int i = 0; i < 100; i++)
        post_shut();
    read_rest();
}

static void shut_write(void)
{
    post_shut();
    KEPT(shutdown(fd, SHUT_WR));
    read_rest();
}

static void without_error(void)
{
    int error = -1;
    socklen_t size = sizeof error;
    struct sockaddr_in peer;
    socklen_t peer_size = sizeof peer;

    post_shut();
    KEPT(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size));
    MUST(error == 0);
    KEPT(getpeername(fd, (struct sockaddr *)&peer, &peer_size));
    MUST(ntohs(peer.sin_port) == port);
    read_rest();
}

/* There is no error queue and no urgent data, and bytes may be thrown away unread. */
static void by_odd_flags(void)
{
    char text[100];

    post_shut();
    MUST(recv(fd, text, sizeof text, MSG_ERRQUEUE) == -1 && errno == EAGAIN);
    MUST(recv(fd, text, sizeof text, MSG_OOB) == -1 && errno == EINVAL);
    MUST(KEPT(recv(fd, text, 20, MSG_PEEK)) == 20);
    MUST(KEPT(recv(fd, NULL, 20, MSG_TRUNC)) == 20);
    take(text, 20);
    read_rest();
}

/* --- behind a request that is answered -----------------------------------------------------------
 */

/* Both in one write. */
static void post_both(void)
{
    char both[1024];
    size_t first = request_for(both, port, "m");

    memcpy(both + first, request, length);
    pipelined = true;
    write_all(fd, both, first + length);
}

static void behind_blocking(void)
{
    post_both();
    read_rest();
}

static void behind_in_thread(void)
{
    pthread_t thread;

    pipelined = true;
    MUST(pthread_create(&thread, NULL, read_in_thread, NULL) == 0);
    await_sleep();
    post_both();
    MUST(pthread_join(thread, NULL) == 0);
}

/* All that is there, without blocking; false at the end of the stream. */
static bool drain(void)
{
    char text[64];
    ssize_t count;

    while ((count = recv(fd, text, sizeof text, MSG_DONTWAIT)) > 0)
        take(text, count);
    MUST(count == 0 || errno == EAGAIN);
    return count != 0;
}

static void behind_poll(void)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};

    post_both();
    do
        MUST(KEPT(poll(&one, 1, AT_ONCE_MS)) == 1 && one.revents & POLLIN);
    while (drain());
}

static void behind_events(uint32_t events)
{
    int epoll = watched(events);

    post_both();
    do
        wait_in(epoll);
    while (drain());
    close(epoll);
}

static void behind_edge(void)
{
    behind_events(EPOLLIN | EPOLLET);
}

static void behind_level(void)
{
    behind_events(EPOLLIN);
}

/* Armed anew after each event, as many loops have it. */
static void behind_one_shot(void)
{
    int epoll = watched(EPOLLIN | EPOLLONESHOT);
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.fd = fd};

    post_both();
    for (;;) {
        wait_in(epoll);
        if (!drain())
            break;
        KEPT(epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event));
    }
    close(epoll);
}

static const struct mode modes[] = {
    {"poll", wait_by_poll},
    {"poll-before", wait_by_poll_between_reads},
    {"select", wait_by_select},
    {"epoll", wait_by_epoll},
    {"epoll-edge", wait_by_edge},
    {"epoll-before", epoll_before},
    {"epoll-edge-before", edge_before},
    {"epoll-exclusive", exclusive_before},
    {"read", by_read},
    {"read-chk", by_read_chk},
    {"recv", by_recv},
    {"recv-chk", by_recv_chk},
    {"recvfrom", by_recvfrom},
    {"one-byte", byte_by_byte},
    {"readv", by_readv},
    {"recvmsg", by_recvmsg},
    {"recvmmsg", by_recvmmsg},
    {"peek", by_peek},
    {"wait-all", by_wait_all},
    {"dont-wait", by_dont_wait},
    {"dup", by_dup},
    {"duped-before", by_duped_before},
    {"write", write_whole},
    {"writev", write_pieces},
    {"send", send_whole},
    {"sendto", send_to},
    {"sendmsg", send_message},
    {"sendmmsg", send_messages},
    {"sendfile", send_file},
    {"sendfile64", send_file64},
    {"non-blocking", without_blocking},
    {"reader-thread", reader_thread},
    {"poller-thread", poller_thread},
    {"epoller-thread", epoller_thread},
    {"write-again", write_again},
    {"shutdown-write", shut_write},
    {"errors", without_error},
    {"odd-flags", by_odd_flags},
    {"behind-blocking", behind_blocking},
    {"behind-thread", behind_in_thread},
    {"behind-poll", behind_poll},
    {"behind-edge", behind_edge},
    {"behind-level", behind_level},
    {"behind-one-shot", behind_one_shot},
};

int main(int argc, char **argv)
{
    MUST(argc == 4);
    port = (unsigned)atoi(argv[2]);
    length = request_for(request, port, "shut");
    unsigned before = open_descriptors();
    fd = connected(port);
    if (atoi(argv[3]))
        call_on(fd, port, "m");
    RUN_MODE(modes, argv[1]);
    fwrite(got, 1, have, stdout);
    if (strcmp(argv[1], "duped-before") == 0)
        return 0;
    KEPT(close(fd));
    MUST(open_descriptors() == before);
    return 0;
}
