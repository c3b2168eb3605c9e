#include "base/clock.h"

#include <stdatomic.h>

/* Written by clock_ask(), always the same; any thread may read it, signal handlers too. */
static _Atomic(clock_function *) given = clock_gettime;
/* That one, or tell_held(): set with release, once `held` is there. */
static _Atomic(clock_function *) asked = clock_gettime;

void clock_ask(clock_function *function)
{
    atomic_store_explicit(&given, function ? function : clock_gettime, memory_order_relaxed);
    atomic_store_explicit(&asked, function ? function : clock_gettime, memory_order_relaxed);
}

static uint64_t read_ns(clockid_t id)
{
    struct timespec ts = {0, 0};

    /* Fails for an unknown id only; then time stands still at 0. */
    atomic_load_explicit(&asked, memory_order_acquire)(id, &ts);
    return (uint64_t)ts.tv_sec * CLOCK_NS_PER_S + (uint64_t)ts.tv_nsec;
}

static uint64_t boot_ns(void)
{
    return read_ns(CLOCK_BOOTTIME);
}

static uint64_t mono_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

static int64_t wall_ms(void)
{
    return (int64_t)(read_ns(CLOCK_REALTIME) / CLOCK_NS_PER_MS);
}

const struct clock_ops clock_system = {boot_ns, mono_ns, wall_ms};

/* --- standing still -----------------------------------------------------------------------------
 */

static const clockid_t kept[] = {CLOCK_BOOTTIME, CLOCK_MONOTONIC, CLOCK_REALTIME};
#define KEPT (sizeof kept / sizeof *kept)

/* ns of each. Several threads may hold at once: each writes some time of that moment. */
static _Atomic uint64_t held[KEPT];

static int tell_held(clockid_t id, struct timespec *time)
{
    for (unsigned i = 0; i < KEPT; i++)
        if (kept[i] == id) {
            uint64_t ns = atomic_load_explicit(&held[i], memory_order_relaxed);
            time->tv_sec = (time_t)(ns / CLOCK_NS_PER_S);
            time->tv_nsec = (long)(ns % CLOCK_NS_PER_S);
        }
    return 0;
}

void clock_hold(void)
{
    for (unsigned i = 0; i < KEPT; i++)
        atomic_store_explicit(&held[i], read_ns(kept[i]), memory_order_relaxed);
    atomic_store_explicit(&asked, tell_held, memory_order_release);
}

void clock_release(void)
{
    atomic_store_explicit(&asked, atomic_load_explicit(&given, memory_order_relaxed),
                          memory_order_relaxed);
}
