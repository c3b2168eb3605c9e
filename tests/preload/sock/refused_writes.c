/*
 * refused_writes.c - one refused POST in many ways of writing it, and what may be done afterwards.
 *
 *   refused_writes MODE PORT KEPT     refused.h tells what these are
 */
#include "refused.h"

#include <sys/sendfile.h>
#include <sys/uio.h>

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

static const struct mode modes[] = {
    {"write", write_whole},
    {"writev", write_pieces},
    {"send", send_whole},
    {"sendto", send_to},
    {"sendmsg", send_message},
    {"sendmmsg", send_messages},
    {"sendfile", send_file},
    {"sendfile64", send_file64},
    {"non-blocking", without_blocking},
    {"write-again", write_again},
    {"shutdown-write", shut_write},
    {"errors", without_error},
    {"odd-flags", by_odd_flags},
};

int main(int argc, char **argv)
{
    run_refused(modes, sizeof modes / sizeof *modes, argc, argv);
    end_refused();
    return 0;
}
