/*
 * environment.h - the process's environment as it was at the start.
 *
 * PHP's is gone when destructors run and programs rewrite theirs (FIELD-NOTES 9), so the few
 * strings that matter are copied once into static storage: no allocation, so that the library's
 * constructor may do it.
 */
#ifndef BREAKER_ENVIRONMENT_H
#define BREAKER_ENVIRONMENT_H

#include <stdatomic.h>
#include <stdbool.h>

struct environment {
    bool disabled;          /* BREAKER_DISABLED set and not "0", AT_SECURE, or too much to hold */
    const char *config;     /* BREAKER_CONFIG, or NULL */
    const char *set;        /* BREAKER_SET, or NULL */
    const char *home;       /* HOME, or NULL */
    const char *const *all; /* every BREAKER_…, NULL-terminated, as config_source wants it */
};

/* Captures at the first call, from then on constant. Thread-safe; async-signal-safe after the
 * first call. */
static inline const struct environment *environment_get(void);

/* Private to environment_get(): set once, by release, after `environment_captured`. */
extern atomic_bool environment_ready;
extern struct environment environment_captured;
void environment_capture(void);

static inline const struct environment *environment_get(void)
{
    if (!atomic_load_explicit(&environment_ready, memory_order_acquire))
        environment_capture();
    return &environment_captured;
}

#endif
