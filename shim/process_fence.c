/*
 * process_fence.c - a process that may be ended for a system call.
 */
#include "process.h"

atomic_uint process_fences;

void process_fence(void)
{
    clock_hold();
    atomic_fetch_add_explicit(&process_fences, 1, memory_order_relaxed);
    process_begin_epoch();
}

void process_unfence(void)
{
    if (atomic_fetch_sub_explicit(&process_fences, 1, memory_order_relaxed) == 1)
        clock_release();
}
