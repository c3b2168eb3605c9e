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

#include "sock_watch.h"

/* The layer's end. Belongs to one thread at a time, as what it is part of. */
struct sock_tie {
    struct sock_conn *conn; /* NULL: none, or no more */
    unsigned generation;
    int fd; /* one that leads there */
};

/* Before the handshake. `name`: whom the client will ask for; SPAN_NONE: nobody. False: it cannot
 * be had, for good. */
bool sock_tied_by_descriptor(struct sock_tie *tie, int fd, struct span name);

/* How many clients without a descriptor look for their connection: only then ClientHellos are kept.
 */
extern atomic_uint sock_tied_awaited;
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

void sock_tied_received(struct sock_tie *tie, const void *buf, size_t size);
/* Nothing more comes, though the layer itself cannot know: what it has was read, and the descriptor
 * has ended. Ends the connection. */
void sock_tied_drained(struct sock_tie *tie);
/* Ends it for the layer: the descriptor is not looked at any more. Harmless where there is none. */
void sock_tied_end(struct sock_tie *tie, enum sock_end end);

/* In the child of a fork. */
void sock_tied_in_child(void);

/*
 * What the hooks of the descriptors ask (sock_watch.c); the connection is locked but where it is
 * told otherwise.
 */

static inline bool sock_is_tied(const struct sock_conn *conn)
{
    return atomic_load_explicit(&conn->tied, memory_order_relaxed);
}

/* Not locked: so many bytes were read of a connection that is quiet. False: it is not. */
static inline bool sock_tied_count(const struct sock_read *read, ssize_t count)
{
    struct sock_conn *conn = read->conn;

    if (!atomic_load_explicit(&conn->quiet, memory_order_relaxed) ||
        atomic_load_explicit(&conn->generation, memory_order_relaxed) != read->generation)
        return false;
    atomic_fetch_add_explicit(&conn->seen, (uint64_t)count, memory_order_relaxed);
    return true;
}

/* The first bytes that the program sends. */
void sock_tied_look(struct sock_conn *conn, struct span bytes);
/* Before it sends: was it a ClientHello, and by now nobody will tie it? */
bool sock_tied_never(struct sock_conn *conn);
/* Before it sends: behind a proxy that has answered everything begins anew. */
void sock_tied_pass_proxy(struct sock_conn *conn);
/* Is it tied, or may it be yet? */
static inline bool sock_tied_may_be(const struct sock_conn *conn)
{
    return sock_is_tied(conn) || atomic_load_explicit(&conn->hello, memory_order_relaxed);
}
/* The peer's bytes are there. */
void sock_tied_hear(struct sock_conn *conn);
/* A read while our answer is read above: where the records go through the program's hands one byte,
 * which makes it bring them to the layer and is not looked at there; then the end. */
ssize_t sock_tied_nudge(struct sock_conn *conn, const struct iovec *parts, size_t count, int flags);
/* The descriptor's bytes are at their end. Unlocks. */
void sock_tied_over(struct sock_conn *conn, enum sock_end how);

#endif
