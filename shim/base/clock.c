#include "base/clock.h"

#include <time.h>

static uint64_t read_ns(clockid_t id)
{
    struct timespec ts = {0, 0};

    clock_gettime(id, &ts); /* fails for an unknown id only; then time stands still at 0 */
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
