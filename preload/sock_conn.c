#include "sock_conn.h"

#include "guard.h"
#include "real.h"
#include "sock_attempt.h"
#include "sock_divert.h"
#include "sock_fallback.h"
#include "sock_socket.h"

#include <pthread.h>
#include <string.h>

static struct sock_pool conns = {.object_size = sizeof(struct sock_conn), .per_block = 32};
static struct sock_pool flows = {.object_size = sizeof(struct sock_flow), .per_block = 32};

/* --- finding one --------------------------------------------------------------------------------
 */

/* The thread is inside. False: not to be had, and noted: nobody waits a second time, whoever has it
 * may have left it for good (a handler that jumped out of our work, a thread cancelled in it). */
static bool lock_conn(struct sock_conn *conn)
{
    if (atomic_load_explicit(&conn->unreliable, memory_order_relaxed) ? sock_try_lock(&conn->lock)
                                                                      : sock_lock(&conn->lock))
        return true;
    atomic_store_explicit(&conn->unreliable, true, memory_order_relaxed);
    return false;
}

static void settle(struct sock_conn *conn, enum sock_end end);

/* Locked, and nobody finds it any more. */
static void give_back(struct sock_conn *conn)
{
    atomic_fetch_add_explicit(&conn->generation, 1, memory_order_relaxed);
    sock_unlock(&conn->lock);
    sock_pool_give(&conns, conn);
}

/* Its descriptors were closed while we were at it. */
static bool lost_its_last(struct sock_conn *conn)
{
    if (atomic_load_explicit(&conn->orphans, memory_order_relaxed) == 0)
        return false;
    conn->descriptors -= atomic_exchange_explicit(&conn->orphans, 0, memory_order_relaxed);
    return conn->descriptors == 0;
}

void sock_conn_unlock(struct sock_conn *conn)
{
    if (lost_its_last(conn)) {
        settle(conn, SOCK_END_DROP);
        give_back(conn);
    } else {
        sock_unlock(&conn->lock);
    }
    sock_leave();
}

/* Locked: is it still the one that `fd` leads to, and good? */
static bool is_good(struct sock_conn *conn, int fd)
{
    if (fdmap_get(fd) != conn) {
        sock_conn_unlock(conn);
        return false;
    }
    if (conn->dead || atomic_load_explicit(&conn->unreliable, memory_order_relaxed)) {
        sock_conn_let_go(conn, fd, SOCK_END_DROP);
        return false;
    }
    return true;
}

struct sock_conn *sock_conn_lock(int fd)
{
    struct sock_conn *conn = fdmap_get(fd);

    if (!conn || !fdmap_is_ours())
        return NULL;
    if (!sock_enter()) {
        atomic_store_explicit(&conn->unreliable, true, memory_order_relaxed);
        return NULL;
    }
    if (!lock_conn(conn)) {
        sock_leave();
        return NULL;
    }
    return is_good(conn, fd) ? conn : NULL;
}

struct sock_conn *sock_conn_lock_again(int fd, struct sock_conn *conn, unsigned generation)
{
    struct sock_conn *found = sock_conn_lock(fd);

    if (found && (found != conn ||
                  atomic_load_explicit(&conn->generation, memory_order_relaxed) != generation)) {
        sock_conn_unlock(found);
        return NULL;
    }
    return found;
}

/* --- its end ------------------------------------------------------------------------------------
 */

static uint64_t age_of(const struct sock_conn *conn)
{
    return shim_mono_ns() - conn->started_ns;
}

/* What is open of H alone. Once a byte of the peer is there nothing is. */
static void end_host(struct sock_conn *conn, enum sock_end end)
{
    struct call_end told = {.kind = END_ABORTED, .age_ns = age_of(conn)};

    if (conn->heard) {
        shim_received(&conn->host);
        shim_drop(&conn->host);
        return;
    }
    if (conn->connecting) {
        told.phase = PHASE_CONNECTING; /* a hang, if it is old enough */
        if (conn->diverted && end == SOCK_END_CLOSE)
            sock_divert_failed(conn);
        sock_attempt_failed(conn, &told, end == SOCK_END_CLOSE);
        return;
    }
    told.phase = PHASE_HANDSHAKE;
    if (end != SOCK_END_CLOSE)
        told.kind = END_HANDSHAKE;
    if (conn->tls && end != SOCK_END_DROP)
        shim_settle(&conn->host, &told);
    else
        shim_drop(&conn->host);
}

static enum shim_flow_end flow_end_of(enum sock_end end)
{
    switch (end) {
    case SOCK_END_EOF:
        return SHIM_FLOW_EOF;
    case SOCK_END_RESET:
        return SHIM_FLOW_RESET;
    case SOCK_END_CLOSE:
        return SHIM_FLOW_CLOSE;
    case SOCK_END_DROP:
        break;
    }
    return SHIM_FLOW_DROP;
}

static void settle(struct sock_conn *conn, enum sock_end end)
{
    if (conn->flow) {
        shim_flow_end(&conn->flow->flow, flow_end_of(end));
        sock_pool_give(&flows, conn->flow);
        conn->flow = NULL;
    }
    if (conn->judged)
        end_host(conn, end);
    conn->judged = false;
}

/* One descriptor less leads here. Unlocks. */
static void forget_descriptor(struct sock_conn *conn)
{
    if (--conn->descriptors > 0) {
        sock_conn_unlock(conn);
        return;
    }
    give_back(conn);
    sock_leave();
}

void sock_conn_let_go(struct sock_conn *conn, int fd, enum sock_end end)
{
    if (!conn->dead)
        settle(conn, end);
    conn->dead = true;
    atomic_store_explicit(&conn->answering, false, memory_order_relaxed);
    if (fdmap_clear(fd, conn))
        forget_descriptor(conn);
    else
        sock_conn_unlock(conn);
}

/* Is it another socket's end by now, or was it answered past our hooks? libc's stdio reads from
 * within, a child or another number may have read, and what came and was never looked at is no
 * hang. With a head in hand a close asks nothing, unless it may be told as a stall: the status has
 * said it. The kernel counts a FIN as a byte. */
static bool is_doubtful(const struct sock_conn *conn, int fd, enum sock_end end)
{
    bool headed = conn->flow && shim_flow_has_head(&conn->flow->flow);

    if (headed && end == SOCK_END_CLOSE && !shim_flow_listens(&conn->flow->flow))
        return false;
    if (!sock_conn_same_socket(conn, fd))
        return true;
    return sock_socket_received(fd) >
           sock_conn_seen(conn) + (headed ? sock_socket_unread(fd) : 0) + 1;
}

/* Is something of the peer to come, or under way? */
static bool waits(const struct sock_conn *conn)
{
    return (conn->flow && shim_flow_waits(&conn->flow->flow)) ||
           (conn->judged && !conn->heard && (conn->connecting || conn->tls));
}

/* As far as the program and the layer above have taken it. */
static bool is_over(const struct sock_conn *conn, int fd)
{
    return sock_socket_is_over(fd) && (!conn->in_memory || conn->drained == sock_conn_seen(conn));
}

/* Nothing is asked where nothing is open: a kept connection that ends between two calls. */
void sock_conn_end(struct sock_conn *conn, int fd, enum sock_end end)
{
    if (waits(conn) && is_doubtful(conn, fd, end))
        end = SOCK_END_DROP;
    else if (end == SOCK_END_CLOSE && waits(conn) && is_over(conn, fd))
        end = SOCK_END_RESET; /* poll has told the program: libuv closes at a hang-up */
    else if (end == SOCK_END_CLOSE && conn->flow && shim_flow_listens(&conn->flow->flow) &&
             sock_socket_unread(fd) > 0)
        shim_flow_unread(&conn->flow->flow); /* the peer was not silent, the program did not look */
    else if (end == SOCK_END_CLOSE && conn->flow && shim_flow_is_late(&conn->flow->flow))
        shim_flow_left(&conn->flow->flow, sock_socket_lull(fd, sock_conn_seen(conn)).left_ns);
    sock_conn_let_go(conn, fd, end);
}

/* Its lock cannot be had: whoever has it sees to the rest, unless it was unlocked just now. */
static void orphan(struct sock_conn *conn, int fd)
{
    if (!fdmap_clear(fd, conn))
        return;
    atomic_fetch_add_explicit(&conn->orphans, 1, memory_order_relaxed);
    if (!sock_enter())
        return;
    if (sock_try_lock(&conn->lock))
        sock_conn_unlock(conn);
    else
        sock_leave();
}

/* Programs that see in poll() that a connect failed may close without asking why: the kernel still
 * knows. False: it was let go. */
static bool ask_how_it_went(struct sock_conn *conn, int fd)
{
    int error = conn->judged && conn->connecting && sock_conn_same_socket(conn, fd)
                    ? sock_socket_take_error(fd)
                    : 0;

    return error == 0 || sock_conn_connected(conn, fd, error);
}

/* Another thread may be inside a real call on it: it finds the map or `generation` changed. */
void sock_conn_closed(int fd)
{
    struct sock_conn *there = fdmap_get(fd), *conn = sock_conn_lock(fd);

    if (!there)
        return;
    if (!conn)
        orphan(there, fd);
    else if (conn->descriptors == 1 && !ask_how_it_went(conn, fd))
        ;
    else if (conn->descriptors == 1)
        sock_conn_end(conn, fd, SOCK_END_CLOSE);
    else if (fdmap_clear(fd, conn))
        forget_descriptor(conn);
    else
        sock_conn_unlock(conn);
}

void sock_conn_duplicated(int from, int to)
{
    struct sock_conn *conn = sock_conn_lock(from);

    if (!conn)
        return;
    if (fdmap_set(to, conn))
        conn->descriptors++;
    sock_conn_unlock(conn);
}

/* --- its beginning ------------------------------------------------------------------------------
 */

struct sock_conn *sock_conn_make(void)
{
    struct sock_conn *conn = sock_pool_take(&conns);

    if (!conn)
        return NULL;
    atomic_store_explicit(&conn->unreliable, false, memory_order_relaxed);
    atomic_store_explicit(&conn->answering, false, memory_order_relaxed);
    atomic_store_explicit(&conn->orphans, 0, memory_order_relaxed);
    atomic_store_explicit(&conn->tied, false, memory_order_relaxed);
    atomic_store_explicit(&conn->quiet, false, memory_order_relaxed);
    atomic_store_explicit(&conn->hello, false, memory_order_relaxed);
    atomic_store_explicit(&conn->seen, 0, memory_order_relaxed);
    conn->descriptors = 1;
    conn->dead = conn->judged = conn->diverted = conn->pending = conn->shares = conn->wrote =
        conn->tls = conn->shut = false;
    conn->unclaimed = 0;
    conn->drained = UINT64_MAX;
    conn->tunnel = conn->heard = conn->in_memory = conn->nudged = conn->over = false;
    conn->connecting = true;
    conn->flow = NULL;
    conn->started_ns = shim_mono_ns();
    return conn;
}

void sock_conn_give(struct sock_conn *conn)
{
    sock_pool_give(&conns, conn);
}

bool sock_conn_track(struct sock_conn *conn, int fd)
{
    if (fdmap_set(fd, conn))
        return true;
    settle(conn, SOCK_END_DROP);
    sock_conn_give(conn);
    return false;
}

bool sock_conn_connected(struct sock_conn *conn, int fd, int error)
{
    if (!conn->connecting)
        return true;
    conn->connecting = false;
    if (error == 0) {
        if (conn->judged)
            sock_attempt_connected(conn);
        return true;
    }
    if (conn->diverted && sock_conn_is_peers_fault(error))
        sock_divert_failed(conn);
    if (conn->judged) {
        const struct call_end told = {
            .kind = END_CONNECT, .phase = PHASE_CONNECTING, .age_ns = age_of(conn)};
        sock_attempt_failed(conn, &told, sock_conn_is_peers_fault(error));
    }
    conn->judged = false;
    sock_conn_let_go(conn, fd, SOCK_END_DROP);
    return false;
}

bool sock_conn_follow(struct sock_conn *conn)
{
    conn->flow = sock_pool_take(&flows);
    if (!conn->flow)
        return false;
    shim_flow_init(&conn->flow->flow, span_of(conn->place.name, conn->place.name_len),
                   conn->place.port, conn->judged ? &conn->host : NULL);
    if (conn->diverted)
        shim_flow_divert(&conn->flow->flow);
    return true;
}

bool sock_conn_unfollow(struct sock_conn *conn, int fd)
{
    if (conn->flow)
        sock_pool_give(&flows, conn->flow);
    conn->flow = NULL;
    if (conn->tunnel || atomic_load_explicit(&conn->hello, memory_order_relaxed) ||
        (conn->judged && !conn->heard && (conn->connecting || shim_admitted(&conn->host))))
        return true;
    sock_conn_let_go(conn, fd, SOCK_END_DROP);
    return false;
}

bool sock_conn_same_socket(const struct sock_conn *conn, int fd)
{
    bool same;

    GUARD_ERRNO(same = sock_socket_leads_to(fd, &conn->peer));
    return same;
}

/* --- forks
 * ---------------------------------------------------------------------------------------- */

/* What the parent has open runs uncovered here; other threads' locks are nobody's. */
static void begin_anew(void)
{
    fdmap_adopt();
    sock_pool_abandon(&conns);
    sock_pool_abandon(&flows);
    sock_attempt_abandon();
    sock_fallback_in_child();
    sock_inside = false;
}

void sock_conn_prepare(void)
{
    fdmap_adopt();
    pthread_atfork(NULL, NULL, begin_anew);
}
