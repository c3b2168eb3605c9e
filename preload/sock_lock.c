#include "sock_lock.h"

#include "guard.h"

#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

__thread bool sock_inside __attribute__((tls_model("initial-exec")));

#define SPINS         200
#define YIELDS        200
#define PAUSES        50
#define PAUSE_STEP_NS 1000000

/* Somebody else is at it, perhaps without a core to run on. Not nanosleep by way of the library: it
 * is a cancellation point, and a thread that ended here would leave others' work half done. */
static bool wait_for(struct sock_lock *lock)
{
    const struct timespec step = {0, PAUSE_STEP_NS};

    for (int i = 0; i < YIELDS; i++) {
        sched_yield();
        if (sock_try_lock(lock))
            return true;
    }
    for (int i = 0; i < PAUSES; i++) {
        syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &step, NULL);
        if (sock_try_lock(lock))
            return true;
    }
    return false;
}

bool sock_lock_waiting(struct sock_lock *lock)
{
    bool got = false;

    for (int i = 0; i < SPINS && !got; i++)
        got = sock_try_lock(lock);
    if (!got)
        GUARD_ERRNO(got = wait_for(lock));
    return got;
}
