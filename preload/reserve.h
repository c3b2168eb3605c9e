/*
 * reserve.h - memory for the records without which no call of the application could be made: the
 * allocator's, and a few kept at hand for when it has none.
 *
 * Thread-safe. What is kept stands in the library's own data, all-zero while it is not taken.
 */
#ifndef BREAKER_PRELOAD_RESERVE_H
#define BREAKER_PRELOAD_RESERVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define RESERVE_RECORDS 2

/* Of `size` bytes each. `taken[i]`: acquire by who takes it, release by who gives it back. */
struct reserve {
    void *records;
    size_t size;
    atomic_bool taken[RESERVE_RECORDS];
};

#define RESERVE_OF(kept)                                                                           \
    {                                                                                              \
        .records = (kept), .size = sizeof *(kept)                                                  \
    }

/* Zeroed; NULL: there is none. */
static inline void *reserve_take(struct reserve *reserve)
{
    void *record = calloc(1, reserve->size);

    for (size_t i = 0; i < RESERVE_RECORDS && !record; i++)
        if (!atomic_exchange_explicit(&reserve->taken[i], true, memory_order_acquire))
            record = (char *)reserve->records + i * reserve->size;
    return record;
}

static inline void reserve_give(struct reserve *reserve, void *record)
{
    for (size_t i = 0; i < RESERVE_RECORDS; i++)
        if (record == (char *)reserve->records + i * reserve->size) {
            memset(record, 0, reserve->size);
            atomic_store_explicit(&reserve->taken[i], false, memory_order_release);
            return;
        }
    free(record);
}

#endif
