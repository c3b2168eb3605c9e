/* Crowds of processes that start together, for the stress tests. */
#ifndef BREAKER_TESTS_CROWD_H
#define BREAKER_TESTS_CROWD_H

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* Zeroed memory that children share. */
static inline void *crowd_shared(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static inline pthread_barrier_t *crowd_barrier(unsigned count)
{
    pthread_barrier_t *barrier = crowd_shared(sizeof *barrier);
    pthread_barrierattr_t attr;

    pthread_barrierattr_init(&attr);
    pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(barrier, &attr, count);
    return barrier;
}

/* Forks `count` children that run body(index) and exit with its result; none outlives the test. */
static inline void crowd_start(pid_t *pids, unsigned count, int (*body)(unsigned))
{
    pid_t parent = getpid();

    for (unsigned i = 0; i < count; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            _exit(getppid() == parent ? body(i) : 1);
        }
    }
}

/* How many ended otherwise than with 0; deaths by SIGKILL are counted apart. */
static inline unsigned crowd_wait(const pid_t *pids, unsigned count, unsigned *killed)
{
    unsigned bad = 0;

    for (unsigned i = 0; i < count; i++) {
        int status = 0;
        if (waitpid(pids[i], &status, 0) != pids[i])
            bad++;
        else if (WIFSIGNALED(status) && WTERMSIG(status) == 9 && killed)
            ++*killed;
        else
            bad += status != 0;
    }
    return bad;
}

static inline uint32_t crowd_random(uint64_t *seed, uint32_t below)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return (uint32_t)(*seed >> 24) % below;
}

#endif
