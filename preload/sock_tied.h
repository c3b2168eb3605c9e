/*
 * sock_tied.h - a connection whose clear text a layer above has (TLS): its flow is shown that, and
 * the program gets our answer from there. Flow, admission, forks, dup and close stay the
 * connection's; of the bytes that its descriptors carry only H's part is of interest, and how they
 * end.
 *
 * Tied by descriptor before the first record goes out; or, where the program carries the records
 * between memory and socket itself, by the random of the ClientHello that a tracked descriptor was
 * seen to send. An untracked descriptor that TLS begins on (behind a SOCKS proxy) is tracked anew.
 * A connection that asked a proxy for a tunnel (CONNECT) is from then on one to the place named
 * there.
 *
 * All keep errno. No lock is held across a call of the layer above.
 */
#ifndef BREAKER_PRELOAD_SOCK_TIED_H
#define BREAKER_PRELOAD_SOCK_TIED_H

#include "sock_carried.h"

/* The layer's end. Made by one thread; from then on one may write while another reads. What is
 * atomic is relaxed: whoever goes by it asks under the connection's lock whether it is still the
 * same. */
struct sock_tie {
    _Atomic(struct sock_conn *) conn; /* NULL: none, or no more, for good */
    atomic_int fd;                    /* one that leads there */
    unsigned generation;              /* of conn; constant while there is one */
    bool in_memory; /* the program carries the records between the layer and there; as constant */
};

static inline bool sock_tied_has(const struct sock_tie *tie)
{
    return atomic_load_explicit(&tie->conn, memory_order_relaxed);
}

static inline int sock_tied_descriptor(const struct sock_tie *tie)
{
    return atomic_load_explicit(&tie->fd, memory_order_relaxed);
}

static inline void sock_tied_forget(struct sock_tie *tie)
{
    atomic_store_explicit(&tie->conn, NULL, memory_order_relaxed);
}

/* Before the handshake. `name`: whom the client will ask for; SPAN_NONE: nobody. False: it cannot
 * be had, for good. */
bool sock_tied_by_descriptor(struct sock_tie *tie, int fd, struct span name);

/* By the random of a ClientHello that was seen (sock_carried_awaited). */
bool sock_tied_by_random(struct sock_tie *tie, const unsigned char random[SOCK_HELLO_RANDOM]);

/* The handshake is over; the flow begins. False: there is none to be had, for good. */
bool sock_tied_follow(struct sock_tie *tie, struct span name);

/* As sock_write_look() and sock_write_done(). `error`: an errno that stands for what the layer's
 * call said; 0: none. */
struct sock_write sock_tied_write_look(struct sock_tie *tie, const void *buf, size_t size);
void sock_tied_write_done(const struct sock_write *write, uint64_t sent, int error);

/* Does the program read our answer? *got is what it is told, 0: its end. */
bool sock_tied_answer(struct sock_tie *tie, void *buf, size_t size, bool peek, size_t *got);
/* The same, of what is left of it. */
bool sock_tied_answer_left(struct sock_tie *tie, size_t *left);

/* `drained`: the layer has nothing more. If the descriptor has ended nothing comes, though the
 * layer cannot know: ends the connection. */
void sock_tied_received(struct sock_tie *tie, const void *buf, size_t size, bool drained);
/* The same of a layer that asks for more. */
void sock_tied_drained(struct sock_tie *tie);
/* Ends it for the layer: the descriptor is not looked at any more. Harmless where there is none. */
void sock_tied_end(struct sock_tie *tie, enum sock_end end);

#endif
