/*
 * arena.h - memory that is given out piece by piece and given back as a whole, from mappings of its
 * own.
 *
 * Hooks of async-signal-safe functions load the configuration and attach the table: the signal may
 * have come in the middle of malloc, so nothing on that way may call it. mmap is a system call.
 *
 * A zeroed struct is an empty arena. One thread at a time; async-signal-safe. Keeps no errno.
 */
#ifndef BREAKER_BASE_ARENA_H
#define BREAKER_BASE_ARENA_H

#include <stddef.h>

#define ARENA_BLOCK_SIZE (64 * 1024) /* of a mapping, but for larger pieces; touched as used */

struct arena_block;

struct arena {
    struct arena_block *newest;
};

/* Zeroed, aligned for any type; lives until arena_free(). NULL: no memory. */
void *arena_alloc(struct arena *arena, size_t size);

/* Unmaps all of it. The struct itself may lie in it. */
void arena_free(struct arena *arena);

#endif
