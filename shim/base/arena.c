#include "base/arena.h"

#include <stdint.h>
#include <sys/mman.h>

#define ALIGNMENT _Alignof(max_align_t)

/* The head of each mapping. */
struct arena_block {
    struct arena_block *older;
    size_t size; /* of the mapping, head included */
    size_t used;
};

static size_t round_up(size_t size, size_t to)
{
    return (size + to - 1) / to * to;
}

#define HEAD_SIZE round_up(sizeof(struct arena_block), ALIGNMENT)

static struct arena_block *map_block(size_t room)
{
    size_t size = round_up(HEAD_SIZE + room, ARENA_BLOCK_SIZE);
    struct arena_block *block =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (block == MAP_FAILED)
        return NULL;
    block->size = size;
    block->used = HEAD_SIZE;
    return block;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    struct arena_block *block = arena->newest;

    if (size > SIZE_MAX / 2)
        return NULL;
    size = round_up(size, ALIGNMENT);
    if (!block || size > block->size - block->used) {
        block = map_block(size);
        if (!block)
            return NULL;
        block->older = arena->newest;
        arena->newest = block;
    }
    void *piece = (char *)block + block->used;
    block->used += size;
    return piece;
}

void arena_free(struct arena *arena)
{
    struct arena_block *block = arena->newest;

    arena->newest = NULL;
    while (block) {
        struct arena_block *older = block->older;
        munmap(block, block->size);
        block = older;
    }
}
