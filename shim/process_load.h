/*
 * process_load.h - the lock of loading and what it guards besides. Private to process*.c.
 *
 * Loading opens and reads files, which are cancellation points: a thread that ended there would
 * leave the lock held for ever, so it cannot be cancelled while it holds it.
 */
#ifndef BREAKER_PROCESS_LOAD_H
#define BREAKER_PROCESS_LOAD_H

#include "process.h"

/* *state is what process_leave_loading() is to be given. False: this thread is at it itself,
 * further down, and there is nothing to leave: a signal handler makes do with what there is. So
 * does a process that is fenced in. */
bool process_enter_loading(int *state);
/* False too when somebody else is at it. */
bool process_try_loading(int *state);
void process_leave_loading(int state);

/* Not under the lock, by who has just looked at the configuration: is the mapped file still the one
 * at the path? Attaches anew when it is not. Nothing before process_table() was asked for. */
void process_look_at_table(const struct config *config, uint64_t now);

#define PROCESS_TROUBLE_SIZE 320 /* for a line of the log */

/* Under the lock: room for a path. Not on the stack, of which threads may have 16 KB. */
#define PROCESS_PATH_SIZE 4096
extern char process_path_buf[PROCESS_PATH_SIZE];

#endif
