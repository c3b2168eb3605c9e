/*
 * descriptors.h - for programs whose numbers change hands: whoever has one now, a request that
 * would be refused on a connection passes as it is.
 *
 *   PROGRAM MODE PORT
 *
 * Prints "fine" when all went as without a library between, and how many calls of "m" went well
 * that the hooks can see.
 */
#ifndef BREAKER_TESTS_DESCRIPTORS_H
#define BREAKER_TESTS_DESCRIPTORS_H

#include "called.h"

/* What is written to the number, a refused request, arrives at the other end as it is. */
static inline void must_be_plain_pipe(int write_end, int read_end)
{
    char request[512], text[512];
    size_t length = request_for(request, port, "shut");

    MUST((size_t)KEPT(write(write_end, request, length)) == length);
    MUST((size_t)KEPT(read(read_end, text, sizeof text)) == length);
    MUST(memcmp(text, request, length) == 0);
}

/* The same for a file, opened anew on the number `fd`. */
static inline void must_be_plain_file(int fd)
{
    char request[512], text[512], path[] = "reused-XXXXXX";
    size_t length = request_for(request, port, "shut");

    MUST(mkostemp(path, O_CLOEXEC) == fd);
    MUST((size_t)KEPT(write(fd, request, length)) == length);
    MUST((size_t)KEPT(pread(fd, text, sizeof text, 0)) == length);
    MUST(memcmp(text, request, length) == 0);
    MUST(lseek(fd, 0, SEEK_SET) == 0);
    MUST((size_t)KEPT(read(fd, text, sizeof text)) == length);
    MUST(memcmp(text, request, length) == 0);
    KEPT(unlink(path));
    KEPT(close(fd));
}

#endif
