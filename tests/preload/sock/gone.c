/*
 * gone.c - connections whose other side goes away, or whose number goes to a file.
 *
 *   gone MODE PORT HOLE     connects.h tells what these are
 */
#include "connects.h"

#include <signal.h>
#include <sys/syscall.h>

static volatile sig_atomic_t pipes;

static void on_pipe(int number)
{
    (void)number;
    pipes++;
}

static void reset(int peer)
{
    struct linger hard = {.l_onoff = 1, .l_linger = 0};

    KEPT(setsockopt(peer, SOL_SOCKET, SO_LINGER, &hard, sizeof hard));
    KEPT(close(peer));
}

/* From here on the number is a file's, and no hook saw it happen. */
static void become_file(int fd, int file)
{
    FILE *stream = fdopen(fd, "r");

    MUST(stream && fclose(stream) == 0);
    MUST(KEPT(fcntl(file, F_DUPFD, fd)) == fd);
}

/* What comes of connects and handshakes past our hooks: a file's end is no peer's, its close no
 * connect's; and an answer that a system call reads is no hang. */
static void handshake_elsewhere(void)
{
    int file = KEPT(open("/dev/null", O_RDONLY)), peer, fd = new_socket(SOCK_NONBLOCK);
    char answer[4];

    SHOW(connect_to(fd, hole));
    become_file(fd, file);
    SHOW(close(fd));
    fd = connected_here(&peer);
    SHOW(write(fd, "\x16\x03\x01", 3));
    become_file(fd, file);
    SHOW(read(fd, answer, 1));
    SHOW(close(fd));
    SHOW(close(file));
    SHOW(close(peer));
    fd = connected_here(&peer);
    SHOW(write(fd, "\x16\x03\x01", 3));
    SHOW(write(peer, "\x16\x03\x03", 3));
    SHOW(syscall(SYS_read, fd, answer, 3));
    SHOW(close(fd));
    SHOW(close(peer));
}

static void gone(void)
{
    int peer, fd = connected_here(&peer);
    char text[512];
    struct sigaction action = {.sa_handler = on_pipe};

    sigaction(SIGPIPE, &action, NULL);
    post(fd, port, "m");
    reset(peer);
    SHOW(wait_for(fd, POLLIN));
    SHOW(read(fd, text, sizeof text));
    SHOW(read(fd, text, sizeof text));
    SHOW(write(fd, "x", 1));
    SHOW(pipes);
    SHOW(send(fd, "x", 1, MSG_NOSIGNAL));
    SHOW(pipes);
    SHOW(close(fd));
    fd = connected_here(&peer);
    post(fd, port, "m");
    SHOW(read(peer, text, sizeof text) > 0);
    KEPT(close(peer));
    SHOW(wait_for(fd, POLLIN));
    SHOW(read(fd, text, sizeof text));
    SHOW(read(fd, text, sizeof text));
    SHOW(shutdown(fd, SHUT_WR));
    SHOW(write(fd, "x", 1));
    SHOW(pipes);
    SHOW(close(fd));
    fd = connected_here(&peer);
    post(fd, port, "m");
    SHOW(shutdown(fd, SHUT_RD));
    SHOW(read(fd, text, sizeof text));
    SHOW(read(peer, text, sizeof text) > 0);
    SHOW(close(fd));
    SHOW(close(peer));
}

static const struct mode modes[] = {
    {"handshake-elsewhere", handshake_elsewhere},
    {"gone", gone},
};

int main(int argc, char **argv)
{
    run_connects(modes, sizeof modes / sizeof *modes, argc, argv);
    return 0;
}
