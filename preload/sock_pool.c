#include "sock_pool.h"

#include "guard.h"

#include <sys/mman.h>

#define LOW(x)          ((uint32_t)(x))
#define CHANGED(x, low) ((((x) >> 32) + 1) << 32 | (low))

/* NULL: not of this pool since it was abandoned. */
static struct sock_pooled *numbered(struct sock_pool *pool, uint32_t number)
{
    uint32_t index = number - 1;
    /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): a constant of each pool */
    uint32_t at = index / pool->per_block;
    char *block = atomic_load_explicit(&pool->blocks[at], memory_order_acquire);

    if (!block)
        return NULL;
    return (struct sock_pooled *)(void *)(block +
                                          (size_t)(index % pool->per_block) * pool->object_size);
}

static struct sock_pooled *pop(struct sock_pool *pool)
{
    uint64_t head = atomic_load_explicit(&pool->free_head, memory_order_acquire);

    while (LOW(head) != 0) {
        struct sock_pooled *first = numbered(pool, LOW(head));
        if (!first)
            return NULL;
        uint32_t next = atomic_load_explicit(&first->next_free, memory_order_relaxed);
        if (atomic_compare_exchange_weak_explicit(&pool->free_head, &head, CHANGED(head, next),
                                                  memory_order_acquire, memory_order_acquire))
            return first;
    }
    return NULL;
}

static void push(struct sock_pool *pool, struct sock_pooled *object)
{
    uint64_t head = atomic_load_explicit(&pool->free_head, memory_order_relaxed);

    do
        atomic_store_explicit(&object->next_free, LOW(head), memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&pool->free_head, &head,
                                                  CHANGED(head, object->number),
                                                  memory_order_release, memory_order_relaxed));
}

/* The block that an object never taken lies in, mapped if nobody did so before; NULL: no memory. */
static char *block_at(struct sock_pool *pool, uint32_t at)
{
    const size_t size = pool->object_size * pool->per_block;
    char *block = atomic_load_explicit(&pool->blocks[at], memory_order_acquire);

    if (block)
        return block;
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    if (atomic_compare_exchange_strong_explicit(&pool->blocks[at], &block, memory,
                                                memory_order_acq_rel, memory_order_acquire))
        return memory;
    munmap(memory, size);
    return block;
}

/* Takes one that never was. A child that a handler forked in the middle of it may get one of a
 * block that was abandoned: it is forgotten when it is given back. */
static struct sock_pooled *take_fresh(struct sock_pool *pool)
{
    uint32_t fresh = atomic_load_explicit(&pool->fresh, memory_order_relaxed);

    while (fresh / pool->per_block < SOCK_POOL_BLOCKS) {
        char *block = block_at(pool, fresh / pool->per_block);
        if (!block)
            return NULL;
        if (!atomic_compare_exchange_weak_explicit(&pool->fresh, &fresh, fresh + 1,
                                                   memory_order_relaxed, memory_order_relaxed))
            continue;
        struct sock_pooled *object =
            (struct sock_pooled *)(void *)(block +
                                           (size_t)(fresh % pool->per_block) * pool->object_size);
        object->number = fresh + 1;
        return object;
    }
    return NULL;
}

void *sock_pool_take(struct sock_pool *pool)
{
    struct sock_pooled *object = pop(pool);

    if (!object)
        GUARD_ERRNO(object = take_fresh(pool));
    return object;
}

void sock_pool_give(struct sock_pool *pool, void *object)
{
    const struct sock_pooled *pooled = object;

    if (numbered(pool, pooled->number) == pooled)
        push(pool, object);
}

/* Of most children nothing was taken: no page is touched. */
void sock_pool_abandon(struct sock_pool *pool)
{
    uint32_t fresh = atomic_load_explicit(&pool->fresh, memory_order_relaxed);

    for (uint32_t i = 0; i < SOCK_POOL_BLOCKS && i <= fresh / pool->per_block; i++)
        if (atomic_load_explicit(&pool->blocks[i], memory_order_relaxed))
            atomic_store_explicit(&pool->blocks[i], NULL, memory_order_relaxed);
    if (fresh == 0)
        return;
    atomic_store_explicit(&pool->fresh, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->free_head, 0, memory_order_release);
}
