/*
 * tls_link.h - what an SSL object of a client is to us: a link in its ex_data, from the first call
 * that may tie it to its connection (sock_tied.h) until it is freed or cleared.
 *
 * An object without a link costs one look-up and the question whether it is a server's, which never
 * gets one; nor does a duplicate take the link of its original along. A link is good in the process
 * that made it only: what a child of a fork inherited runs uncovered there.
 *
 * Threads: a link belongs to one thread at a time, as the SSL object does. But programs read in one
 * and write in another, which libssl bears more often than not: so what a followed link may come to
 * there, the end of it above all, is atomic and looked at once.
 */
#ifndef BREAKER_PRELOAD_TLS_LINK_H
#define BREAKER_PRELOAD_TLS_LINK_H

#include "sock_tied.h"
#include "tls_real.h"

enum tls_link_state {
    TLS_LINK_AWAITED,  /* without descriptor: the connection is still to be found */
    TLS_LINK_TIED,     /* the handshake is under way */
    TLS_LINK_FOLLOWED, /* the flow is shown its clear text */
    TLS_LINK_PASSED,   /* there is nothing to be had: its calls pass */
};

struct tls_link {
    struct sock_pooled pooled;
    _Atomic(enum tls_link_state) state; /* release on set, acquire on read: `tie` goes with
                                           it. Followed, it can but become passed */
    uint32_t process;                   /* tls_link_process when it was made */
    atomic_bool ended;                  /* the program was told the end of our answer. Relaxed */
    struct sock_tie tie;
};

/* Changes in the child of a fork. */
extern uint32_t tls_link_process;

/* NULL: none; any state but for the ones of another process, which are not ours to touch. */
static inline struct tls_link *tls_link_of(const struct tls_real *real, const SSL *ssl)
{
    return real->get_ex_data(ssl, real->index);
}

static inline enum tls_link_state tls_link_state(const struct tls_link *link)
{
    return atomic_load_explicit(&link->state, memory_order_acquire);
}

static inline bool tls_link_is_live(const struct tls_link *link)
{
    return tls_link_state(link) != TLS_LINK_PASSED && link->process == tls_link_process;
}

/* Its flow is shown what it reads and writes. */
static inline bool tls_link_follows(const struct tls_link *link)
{
    return link && tls_link_state(link) == TLS_LINK_FOLLOWED && link->process == tls_link_process;
}

/* Before the handshake goes on: ties it if that can be done now; anew if its descriptor changed. */
void tls_link_shake(const struct tls_real *real, SSL *ssl, struct tls_link *link);
/* It has no link, and will not be tied. */
void tls_link_leave(const struct tls_real *real, SSL *ssl);
/* Before the first write, with the handshake done. False: it passes from now on. */
bool tls_link_follow(const struct tls_real *real, SSL *ssl, struct tls_link *link);
/* What it was tied to ended, or was let go. */
void tls_link_pass(struct tls_link *link);
/* The object begins anew. */
void tls_link_clear(const struct tls_real *real, SSL *ssl, struct tls_link *link);

/* Once for each library: real->index. False: it cannot be had. */
bool tls_link_prepare(struct tls_real *real);

#endif
