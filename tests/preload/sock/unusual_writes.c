/*
 * unusual_writes.c - writes, connects and tunnels that few programs make, and that must not hide
 * the connection.
 *
 *   unusual_writes MODE PORT
 *
 * Prints "fine" when all went as without a library between, and how many calls of "m" went well
 * that the hooks can see.
 */
#include "called.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

enum { FILLING = 1 << 19 };

/* A request whose model comes last: it is known only to who has followed every byte. */
static size_t long_request(char *text)
{
    static const char begin[] = "{\"_\":\"", end[] = "\",\"messages\":[],\"model\":\"m\"}";
    size_t length = (size_t)sprintf(
        text,
        "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nContent-Length: %zu\r\n\r\n%s",
        port, sizeof begin - 1 + FILLING + sizeof end - 1, begin);

    memset(text + length, 'x', FILLING);
    memcpy(text + length + FILLING, end, sizeof end - 1);
    return length + FILLING + sizeof end - 1;
}

/* Takes a little at a time, and never waits. */
static int narrow(void)
{
    int fd = connected(port), small = 4096;

    KEPT(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small));
    KEPT(fcntl(fd, F_SETFL, O_NONBLOCK));
    return fd;
}

static void await(int fd, short events)
{
    struct pollfd one = {fd, events, 0};

    MUST(KEPT(poll(&one, 1, BOUND_S * 1000)) == 1);
}

static void send_rest(int fd, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t count = write(fd, text, length);
        MUST(count > 0 || errno == EAGAIN);
        if (count < 0)
            await(fd, POLLOUT);
        text += count > 0 ? count : 0;
        length -= count > 0 ? (size_t)count : 0;
    }
}

static void end_call(int fd)
{
    KEPT(fcntl(fd, F_SETFL, 0));
    MUST(read_status(fd) == 200);
    calls++;
    call_again(fd);
    KEPT(close(fd));
}

/* --- writes -------------------------------------------------------------------------------------
 */

/* The first of two messages leaves in part: the second does not. */
static void short_messages(void)
{
    char *text = malloc(FILLING + 1024);
    size_t length = long_request(text), half = length / 2;
    struct iovec parts[] = {{text, half}, {text + half, length - half}};
    struct mmsghdr two[] = {{.msg_hdr = {.msg_iov = &parts[0], .msg_iovlen = 1}},
                            {.msg_hdr = {.msg_iov = &parts[1], .msg_iovlen = 1}}};
    int fd = narrow();

    MUST(KEPT(sendmmsg(fd, two, 2, 0)) == 1);
    MUST(two[0].msg_len > 0 && two[0].msg_len < half && two[1].msg_len == 0);
    send_rest(fd, text + two[0].msg_len, length - two[0].msg_len);
    end_call(fd);
    free(text);
}

static int file_of(const char *text, size_t length)
{
    int file = KEPT(memfd_create("request", MFD_CLOEXEC));

    MUST(write(file, text, length) == (ssize_t)length && lseek(file, 0, SEEK_SET) == 0);
    return file;
}

/* "All that there is", as programs say it. */
static void whole_file(void)
{
    char request[512];
    size_t length = request_for(request, port, "m");
    int fd = connected(port), file = file_of(request, length);

    MUST((size_t)KEPT(sendfile(fd, file, NULL, 0x7ffffffffffff000)) == length);
    MUST(lseek(file, 0, SEEK_CUR) == (off_t)length);
    KEPT(close(file));
    end_call(fd);
}

/* What was shown in a first, short one leaves in many that are shorter yet. */
static void little_of_a_file(void)
{
    char *text = malloc(FILLING + 1024);
    size_t length = long_request(text);
    int fd = narrow(), file = file_of(text, length);
    off_t at = 0;

    MUST(KEPT(sendfile(fd, file, &at, length)) > 0 && at > 0 && (size_t)at < length / 2);
    for (int i = 0; (size_t)at < length; i++) {
        if (sendfile(fd, file, &at, i < 100 ? 1000 : length - (size_t)at) < 0) {
            MUST(errno == EAGAIN);
            await(fd, POLLOUT);
        }
    }
    KEPT(close(file));
    end_call(fd);
    free(text);
}

/* The kernel cannot read it either. What comes after passes unwatched. */
static void unreadable_file(void)
{
    char path[] = "unreadable-XXXXXX";
    int fd = called(), file = KEPT(mkostemp(path, O_CLOEXEC)), only = KEPT(open(path, O_WRONLY));

    MUST(write(file, "text", 4) == 4);
    MUST(sendfile(fd, only, NULL, 4) == -1 && errno == EBADF);
    KEPT(unlink(path));
    KEPT(close(file));
    KEPT(close(only));
    call_on(fd, port, "m");
    KEPT(close(fd));
}

/* Longer than the kernel takes in one call, which takes what there is room for: it is not followed.
 * What the body goes on with looks like a request that would be refused, and must not be. */
static void overlong_part(void)
{
    const size_t size = 0x80000000, body = 1 << 20;
    char inner[512], *text = mmap(NULL, size, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    size_t length = request_for(inner, port, "shut");
    struct iovec part = {text, size};
    int fd = narrow(), large = 4 << 20;

    MUST(text != MAP_FAILED);
    size_t whole =
        body + (size_t)sprintf(text,
                               "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n"
                               "Content-Length: %zu\r\n\r\n",
                               port, body);
    ssize_t count = KEPT(writev(fd, &part, 1));
    MUST(count > 0 && (size_t)count + length < whole);
    KEPT(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &large, sizeof large));
    await(fd, POLLOUT);
    MUST(write(fd, inner, length) == (ssize_t)length);
    send_rest(fd, text + count + length, whole - (size_t)count - length);
    KEPT(fcntl(fd, F_SETFL, 0));
    MUST(read_status(fd) == 200);
    KEPT(close(fd));
    MUST(munmap(text, size) == 0);
}

/* --- connects -----------------------------------------------------------------------------------
 */

/* Has connected some time ago, and nobody has asked how it went. */
static int unasked(void)
{
    int fd = KEPT(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    struct pollfd one = {fd, POLLIN, 0};

    MUST(connect_to(fd, port) == -1 && errno == EINPROGRESS);
    await(fd, POLLOUT);
    MUST(poll(&one, 1, 400) == 0);
    return fd;
}

static void unasked_write(void)
{
    int fd = unasked();

    post(fd, port, "m");
    await(fd, POLLIN);
    end_call(fd);
}

static void unasked_shutdown(void)
{
    int fd = unasked();

    KEPT(shutdown(fd, SHUT_RDWR));
    KEPT(close(fd));
}

/* --- proxies ------------------------------------------------------------------------------------
 */

/* A tunnel to no port that there is, which nobody makes; then a request to the same server. */
static void no_tunnel(void)
{
    static const char *const places[] = {"127.0.0.1:99999", "127.0.0.1:0", "127.0.0.1:4x3",
                                         "127.0.0.1"};
    char text[512];

    for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
        int fd = connected(port);
        write_all(
            fd, text,
            (size_t)sprintf(text, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", places[i], places[i]));
        MUST(read_status(fd) == 405);
        call_on(fd, port, "m");
        KEPT(close(fd));
    }
}

static const struct mode modes[] = {
    {"short-messages", short_messages},     {"whole-file", whole_file},
    {"little-of-a-file", little_of_a_file}, {"unreadable-file", unreadable_file},
    {"overlong-part", overlong_part},       {"no-tunnel", no_tunnel},
    {"unasked-write", unasked_write},       {"unasked-shutdown", unasked_shutdown},
};

int main(int argc, char **argv)
{
    MUST(argc == 3);
    run_called(modes, sizeof modes / sizeof *modes, argv[1], argv[2]);
    return 0;
}
