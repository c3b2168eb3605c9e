/*
 * sock_lock.h - the lock of the socket layer, whose hooks are of async-signal-safe functions: it
 * never waits for its own thread, and for another one only so long.
 *
 * Held for looking and noting, never across a call of the application. A thread that is inside
 * (sock_enter) and is interrupted by a signal whose handler comes to a hook again finds
 * sock_enter() false there, and passes. Whoever cannot get a lock passes as well, and lets go of
 * the connection.
 */
#ifndef BREAKER_PRELOAD_SOCK_LOCK_H
#define BREAKER_PRELOAD_SOCK_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* All-zero is free. Holds the address of something that only its owner's thread has. */
struct sock_lock {
    _Atomic(const void *) owner;
};

/* Is this thread at our work? Initial-exec: we are loaded at start, and a hook must not allocate.
 */
extern __thread bool sock_inside __attribute__((tls_model("initial-exec")));

/* False: this thread is inside already. Else to be followed by sock_leave(). Plain stores: only the
 * own thread's signal handlers look at it, and the fences keep the compiler in order. */
static inline bool sock_enter(void)
{
    if (sock_inside)
        return false;
    sock_inside = true;
    atomic_signal_fence(memory_order_seq_cst);
    return true;
}

static inline void sock_leave(void)
{
    atomic_signal_fence(memory_order_seq_cst);
    sock_inside = false;
}

/* Inside only: has it now, or has it not. Acquire; pairs with sock_unlock(). */
static inline bool sock_try_lock(struct sock_lock *lock)
{
    const void *nobody = NULL;

    return atomic_load_explicit(&lock->owner, memory_order_relaxed) == NULL &&
           atomic_compare_exchange_strong_explicit(&lock->owner, &nobody, &sock_inside,
                                                   memory_order_acquire, memory_order_relaxed);
}

bool sock_lock_waiting(struct sock_lock *lock);
/* The same, and waits. False: not to be had within some 50 ms. Keeps errno. */
static inline bool sock_lock(struct sock_lock *lock)
{
    return __builtin_expect(sock_try_lock(lock), 1) || sock_lock_waiting(lock);
}

static inline void sock_unlock(struct sock_lock *lock)
{
    atomic_store_explicit(&lock->owner, NULL, memory_order_release);
}

#endif
