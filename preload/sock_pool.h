/*
 * sock_pool.h - objects of one size that are taken and given back by any thread, without lock or
 * malloc: hooks of async-signal-safe functions take them.
 *
 * Memory comes from the kernel in blocks and is never given back nor used for anything else, so a
 * stale pointer still points to an object of its kind. An object comes as it was given back, zero
 * at first; one that was never taken is not written to, so that it costs no page. At most
 * SOCK_POOL_BLOCKS * per_block objects; then none.
 */
#ifndef BREAKER_PRELOAD_SOCK_POOL_H
#define BREAKER_PRELOAD_SOCK_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SOCK_POOL_BLOCKS 512

/* Each object begins with this; `number` is the object's own from 1: written by who takes it first,
 * and never changes then. */
struct sock_pooled {
    uint32_t number;
    _Atomic uint32_t next_free; /* while free: the next one's number; 0: the last. Relaxed: the
                                   head's CAS publishes it */
};

struct sock_pool {
    size_t object_size;
    uint32_t per_block;
    /* Number of the first free object (low half) and a count of changes (high half), so that one
     * that went and came back in between is not taken for unchanged. Acquire on take, release on
     * give. */
    _Atomic uint64_t free_head;
    /* So many were ever taken: the number of the next one that was not is one more. Raised by who
     * takes it, by CAS once its block is there; relaxed: the block orders what is in it. */
    _Atomic uint32_t fresh;
    _Atomic(char *) blocks[SOCK_POOL_BLOCKS]; /* one CAS from NULL, release; acquire by who looks */
};

/* NULL: no memory, or too many. Keeps errno. */
void *sock_pool_take(struct sock_pool *pool);
void sock_pool_give(struct sock_pool *pool, void *object);

/* In the child of a fork: forgets all objects, those in use too; their memory stays behind. A
 * handler may have forked in the middle of our work, to which the child comes back: what it gives
 * back then is forgotten. */
void sock_pool_abandon(struct sock_pool *pool);

#endif
