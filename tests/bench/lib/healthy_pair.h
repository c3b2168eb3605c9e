/*
 * healthy_pair.h - admit and settle of calls whose keys are known, under a clock that stands: what
 * bench_pair, bench_decision and bench_growth time.
 */
#ifndef BREAKER_BENCH_HEALTHY_PAIR_H
#define BREAKER_BENCH_HEALTHY_PAIR_H

#include "healthy_call.h"

#include <stdlib.h>
#include <time.h>

#define BATCH 8 /* calls open at once: they stay in the first-level cache */

static uint64_t fake_now = UINT64_C(1000) * CLOCK_NS_PER_S;

static inline uint64_t fake_ns(void)
{
    return fake_now;
}

static inline int64_t fake_ms(void)
{
    return 0;
}

static const struct clock_ops fake = {fake_ns, fake_ns, fake_ms};
static struct shim_call calls[BATCH];

static inline double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Each call has a struct of its own, or the same as a call of the same model. */
static inline void open_call(struct shim_call *call, struct span body)
{
    enum shim_need need;

    if (!shim_open_again(call, &need))
        need = shim_open(call, &request);
    if (need != SHIM_NEEDS_BODY || !shim_body(call, body, true))
        exit(1);
}

static inline void admit(struct shim_call *call)
{
    if (shim_admit(call) != SHIM_ADMITTED || !shim_admitted(call))
        exit(1);
}

/* The time of taking the time, twice per batch: it is not part of what is timed. The least of some
 * means: what a busy machine takes in one of them would be missing from each figure. */
static inline double timer_cost(void)
{
    enum { MEANS = 40, TIMES = 500 };
    double least = 0;

    for (int mean = 0; mean < MEANS; mean++) {
        double total = 0;
        for (int i = 0; i < TIMES; i++) {
            double begun = now_ns();
            __asm__ volatile("" ::: "memory");
            total += now_ns() - begun;
        }
        if (mean == 0 || total < least)
            least = total;
    }
    return least / TIMES;
}

static inline void open_batch(void)
{
    for (int i = 0; i < BATCH; i++)
        open_call(&calls[i], SPAN_LIT("{\"model\":\"gpt-4o-mini\",\"messages\":[]}"));
}

/* ns per pair. */
static inline double time_pairs(unsigned long batches, double timer)
{
    double total = 0;

    for (unsigned long b = 0; b < batches; b++) {
        open_batch();
        double begun = now_ns();
        for (int i = 0; i < BATCH; i++) {
            if (shim_admit(&calls[i]) != SHIM_ADMITTED)
                exit(1);
            shim_settle(&calls[i], &good);
        }
        total += now_ns() - begun - timer;
    }
    return total / (double)(batches * BATCH);
}

#endif
