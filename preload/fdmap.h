/*
 * fdmap.h - descriptor -> connection, for the whole process.
 *
 * Two levels, filled as descriptors come: a look-up is two loads, no lock. What an entry points to
 * is of a pool (sock_pool.h), so a stale pointer is safe to lock and to ask again. Descriptors from
 * FDMAP_MAX on are never tracked.
 */
#ifndef BREAKER_PRELOAD_FDMAP_H
#define BREAKER_PRELOAD_FDMAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define FDMAP_CHUNK  1024u
#define FDMAP_CHUNKS 1024u
#define FDMAP_MAX    (FDMAP_CHUNK * FDMAP_CHUNKS)

struct sock_conn;

struct fdmap_chunk {
    /* Set by whoever makes the connection, before the descriptor leads to the peer; cleared before
     * the descriptor is closed. Release on set, acquire on read. */
    _Atomic(struct sock_conn *) conn[FDMAP_CHUNK];
};

/* Each set once, with release; forgotten in the child of a fork. */
extern _Atomic(struct fdmap_chunk *) fdmap_chunks[FDMAP_CHUNKS];

/* NULL: not tracked. Async-signal-safe. */
static inline struct sock_conn *fdmap_get(int fd)
{
    unsigned at = (unsigned)fd;

    if (__builtin_expect(at >= FDMAP_MAX, 0))
        return NULL;
    struct fdmap_chunk *chunk =
        atomic_load_explicit(&fdmap_chunks[at / FDMAP_CHUNK], memory_order_acquire);
    return chunk ? atomic_load_explicit(&chunk->conn[at % FDMAP_CHUNK], memory_order_acquire)
                 : NULL;
}

/* No descriptor from here on was ever tracked in this process. Only grows. */
extern _Atomic(unsigned) fdmap_end;

/* May one from `first` on be tracked? */
static inline bool fdmap_any_from(unsigned first)
{
    return first < atomic_load_explicit(&fdmap_end, memory_order_acquire);
}

/* False: no memory, or no such descriptor. Keeps errno. */
bool fdmap_set(int fd, struct sock_conn *conn);

/* False: it does not lead to `conn` (any more). */
bool fdmap_clear(int fd, const struct sock_conn *conn);

/* The first tracked descriptor of first..last; -1: none. */
int fdmap_next(unsigned first, unsigned last);

/* A child of vfork or clone has our memory and descriptors of its own (FIELD-NOTES 1.9): what it
 * does to them is not to be noted here. Said in the thread that makes such a child, which shares
 * the mark: no system call is spent where there is none. */
enum fdmap_doubt {
    FDMAP_SURE,
    FDMAP_VFORKED, /* the parent waits: once it is seen to be at it again, all is sure */
    FDMAP_SHARED,  /* both go on: it is asked each time */
};
extern __thread enum fdmap_doubt fdmap_doubt __attribute__((tls_model("initial-exec")));
bool fdmap_ask_owner(void);

/* Are the descriptors of the calling thread those that are noted here? */
static inline bool fdmap_is_ours(void)
{
    return __builtin_expect(fdmap_doubt == FDMAP_SURE, 1) || fdmap_ask_owner();
}

/* By the constructor, and in the child of a fork: from here on this process's, with nothing
 * tracked. */
void fdmap_adopt(void);

#endif
