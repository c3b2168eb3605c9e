/*
 * threads.c - many threads with connections of their own, shared ones, and each other's.
 *
 *   threads MODE PORT COUNT
 *
 * COUNT: rounds of each thread. Prints "fine" and how many calls of "m" went well.
 */
#include "sock.h"
#include "waiting.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <limits.h>
#include <sys/sendfile.h>
#include <sys/wait.h>

enum { THREADS = 64, POOL = 16 };

static unsigned port, rounds;
static atomic_uint calls;

/* Kept connections that any thread takes and gives back, as an HTTP client's pool. */
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static int pool[POOL];
static unsigned pooled;

static int pool_take(void)
{
    int fd = -1;

    pthread_mutex_lock(&pool_lock);
    if (pooled > 0)
        fd = pool[--pooled];
    pthread_mutex_unlock(&pool_lock);
    return fd >= 0 ? fd : connected(port);
}

static void pool_give(int fd)
{
    pthread_mutex_lock(&pool_lock);
    if (pooled < POOL) {
        pool[pooled++] = fd;
        fd = -1;
    }
    pthread_mutex_unlock(&pool_lock);
    if (fd >= 0)
        KEPT(close(fd));
}

static void *call_in_turns(void *unused)
{
    for (unsigned i = 0; i < rounds; i++) {
        whole_call(port, "m");
        int fd = pool_take();
        call_on(fd, port, "m");
        pool_give(fd);
        atomic_fetch_add(&calls, 2);
    }
    return unused;
}

/* One thread writes, another reads: the usual split of a duplex client. */
struct duplex {
    int fd;
    atomic_uint answers;
};

static void *read_answers(void *connection)
{
    struct duplex *duplex = connection;
    char text[512];

    while (duplex->answers < rounds) {
        ssize_t count = KEPT(read(duplex->fd, text, sizeof text));
        MUST(count > 0);
        for (ssize_t i = 0; i < count; i++)
            duplex->answers += text[i] == '}'; /* one in each */
    }
    atomic_fetch_add(&calls, rounds);
    return NULL;
}

static void *write_requests(void *unused)
{
    pthread_t reader;
    struct duplex duplex = {.fd = connected(port)};

    MUST(pthread_create(&reader, NULL, read_answers, &duplex) == 0);
    for (unsigned i = 0; i < rounds; i++) {
        while (i - duplex.answers >= 8) /* more are not followed: shim_flow.h */
            sched_yield();
        post(duplex.fd, port, "m");
    }
    MUST(pthread_join(reader, NULL) == 0);
    KEPT(close(duplex.fd));
    return unused;
}

/*
 * Each fd is closed once, by its owner or by whoever was quicker, as one closes to wake another up.
 * The owner then uses a number that may be another thread's by now: the bytes of both mix, and
 * nothing is promised but that the program goes on.
 */
static atomic_int open_now[THREADS];

static void close_of(unsigned index)
{
    int fd = atomic_exchange(&open_now[index], -1);

    if (fd >= 0)
        MUST(close(fd) == 0);
}

static void *use_and_close(void *number)
{
    unsigned index = (unsigned)(uintptr_t)number;
    char text[512];

    for (unsigned i = 0; i < rounds; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        MUST(fd >= 0);
        bound_waits(fd, 50);
        atomic_store(&open_now[index], fd);
        size_t length = request_for(text, port, "m");
        if (connect_to(fd, port) == 0 && send(fd, text, length, MSG_NOSIGNAL) > 0) {
            close_of((index * 7 + i) % THREADS);
            recv(fd, text, sizeof text, 0);
        }
        close_of(index);
    }
    return NULL;
}

static _Atomic pid_t waiter;

/* A thread that waits for an answer which never comes. */
static void *wait_for_nothing(void *connection)
{
    char text[512];

    waiter = gettid();
    return (void *)(intptr_t)read(*(int *)connection, text, sizeof text);
}

/* Its request lacks the last byte. The thread is in its read in every other pair of rounds, else
 * maybe before it: both have to do. */
static int half_asked(pthread_t *thread, unsigned round)
{
    static int fd;
    char text[512];

    fd = connected(port);
    write_all(fd, text, request_for(text, port, "m") - 1);
    int64_t end = now_ms() + BOUND_S * 1000;
    waiter = 0;
    MUST(pthread_create(thread, NULL, wait_for_nothing, &fd) == 0);
    while (round % 4 < 2 && (!waiter || !sleeps_for_bytes(waiter))) {
        MUST(now_ms() < end);
        sched_yield();
    }
    return fd;
}

/* Ended by another thread's shutdown, as HTTP clients end theirs. */
static void woken(void)
{
    for (unsigned i = 0; i < rounds; i++) {
        pthread_t thread;
        void *result = NULL;
        int fd = half_asked(&thread, i);
        KEPT(shutdown(fd, i % 2 ? SHUT_RD : SHUT_RDWR));
        MUST(pthread_join(thread, &result) == 0 && (intptr_t)result <= 0);
        KEPT(close(fd));
        whole_call(port, "m");
        calls++;
    }
}

/* Ended in the middle of a read: whoever holds something there holds it for ever. */
static void cancelled(void)
{
    for (unsigned i = 0; i < rounds; i++) {
        pthread_t thread;
        void *result = NULL;
        int fd = half_asked(&thread, i);
        MUST(pthread_cancel(thread) == 0);
        MUST(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
        KEPT(close(fd));
        whole_call(port, "m");
        calls++;
    }
}

/* A cancellation that is due acts where it would without us, and leaves nothing held. */
static bool sent_file;

static void *send_file_cancelled(void *connection)
{
    char text[512];
    int fd = *(int *)connection;
    size_t length = request_for(text, port, "m");
    FILE *file = tmpfile();

    MUST(file && fwrite(text, 1, length, file) == length && fflush(file) == 0);
    MUST(pthread_cancel(pthread_self()) == 0);
    sent_file =
        sendfile(fd, fileno(file), &(off_t){0}, length) == (ssize_t)length; /* no such point */
    fclose(file);
    pthread_testcancel();
    MUST(!"here");
    return NULL;
}

static void *write_cancelled(void *connection)
{
    char text[512];

    MUST(pthread_cancel(pthread_self()) == 0);
    write(*(int *)connection, text, request_for(text, port, "m")); /* a point: nothing is written */
    MUST(!"here");
    return NULL;
}

static void run_cancelled(void *(*body)(void *), int *fd)
{
    pthread_t thread;
    void *result = NULL;

    MUST(pthread_create(&thread, NULL, body, fd) == 0);
    MUST(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
}

static void cancel_due(void)
{
    for (unsigned i = 0; i < rounds; i++) {
        int fd = connected(port);
        run_cancelled(write_cancelled, &fd);
        int64_t since = now_ms();
        call_on(fd, port, "m");
        run_cancelled(send_file_cancelled, &fd);
        MUST(sent_file && read_status(fd) == 200);
        call_on(fd, port, "m");
        MUST(now_ms() - since < 2000);
        KEPT(close(fd));
        calls += 3;
    }
}

/* What it needs itself does not lie on the stack: a kilobyte of that is enough without us. */
static void *call_on_small_stack(void *file)
{
    static char request[512], text[512];
    size_t length = request_for(request, port, "m");
    int fd = connected(port);

    MUST(pwrite(fileno(file), request, length, 0) == (ssize_t)length);
    for (int i = 0; i < 2; i++) {
        if (i == 0)
            MUST(write(fd, request, length) == (ssize_t)length);
        else
            MUST(sendfile(fd, fileno(file), &(off_t){0}, length) == (ssize_t)length);
        for (bool ended = false; !ended;) {
            ssize_t count = KEPT(read(fd, text, sizeof text));
            MUST(count > 0);
            ended = memchr(text, '}', (size_t)count);
        }
        calls++;
    }
    KEPT(close(fd));
    return NULL;
}

static void small_stack(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    FILE *file = tmpfile();

    MUST(file);
    pthread_attr_init(&attributes);
    MUST(pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN) == 0);
    for (unsigned i = 0; i < rounds; i++) {
        MUST(pthread_create(&thread, &attributes, call_on_small_stack, file) == 0);
        MUST(pthread_join(thread, NULL) == 0);
    }
    fclose(file);
}

static void run_all(void *(*body)(void *), unsigned count)
{
    pthread_t threads[THREADS];

    for (uintptr_t i = 0; i < count; i++)
        MUST(pthread_create(&threads[i], NULL, body, (void *)i) == 0);
    for (unsigned i = 0; i < count; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
}

static void loop(void)
{
    run_all(call_in_turns, THREADS);
    while (pooled > 0)
        KEPT(close(pool[--pooled]));
}

static void duplex(void)
{
    run_all(write_requests, THREADS / 4);
}

static atomic_bool enough;

static void *call_until_enough(void *unused)
{
    while (!enough) {
        whole_call(port, "m");
        calls++;
    }
    return unused;
}

/* Forks at any moment of the others' calls: what they hold then is nobody's in the child. */
static void forking(void)
{
    pthread_t threads[8];

    for (int i = 0; i < 8; i++)
        MUST(pthread_create(&threads[i], NULL, call_until_enough, NULL) == 0);
    for (unsigned i = 0; i < rounds; i++) {
        int status = -1, fd = connected(port);
        pid_t pid = KEPT(fork());
        if (pid == 0) {
            alarm(BOUND_S);
            close(fd);
            whole_call(port, "m");
            whole_call(port, "m");
            _exit(0);
        }
        MUST(waitpid(pid, &status, 0) == pid && status == 0, "status %x", status);
        call_on(fd, port, "m");
        KEPT(close(fd));
        calls += 3;
    }
    enough = true;
    for (int i = 0; i < 8; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
}

static void closers(void)
{
    for (unsigned i = 0; i < THREADS; i++)
        atomic_store(&open_now[i], -1);
    run_all(use_and_close, THREADS);
}

static const struct mode modes[] = {{"loop", loop},
                                    {"duplex", duplex},
                                    {"forking", forking},
                                    {"closers", closers},
                                    {"woken", woken},
                                    {"cancelled", cancelled},
                                    {"cancel-due", cancel_due},
                                    {"small-stack", small_stack}};

int main(int argc, char **argv)
{
    MUST(argc == 4);
    port = (unsigned)atoi(argv[2]);
    rounds = (unsigned)atoi(argv[3]);
    unsigned before = open_descriptors();
    RUN_MODE(modes, argv[1]);
    printf("fine %u\n", calls);
    MUST(open_descriptors() == before);
    return 0;
}
