#include "synth_pair.h"

#include "shim.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* A place of the shelf. Whoever moves `state` to PLACE_BUSY (acquire) owns `pair` until it moves it
 * on (release). A process killed in between takes the shelf with it. */
enum { PLACE_EMPTY, PLACE_BUSY, PLACE_FULL };

static struct place {
    atomic_int state;
    struct synth_pair pair;
} shelf[SYNTH_PAIRS_KEPT];

static bool enter(struct place *place, int from)
{
    return atomic_load_explicit(&place->state, memory_order_relaxed) == from &&
           atomic_compare_exchange_strong_explicit(&place->state, &from, PLACE_BUSY,
                                                   memory_order_acquire, memory_order_relaxed);
}

static void leave(struct place *place, int to)
{
    atomic_store_explicit(&place->state, to, memory_order_release);
}

/* --- is it still ours? ---------------------------------------------------------------------- */

static bool inode_of(int fd, ino_t *inode)
{
    struct stat st;

    if (fstat(fd, &st) != 0 || !S_ISSOCK(st.st_mode))
        return false;
    *inode = st.st_ino;
    return true;
}

static bool still(int fd, ino_t inode)
{
    ino_t now;

    return inode_of(fd, &now) && now == inode;
}

/* --- making and ending ------------------------------------------------------------------------ */

/* The program may have closed 0, 1 and 2: what it writes there must not meet our pair. */
static bool lift_above_stdio(int *fd)
{
    if (*fd > STDERR_FILENO)
        return true;
    int lifted = fcntl(*fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(*fd);
    *fd = lifted;
    return lifted >= 0;
}

static bool make(struct synth_pair *pair)
{
    int end[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, end) != 0)
        return false;
    bool near = lift_above_stdio(&end[0]), far = lift_above_stdio(&end[1]);
    *pair = (struct synth_pair){.near = end[0], .far = end[1], .owner = getpid()};
    if (near && far && inode_of(end[0], &pair->near_inode) && inode_of(end[1], &pair->far_inode))
        return true;
    for (unsigned i = 0; i < 2; i++)
        if (end[i] >= 0)
            close(end[i]);
    return false;
}

void synth_pair_close(const struct synth_pair *pair)
{
    if (shim_fenced())
        return;
    if (still(pair->near, pair->near_inode))
        close(pair->near);
    if (still(pair->far, pair->far_inode))
        close(pair->far);
}

/* The request that libcurl sent is of no use to anyone. False: there is more than it is worth. */
static bool drain(int fd)
{
    char waste[4096]; /* threads may have 16 KB of stack */

    for (unsigned reads = 0; reads < 16; reads++)
        if (recv(fd, waste, sizeof waste, MSG_DONTWAIT) < (ssize_t)sizeof waste)
            return true;
    return false;
}

static bool has_unread(int fd)
{
    char byte;

    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;
}

/* --- the shelf ----------------------------------------------------------------------------------
 */

bool synth_pair_take(struct synth_pair *pair)
{
    if (shim_fenced())
        return false;
    for (struct place *place = shelf; place < shelf + SYNTH_PAIRS_KEPT; place++) {
        if (!enter(place, PLACE_FULL))
            continue;
        *pair = place->pair;
        leave(place, PLACE_EMPTY);
        if (pair->owner == getpid() && still(pair->near, pair->near_inode) &&
            still(pair->far, pair->far_inode))
            return true;
        synth_pair_close(pair); /* a child's copies; or what the program left of them */
    }
    return make(pair);
}

void synth_pair_give(const struct synth_pair *pair)
{
    if (!shim_fenced() && drain(pair->far) && !has_unread(pair->near))
        for (struct place *place = shelf; place < shelf + SYNTH_PAIRS_KEPT; place++)
            if (enter(place, PLACE_EMPTY)) {
                place->pair = *pair;
                leave(place, PLACE_FULL);
                return;
            }
    synth_pair_close(pair);
}
