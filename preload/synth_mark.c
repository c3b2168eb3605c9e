#include "synth_mark.h"

#include "shim.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MARKS 256

/* Each a process << 32 | descriptor + 1; 0 = free. Set, taken and inherited as one word, so that no
 * half of another process's is ever matched. Those of a parent that a fork left in its child never
 * match there; the child's own take their places. */
static _Atomic uint64_t marks[MARKS];

/* How many are not free, or a moment more: raised before a mark is set, lowered after it is taken.
 * It lets the hook pass at the cost of one load. */
static atomic_uint mark_count;

/* Asked of the kernel: an older libc remembers the parent's in a vfork child. */
static uint64_t own_process(void)
{
    return (uint64_t)syscall(SYS_getpid) << 32;
}

static bool replace(_Atomic uint64_t *mark, uint64_t from, uint64_t to)
{
    return atomic_compare_exchange_strong(mark, &from, to);
}

bool synth_mark_set(int fd)
{
    uint64_t process = own_process(), wanted = process | (uint32_t)(fd + 1);

    atomic_fetch_add(&mark_count, 1);
    for (unsigned i = 0; i < MARKS; i++)
        if (replace(&marks[i], 0, wanted))
            return true;
    atomic_fetch_sub(&mark_count, 1);
    for (unsigned i = 0; i < MARKS; i++) {
        uint64_t found = atomic_load(&marks[i]);
        if (found != 0 && found >> 32 != process >> 32 && replace(&marks[i], found, wanted))
            return true; /* counted already, by the parent */
    }
    return false;
}

bool synth_mark_take(int fd)
{
    if (atomic_load_explicit(&mark_count, memory_order_relaxed) == 0 || fd < 0 || shim_fenced())
        return false;
    uint64_t mark = own_process() | (uint32_t)(fd + 1);
    for (unsigned i = 0; i < MARKS; i++)
        if (replace(&marks[i], mark, 0)) {
            atomic_fetch_sub(&mark_count, 1);
            return true;
        }
    return false;
}
