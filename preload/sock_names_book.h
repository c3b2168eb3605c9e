/*
 * sock_names_book.h - the inside of sock_names. Private to sock_names*.c.
 *
 * All that readers look at is atomic words under one sequence lock: `version` is odd while a writer
 * is at work. A writer stores with release and a reader loads with acquire, so that whoever saw a
 * word of a write sees its odd `version` too; no fences, which TSan does not know.
 */
#ifndef BREAKER_PRELOAD_SOCK_NAMES_BOOK_H
#define BREAKER_PRELOAD_SOCK_NAMES_BOOK_H

#include "base/clock.h"
#include "base/hash.h"
#include "sock_address.h"
#include "sock_lock.h"
#include "sock_names.h"

#include <stdatomic.h>

#define EXPIRY_NS ((uint64_t)SOCK_NAMES_EXPIRY_SEC * UINT64_C(1000000000))
#define RECORDS   32   /* of an entry: the latest addresses and former ones */
#define CHAINS    4096 /* of records by address; each with its mark */

enum record_state { RECORD_FREE, RECORD_FORMER, RECORD_LATEST };

typedef _Atomic uint64_t word;

/* One address of an entry, in the chain of its hash while it is not free. */
struct record {
    word address[2];
    word seen;             /* a former one: when it was last among the latest */
    _Atomic uint16_t next; /* record number + 1; 0: the last */
    _Atomic uint8_t state; /* enum record_state */
};

struct entry {
    word text[SOCK_NAME_SIZE / 8];
    word resolved; /* when it was last learnt */
    _Atomic uint32_t resolution;
    _Atomic uint16_t port;
    _Atomic uint16_t len; /* of the name; 0: never used */
    struct record records[RECORDS];
};

struct sock_book {
    /* Written by who holds `lock`, while `version` is odd; read by anybody. Taken in order; one
     * that expired is used again. */
    struct entry entries[SOCK_NAMES_ENTRIES];
    word hashes[SOCK_NAMES_ENTRIES]; /* of the entries' names and ports; for writers */
    _Atomic uint16_t chains[CHAINS]; /* record number + 1; 0: empty */
    _Atomic uint32_t version;
    struct sock_lock lock;
    uint32_t resolutions; /* handed out so far; under `lock` */
    /* Until when an unknown further name may be at the addresses of this hash. Only ever raised, by
     * anybody, without the lock. */
    word marks[CHAINS];
    /* The same of all addresses, for a child that lost the book. It has no clock: the first to look
     * starts the time. */
    atomic_bool lost;
    word lost_until;
};
extern struct sock_book sock_book;
_Static_assert(sizeof(struct sock_book) <= 1 << 20, "the book's static memory");
_Static_assert(SOCK_NAMES_ENTRIES *RECORDS < UINT16_MAX, "a record number + 1 has 16 bits");

#define GET(place)        atomic_load_explicit(&(place), memory_order_acquire)
#define SET(place, value) atomic_store_explicit(&(place), (value), memory_order_release)

static inline bool is_over(uint64_t since, uint64_t now)
{
    return clock_has_passed(since, now, EXPIRY_NS);
}

static inline unsigned chain_of(const struct sock_address *address)
{
    return (unsigned)(hash64(address->word, sizeof address->word, 0) % CHAINS);
}

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static inline void raise_to(word *until, uint64_t value)
{
    uint64_t old = GET(*until);

    while (old < value && !atomic_compare_exchange_weak_explicit(
                              until, &old, value, memory_order_acq_rel, memory_order_acquire))
        ;
}

static inline struct sock_address address_in(const struct record *record)
{
    return (struct sock_address){{GET(record->address[0]), GET(record->address[1])}};
}

static inline unsigned number_of(const struct entry *entry, unsigned at)
{
    return (unsigned)(entry - sock_book.entries) * RECORDS + at;
}

static inline struct record *record_of(unsigned number)
{
    return &sock_book.entries[number / RECORDS].records[number % RECORDS];
}

#endif
