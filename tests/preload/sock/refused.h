/*
 * refused.h - for programs that are refused one POST: what they read of it has to be our answer.
 *
 *   PROGRAM MODE PORT KEPT
 *
 * KEPT 1: a call of the model "m" goes well on the connection first. Then a POST of "shut", which
 * the library has to refuse. Prints all that is read of it; the stream has to end behind.
 */
#ifndef BREAKER_TESTS_REFUSED_H
#define BREAKER_TESTS_REFUSED_H

#include "sock.h"

enum { AT_ONCE_MS = 2000 };

static unsigned port;
static int fd;

static char request[512];
static size_t length;

static bool pipelined; /* another answer comes before */
static char got[8192];
static size_t have;

static inline void take(const void *data, ssize_t count)
{
    MUST(count >= 0, "%zd", count);
    MUST(have + (size_t)count <= sizeof got);
    memcpy(got + have, data, (size_t)count);
    have += (size_t)count;
    MUST(pipelined || memcmp(got, "HTTP/1.1 503", have < 12 ? have : 12) == 0, "refused: %.12s",
         got);
}

static inline void post_shut(void)
{
    write_all(fd, request, length);
}

/* What is left, to the end of the stream; then the end again, and again. */
static inline void read_rest(void)
{
    char text[1024];
    ssize_t count;

    while ((count = KEPT(read(fd, text, sizeof text))) > 0)
        take(text, count);
    MUST(KEPT(read(fd, text, sizeof text)) == 0);
    MUST(KEPT(recv(fd, text, sizeof text, MSG_PEEK)) == 0);
}

static unsigned before; /* so many descriptors were open */

/* The mode of that name, and what it read. */
static inline void run_refused(const struct mode *modes, size_t count, int argc, char **argv)
{
    MUST(argc == 4);
    port = (unsigned)atoi(argv[2]);
    length = request_for(request, port, "shut");
    before = open_descriptors();
    fd = connected(port);
    if (atoi(argv[3]))
        call_on(fd, port, "m");
    run_mode(modes, count, argv[1]);
    fwrite(got, 1, have, stdout);
}

static inline void end_refused(void)
{
    KEPT(close(fd));
    MUST(open_descriptors() == before);
}

#endif
