/*
 * sock_conn.h - one outgoing TCP connection that the program opened by itself.
 *
 * Tracked from its connect() on. Where the host is known to count (shim_open without a path), H is
 * asked at the connect and hears of its outcome, and of the first byte from the peer. What the
 * program writes is looked at as HTTP/1.x (shim_flow.h) from the first write on; when it is
 * something else, and H has heard what there is to hear, the connection is let go for good.
 *
 * Life: of a pool, given back when the last of its descriptors is closed or it is let go; several
 * descriptors (dup) lead to one connection. Everything in it is under its lock but what says
 * otherwise. Nothing here is async-signal-unsafe: no malloc, no waiting for the own thread.
 */
#ifndef BREAKER_PRELOAD_SOCK_CONN_H
#define BREAKER_PRELOAD_SOCK_CONN_H

#include "fdmap.h"
#include "shim.h"
#include "shim_flow.h"
#include "sock_lock.h"
#include "sock_names.h"
#include "sock_pool.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

struct sock_flow {
    struct sock_pooled pooled;
    struct shim_flow flow;
};

/* How it ended, for what is still open of it. */
enum sock_end {
    SOCK_END_EOF,
    SOCK_END_RESET,
    SOCK_END_CLOSE, /* the program ended it */
    SOCK_END_DROP,  /* not to be judged */
};

#define SOCK_HELLO_RANDOM 32

struct sock_conn {
    struct sock_pooled pooled;
    struct sock_lock lock;
    atomic_uint generation; /* moves when it is given back, under the lock: whoever was inside a
                               real call meanwhile finds another. Read without at a call's begin,
                               relaxed: it is compared under the lock at its end */
    atomic_bool unreliable; /* somebody passed it by: to be let go. Set without the lock, relaxed:
                               the next who locks it and sees it does so */
    atomic_bool answering;  /* the program reads our answer. Set under the lock, with release; read
                               without, with acquire, to know whether to look under it */
    atomic_uint orphans;    /* descriptors closed by who could not have the lock, still in
                               `descriptors`. Raised without the lock, taken under it; relaxed: a
                               late one is taken by the next */
    atomic_bool tied;       /* sock_tied.h: the flow is shown clear text by a layer above, and none
                               of the bytes that the descriptors carry. Set under the lock, for good;
                               read without, relaxed: what is done on the strength of it is done
                               under the lock, or to `seen` */
    atomic_bool quiet;      /* tied, and H has heard what there is to hear: of what the descriptors
                               carry only the number matters. As `tied` */
    unsigned descriptors;   /* that lead here */
    bool dead;              /* let go; only descriptors still lead here */
    bool connecting;        /* until its connect is known to have ended */
    bool judged;            /* H was asked at the connect */
    bool diverted;          /* sock_divert.h: to another place than the program meant; what stands
                               here is of that place */
    bool pending, shares;   /* sock_attempt.h: its attempt counts it; and holds its grant */
    bool wrote, tls;        /* the program sent something; it began like a TLS record */
    bool shut;              /* the program said that it sends no more */
    bool tunnel;            /* it asked a proxy to lead elsewhere, which is `place` now */
    atomic_bool hello;      /* it sent a ClientHello with `random`, and may be tied by that. Set
                               under the lock, with release, once `random` is there; read without,
                               with acquire, to know whether to look under it */
    bool heard;             /* the peer of one that is tied, or may be, has spoken: what the connect
                               was admitted with is the first request's, or H's success at the end */
    uint8_t unclaimed;      /* writes since, while it may be tied and is not */
    bool in_memory;         /* tied; its records go through the program's own hands */
    bool nudged;            /* of its reads that our answer ends one has had a byte */
    bool over;              /* tied; its bytes came to their end, which was `how` */
    struct sock_flow *flow; /* NULL: nothing like HTTP/1.x yet, or no more */
    enum sock_end how;
    uint64_t drained; /* in memory: of `seen`, so much the layer above had made something of when it
                         asked for more; `over`, the rest is still to come */
    uint64_t seen_before;  /* tied: of `seen`, what was there when the program last wrote */
    _Atomic uint64_t seen; /* bytes that the program read by our hooks. Relaxed; without the lock
                              where it is quiet */
    uint64_t started_ns;   /* CLOCK_MONOTONIC of the connect */
    struct sockaddr_storage peer; /* that it connects to */
    struct sock_place place;      /* where it goes */
    struct shim_call host;        /* H's, when judged */
    unsigned char random[SOCK_HELLO_RANDOM];
};

/* One that begins now; the caller's alone until it is tracked or given back. NULL: no room. Inside
 * (sock_enter). */
struct sock_conn *sock_conn_make(void);
void sock_conn_give(struct sock_conn *conn);
/* From now on `fd` leads to it, whatever it led to before. False: no room; it is given back. */
bool sock_conn_track(struct sock_conn *conn, int fd);

static inline uint64_t sock_conn_seen(const struct sock_conn *conn)
{
    return atomic_load_explicit(&conn->seen, memory_order_relaxed);
}

/* The connection that `fd` leads to, locked, with the thread inside; NULL: none, or it cannot be
 * had: the call passes. To be followed by sock_conn_unlock() or sock_conn_let_go(). */
struct sock_conn *sock_conn_lock(int fd);
/* The same for one that was unlocked across a real call: `generation` is what it was. */
struct sock_conn *sock_conn_lock_again(int fd, struct sock_conn *conn, unsigned generation);
void sock_conn_unlock(struct sock_conn *conn);

/* Settles what is open and lets it go: its descriptors are untracked. Unlocks. */
void sock_conn_let_go(struct sock_conn *conn, int fd, enum sock_end end);

/* The same, if it can be told: an end of another socket on this number, or of one whose bytes were
 * read past us, is SOCK_END_DROP. */
void sock_conn_end(struct sock_conn *conn, int fd, enum sock_end end);

/* `fd` does not lead here any more: by close. Ends the connection when it was the last. Harmless
 * when it is not tracked. Not for the descriptors of another process: see fdmap_is_ours(). */
void sock_conn_closed(int fd);
/* sock_close.c: the same for a range of them, as far as they are this process's. */
void sock_close_note(unsigned first, unsigned last);
/* `to` leads where `from` does. */
void sock_conn_duplicated(int from, int to);

/* Looks at what the program sends from now on. False: no room. */
bool sock_conn_follow(struct sock_conn *conn);
/* The flow is lost, or there is none: only H is still of interest, if it is, or that TLS may come
 * of it. False: nothing is, and it was let go (and unlocked). */
bool sock_conn_unfollow(struct sock_conn *conn, int fd);

/* Does the system's word blame the peer? All else is local trouble, or the program's own. */
static inline bool sock_conn_is_peers_fault(int error)
{
    return error == ECONNREFUSED || error == ETIMEDOUT || error == ECONNRESET ||
           error == ECONNABORTED || error == EPIPE;
}

/* The connect ended: 0, or its errno. False: it was let go (and unlocked); never of 0. */
bool sock_conn_connected(struct sock_conn *conn, int fd, int error);

/* Is `fd` a TCP socket that leads to the connection's peer, or did before it broke? It may have
 * been closed and reused past our hooks (fclose, a system call). Asks the kernel. */
bool sock_conn_same_socket(const struct sock_conn *conn, int fd);

/* By the constructor, once; registers what a fork needs. */
void sock_conn_prepare(void);

#endif
