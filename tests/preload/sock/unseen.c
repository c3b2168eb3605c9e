/*
 * unseen.c - numbers that change hands past the hooks, and what is read and written there.
 *
 *   unseen MODE PORT     descriptors.h tells what it prints
 */
#include "descriptors.h"
#include "waiting.h"

#include <sys/mman.h>

/* --- reuse --------------------------------------------------------------------------------------
 */

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
    {"reused-by-file", reused_by_file},
    {"reused-by-pipe", reused_by_pipe},
    {"reused-by-pair", reused_by_pair},
    {"reused-by-accept", reused_by_accept},
    {"reused-by-map", reused_by_map},
    {"reused-by-connection", reused_by_connection},
    {"another-way", by_another_way},
    {"stdio", by_stdio},
    {"read-elsewhere", read_elsewhere},
};

int main(int argc, char **argv)
{
    MUST(argc == 3);
    run_called(modes, sizeof modes / sizeof *modes, argv[1], argv[2]);
    return 0;
}
