/*
 * json_skip.c - 64 bytes at a time.
 *
 * Inside a string only quotes are looked for; whether one ends the string is told by the
 * backslashes right before it. Outside, a block of 64 bytes becomes bit masks: quotes, backslashes,
 * openers ('{' and '[' differ by bit 5 only), closers; inside strings is the running XOR of the
 * quotes that no backslash escapes. As long as a block cannot bring the depth to zero its brackets
 * are only counted.
 */
#include "http/json_skip.h"

#include "http/block.h"

/* Which characters are escaped: those after an odd run of backslashes. *carry: the first
 * character behind these `len` is one. */
static uint64_t escaped(uint64_t backslashes, size_t len, bool *carry)
{
    uint64_t mask = 0;

    *carry = false;
    while (backslashes) {
        unsigned at = (unsigned)__builtin_ctzll(backslashes);
        if (at == len - 1) {
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
#define FAR (2 * BLOCK)

#define NOWHERE SIZE_MAX

/* Where the next quote stands, or the end of `bytes`. */
static size_t next_quote(struct span bytes, size_t at)
{
    const char *quote = memchr(bytes.ptr + at, '"', bytes.len - at);

    return quote ? (size_t)(quote - bytes.ptr) : bytes.len;
}

/* The first quote of a block that ends the string; NOWHERE: there is none. */
static inline size_t end_in_block(struct span bytes, size_t begin, size_t at, uint64_t quotes)
{
    for (; quotes; quotes &= quotes - 1) {
        size_t quote = at + (size_t)__builtin_ctzll(quotes);
        if (!is_escaped(bytes.ptr, begin, quote))
            return quote;
    }
    return NOWHERE;
}

/* Moves *index, which is inside a string and before the end of `bytes`, behind the closing quote.
 * False: the string goes on behind these bytes; *index is their end. Not inlined: among its only
 * caller's variables gcc has no registers left for its vectors. */
static __attribute__((noinline)) bool find_string_end(struct json_skip *skip, struct span bytes,
                                                      size_t *index)
{
    size_t begin = *index + skip->escaped, at = begin, far = begin + FAR, end = NOWHERE;
    char room[BLOCK];

    skip->escaped = false;
    while (at < bytes.len && end == NOWHERE) {
        if (at >= far) {
            at = next_quote(bytes, at);
            if (at < bytes.len && !is_escaped(bytes.ptr, begin, at))
                end = at;
            far = ++at + FAR;
            continue;
        }
        const char *from = block_padded(bytes.ptr + at, bytes.len - at, room);
        struct block hits = block_compare(block_load(from), '"');
        if (block_any(hits)) {
            end = end_in_block(bytes, begin, at, block_bits(hits));
            far = at + BLOCK + FAR;
        }
        at += BLOCK;
    }
    if (end == NOWHERE)
        skip->escaped = is_escaped(bytes.ptr, begin, bytes.len);
    *index = end == NOWHERE ? bytes.len : end + 1;
    return end != NOWHERE;
}

/* --- inside an object or array --------------------------------------------------------------- */

/* One byte outside strings. */
static void step(struct json_skip *skip, char c)
{
    if (c == '"')
        skip->in_string = true;
    else if (c == '{' || c == '[')
        skip->depth++;
    else if (c == '}' || c == ']')
        skip->depth--;
}

/* The brackets of a block in their order. Returns how many bytes were taken; 0: the value goes on.
 */
static size_t walk(struct json_skip *skip, uint64_t openers, uint64_t closers)
{
    for (uint64_t left = openers | closers; left; left &= left - 1) {
        if (openers & left & -left) {
            skip->depth++;
        } else if (--skip->depth == 0) {
            return (size_t)__builtin_ctzll(left) + 1;
        }
    }
    return 0;
}

/* One block, of which `len` bytes are there, that begins outside strings. Returns how many were
 * taken; 0: it is no JSON (a backslash outside strings escapes nothing), to be walked byte by byte.
 */
static size_t skip_block(struct json_skip *skip, const char *at, size_t len)
{
    char room[BLOCK];
    struct block v = block_load(block_padded(at, len, room));
    struct block slashes = block_compare(v, '\\');
    uint64_t quotes = block_bits(block_compare(v, '"')), backslashes = 0;
    bool carry = false;

    if (block_any(slashes)) {
        backslashes = block_bits(slashes);
        quotes &= ~escaped(backslashes, len, &carry);
    }
    uint64_t strings = running_xor(quotes);
    if (backslashes & ~strings)
        return 0;
    struct block folded = {v.a | block_all(0x20), v.b | block_all(0x20), v.c | block_all(0x20),
                           v.d | block_all(0x20)};
    uint64_t openers = block_bits(block_compare(folded, '{')) & ~strings;
    uint64_t closers = block_bits(block_compare(folded, '}')) & ~strings;
    uint32_t closed = closers ? count_bits(closers) : 0;
    if (closed < skip->depth) {
        skip->depth += count_bits(openers) - closed;
    } else {
        size_t taken = walk(skip, openers, closers);
        if (taken > 0)
            return taken;
    }
    skip->escaped = carry;
    skip->in_string = strings >> 63;
    return len;
}

/* The closers right behind a string: a prompt's are all that is left of its value, as a rule.
 * Returns where they end. */
static size_t close_behind(struct json_skip *skip, struct span bytes, size_t at)
{
    while (skip->depth > 0 && at < bytes.len && (bytes.ptr[at] | 0x20) == '}') {
        skip->depth--;
        at++;
    }
    return at;
}

size_t json_skip_feed(struct json_skip *skip, struct span bytes)
{
    size_t at = 0;

    while (at < bytes.len && !json_skip_over(skip)) {
        if (skip->in_string) {
            skip->in_string = !find_string_end(skip, bytes, &at);
            if (!skip->in_string)
                at = close_behind(skip, bytes, at);
            continue;
        }
        size_t left = bytes.len - at;
        size_t taken = skip_block(skip, bytes.ptr + at, left < BLOCK ? left : BLOCK);
        at += taken;
        if (taken == 0)
            step(skip, bytes.ptr[at++]);
    }
    return at;
}
