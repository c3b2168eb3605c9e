/*
 * layout.h - the shared table as an ABI between processes of different builds.
 *
 * One file, mapped MAP_SHARED by every process of a user on the host: one header page, then
 * TABLE_CAPACITY slots of 512 bytes. Offsets are asserted below and mixed into the fingerprint; any
 * change of meaning or place is a new TABLE_LAYOUT, and with it another file name.
 *
 * Trust: any process of the user may have written any byte. Nothing here is used as a pointer, an
 * offset, a host to connect to, or a length without a clamp. All-zero is a valid empty table.
 *
 * Law words used below: "claim" = one CAS from 0, release; "relaxed" = no ordering, no meaning for
 * other fields; "crash leaves" = what a kill -9 between any two instructions can leave behind.
 */
#ifndef BREAKER_TABLE_LAYOUT_H
#define BREAKER_TABLE_LAYOUT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define TABLE_MAGIC       UINT64_C(0x314b41455242424c) /* "LBBREAK1", little-endian */
#define TABLE_LAYOUT      1
#define TABLE_CAPACITY    1024
#define TABLE_PROBES      16 /* longest walk; the n-th step: identity + n * (identity >> 32 | 1) */
#define TABLE_SLOT_SIZE   512
#define TABLE_HEADER_SIZE 4096
#define TABLE_FILE_SIZE   (TABLE_HEADER_SIZE + TABLE_CAPACITY * TABLE_SLOT_SIZE)
#define TABLE_KEY_MAX     184 /* bytes of a printable key that a slot can hold */
#define TABLE_STAT_SHARDS 2

/* The fixed part of the header is written once by the creator before the file gets its name
 * (table_create), so it is constant for everybody who can open it. */
struct table_header {
    uint64_t magic;
    uint32_t layout;
    uint32_t capacity;
    uint64_t fingerprint; /* of sizes and offsets: table_fingerprint() */
    uint64_t hash_seed;   /* random; identities of keys depend on it */
    char boot_id[40];     /* looked at off tmpfs only; NUL-padded */
    uint8_t reserved0[56];

    /* Written by anybody, relaxed add. Only ever grow; a crash loses at most its own addition. */
    _Alignas(64) _Atomic uint64_t table_full; /* claims that found no room: those calls passed */
    _Atomic uint32_t used;                    /* identities claimed; a hint, a crash may leave it
                                                 one short, table_used() counts */
    uint8_t reserved1[52];
};

/* Where calls of this key went while it refused them. Destinations beyond the first two are counted
 * in `rerouted` only. Written by anybody. */
struct slot_destination {
    _Atomic uint64_t identity;  /* of the key M (or H) there; claimed by one CAS from 0, relaxed:
                                   nothing else depends on it. Never trusted */
    _Atomic uint64_t count;     /* relaxed add; only grows; a crash loses its own addition */
    _Atomic uint64_t logged_ns; /* CLOCK_BOOTTIME of the last reroute that was logged; CAS by who
                                   logs */
};

/* One shard of the statistics of a key. Written by anybody, relaxed add; only grow; a crash loses
 * its own addition. Two shards, chosen per thread, so that two cores do not share a line;
 * `to` is not sharded: the n-th holds the n-th destination. */
struct slot_stats {
    _Atomic uint64_t success;
    _Atomic uint64_t failure;
    _Atomic uint64_t neutral;
    _Atomic uint64_t refused;
    _Atomic uint64_t rerouted;
    struct slot_destination to;
};

struct slot {
    /*
     * Line 0: read at each admission, written only by transitions, streaks and cool-downs, so that
     * it stays shared in all cores while healthy.
     *
     * identity: hash64(key) with the header's seed, never 0. Claimed by one CAS from 0 (release,
     * pairs with the acquire of table_find) and never given back: no tombstones, no reuse, no stale
     * tickets. A crash leaves either 0 or a whole identity with an all-zero breaker.
     */
    _Alignas(64) _Atomic uint64_t identity;
    /*
     * word: core/breaker.h. Written by CAS only (acq_rel). It carries everything a decision needs,
     * so no other field is ordered by it. A crash leaves the old or the new word.
     */
    _Atomic uint64_t word;
    /*
     * parked_until: in its low 30 bits a tick at or after every deadline of `cooldown`; 0: there
     * was none yet. Written by CAS, relaxed, before the word that it is for, so a crash leaves it
     * too late, never too early. Only says whether line 1 is worth a look.
     */
    _Atomic uint64_t parked_until;
    uint64_t reserved0[5];

    /* Line 1: events. Relaxed stores and adds by anybody; each field valid alone; they may be of
     * different events for a moment. A crash leaves a mix of old and new: shown, never decided on,
     * but for `cooldown`.
     */
    _Atomic uint64_t opened;          /* trips and re-opens, only grows */
    _Atomic uint64_t last_failure_ns; /* CLOCK_BOOTTIME; 0 = none */
    _Atomic uint32_t last_failure;    /* class << 16 | HTTP status; class is enum outcome_cause */
    uint32_t reserved1;
    /* core/cooldown.h, a credential each. CAS, relaxed; a reset stores 0. A crash leaves the old or
     * the new word; each is whole. */
    _Atomic uint64_t cooldown[4];
    _Atomic uint64_t refusal_logged_ns; /* last refusal burst that was logged; CAS by who logs */

    /* Lines 2, 3: statistics. */
    struct slot_stats stats[TABLE_STAT_SHARDS];

    /* Line 4: core/rate.h. Written by CAS, relaxed, and only where the policy of a call has a
     * failure_rate; an addition that lost eight races is dropped. Each word tells itself when and
     * for which generation of `word` it counts: no order between them, or to `word`, is needed. A
     * crash loses its own addition. */
    _Atomic uint64_t rate[8];

    /*
     * Lines 5-7: the printable key, for people. Written after the claim by whoever claimed, and
     * again by anybody who finds it wrong: all write the same bytes. Relaxed byte stores; a crash
     * or a race leaves a text whose checksum does not match, which is shown as "#<identity>".
     * Never trusted. A longer key is cut and marked: see table_key_read().
     */
    _Atomic uint32_t key_checksum; /* low half of hash64(text, identity); 0 = not written */
    _Atomic uint16_t key_len;      /* full length of the key; text holds min(len, TABLE_KEY_MAX) */
    uint16_t reserved2;
    _Atomic uint8_t key_text[TABLE_KEY_MAX];
};

_Static_assert(sizeof(struct table_header) <= TABLE_HEADER_SIZE, "header page");
_Static_assert(sizeof(struct slot) == TABLE_SLOT_SIZE, "slot size");
_Static_assert(offsetof(struct slot, word) == 8, "word beside identity");
_Static_assert(offsetof(struct slot, opened) == 64, "line 1");
_Static_assert(offsetof(struct slot, stats) == 128, "lines 2-3");
_Static_assert(sizeof(struct slot_stats) == 64, "one line a shard");
_Static_assert(offsetof(struct slot, parked_until) == 16, "line 0");
_Static_assert(offsetof(struct slot, cooldown) == 88, "line 1");
_Static_assert(offsetof(struct slot, rate) == 256, "line 4");
_Static_assert(offsetof(struct slot, key_checksum) == 320, "lines 5-7");
_Static_assert(offsetof(struct table_header, table_full) == 128, "counters off the fixed part");

#endif
