/*
 * model_scan_skip.c - passes over what cannot hold the model, 64 bytes at a time.
 *
 * A block of 64 bytes becomes four bit masks: quotes, backslashes, openers ('{' and '[' differ by
 * bit 5 only), closers. Inside strings is the running XOR of the quotes that no backslash escapes.
 * As long as a block cannot bring the depth to zero, it is counted and done; the block in which the
 * value may end is walked byte by byte. The vectors are GCC's generic ones (SSE2, NEON).
 */
#include "http/model_scan_parts.h"

#include <stdint.h>

typedef uint8_t bytes16 __attribute__((vector_size(16)));

#define BLOCK 64

#if defined(__SSE2__)
#include <emmintrin.h>
static unsigned mask_of(bytes16 equal)
{
    return (unsigned)_mm_movemask_epi8((__m128i)equal);
}
#elif defined(__aarch64__)
#include <arm_neon.h>
static unsigned mask_of(bytes16 equal)
{
    static const bytes16 weight = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t bits = (uint8x16_t)(equal & weight);

    return (unsigned)vaddv_u8(vget_low_u8(bits)) | (unsigned)vaddv_u8(vget_high_u8(bits)) << 8;
}
#else
/* One bit per byte lane that is 0xff. */
static unsigned mask_of(bytes16 equal)
{
    static const bytes16 weight = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    bytes16 bits = equal & weight;
    unsigned low = 0, high = 0;

    for (unsigned i = 0; i < 8; i++) {
        low |= bits[i];
        high |= bits[i + 8];
    }
    return low | high << 8;
}
#endif

static bytes16 load(const char *at)
{
    bytes16 v;

    memcpy(&v, at, sizeof v);
    return v;
}

static bytes16 all(uint8_t value)
{
    return (bytes16){value, value, value, value, value, value, value, value,
                     value, value, value, value, value, value, value, value};
}

static uint64_t equals(const bytes16 v[4], uint8_t value)
{
    uint64_t mask = 0;

    for (unsigned i = 0; i < 4; i++)
        mask |= (uint64_t)mask_of((bytes16)(v[i] == all(value))) << (16 * i);
    return mask;
}

static bool any_equals(const bytes16 v[4], uint8_t a, uint8_t b)
{
    bytes16 hit = (bytes16)(v[0] == all(a)) | (bytes16)(v[0] == all(b));

    for (unsigned i = 1; i < 4; i++)
        hit |= (bytes16)(v[i] == all(a)) | (bytes16)(v[i] == all(b));
    return mask_of(hit) != 0;
}

static void load_block(const char *at, bytes16 v[4])
{
    for (unsigned i = 0; i < 4; i++)
        v[i] = load(at + 16 * i);
}

/* Which characters are escaped: those after an odd run of backslashes. *carry: the first character
 * of the next block is one. */
static uint64_t escaped(uint64_t backslashes, bool *carry)
{
    uint64_t mask = *carry ? 1 : 0;

    backslashes &= ~mask;
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
static uint64_t running_xor(uint64_t x)
{
    x ^= x << 1;
    x ^= x << 2;
    x ^= x << 4;
    x ^= x << 8;
    x ^= x << 16;
    return x ^ x << 32;
}

/* Not __builtin_popcountll: without the POPCNT instruction that is a call into libgcc. */
static unsigned count_bits(uint64_t x)
{
    unsigned n = 0;

    for (; x; x &= x - 1)
        n++;
    return n;
}

static bool in_string(const struct model_scan *scan)
{
    return scan->mode == SCAN_NESTED_STRING;
}

/* One block, if the value certainly goes on behind it. */
static bool skip_block(struct model_scan *scan, const char *at)
{
    bytes16 v[4], folded[4];

    load_block(at, v);
    if (in_string(scan) && !scan->escape && !any_equals(v, '"', '\\'))
        return true;
    bool carry = scan->escape != 0;
    uint64_t backslashes = equals(v, '\\');
    uint64_t skip = backslashes || carry ? escaped(backslashes, &carry) : 0;
    uint64_t strings = running_xor(equals(v, '"') & ~skip) ^ (in_string(scan) ? ~UINT64_C(0) : 0);
    for (unsigned i = 0; i < 4; i++)
        folded[i] = v[i] | all(0x20);
    unsigned closers = count_bits(equals(folded, '}') & ~strings);
    /* A backslash outside strings is no JSON and escapes nothing: step() knows. */
    if (closers >= scan->depth || backslashes & ~strings)
        return false;
    scan->depth += count_bits(equals(folded, '{') & ~strings) - closers;
    scan->escape = carry;
    scan_set(scan, strings >> 63 ? SCAN_NESTED_STRING : SCAN_NESTED);
    return true;
}

/* One byte inside a nested value. */
static void step(struct model_scan *scan, char c)
{
    if (in_string(scan)) {
        if (scan->escape)
            scan->escape = 0;
        else if (c == '\\')
            scan->escape = 1;
        else if (c == '"')
            scan_set(scan, SCAN_NESTED);
        return;
    }
    if (c == '"')
        scan_set(scan, SCAN_NESTED_STRING);
    else if (c == '{' || c == '[')
        scan->depth++;
    else if ((c == '}' || c == ']') && --scan->depth == 0)
        scan_set(scan, SCAN_MEMBER);
}

size_t model_scan_skip_nested(struct model_scan *scan, struct span bytes)
{
    size_t at = 0;

    while (at < bytes.len && scan->mode != SCAN_MEMBER) {
        if (bytes.len - at >= BLOCK && skip_block(scan, bytes.ptr + at)) {
            at += BLOCK;
            continue;
        }
        size_t end = bytes.len - at > BLOCK ? at + BLOCK : bytes.len;
        while (at < end && scan->mode != SCAN_MEMBER)
            step(scan, bytes.ptr[at++]);
    }
    return at;
}

size_t model_scan_skip_string(struct model_scan *scan, struct span bytes)
{
    size_t at = 0;

    while (at < bytes.len) {
        bytes16 v[4];
        if (!scan->escape && bytes.len - at >= BLOCK) {
            load_block(bytes.ptr + at, v);
            uint64_t stops = equals(v, '"') | equals(v, '\\');
            at += stops ? (size_t)__builtin_ctzll(stops) : BLOCK;
            if (!stops)
                continue;
        }
        char c = bytes.ptr[at++];
        if (scan->escape)
            scan->escape = 0;
        else if (c == '\\')
            scan->escape = 1;
        else if (c == '"') {
            scan_set(scan, SCAN_MEMBER);
            break;
        }
    }
    return at;
}
