#include "real_fork.h"

#include "guard.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#define WAIT_STEPS   50
#define WAIT_STEP_NS 1000000

/* Each side raises its own, then looks at the other's (sequentially consistent, so that not both
 * see nothing). A child starts with none. */
static atomic_int searching, forking;

static void pause_a_step(void)
{
    const struct timespec step = {0, WAIT_STEP_NS};
    int state = PTHREAD_CANCEL_ENABLE;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    GUARD_ERRNO(nanosleep(&step, NULL));
    pthread_setcancelstate(state, NULL);
}

void real_fork_hold(void)
{
    atomic_fetch_add(&searching, 1);
    for (int i = 0; i < WAIT_STEPS && atomic_load(&forking) > 0; i++) {
        atomic_fetch_sub(&searching, 1);
        pause_a_step();
        atomic_fetch_add(&searching, 1);
    }
}

void real_fork_release(void)
{
    atomic_fetch_sub(&searching, 1);
}

static void before_fork(void)
{
    atomic_fetch_add(&forking, 1);
    for (int i = 0; i < WAIT_STEPS && atomic_load(&searching) > 0; i++)
        pause_a_step();
}

static void after_fork(void)
{
    atomic_fetch_sub(&forking, 1);
}

static void in_child(void)
{
    atomic_store(&forking, 0);
    atomic_store(&searching, 0);
}

static void register_atfork(void)
{
    pthread_atfork(before_fork, after_fork, in_child);
}

void real_fork_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, register_atfork);
}
