/*
 * real_fork.h - no fork in the middle of a search for the real functions.
 *
 * glibc's fork does not wait for a dlopen of another thread, and the first one of a library that
 * was there from the start builds its list of dependencies: a child that is forked meanwhile finds
 * it half made, and crashes in its own search. Searches are the first calls of a program; so a fork
 * waits for them, and they for a fork, but not for long: whoever holds the loader's lock may be the
 * one that forks.
 */
#ifndef BREAKER_PRELOAD_REAL_FORK_H
#define BREAKER_PRELOAD_REAL_FORK_H

/* Called by the constructor, while there is one thread. */
void real_fork_prepare(void);

/* Around what asks the loader. May nest. Keeps errno; no cancellation point. */
void real_fork_hold(void);
void real_fork_release(void);

#endif
