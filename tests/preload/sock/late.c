/*
 * late.c - a thread comes back from a read that saw the end of a connection whose number is
 * another's by then.
 *
 *   late HOW PORT COUNT
 *
 * HOW: "end" or "answer", what it comes back with. With lingering.c behind us. Prints "fine" and
 * the calls of "m" that went well.
 */
#include "sock.h"

#include <dlfcn.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>

static int fd;

static void *read_late(void *unused)
{
    char text[512];

    MUST(read(fd, text, sizeof text) >= 0);
    return unused;
}

int main(int argc, char **argv)
{
    atomic_uint *linger = dlsym(RTLD_DEFAULT, "linger");
    atomic_uint *lingering = dlsym(RTLD_DEFAULT, "lingering");
    unsigned port = (unsigned)atoi(argv[1]), rounds = (unsigned)atoi(argv[2]);

    MUST(argc == 3 && linger && lingering);
    for (unsigned i = 0; i < rounds; i++) {
        pthread_t reader;
        int old = fd = connected(port);
        call_on(fd, port, "old");
        *linger = 1;
        MUST(pthread_create(&reader, NULL, read_late, NULL) == 0);
        KEPT(shutdown(fd, SHUT_WR)); /* the server ends it then */
        while (*lingering == i)
            sched_yield();
        KEPT(close(fd));
        fd = connected(port);
        MUST(fd == old);
        post(fd, port, "m");
        *linger = 0;
        syscall(SYS_futex, linger, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
        MUST(pthread_join(reader, NULL) == 0);
        int status = read_status(fd);
        MUST(status == 200, "but %d", status);
        KEPT(close(fd));
    }
    printf("fine %u\n", rounds);
    return 0;
}
