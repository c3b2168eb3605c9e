#include "sock_attempt.h"

#include "base/clock.h"

#include <string.h>

#define ATTEMPTS     32
#define GIVEN_UP_NS  (CLOCK_NS_PER_S / 2)   /* no further connect for so long: it is over */
#define WAITED_NS    (CLOCK_NS_PER_S / 10)  /* no system says at once that it got no answer */
#define FORGOTTEN_NS (600 * CLOCK_NS_PER_S) /* whose end never came to us */

/* All under `lock`. Unused when `used_ns` is 0. */
static struct attempt {
    uint64_t used_ns;        /* CLOCK_MONOTONIC of the last event */
    uint64_t began_ns;       /* and of the first connect that came to nothing */
    uint64_t walked_ns;      /* and of the last that was a step of a walk */
    struct sock_place place; /* name, port, resolution */
    uint8_t pending;         /* connects under way */
    bool granted;            /* `call` is a grant */
    bool blamed;             /* a failure so far was the peer's, as `end` tells */
    bool waited;             /* the last that failed had been waited for */
    uint16_t covered;        /* addresses that the grant was used for, one bit each */
    uint8_t failed[SOCK_NAMES_ADDRESSES];
    struct shim_call call; /* the grant, or what the last that failed was admitted with */
    struct call_end end;
} attempts[ATTEMPTS];

static struct sock_lock lock;

/* How many are in use, so that the healthy way costs one load. Written under the lock. */
static atomic_uint in_use;

static bool same_place(const struct attempt *attempt, const struct sock_place *place)
{
    return attempt->used_ns != 0 && attempt->place.port == place->port &&
           attempt->place.resolution == place->resolution &&
           attempt->place.name_len == place->name_len &&
           memcmp(attempt->place.name, place->name, place->name_len) == 0;
}

static void release(struct attempt *attempt)
{
    shim_drop(&attempt->call);
    attempt->used_ns = 0;
    atomic_fetch_sub_explicit(&in_use, 1, memory_order_relaxed);
}

/* It went no further. */
static void give_up(struct attempt *attempt)
{
    if (attempt->blamed)
        shim_settle(&attempt->call, &attempt->end);
    release(attempt);
}

static bool is_over(const struct attempt *attempt, uint64_t now)
{
    return (attempt->pending == 0 && clock_has_passed(attempt->walked_ns, now, GIVEN_UP_NS)) ||
           clock_has_passed(attempt->used_ns, now, FORGOTTEN_NS);
}

static struct attempt *find(const struct sock_place *place, uint64_t now)
{
    for (unsigned i = 0; i < ATTEMPTS; i++) {
        if (attempts[i].used_ns != 0 && is_over(&attempts[i], now))
            give_up(&attempts[i]);
        if (same_place(&attempts[i], place))
            return &attempts[i];
    }
    return NULL;
}

static struct attempt *find_or_begin(const struct sock_place *place, uint64_t now)
{
    struct attempt *attempt = find(place, now);

    for (unsigned i = 0; i < ATTEMPTS && !attempt; i++)
        if (attempts[i].used_ns == 0) {
            attempt = &attempts[i];
            attempt->place = *place;
            attempt->pending = 0;
            attempt->granted = attempt->blamed = attempt->waited = false;
            attempt->covered = 0;
            attempt->walked_ns = now;
            memset(attempt->failed, 0, sizeof attempt->failed);
            atomic_fetch_add_explicit(&in_use, 1, memory_order_relaxed);
        }
    if (attempt)
        attempt->used_ns = now;
    return attempt;
}

/* The call is its taker's: it is plain memory, and nothing in it points into itself. */
static void move_call(struct shim_call *to, struct shim_call *from)
{
    shim_drop(to);
    *to = *from;
    memset(from, 0, sizeof *from);
}

/* Several addresses are told apart only where this one is among the latest. */
static bool walks(const struct sock_conn *conn)
{
    return conn->place.address_count > 1 && conn->place.address_index < SOCK_NAMES_ADDRESSES;
}

static uint16_t bit_of(const struct sock_conn *conn)
{
    return (uint16_t)(1u << conn->place.address_index);
}

/* --- admission -------------------------------------------------------------------------------- */

static void enter(struct sock_conn *conn, struct attempt *attempt)
{
    if (attempt->pending < UINT8_MAX) {
        attempt->pending++;
        conn->pending = true;
    }
    attempt->used_ns = conn->started_ns;
    if (attempt->failed[conn->place.address_index] == 0)
        attempt->walked_ns = conn->started_ns;
}

/* Who waited for an address in vain goes on to the next at once. Begins the program with one that
 * has failed, and none is under way, that walk is over. (When refusals come at once, many walks may
 * be at the same step.) */
static bool begins_anew(const struct attempt *attempt, const struct sock_conn *conn)
{
    return attempt->waited && attempt->pending == 0 &&
           attempt->failed[conn->place.address_index] > 0;
}

/* Is the connect one more of an attempt that holds a grant? */
static bool join(struct sock_conn *conn)
{
    struct attempt *attempt = find(&conn->place, conn->started_ns);

    if (attempt && begins_anew(attempt, conn)) {
        give_up(attempt);
        attempt = NULL;
    }
    if (!attempt)
        return false;
    enter(conn, attempt);
    conn->shares = attempt->granted && !(attempt->covered & bit_of(conn));
    if (conn->shares)
        attempt->covered |= bit_of(conn);
    return conn->shares;
}

static void share_grant(struct sock_conn *conn)
{
    struct attempt *attempt = find_or_begin(&conn->place, conn->started_ns);

    if (!attempt || attempt->granted)
        return; /* it keeps the grant for itself: no room, or a second probe of the name */
    move_call(&attempt->call, &conn->host);
    attempt->granted = true;
    attempt->covered = bit_of(conn);
    if (!conn->pending)
        enter(conn, attempt);
    conn->shares = true;
}

static void leave(struct sock_conn *conn, struct attempt *attempt)
{
    if (conn->pending && attempt->pending > 0)
        attempt->pending--;
    conn->pending = false;
}

void sock_attempt_withdraw(struct sock_conn *conn)
{
    if (!conn->pending || !sock_lock(&lock))
        return;
    struct attempt *attempt = find(&conn->place, conn->started_ns);
    if (attempt)
        leave(conn, attempt);
    conn->pending = false;
    sock_unlock(&lock);
}

enum shim_verdict sock_attempt_admit(struct sock_conn *conn)
{
    bool joined = false;

    if (!walks(conn))
        return shim_admit(&conn->host);
    if (atomic_load_explicit(&in_use, memory_order_relaxed) != 0 && sock_lock(&lock)) {
        joined = join(conn);
        sock_unlock(&lock);
    }
    if (joined)
        return SHIM_ADMITTED;
    if (shim_admit(&conn->host) == SHIM_REFUSED) {
        sock_attempt_withdraw(conn);
        return SHIM_REFUSED;
    }
    if (shim_is_probe(&conn->host) && sock_lock(&lock)) {
        share_grant(conn);
        sock_unlock(&lock);
    }
    return SHIM_ADMITTED;
}

/* --- the end ------------------------------------------------------------------------------------
 */

static bool all_forgiven(const struct attempt *attempt)
{
    for (unsigned i = 0; i < attempt->place.address_count; i++)
        if (attempt->failed[i] != 0)
            return false;
    return true;
}

/* Nothing is open of it any more. */
static void release_if_done(struct attempt *attempt)
{
    if (all_forgiven(attempt) && !attempt->granted && attempt->pending == 0)
        release(attempt);
}

/* One attempt that had failed at other addresses is this one, which got through. */
static void forgive(struct attempt *attempt, unsigned index)
{
    for (unsigned i = 0; i < attempt->place.address_count; i++)
        if (i != index && attempt->failed[i] > 0)
            attempt->failed[i]--;
    release_if_done(attempt);
}

void sock_attempt_connected(struct sock_conn *conn)
{
    if (!walks(conn) || atomic_load_explicit(&in_use, memory_order_relaxed) == 0 ||
        !sock_lock(&lock))
        return;
    struct attempt *attempt = find(&conn->place, shim_mono_ns());
    if (attempt) {
        leave(conn, attempt);
        if (conn->shares && attempt->granted) {
            move_call(&conn->host, &attempt->call);
            attempt->granted = false;
        }
        forgive(attempt, conn->place.address_index);
    }
    conn->shares = conn->pending = false;
    sock_unlock(&lock);
}

/* Have all addresses failed once more? Then that was one attempt. */
static bool walked_all(struct attempt *attempt)
{
    for (unsigned i = 0; i < attempt->place.address_count; i++)
        if (attempt->failed[i] == 0)
            return false;
    for (unsigned i = 0; i < attempt->place.address_count; i++)
        attempt->failed[i]--;
    return true;
}

/* Notes the failure; true: the attempt has failed, and *call is to be settled by *end. */
static bool note_failure(struct sock_conn *conn, struct call_end *end, bool *blamed)
{
    struct attempt *attempt = find_or_begin(&conn->place, shim_mono_ns());

    if (!attempt)
        return !conn->shares; /* no room: each address for itself */
    leave(conn, attempt);
    if (all_forgiven(attempt)) {
        attempt->began_ns = conn->started_ns;
        attempt->walked_ns = attempt->used_ns;
    }
    attempt->waited = end->age_ns > WAITED_NS;
    if (attempt->failed[conn->place.address_index] < UINT8_MAX)
        attempt->failed[conn->place.address_index]++;
    if (*blamed) {
        attempt->blamed = true;
        attempt->end = *end; /* the last one tells; the hang is that of the whole walk */
        attempt->end.age_ns = shim_mono_ns() - attempt->began_ns;
    }
    if (!attempt->granted)
        move_call(&attempt->call, &conn->host);
    if (!walked_all(attempt))
        return false;
    *blamed = attempt->blamed;
    *end = attempt->end;
    move_call(&conn->host, &attempt->call);
    attempt->granted = attempt->blamed = false;
    release_if_done(attempt);
    return true;
}

void sock_attempt_failed(struct sock_conn *conn, const struct call_end *end, bool blamed)
{
    struct call_end last = *end;
    bool over = true;

    if (walks(conn) && sock_lock(&lock)) {
        over = note_failure(conn, &last, &blamed);
        sock_unlock(&lock);
    }
    conn->shares = conn->pending = false;
    if (over && blamed)
        shim_settle(&conn->host, &last);
    else
        shim_drop(&conn->host); /* what is not the attempt's by now */
}

static void end_all(void end(struct attempt *attempt))
{
    if (atomic_load_explicit(&in_use, memory_order_relaxed) == 0 || !sock_enter())
        return;
    if (sock_lock(&lock)) {
        for (unsigned i = 0; i < ATTEMPTS; i++)
            if (attempts[i].used_ns != 0)
                end(&attempts[i]);
        sock_unlock(&lock);
    }
    sock_leave();
}

void sock_attempt_finish(void)
{
    end_all(give_up);
}

void sock_attempt_drop(void)
{
    end_all(release);
}

void sock_attempt_abandon(void)
{
    if (atomic_load_explicit(&in_use, memory_order_relaxed) != 0)
        for (unsigned i = 0; i < ATTEMPTS; i++)
            attempts[i].used_ns = 0;
    atomic_store_explicit(&in_use, 0, memory_order_relaxed);
    sock_unlock(&lock);
}
