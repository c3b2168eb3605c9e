/*
 * signals.c - handlers that make calls while the program is anywhere: in malloc, in a hook of its
 * own call.
 *
 *   signals MODE PORT COUNT
 *
 * Prints "fine MAIN HANDLER": calls of "m" that went well on either side.
 */
#include "sock.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>

static unsigned port, total;
static atomic_int in_handler_ended; /* lock-free: handlers of all threads add to it */
static char request[512];           /* the handler's, of "h" */
static size_t length;

/* Waits are not bounded by the socket: SO_RCVTIMEO would end them with EINTR in spite of
 * SA_RESTART. */
static int plain_connected(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

    MUST(fd >= 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect_to(fd, port) != 0) /* Linux goes on with an interrupted one */
        MUST(errno == EISCONN || errno == EINTR || errno == EALREADY);
    return fd;
}

/* Nothing but async-signal-safe calls. */
static void on_alarm(int number)
{
    char text[256];
    int kept = errno;

    (void)number;
    int fd = plain_connected();
    MUST(write(fd, request, length) == (ssize_t)length);
    MUST(read(fd, text, sizeof text) > 12 && memcmp(text, "HTTP/1.1 200", 12) == 0);
    MUST(close(fd) == 0);
    atomic_fetch_add(&in_handler_ended, 1);
    errno = kept;
}

static void every(long microseconds)
{
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    struct itimerval timer = {{0, microseconds}, {0, microseconds}};

    sigaction(SIGALRM, &action, NULL);
    MUST(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

static void stop(void)
{
    every(0);
    signal(SIGALRM, SIG_IGN);
}

static void churn(unsigned round)
{
    void *blocks[16];

    for (unsigned i = 0; i < 16; i++)
        blocks[i] = malloc(1 + (round * 131 + i * 977) % 20000);
    for (unsigned i = 0; i < 16; i++)
        free(blocks[i * 7 % 16]);
}

static void call_plainly(int fd)
{
    post(fd, port, "m");
    int status = read_status(fd);
    MUST(status == 200, "but %d", status);
}

/* New connections and a kept one, in turns, with much malloc between. */
static void calls(void)
{
    int kept = plain_connected();

    every(1000);
    for (unsigned i = 0; i < total; i += 2) {
        int fd = plain_connected();
        call_plainly(fd);
        MUST(close(fd) == 0);
        churn(i);
        call_plainly(kept);
    }
    stop();
    MUST(close(kept) == 0);
}

static void *call_in_thread(void *unused)
{
    for (unsigned i = 0; i < total / 4; i++) {
        int fd = plain_connected();
        call_plainly(fd);
        MUST(close(fd) == 0);
        churn(i);
    }
    return unused;
}

/* The handler runs in any thread, at any place of its own and of the others' calls. */
static void threads(void)
{
    pthread_t others[4];

    every(500);
    for (int i = 0; i < 4; i++)
        MUST(pthread_create(&others[i], NULL, call_in_thread, NULL) == 0);
    for (int i = 0; i < 4; i++)
        MUST(pthread_join(others[i], NULL) == 0);
    stop();
}

/* The first call of all is made by the handler: whatever is made at first sight is made there. */
static void first(void)
{
    every(200);
    for (unsigned i = 0; in_handler_ended < (int)total; i++)
        churn(i);
    stop();
    total = 0;
}

/* The first calls of all, in a handler on a stack of its own. */
static void small_stack(void)
{
    static char memory[16384];
    const stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART | SA_ONSTACK};

    MUST(sigaltstack(&stack, NULL) == 0);
    sigaction(SIGUSR1, &action, NULL);
    for (unsigned i = 0; i < total; i++)
        raise(SIGUSR1);
    total = 0;
}

static sigjmp_buf before_wait;

static void jump(int number)
{
    (void)number;
    siglongjmp(before_wait, 1);
}

/* A time-out as programs made it before there were others: out of the middle of a read. */
static void jumps(void)
{
    struct sigaction action = {.sa_handler = jump};
    struct itimerval timer = {{0, 0}, {0, 5000}};
    static char text[512];

    sigaction(SIGALRM, &action, NULL);
    for (unsigned i = 0; i < total; i++) {
        volatile int fd = plain_connected();
        if (sigsetjmp(before_wait, 1) == 0) {
            write_all(fd, text, request_for(text, port, "m") - 1); /* never answered */
            MUST(setitimer(ITIMER_REAL, &timer, NULL) == 0);
            read(fd, text, sizeof text);
            MUST(!"back from read");
        }
        MUST(close(fd) == 0);
        churn(i);
        int other = plain_connected();
        call_plainly(other);
        MUST(close(other) == 0);
    }
}

static const struct mode modes[] = {{"calls", calls},
                                    {"threads", threads},
                                    {"first", first},
                                    {"jumps", jumps},
                                    {"small-stack", small_stack}};

int main(int argc, char **argv)
{
    MUST(argc == 4);
    port = (unsigned)atoi(argv[2]);
    total = (unsigned)atoi(argv[3]);
    length = request_for(request, port, "h");
    unsigned before = open_descriptors();
    RUN_MODE(modes, argv[1]);
    printf("fine %u %d\n", total, in_handler_ended);
    MUST(open_descriptors() == before);
    return 0;
}
