/*
 * called.h - for programs that count their good calls of "m", all to one port.
 */
#include "sock.h"

static unsigned port, calls;

/* On a new connection, which stays open. */
static int called(void)
{
    int fd = connected(port);

    call_on(fd, port, "m");
    calls++;
    return fd;
}

static void call_again(int fd)
{
    call_on(fd, port, "m");
    calls++;
}
