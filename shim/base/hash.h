/*
 * hash.h - the seeded 64-bit hash that gives a key its identity in the shared table.
 *
 * XXH3 of xxHash, inlined: no symbol, no library. The value depends on the seed of the table (see
 * table/layout.h), so nobody outside can choose keys that collide. Pure and async-signal-safe.
 */
#ifndef BREAKER_BASE_HASH_H
#define BREAKER_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static inline uint64_t hash64(const void *bytes, size_t len, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes, len, seed);
}

#endif
