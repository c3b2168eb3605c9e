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

/* The mode of that name, which leaves no descriptor behind; says "fine" and how many calls there
 * were. */
static inline void run_called(const struct mode *modes, size_t count, const char *name,
                              const char *to)
{
    port = (unsigned)atoi(to);
    unsigned before = open_descriptors();
    run_mode(modes, count, name);
    printf("fine %u\n", calls);
    MUST(open_descriptors() == before);
}
