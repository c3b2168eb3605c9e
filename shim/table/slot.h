/*
 * slot.h - carries the core's decisions into a slot: every transition one CAS.
 *
 * No function here waits, locks, allocates or makes a system call. `s` may be NULL everywhere (no
 * table, table full): then the call is admitted and nothing is counted.
 */
#ifndef BREAKER_TABLE_SLOT_H
#define BREAKER_TABLE_SLOT_H

#include "core/breaker.h"
#include "table/layout.h"

/* The word, acquire: the authoritative one, never a cached view (litellm#34836). */
uint64_t slot_word(const struct slot *s);

/* Would a call be refused at `now`? One load, no store: step one of "read both". */
struct breaker_admission slot_peek(const struct slot *s, uint32_t now,
                                   const struct breaker_policy *policy);

/* Admits for good: makes the grant's CAS, asking again while it loses. Stores nothing while CLOSED.
 * *change (may be NULL) becomes BREAKER_PROBING when this call moved OPEN to HALF_OPEN. */
struct breaker_admission slot_admit(struct slot *s, uint32_t now,
                                    const struct breaker_policy *policy,
                                    enum breaker_change *change);

/* Settles: CAS until done where must_land says so, else dropped after 8 lost races. Returns what
 * it did to the phase. Does not touch the statistics. A success at streak 0 stores nothing. For a
 * provisional close the ticket is moved on (breaker_follow). */
enum breaker_change slot_settle(struct slot *s, struct breaker_ticket *ticket,
                                enum breaker_outcome outcome, uint32_t now,
                                const struct breaker_policy *policy,
                                const struct breaker_extra *extra);

/* Statistics, relaxed. `shard` is any number, taken modulo. */
void slot_count(struct slot *s, enum breaker_outcome outcome, unsigned shard);
void slot_count_refused(struct slot *s, unsigned shard);
void slot_note_failure(struct slot *s, unsigned cause, unsigned status, uint64_t boot_ns);
void slot_note_opened(struct slot *s);

struct slot_totals {
    uint64_t success, failure, neutral, refused, rerouted;
};
struct slot_totals slot_totals(const struct slot *s); /* sums the shards; for display */

#endif
