/*
 * storm.c - one call after the other, each on a connection of its own, until standard input ends.
 *
 *   storm PORT MODEL...
 *
 * Calls of the first model must go well, whatever becomes of the others.
 */
#include "sock.h"

#include <poll.h>
#include <signal.h>

static bool goes_on(void)
{
    struct pollfd input = {.fd = 0, .events = POLLIN};

    return poll(&input, 1, 0) == 0;
}

/* Without time-outs: with one, waits of a process that was stopped end with EINTR (signal(7)). The
 * test ends who hangs. */
static int connected_for_long(unsigned port)
{
    int fd = KEPT(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));

    KEPT(connect_to(fd, port));
    return fd;
}

int main(int argc, char **argv)
{
    char text[4096];

    MUST(argc > 2);
    signal(SIGPIPE, SIG_IGN);
    unsigned port = (unsigned)atoi(argv[1]);
    for (int i = 2; goes_on(); i = i + 1 < argc ? i + 1 : 2) {
        int fd = connected_for_long(port);
        size_t length = request_for(text, port, argv[i]);
        if (i == 2)
            call_on(fd, port, argv[i]);
        else if (write(fd, text, length) == (ssize_t)length)
            read_status(fd);
        close(fd);
    }
    return 0;
}
