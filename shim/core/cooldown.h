/*
 * cooldown.h - the credentials that a provider told to wait, as a pure function over four words.
 *
 * A cool-down is of one credential at one key: the quota of one application must not park another.
 * Each word holds one, so that setting it is one compare-and-swap by the caller (table/slot.h).
 * All functions are total: whatever the words say, nobody is parked for more than 24 h at a time.
 *
 * The word, from the high bits down:
 *
 *   63..30 credential  of cooldown_credential(); 0: the word is free
 *   29..0  deadline    tick, modulo 2^30 (core/breaker.h); over, or more than 24 h ahead: free
 */
#ifndef BREAKER_CORE_COOLDOWN_H
#define BREAKER_CORE_COOLDOWN_H

#include "core/breaker.h"

#define COOLDOWN_WORDS 4

/* What stands for a credential: 34 bits of its seeded hash (base/hash.h), never 0 and never
 * COOLDOWN_ALL. The credential itself cannot be had from it. */
uint64_t cooldown_credential(uint64_t hash);

/* In its place: every credential is parked. */
#define COOLDOWN_ALL ((UINT64_C(1) << (64 - BREAKER_TIME_BITS)) - 1)

/* Where a cool-down belongs, and what that word is then; equal to what it is: nothing to write.
 * The word of the credential, where the later deadline stays (litellm#40130); else a free one; else
 * the one that is free first. `ticks` beyond 24 h are 24 h; 0 are one. */
struct cooldown_place {
    unsigned word; /* below COOLDOWN_WORDS */
    uint64_t next;
};
struct cooldown_place cooldown_set(const uint64_t words[COOLDOWN_WORDS], uint64_t credential,
                                   uint32_t ticks, uint32_t now);

/* Ticks for which the credential is parked, itself or with all others; 0: it is not. */
uint32_t cooldown_left(const uint64_t words[COOLDOWN_WORDS], uint64_t credential, uint32_t now);

/* How many are parked, COOLDOWN_ALL being one; *longest: ticks for which the last of them is. */
unsigned cooldown_count(const uint64_t words[COOLDOWN_WORDS], uint32_t now, uint32_t *longest);

/* A tick at or after every deadline, so that who asks of a key that parks nobody need not look at
 * the words: the later of `end` (0, or the result of this before) and of a cool-down of so many
 * ticks. Never 0, which says that nobody was ever parked. */
uint32_t cooldown_end(uint32_t end, uint32_t ticks, uint32_t now);
bool cooldown_is_over(uint32_t end, uint32_t now);

#endif
