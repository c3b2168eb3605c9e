/*
 * model_scan_skip.c - passes over what cannot hold the model, 64 bytes at a time.
 *
 * Inside a string only quotes are looked for; whether one ends the string is told by the
 * backslashes right before it. Outside, a block of 64 bytes becomes bit masks: quotes, backslashes,
 * openers
 * ('{' and '[' differ by bit 5 only), closers; inside strings is the running XOR of the quotes that
 * no backslash escapes. As long as a block cannot bring the depth to zero its brackets are only
 * counted. The vectors are GCC's generic ones (SSE2, NEON), written out because gcc -O2 unrolls no
 * loop over them.
 */
#include "http/model_scan_parts.h"

#include <stdint.h>

typedef uint8_t bytes16 __attribute__((vector_size(16)));

#define BLOCK 64

struct block {
    bytes16 a, b, c, d;
};

#if defined(__SSE2__)
#include <emmintrin.h>
static inline uint64_t mask_of(bytes16 equal)
{
    return (unsigned)_mm_movemask_epi8((__m128i)equal);
}
#elif defined(__aarch64__)
#include <arm_neon.h>
static inline uint64_t mask_of(bytes16 equal)
{
    static const bytes16 weight = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t bits = (uint8x16_t)(equal & weight);

    return vaddv_u8(vget_low_u8(bits)) | (uint64_t)vaddv_u8(vget_high_u8(bits)) << 8;
}
#else
/* One bit per byte lane that is 0xff. */
static inline uint64_t mask_of(bytes16 equal)
{
    unsigned mask = 0;

    for (unsigned i = 0; i < 16; i++)
        mask |= (equal[i] & 1u) << i;
    return mask;
}
#endif

static inline bytes16 all(uint8_t value)
{
    return (bytes16){0} + value;
}

static inline struct block load_block(const char *at)
{
    struct block block;

    memcpy(&block, at, sizeof block);
    return block;
}

/* 0xff in each lane that holds `value`. */
static inline struct block compare(struct block v, uint8_t value)
{
    return (struct block){
        (bytes16)(v.a == all(value)),
        (bytes16)(v.b == all(value)),
        (bytes16)(v.c == all(value)),
        (bytes16)(v.d == all(value)),
    };
}

static inline bool any(struct block hits)
{
    return mask_of(hits.a | hits.b | hits.c | hits.d) != 0;
}

static inline uint64_t bits_of(struct block hits)
{
    return mask_of(hits.a) | mask_of(hits.b) << 16 | mask_of(hits.c) << 32 | mask_of(hits.d) << 48;
}

/* Which characters are escaped: those after an odd run of backslashes. *carry: the first character
 * of the next block is one. */
static uint64_t escaped(uint64_t backslashes, bool *carry)
{
    uint64_t mask = 0;

    *carry = false;
    while (backslashes) {
        unsigned at = (unsigned)__builtin_ctzll(backslashes);
        if (at == 63) {
            *carry = true;
            break;
        }
        mask |= UINT64_C(1) << (at + 1);
        backslashes &= ~(UINT64_C(3) << at);
    }
    return mask;
}

/* Bit i: an odd number of quotes at or before i. */
static inline uint64_t running_xor(uint64_t x)
{
    x ^= x << 1;
    x ^= x << 2;
    x ^= x << 4;
    x ^= x << 8;
    x ^= x << 16;
    return x ^ x << 32;
}

/* Not __builtin_popcountll: without the POPCNT instruction that is a call into libgcc. */
static inline uint32_t count_bits(uint64_t x)
{
    x -= x >> 1 & UINT64_C(0x5555555555555555);
    x = (x & UINT64_C(0x3333333333333333)) + (x >> 2 & UINT64_C(0x3333333333333333));
    x = (x + (x >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return (uint32_t)(x * UINT64_C(0x0101010101010101) >> 56);
}

/* --- inside a string ------------------------------------------------------------------------- */

/* Is the character at `at` escaped? Nothing before `begin` counts. Each run of backslashes is
 * looked at once, by the quote that ends it, so the whole stays linear. */
static bool is_escaped(const char *bytes, size_t begin, size_t at)
{
    size_t run = at;

    while (run > begin && bytes[run - 1] == '\\')
        run--;
    return (at - run) % 2 != 0;
}

/* So far without a quote it is a long text: libc's memchr has the machine's widest vectors, but is
 * a call, which short strings do not bear. */
#define FAR (4 * BLOCK)

/* Where the next quote stands, or the end of `bytes`. */
static size_t next_quote(struct span bytes, size_t at)
{
    const char *quote = memchr(bytes.ptr + at, '"', bytes.len - at);

    return quote ? (size_t)(quote - bytes.ptr) : bytes.len;
}

/* Moves *index, which is inside a string and before the end of `bytes`, behind the closing quote.
 * False: the string goes on behind these bytes; *index is their end. */
static bool find_string_end(struct model_scan *scan, struct span bytes, size_t *index)
{
    size_t begin = *index + (scan->escape != 0), at = begin, far = begin + FAR;

    scan->escape = 0;
    for (; bytes.len - at >= BLOCK; at += BLOCK) {
        struct block hits = compare(load_block(bytes.ptr + at), '"');
        if (!any(hits)) {
            if (at < far)
                continue;
            at = next_quote(bytes, at);
            if (bytes.len - at < BLOCK)
                break;
            hits = compare(load_block(bytes.ptr + at), '"');
        }
        for (uint64_t quotes = bits_of(hits); quotes; quotes &= quotes - 1) {
            size_t quote = at + (size_t)__builtin_ctzll(quotes);
            if (!is_escaped(bytes.ptr, begin, quote)) {
                *index = quote + 1;
                return true;
            }
        }
        far = at + FAR;
    }
    for (; at < bytes.len; at++)
        if (bytes.ptr[at] == '"' && !is_escaped(bytes.ptr, begin, at)) {
            *index = at + 1;
            return true;
        }
    scan->escape = is_escaped(bytes.ptr, begin, bytes.len);
    *index = bytes.len;
    return false;
}

size_t model_scan_skip_string(struct model_scan *scan, struct span bytes)
{
    size_t at = 0;

    if (find_string_end(scan, bytes, &at))
        scan_set(scan, SCAN_MEMBER);
    return at;
}

/* --- inside an object or array --------------------------------------------------------------- */

/* One byte outside strings. */
static void step(struct model_scan *scan, char c)
{
    if (c == '"')
        scan_set(scan, SCAN_NESTED_STRING);
    else if (c == '{' || c == '[')
        scan->depth++;
    else if ((c == '}' || c == ']') && --scan->depth == 0)
        scan_set(scan, SCAN_MEMBER);
}

/* The brackets of a block in their order. Returns how many bytes were taken. */
static size_t walk(struct model_scan *scan, uint64_t openers, uint64_t closers)
{
    for (uint64_t left = openers | closers; left; left &= left - 1) {
        if (openers & left & -left) {
            scan->depth++;
        } else if (--scan->depth == 0) {
            scan_set(scan, SCAN_MEMBER);
            return (size_t)__builtin_ctzll(left) + 1;
        }
    }
    return BLOCK;
}

/* One block that begins outside strings. Returns how many bytes were taken; 0: it is no JSON (a
 * backslash outside strings escapes nothing), to be walked byte by byte. */
static size_t skip_block(struct model_scan *scan, const char *at)
{
    struct block v = load_block(at);
    struct block slashes = compare(v, '\\');
    uint64_t quotes = bits_of(compare(v, '"')), backslashes = 0;
    bool carry = false;

    if (any(slashes)) {
        backslashes = bits_of(slashes);
        quotes &= ~escaped(backslashes, &carry);
    }
    uint64_t strings = running_xor(quotes);
    if (backslashes & ~strings)
        return 0;
    struct block folded = {v.a | all(0x20), v.b | all(0x20), v.c | all(0x20), v.d | all(0x20)};
    uint64_t openers = bits_of(compare(folded, '{')) & ~strings;
    uint64_t closers = bits_of(compare(folded, '}')) & ~strings;
    uint32_t closed = count_bits(closers);
    if (closed < scan->depth) {
        scan->depth += count_bits(openers) - closed;
    } else {
        size_t taken = walk(scan, openers, closers);
        if (scan->mode == SCAN_MEMBER)
            return taken;
    }
    scan->escape = carry;
    if (strings >> 63)
        scan_set(scan, SCAN_NESTED_STRING);
    return BLOCK;
}

size_t model_scan_skip_nested(struct model_scan *scan, struct span bytes)
{
    size_t at = 0;

    while (at < bytes.len && scan->mode != SCAN_MEMBER) {
        if (scan->mode == SCAN_NESTED_STRING) {
            if (find_string_end(scan, bytes, &at))
                scan_set(scan, SCAN_NESTED);
            continue;
        }
        size_t taken = bytes.len - at >= BLOCK ? skip_block(scan, bytes.ptr + at) : 0;
        at += taken;
        if (taken == 0)
            step(scan, bytes.ptr[at++]);
    }
    return at;
}
