/*
 * block.h - 64 bytes at a time: which of them are a given one, as a bit mask.
 *
 * The vectors are GCC's generic ones (SSE2, NEON), written out because gcc -O2 unrolls no loop over
 * them. Pure.
 */
#ifndef BREAKER_HTTP_BLOCK_H
#define BREAKER_HTTP_BLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t bytes16 __attribute__((vector_size(16)));

#define BLOCK 64 /* bytes */

struct block {
    bytes16 a, b, c, d;
};

#if defined(__SSE2__)
#include <emmintrin.h>
static inline uint64_t block_mask16(bytes16 equal)
{
    return (unsigned)_mm_movemask_epi8((__m128i)equal);
}
#elif defined(__aarch64__)
#include <arm_neon.h>
static inline uint64_t block_mask16(bytes16 equal)
{
    static const bytes16 weight = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t bits = (uint8x16_t)(equal & weight);

    return vaddv_u8(vget_low_u8(bits)) | (uint64_t)vaddv_u8(vget_high_u8(bits)) << 8;
}
#else
/* One bit per byte lane that is 0xff. */
static inline uint64_t block_mask16(bytes16 equal)
{
    unsigned mask = 0;

    for (unsigned i = 0; i < 16; i++)
        mask |= (equal[i] & 1u) << i;
    return mask;
}
#endif

/* `value` in each lane. */
static inline bytes16 block_all(uint8_t value)
{
    return (bytes16){0} + value;
}

/* Each for itself: gcc keeps a struct that memcpy filled in memory. */
static inline bytes16 block_load16(const char *at)
{
    bytes16 v;

    memcpy(&v, at, sizeof v);
    return v;
}

static inline struct block block_load(const char *at)
{
    return (struct block){block_load16(at), block_load16(at + 16), block_load16(at + 32),
                          block_load16(at + 48)};
}

/* Where to load a block from that may be cut short after `len` bytes: `at`, or a copy in `room`
 * with zeros behind it. */
static inline const char *block_padded(const char *at, size_t len, char room[BLOCK])
{
    if (len >= BLOCK)
        return at;
    memset(room, 0, BLOCK);
    memcpy(room, at, len);
    return room;
}

/* 16 bytes, which may be cut short as well. */
static inline bytes16 block_load16_padded(const char *at, size_t len)
{
    char room[sizeof(bytes16)];

    if (__builtin_expect(len < sizeof room, 0)) {
        memset(room, 0, sizeof room);
        memcpy(room, at, len);
        at = room;
    }
    return block_load16(at);
}

/* 0xff in each lane that holds `value`. */
static inline struct block block_compare(struct block v, uint8_t value)
{
    return (struct block){
        (bytes16)(v.a == block_all(value)),
        (bytes16)(v.b == block_all(value)),
        (bytes16)(v.c == block_all(value)),
        (bytes16)(v.d == block_all(value)),
    };
}

static inline struct block block_or(struct block x, struct block y)
{
    return (struct block){x.a | y.a, x.b | y.b, x.c | y.c, x.d | y.d};
}

static inline struct block block_and(struct block x, struct block y)
{
    return (struct block){x.a & y.a, x.b & y.b, x.c & y.c, x.d & y.d};
}

static inline bool block_any(struct block hits)
{
    return block_mask16(hits.a | hits.b | hits.c | hits.d) != 0;
}

static inline uint64_t block_bits(struct block hits)
{
    return block_mask16(hits.a) | block_mask16(hits.b) << 16 | block_mask16(hits.c) << 32 |
           block_mask16(hits.d) << 48;
}

/* Where one of the two, neither of them 0, first stands; `len`: neither does. For what is short as
 * a rule. */
static inline size_t block_find(const char *bytes, size_t len, char one, char other)
{
    for (size_t at = 0; at < len; at += sizeof(bytes16)) {
        bytes16 v = block_load16_padded(bytes + at, len - at);
        uint64_t hits = block_mask16((bytes16)(v == block_all((uint8_t)one)) |
                                     (bytes16)(v == block_all((uint8_t)other)));
        if (hits)
            return at + (size_t)__builtin_ctzll(hits);
    }
    return len;
}

/* The same of what the text of a JSON string cannot be taken with as it is: a quote, a backslash or
 * a control character. */
static inline size_t block_find_odd(const char *bytes, size_t len)
{
    for (size_t at = 0; at < len; at += sizeof(bytes16)) {
        bytes16 v = block_load16_padded(bytes + at, len - at);
        uint64_t hits =
            block_mask16((bytes16)(v == block_all('"')) | (bytes16)(v == block_all('\\')) |
                         (bytes16)(v < block_all(0x20)) | (bytes16)(v == block_all(0x7f)));
        if (hits) {
            size_t found = at + (size_t)__builtin_ctzll(hits);
            return found < len ? found : len; /* the padding is of control characters */
        }
    }
    return len;
}

#endif
