/*
 * process.h - what a process has once: the captured environment, the configuration in force, the
 * table it is attached to. Private to shim.c.
 *
 * Published by atomic pointers to objects that never change and are never freed: a call keeps
 * pointers to the configuration and the table that admitted it, and settles there. What is
 * replaced stays, at most one configuration per edit and one mapping per replaced table, of each
 * user that the process was meanwhile.
 *
 * Loading takes a mutex; it is never taken while the process is healthy, never while the thread can
 * be cancelled, and a fork makes it new in the child. Threads: all functions may be called by any
 * thread. Loading asks no malloc, and a signal handler that comes in the middle of its own thread's
 * load makes do with what there is, at first nothing: its calls pass. It may still wait for the
 * load of another thread. All keep errno.
 */
#ifndef BREAKER_PROCESS_H
#define BREAKER_PROCESS_H

#include "base/clock.h"
#include "base/log.h"
#include "config/config.h"
#include "table/table.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

extern const struct clock_ops *process_clock; /* &clock_system but for tests */

void process_capture_environment(void);
bool process_disabled(void);

/* The configuration in force at `now` (CLOCK_BOOTTIME ns), loaded at the first call, looked at
 * again when a second has passed since the last look (a stat or two, and one of the table's file
 * where a call has asked for it). NULL: none was ever good. */
const struct config *process_config(uint64_t now);

/* The table in force at `now`, attached at the first call, and anew when its file is no longer the
 * one at the path, which is looked at with the configuration. Where no shared one could be had, a
 * private one, and where the one at the path is not ours to use, NULL: calls pass. Both are looked
 * at again once a second. */
const struct table *process_table(const struct config *config, uint64_t now);

/* Moves in the child of each fork: a ticket of another epoch belongs to the parent. And when the
 * process is fenced in: what was admitted before is to be handed back, and no more. */
unsigned process_epoch(void);

/* process_fence.c. Fences that are up, or about to be; relaxed: who goes by it is the thread that
 * is fenced in, or one that shares its filter, which the kernel orders. From the first on nothing
 * is loaded or written to the log, and the clocks stand still: no function makes a system call. */
extern atomic_uint process_fences;
static inline bool process_fenced(void)
{
    return atomic_load_explicit(&process_fences, memory_order_relaxed) > 0;
}
void process_fence(void);
void process_unfence(void);
/* Is it an epoch of this process, before a fence or not, and none of its parent's? */
bool process_had_epoch(unsigned epoch);
void process_begin_epoch(void);

/* Total time that the machine was suspended as known at the last look, ns; and now, freshly read
 * (two clocks). Their difference tells of a suspend in between. */
uint64_t process_suspended_known(void);
uint64_t process_suspended_now(void);

/* Appends to the log of `config`, if it has one. */
void process_log(const struct config *config, const struct log_event *event);

/* Should the dlopen hook mask RTLD_DEEPBIND? */
bool process_mask_deepbind(void);

#endif
