/*
 * process_fence.c - a process that may be ended for a system call.
 */
#include "process.h"

atomic_uint process_fences;

/* The epoch that the last fence began; relaxed: as process_fences. */
static _Atomic unsigned begun;

void process_fence(void)
{
    clock_hold();
    atomic_fetch_add_explicit(&process_fences, 1, memory_order_relaxed);
    atomic_store_explicit(&begun, process_begin_epoch(), memory_order_relaxed);
}

void process_unfence(void)
{
    if (atomic_fetch_sub_explicit(&process_fences, 1, memory_order_relaxed) == 1)
        clock_release();
}

bool process_was_fenced(unsigned epoch)
{
    unsigned now = process_epoch();

    return now == atomic_load_explicit(&begun, memory_order_relaxed) && epoch + 1 == now;
}
