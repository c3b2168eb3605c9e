/*
 * clock.h - the clock, injected: logic never reads the time by itself.
 *
 * Times of the table are CLOCK_BOOTTIME nanoseconds (a suspend counts, a wall-clock jump does not:
 * gobreaker#109); ages of calls are CLOCK_MONOTONIC (a suspend does not count). All members are
 * async-signal-safe and make no system call where the vDSO serves the clock.
 */
#ifndef BREAKER_BASE_CLOCK_H
#define BREAKER_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct clock_ops {
    uint64_t (*boot_ns)(void); /* CLOCK_BOOTTIME, ns */
    uint64_t (*mono_ns)(void); /* CLOCK_MONOTONIC, ns */
    int64_t (*wall_ms)(void);  /* CLOCK_REALTIME, ms since 1970; for the log only */
};

/* The real clocks. */
extern const struct clock_ops clock_system;

typedef int clock_function(clockid_t id, struct timespec *time);

/* Whom clock_system asks: libc's own clock_gettime, where the caller can tell it from another
 * preload's. libfaketime gives a program times of its own making; those of the table are shared
 * with programs that have others. NULL, and before: the one that the loader bound. */
void clock_ask(clock_function *function);

/* The version of libc's symbol, for dlvsym(): with it no other preload's is found. */
#define CLOCK_GLIBC "GLIBC_2.17"

/* From here to clock_release() clock_system tells the time of this moment, and asks nobody: where
 * the vDSO does not serve a clock it is a system call. Held anew, it goes on telling what it tells.
 * Async-signal-safe. */
void clock_hold(void);
void clock_release(void);

/* Has so long passed since? `since` may be another thread's, just ahead of `now`. */
static inline bool clock_has_passed(uint64_t since, uint64_t now, uint64_t ns)
{
    return now > since && now - since >= ns;
}

#define CLOCK_NS_PER_S  UINT64_C(1000000000)
#define CLOCK_NS_PER_MS UINT64_C(1000000)

#endif
