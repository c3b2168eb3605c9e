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

/* Takes the number of a block. False: there are none left. */
static bool claim_block(struct sock_pool *pool, uint32_t *block)
{
    *block = atomic_load_explicit(&pool->block_count, memory_order_relaxed);
    do
        if (*block >= SOCK_POOL_BLOCKS)
            return false;
    while (!atomic_compare_exchange_weak_explicit(&pool->block_count, block, *block + 1,
                                                  memory_order_relaxed, memory_order_relaxed));
    return true;
}

/* Takes the first object of a new block; the others become free. */
static struct sock_pooled *grow(struct sock_pool *pool)
{
    const size_t size = pool->object_size * pool->per_block;
    uint32_t block;

    if (atomic_load_explicit(&pool->block_count, memory_order_relaxed) >= SOCK_POOL_BLOCKS)
        return NULL;
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    if (!claim_block(pool, &block)) {
        munmap(memory, size);
        return NULL;
    }
    atomic_store_explicit(&pool->blocks[block], memory, memory_order_release);
    for (uint32_t i = 0; i < pool->per_block; i++)
        numbered(pool, block * pool->per_block + i + 1)->number = block * pool->per_block + i + 1;
    for (uint32_t i = pool->per_block; i > 1; i--)
        push(pool, numbered(pool, block * pool->per_block + i));
    return numbered(pool, block * pool->per_block + 1);
}

void *sock_pool_take(struct sock_pool *pool)
{
    struct sock_pooled *object = pop(pool);

    if (!object)
        GUARD_ERRNO(object = grow(pool));
    return object;
}

void sock_pool_give(struct sock_pool *pool, void *object)
{
    const struct sock_pooled *pooled = object;

    if (numbered(pool, pooled->number) == pooled)
        push(pool, object);
}

void sock_pool_abandon(struct sock_pool *pool)
{
    uint32_t blocks = atomic_load_explicit(&pool->block_count, memory_order_relaxed);

    if (blocks == 0)
        return; /* most children's: no page is touched */
    for (uint32_t i = 0; i < blocks; i++)
        atomic_store_explicit(&pool->blocks[i], NULL, memory_order_relaxed);
    atomic_store_explicit(&pool->block_count, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->free_head, 0, memory_order_release);
}
