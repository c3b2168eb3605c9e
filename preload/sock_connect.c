/*
 * sock_connect.c - connect: answers 0, once, for the descriptor of a synthetic answer, which
 * libcurl 7.88.0 and 7.88.1 connect although they were told that it is connected (FIELD-NOTES 2.4).
 */
#include "guard.h"
#include "real.h"
#include "synth_mark.h"

EXPORT int connect(int fd, const struct sockaddr *address, socklen_t length)
{
    if (synth_mark_take(fd))
        return 0;
    return real_connect()(fd, address, length);
}
