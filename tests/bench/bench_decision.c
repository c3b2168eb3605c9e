/*
 * bench_decision.c - what the breaker's decisions take, beside what programs share state with
 * otherwise: ns each, in turns.
 *
 *   bench_decision ROUNDS DIRECTORY     (BREAKER_TABLE names a table of its own; DIRECTORY has
 *                                        redis.sock, where a Redis listens, and room for a file)
 *
 * A line per round and kind, "NAME NS". Each is of one process; "contended_NAME" is the same while
 * a second process does it, too.
 *
 *   cas        one uncontended CAS on a shared mapping
 *   pair       shim_admit + shim_settle of a healthy call: host and model, keys known
 *   failure    shim_settle of a call that failed: the first of a streak, and of more than one in a
 *              second (the first within one looks at the table's path besides, at a stat's cost)
 *   refusal    shim_admit + shim_obeyed of a call whose model's breaker is open
 *   mutex      pthread_mutex_lock + unlock, process-shared and robust
 *   flock      flock(LOCK_EX) + flock(LOCK_UN)
 *   semaphore  semop -1 and +1 of System V, both SEM_UNDO
 *   redis      GET of a small value over a unix socket, by hiredis
 */
#include "lib/by_value.h"
#include "lib/healthy_pair.h"

#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS_MAX 1000
#define CHUNKS     15
#define CHUNKS_NS  5e9 /* at most until they are there */

static struct shared {
    _Alignas(64) _Atomic uint64_t word;
    _Alignas(64) pthread_mutex_t mutex;
    _Alignas(64) _Atomic int running; /* 1 + the kind that the second process does */
    _Alignas(64) _Atomic int stop;
    _Alignas(64) _Atomic unsigned long done; /* operations that the second process has done */
} * shared;

static int lock_fd = -1, semaphore = -1;
static redisContext *redis;
static double timer;
static pid_t second;

static void fail(const char *what)
{
    fprintf(stderr, "bench_decision: %s: %m\n", what);
    exit(1);
}

/* Two processes on one core do not contend: this one takes the first of the cores, the second one
 * the last. */
static void stay_on_core(bool first)
{
    cpu_set_t all, one;
    int found = -1;

    if (sched_getaffinity(0, sizeof all, &all))
        fail("cores");
    for (int core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, &all) && (found < 0 || !first))
            found = core;
    CPU_ZERO(&one);
    CPU_SET(found, &one);
    if (CPU_COUNT(&all) < 2 || sched_setaffinity(0, sizeof one, &one))
        fail("no two cores");
}

/* --- the kinds: ns of one, over `count` of them ------------------------------------------------
 */

static double cas(unsigned long count)
{
    uint64_t value = atomic_load(&shared->word);
    double begun = now_ns();

    for (unsigned long n = 0; n < count; n++, value++)
        if (!atomic_compare_exchange_strong_explicit(&shared->word, &value, value + 1,
                                                     memory_order_acq_rel, memory_order_acquire))
            fail("a CAS was lost");
    return (now_ns() - begun) / (double)count;
}

static double pair(unsigned long count)
{
    return time_pairs(count / BATCH, timer);
}

/* A model each, so that each failure is the first one; a success that was admitted later ends the
 * streak, and is not timed. */
static double failure(unsigned long count)
{
    static const struct call_end bad = {.kind = END_COMPLETE,
                                        .phase = PHASE_BODY,
                                        .status = 503,
                                        .byte_received = true,
                                        .age_ns = CLOCK_NS_PER_MS};
    double total = 0;

    for (unsigned long b = 0; b < count / BATCH; b++) {
        for (int turn = 0; turn < 2; turn++) {
            for (int i = 0; i < BATCH; i++) {
                char body[] = "{\"model\":\"failing-0\",\"messages\":[]}";
                *strchr(body, '0') = (char)('0' + i);
                open_call(&calls[i], span_of(body, sizeof body - 1));
                admit(&calls[i]);
            }
            double begun = now_ns();
            for (int i = 0; i < BATCH; i++)
                shim_settle(&calls[i], turn == 0 ? &bad : &good);
            if (turn == 0)
                total += now_ns() - begun - timer;
        }
    }
    return total / (double)(count / BATCH * BATCH);
}

static void open_down(struct shim_call *call)
{
    open_call(call, SPAN_LIT("{\"model\":\"down\",\"messages\":[]}"));
}

/* Until it is open; a probe's failure opens it again. */
static void trip(void)
{
    static const struct call_end bad = {.kind = END_COMPLETE,
                                        .phase = PHASE_BODY,
                                        .status = 503,
                                        .byte_received = true,
                                        .age_ns = CLOCK_NS_PER_MS};

    for (int i = 0; i < 10; i++) {
        open_down(&calls[0]);
        if (shim_admit(&calls[0]) == SHIM_REFUSED)
            return;
        shim_settle(&calls[0], &bad);
    }
    fail("the breaker does not open");
}

static double refusal(unsigned long count)
{
    double total = 0;

    trip();
    for (unsigned long b = 0; b < count / BATCH; b++) {
        for (int i = 0; i < BATCH; i++)
            open_down(&calls[i]);
        double begun = now_ns();
        for (int i = 0; i < BATCH; i++) {
            if (shim_admit(&calls[i]) != SHIM_REFUSED)
                fail("an open breaker admits");
            shim_obeyed(&calls[i]);
        }
        total += now_ns() - begun - timer;
    }
    return total / (double)(count / BATCH * BATCH);
}

static double mutex(unsigned long count)
{
    double begun = now_ns();

    for (unsigned long n = 0; n < count; n++)
        if (pthread_mutex_lock(&shared->mutex) || pthread_mutex_unlock(&shared->mutex))
            fail("mutex");
    return (now_ns() - begun) / (double)count;
}

static double file_lock(unsigned long count)
{
    double begun = now_ns();

    for (unsigned long n = 0; n < count; n++)
        if (flock(lock_fd, LOCK_EX) || flock(lock_fd, LOCK_UN))
            fail("flock");
    return (now_ns() - begun) / (double)count;
}

static double sysv(unsigned long count)
{
    struct sembuf down = {.sem_op = -1, .sem_flg = SEM_UNDO};
    struct sembuf up = {.sem_op = 1, .sem_flg = SEM_UNDO};
    double begun = now_ns();

    for (unsigned long n = 0; n < count; n++)
        if (semop(semaphore, &down, 1) || semop(semaphore, &up, 1))
            fail("semop");
    return (now_ns() - begun) / (double)count;
}

static double redis_get(unsigned long count)
{
    double begun = now_ns();

    for (unsigned long n = 0; n < count; n++) {
        redisReply *reply = redisCommand(redis, "GET breaker");
        if (!reply || reply->type != REDIS_REPLY_STRING || strcmp(reply->str, "closed") != 0)
            fail("GET");
        freeReplyObject(reply);
    }
    return (now_ns() - begun) / (double)count;
}

static const struct kind {
    const char *name;
    double (*time)(unsigned long count);
    unsigned long chunk; /* so many at a time */
    bool contended;      /* measured while a second process does it, too, as well */
} kinds[] = {
    {"cas", cas, 8000, false},         {"pair", pair, 8000, true},
    {"failure", failure, 4000, false}, {"refusal", refusal, 8000, false},
    {"mutex", mutex, 8000, true},      {"flock", file_lock, 200, true},
    {"semaphore", sysv, 100, true},    {"redis", redis_get, 100, false},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* --- the second process ------------------------------------------------------------------------
 */

/* Does the kind whose number it reads until it is told to stop; ends with us. */
static void second_process(const int ends[2], const char *lock_path)
{
    unsigned char number;
    int orders = ends[0];

    close(ends[1]);
    stay_on_core(false);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    lock_fd = open(lock_path, O_RDWR | O_CLOEXEC); /* flock is between open files */
    while (read(orders, &number, 1) == 1 && number < KINDS) {
        atomic_store(&shared->running, 1 + number);
        unsigned long part = kinds[number].chunk / 50 / BATCH, block = BATCH * (part ? part : 1);
        while (!atomic_load(&shared->stop)) {
            kinds[number].time(block);
            atomic_fetch_add(&shared->done, block);
        }
        atomic_store(&shared->running, 0);
    }
    _exit(0);
}

/* The median of some chunks: short ones, since a process that loses its core for a while takes
 * longer for another reason. `contended`: of those in which the second process was at it, too. */
static double time_chunks(const struct kind *kind, bool contended)
{
    double times[CHUNKS];
    double deadline = now_ns() + CHUNKS_NS;
    unsigned valid = 0;

    while (valid < CHUNKS && now_ns() < deadline) {
        unsigned long before = atomic_load(&shared->done);
        times[valid] = kind->time(kind->chunk);
        if (!contended || atomic_load(&shared->done) - before >= kind->chunk / 4)
            valid++;
    }
    errno = EBUSY; /* other load has a core, or one process the lock all the time */
    if (valid < CHUNKS)
        fail(kind->name);
    qsort(times, CHUNKS, sizeof *times, by_value);
    return times[CHUNKS / 2];
}

static double time_contended(int orders, unsigned char number)
{
    double deadline = now_ns() + 10e9;

    atomic_store(&shared->stop, 0);
    if (write(orders, &number, 1) != 1)
        fail("the second process is gone");
    while (atomic_load(&shared->running) != 1 + number)
        if (now_ns() > deadline)
            fail("the second process does not begin");
    double took = time_chunks(&kinds[number], true);
    atomic_store(&shared->stop, 1);
    deadline = now_ns() + 10e9;
    while (atomic_load(&shared->running) != 0)
        if (now_ns() > deadline)
            fail("the second process does not end");
    return took;
}

/* --- setting up --------------------------------------------------------------------------------
 */

static void share(const char *lock_path)
{
    pthread_mutexattr_t kind;
    int one = 1;

    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || pthread_mutexattr_init(&kind) ||
        pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED) ||
        pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST) ||
        pthread_mutex_init(&shared->mutex, &kind))
        fail("a shared mutex");
    lock_fd = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    semaphore = semget(IPC_PRIVATE, 1, 0600);
    if (lock_fd < 0 || semaphore < 0 || semctl(semaphore, 0, SETVAL, one))
        fail("locks");
}

static void leave(void)
{
    if (second > 0) {
        kill(second, SIGKILL);
        waitpid(second, NULL, 0);
    }
    semctl(semaphore, 0, IPC_RMID);
}

static void connect_redis(const char *path)
{
    redis = redisConnectUnix(path);
    redisReply *reply = redis && !redis->err ? redisCommand(redis, "SET breaker closed") : NULL;
    if (!reply || reply->type != REDIS_REPLY_STATUS)
        fail("no Redis");
    freeReplyObject(reply);
}

static void measure(unsigned long rounds, int orders)
{
    for (unsigned char k = 0; k < KINDS; k++) /* warms up: the table, the keys, the caches */
        kinds[k].time(BATCH * 8);
    for (unsigned long r = 0; r < rounds; r++)
        for (unsigned char k = 0; k < KINDS; k++) {
            printf("%s %.2f\n", kinds[k].name, time_chunks(&kinds[k], false));
            if (kinds[k].contended)
                printf("contended_%s %.2f\n", kinds[k].name, time_contended(orders, k));
        }
}

int main(int argc, char **argv)
{
    unsigned long rounds = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
    char lock_path[4096], redis_path[4096];
    int orders[2];

    if (rounds == 0 || rounds > ROUNDS_MAX || !getenv("BREAKER_TABLE")) {
        fprintf(stderr, "usage: BREAKER_TABLE=FILE bench_decision ROUNDS DIRECTORY\n");
        return 2;
    }
    snprintf(lock_path, sizeof lock_path, "%s/lock", argv[2]);
    snprintf(redis_path, sizeof redis_path, "%s/redis.sock", argv[2]);
    share(lock_path);
    if (pipe2(orders, O_CLOEXEC))
        fail("pipe");
    shim_set_clock(&fake);
    timer = timer_cost();
    atexit(leave);
    second = fork();
    if (second == 0)
        second_process(orders, lock_path);
    if (second < 0)
        fail("fork");
    stay_on_core(true);
    connect_redis(redis_path);
    measure(rounds, orders[1]);
    redisFree(redis);
    return 0;
}
