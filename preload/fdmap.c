#include "fdmap.h"

#include "guard.h"
#include "real.h"
#include "shim.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

_Atomic(struct fdmap_chunk *) fdmap_chunks[FDMAP_CHUNKS];
_Atomic(unsigned) fdmap_end;

__thread enum fdmap_doubt fdmap_doubt __attribute__((tls_model("initial-exec")));

/* 0: nobody's yet. Written by fdmap_adopt() while there is one thread. */
static _Atomic pid_t owner;

/* Not getpid(): an older libc remembers the parent's in a vfork child. */
static pid_t own_process(void)
{
    return (pid_t)real_sock()->syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

static struct fdmap_chunk *chunk_for(unsigned at)
{
    _Atomic(struct fdmap_chunk *) *place = &fdmap_chunks[at / FDMAP_CHUNK];
    struct fdmap_chunk *chunk = atomic_load_explicit(place, memory_order_acquire);

    if (chunk)
        return chunk;
    struct fdmap_chunk *made =
        mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED)
        return NULL;
    if (atomic_compare_exchange_strong_explicit(place, &chunk, made, memory_order_acq_rel,
                                                memory_order_acquire))
        return made;
    munmap(made, sizeof *made);
    return chunk;
}

bool fdmap_set(int fd, struct sock_conn *conn)
{
    unsigned at = (unsigned)fd;
    struct fdmap_chunk *chunk = NULL;

    if (at < FDMAP_MAX)
        GUARD_ERRNO(chunk = chunk_for(at));
    if (!chunk)
        return false;
    unsigned end = atomic_load_explicit(&fdmap_end, memory_order_relaxed);
    while (end <= at && !atomic_compare_exchange_weak_explicit(
                            &fdmap_end, &end, at + 1, memory_order_release, memory_order_relaxed))
        ;
    atomic_store_explicit(&chunk->conn[at % FDMAP_CHUNK], conn, memory_order_release);
    return true;
}

bool fdmap_clear(int fd, const struct sock_conn *conn)
{
    unsigned at = (unsigned)fd;
    struct sock_conn *found = fdmap_get(fd);

    if (!found || found != conn)
        return false;
    struct fdmap_chunk *chunk =
        atomic_load_explicit(&fdmap_chunks[at / FDMAP_CHUNK], memory_order_acquire);
    return atomic_compare_exchange_strong_explicit(&chunk->conn[at % FDMAP_CHUNK], &found, NULL,
                                                   memory_order_acq_rel, memory_order_relaxed);
}

int fdmap_next(unsigned first, unsigned last)
{
    unsigned at = first;

    while (at <= last && fdmap_any_from(at)) {
        struct fdmap_chunk *chunk =
            atomic_load_explicit(&fdmap_chunks[at / FDMAP_CHUNK], memory_order_acquire);
        if (!chunk)
            at = (at / FDMAP_CHUNK + 1) * FDMAP_CHUNK;
        else if (atomic_load_explicit(&chunk->conn[at % FDMAP_CHUNK], memory_order_acquire))
            return (int)at;
        else
            at++;
    }
    return -1;
}

bool fdmap_ask_owner(void)
{
    bool ours = atomic_load_explicit(&owner, memory_order_relaxed) == own_process();

    if (ours && fdmap_doubt == FDMAP_VFORKED)
        fdmap_doubt = FDMAP_SURE;
    return ours;
}

void fdmap_adopt(void)
{
    unsigned end = atomic_load_explicit(&fdmap_end, memory_order_relaxed);

    for (unsigned i = 0; i * FDMAP_CHUNK < end; i++)
        atomic_store_explicit(&fdmap_chunks[i], NULL, memory_order_relaxed);
    atomic_store_explicit(&fdmap_end, 0, memory_order_relaxed);
    if (!shim_fenced()) /* a system call; and nothing will be tracked */
        atomic_store_explicit(&owner, own_process(), memory_order_relaxed);
    fdmap_doubt = FDMAP_SURE;
}
