/*
 * bench_sock.c - post.h over plain socket calls.
 */
#include "post.h"

static bool link_begin(int fd)
{
    return fd >= 0;
}

static ssize_t link_send(int fd, const void *bytes, size_t size)
{
    return send(fd, bytes, size, MSG_NOSIGNAL);
}

static ssize_t link_receive(int fd, void *bytes, size_t size)
{
    return recv(fd, bytes, size, 0);
}

static void link_end(int fd)
{
    (void)fd;
}

int main(int argc, char **argv)
{
    return post_main(argc, argv);
}
