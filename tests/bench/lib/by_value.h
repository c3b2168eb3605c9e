/*
 * by_value.h - qsort's order of doubles, for medians.
 */
#ifndef BREAKER_BENCH_BY_VALUE_H
#define BREAKER_BENCH_BY_VALUE_H

static inline int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#endif
