/*
 * interrupted.c - what a handler does that came in the middle of our own work. With interrupting.c
 * behind us, and a match that judges every host.
 *
 *   interrupted jumps|forks PORT
 *
 * Prints "fine" and the calls of "m" that went well beside it.
 */
#include "sock.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>

static unsigned port;
static sigjmp_buf before;
static atomic_bool *interrupt;
static int fd;

static void jump(int number)
{
    (void)number;
    siglongjmp(before, 1);
}

/* How often this thread has gone to sleep: what a wait comes to, whatever else the machine does. */
static long sleeps(void)
{
    struct rusage usage;

    KEPT(getrusage(RUSAGE_THREAD, &usage));
    return usage.ru_nvcsw;
}

/* Each passes, and no more than one waits for who is gone: some fifty times, a millisecond each. */
static void *use(void *unused)
{
    long before_all = sleeps();
    int error;
    socklen_t size = sizeof error;

    for (unsigned i = 0; i < 20; i++)
        KEPT(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size));
    long slept = sleeps() - before_all;
    MUST(slept < 100, "20 questions slept %ld times", slept);
    for (unsigned i = 0; i < 20; i++)
        whole_call(port, "m");
    return unused;
}

static void jumps(void)
{
    pthread_t thread;

    signal(SIGUSR1, jump);
    fd = KEPT(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    connect_to(fd, port);
    if (sigsetjmp(before, 1) == 0) {
        *interrupt = true;
        connect_to(fd, port); /* how did it go? */
        MUST(!"interrupted");
    }
    MUST(pthread_create(&thread, NULL, use, NULL) == 0);
    MUST(pthread_join(thread, NULL) == 0);
    KEPT(close(fd));
    printf("fine 20\n");
}

static pid_t child = -1;

static void split(int number)
{
    (void)number;
    child = fork();
}

/* The child comes back into our work, and goes on. */
static void forks(void)
{
    int status, kept = connected(port);

    signal(SIGUSR1, split);
    call_on(kept, port, "m");
    fd = KEPT(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    *interrupt = true;
    connect_to(fd, port); /* the child's is the same socket: it is connected already */
    MUST(child >= 0);
    KEPT(close(fd));
    KEPT(close(kept));
    for (unsigned i = 0; i < 50; i++)
        whole_call(port, "m");
    if (child == 0)
        _exit(0);
    MUST(waitpid(child, &status, 0) == child && status == 0, "status %x", status);
    printf("fine 101\n");
}

static const struct mode modes[] = {{"jumps", jumps}, {"forks", forks}};

int main(int argc, char **argv)
{
    MUST(argc == 3);
    interrupt = dlsym(RTLD_DEFAULT, "interrupt");
    MUST(interrupt);
    port = (unsigned)atoi(argv[2]);
    RUN_MODE(modes, argv[1]);
    return 0;
}
