/*
 * sock_watch.h - what the write and read hooks of a tracked descriptor share: bytes are shown to
 * the connection's flow, refused ones are swallowed, our answer is handed out.
 *
 * Each hook looks its descriptor up first (fdmap_get) and comes here only if it is tracked. No lock
 * is held across the real call. All keep errno but where they say what it is.
 */
#ifndef BREAKER_PRELOAD_SOCK_WATCH_H
#define BREAKER_PRELOAD_SOCK_WATCH_H

#include "guard.h"
#include "sock_conn.h"

#include <limits.h>

#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* A write under way. */
struct sock_write {
    struct sock_conn *conn; /* NULL: it passes unwatched */
    unsigned generation;
    int fd;
    bool connecting;
    bool timed;       /* the flow wants to know when it was done */
    bool blind;       /* no peer yet: its bytes are not looked at, they cannot leave */
    uint64_t offered; /* bytes that the program gave */
    uint64_t allowed; /* of them, so many may leave */
};

/* What the kernel takes in one call. A longer part is a program's mistake (write(fd, buf, -1),
 * after a read that failed): an error for the kernel, or it takes what memory there is. */
#define SOCK_PART_MAX ((size_t)0x7ffff000)

/* Can the parts be read (of bytes) at all? Not: the call passes, and the kernel says what is wrong.
 */
static inline bool sock_parts_lead(const struct iovec *parts, size_t count)
{
    if (count > IOV_MAX || (count > 0 && guard_is_nowhere(parts)))
        return false;
    for (size_t i = 0; i < count; i++)
        if (parts[i].iov_len > 0 &&
            (parts[i].iov_len > SOCK_PART_MAX || guard_is_nowhere(parts[i].iov_base)))
            return false;
    return true;
}

/* Begins; shown bytes follow in order; the end unlocks. `caller`: a return address. */
void sock_write_begin(struct sock_write *write, int fd, const void *caller);
void sock_write_show(struct sock_write *write, const void *bytes, size_t len);
void sock_write_end(struct sock_write *write);

/* The three in one. */
struct sock_write sock_write_look(int fd, const struct iovec *parts, size_t count,
                                  const void *caller);

/* Bytes are about to leave that cannot be shown: the connection is let go. */
void sock_lose_sight(int fd);

/* What the program is told after the real write of the allowed bytes returned `result`, with errno
 * as it left it. */
ssize_t sock_write_done(const struct sock_write *write, ssize_t result);

/* The same where the result is known otherwise: it went otherwise than reckoned, or tells of the
 * connect, or when it was done matters. */
void sock_watch_note_write(const struct sock_write *write, ssize_t result, int error);

/* The first byte of an answer seems to be late: was it asked for late, or looked for? `seen`: of
 * the peer's bytes, those that were there before. Asks the kernel. */
void sock_watch_look_closer(struct sock_conn *conn, int fd, uint64_t seen);

/* A read under way: whose it is, as it begins. */
struct sock_read {
    struct sock_conn *conn; /* NULL: it passes unwatched */
    unsigned generation;
    int fd;
};

/* Plain loads: whether it is still the same is asked afterwards. */
static inline struct sock_read sock_read_begin(int fd)
{
    struct sock_conn *conn = fdmap_get(fd);

    return (struct sock_read){
        conn, conn ? atomic_load_explicit(&conn->generation, memory_order_relaxed) : 0, fd};
}

/* Not locked: is it tied (sock_tied.h), and H has heard what there is to hear? What it sends is not
 * looked at, and of what it receives only the number and the end. */
static inline bool sock_is_quiet(const struct sock_conn *conn)
{
    return atomic_load_explicit(&conn->quiet, memory_order_relaxed);
}

/* Is a write to it to pass as it is? */
static inline bool sock_write_passes(int fd)
{
    const struct sock_conn *conn = fdmap_get(fd);

    return !conn || sock_is_quiet(conn);
}

bool sock_watch_answer(int fd, const struct iovec *parts, size_t count, int flags, ssize_t *result);
ssize_t sock_watch_read(const struct sock_read *read, const struct iovec *parts, size_t count,
                        int flags, ssize_t result);

/* The program read our answer: *result is what it is told, the real call is not made. */
static inline bool sock_read_answer(const struct sock_read *read, const struct iovec *parts,
                                    size_t count, int flags, ssize_t *result)
{
    return read->conn && atomic_load_explicit(&read->conn->answering, memory_order_acquire) &&
           sock_watch_answer(read->fd, parts, count, flags, result);
}

/* Bytes that were read of a quiet one are counted, and that is all. False: there is more to do. */
static inline bool sock_read_is_counted(const struct sock_read *read, int flags, ssize_t result)
{
    struct sock_conn *conn = read->conn;

    if (result <= 0 || (flags & (MSG_PEEK | MSG_ERRQUEUE | MSG_OOB)) || !conn ||
        !sock_is_quiet(conn) ||
        atomic_load_explicit(&conn->generation, memory_order_relaxed) != read->generation)
        return false;
    atomic_fetch_add_explicit(&conn->seen, (uint64_t)result, memory_order_relaxed);
    return true;
}

/* After the real read, with errno as it left it: what the program is told. While it waited another
 * thread may have closed the descriptor, and the number may be another connection's by now. */
static inline ssize_t sock_read_done(const struct sock_read *read, const struct iovec *parts,
                                     size_t count, int flags, ssize_t result)
{
    return sock_read_is_counted(read, flags, result)
               ? result
               : sock_watch_read(read, parts, count, flags, result);
}

/* For a connection that is locked: our answer into the program's buffers. */
ssize_t sock_watch_hand_out(struct sock_conn *conn, const struct iovec *parts, size_t count,
                            int flags);
/* Begins the answer if it is time for it. Unlocks. */
void sock_watch_leave(struct sock_conn *conn, int fd);

#endif
