/*
 * process_fence.c - a process that may be ended for a system call.
 */
#include "process.h"

atomic_uint process_fences;

/* Counted before the clocks are held, and looked at after they were let go: of a fence that comes
 * as another is taken down, one of both threads holds them. */
void process_fence(void)
{
    atomic_fetch_add(&process_fences, 1);
    clock_hold();
    process_begin_epoch();
}

void process_unfence(void)
{
    if (atomic_fetch_sub(&process_fences, 1) != 1)
        return;
    clock_release();
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load(&process_fences) > 0)
        clock_hold();
}
