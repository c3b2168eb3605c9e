/*
 * synth_pair.h - the socketpairs that synthetic answers come through.
 *
 * Making and closing a pair is a third of what an answer costs, so a few stay open between answers
 * (SYNTH_PAIRS_KEPT of the whole process, close-on-exec). A program may close or reuse any
 * descriptor at any time, and fork: a kept pair is used only by the process that made it, and an
 * end is used or closed only while it is still the socket that it was. A child closes its copies.
 *
 * Thread-safe, without a lock. A taken pair belongs to its taker.
 */
#ifndef BREAKER_PRELOAD_SYNTH_PAIR_H
#define BREAKER_PRELOAD_SYNTH_PAIR_H

#include <stdbool.h>
#include <sys/types.h>

#define SYNTH_PAIRS_KEPT 4

/* Stream sockets above the standard three, close-on-exec. */
struct synth_pair {
    int near; /* what libcurl gets */
    int far;  /* what the answer is written to */
    ino_t near_inode, far_inode;
    pid_t owner;
};

/* In a process that is fenced in (shim_fence) none is to be had, and none is closed any more. */

/* A kept pair, or a new one; nothing is to be read from it. False: no descriptors. */
bool synth_pair_take(struct synth_pair *pair);

/* Gives back a pair that was never shut down, whose near end libcurl is done with: kept when
 * nothing was left to read and there is room, else closed. */
void synth_pair_give(const struct synth_pair *pair);

void synth_pair_close(const struct synth_pair *pair);

#endif
