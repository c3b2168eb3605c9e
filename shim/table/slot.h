/*
 * slot.h - carries the core's decisions into a slot: every transition one CAS.
 *
 * No function here waits, locks, allocates or makes a system call. `s` may be NULL everywhere (no
 * table, table full): then the call is admitted and nothing is counted.
 */
#ifndef BREAKER_TABLE_SLOT_H
#define BREAKER_TABLE_SLOT_H

#include "core/breaker.h"
#include "core/cooldown.h"
#include "core/rate.h"
#include "table/layout.h"

/* The word, acquire: the authoritative one, never a cached view (litellm#34836). Pairs with the
 * release of the CAS in slot.c. */
static inline uint64_t slot_word(const struct slot *s)
{
    return s ? atomic_load_explicit(&s->word, memory_order_acquire) : 0;
}

/* What the inlined doors below call when the breaker is not simply healthy; not for others. */
struct breaker_admission slot_peek_rest(const struct slot *s, uint64_t word, uint32_t now,
                                        const struct breaker_policy *policy);
struct breaker_admission slot_admit_rest(struct slot *s, uint64_t word, uint32_t now,
                                         const struct breaker_policy *policy,
                                         enum breaker_change *change);
enum breaker_change slot_settle_rest(struct slot *s, uint64_t word, struct breaker_ticket *ticket,
                                     enum breaker_outcome outcome, uint32_t now,
                                     const struct breaker_policy *policy,
                                     const struct breaker_extra *extra);

/* CLOSED, which is how nearly every call finds it. */
static inline struct breaker_admission slot_admission_closed(uint64_t word, uint32_t now)
{
    return (struct breaker_admission){
        .verdict = BREAKER_ADMIT, .next = word, .ticket = breaker_ticket_closed(word, now)};
}

/* Would a call be refused at `now`? One load, no store: step one of "read both". */
static inline struct breaker_admission slot_peek(const struct slot *s, uint32_t now,
                                                 const struct breaker_policy *policy)
{
    uint64_t word = slot_word(s);

    return s && breaker_is_closed(word) ? slot_admission_closed(word, now)
                                        : slot_peek_rest(s, word, now, policy);
}

/* Admits for good: makes the grant's CAS, asking again while it loses. Stores nothing while CLOSED.
 * *change (may be NULL) becomes BREAKER_PROBING when this call moved OPEN to HALF_OPEN. */
static inline struct breaker_admission slot_admit(struct slot *s, uint32_t now,
                                                  const struct breaker_policy *policy,
                                                  enum breaker_change *change)
{
    uint64_t word = slot_word(s);

    if (change)
        *change = BREAKER_NO_CHANGE;
    return s && breaker_is_closed(word) ? slot_admission_closed(word, now)
                                        : slot_admit_rest(s, word, now, policy, change);
}

/* Settles: CAS until done where must_land says so, else dropped after 8 lost races. Returns what
 * it did to the phase. Does not touch the statistics. A success at streak 0 stores nothing. For a
 * provisional close the ticket is moved on (breaker_follow).
 *
 * Where the policy has a failure_rate, a call that counts is put into its bucket first, good ones
 * too, and a failure that makes the share too large trips. Where it has none, no bucket is read. */
static inline enum breaker_change slot_settle(struct slot *s, struct breaker_ticket *ticket,
                                              enum breaker_outcome outcome, uint32_t now,
                                              const struct breaker_policy *policy,
                                              const struct breaker_extra *extra)
{
    uint64_t word = slot_word(s);

    if (!s || (outcome != BREAKER_FAILURE && breaker_is_clean(word) && !rate_is_on(policy)))
        return BREAKER_NO_CHANGE;
    return slot_settle_rest(s, word, ticket, outcome, now, policy, extra);
}

/* One more call of a generation in the buckets, dropped after eight lost races; what they hold then
 * (slot_rate.c). Where there is a slot. */
struct rate_sum slot_rate_add(struct slot *s, unsigned generation, bool failed, uint32_t now,
                              const struct breaker_policy *policy);
/* What they hold; for display. */
struct rate_sum slot_rate(const struct slot *s, unsigned generation, uint32_t now,
                          const struct breaker_policy *policy);

/* --- slot_cooldown.c ---------------------------------------------------------------------------
 * `credential` is of cooldown_credential(), with a hash under the table's seed. */

/* Parks it for so long; the later deadline stays. CAS until done. */
void slot_cooldown_set(struct slot *s, uint64_t credential, uint32_t ticks, uint32_t now);
void slot_cooldown_clear(struct slot *s); /* of everybody */

/* How many credentials are parked, and for how many ticks the last; for display. */
unsigned slot_cooldown_count(const struct slot *s, uint32_t now, uint32_t *longest);

/* May a credential be parked? The look at each admission; line 0 says so. */
static inline bool slot_cooldown_may_be(const struct slot *s, uint32_t now)
{
    uint32_t end = s ? (uint32_t)atomic_load_explicit(&s->parked_until, memory_order_relaxed) : 0;

    return end != 0 && !cooldown_is_over(end, now);
}

/* Ticks for which it is parked; 0: it is not. */
uint32_t slot_cooldown_left(const struct slot *s, uint64_t credential, uint32_t now);

/* Statistics, relaxed. `shard` is any number, taken modulo. */
void slot_count(struct slot *s, enum breaker_outcome outcome, unsigned shard);
void slot_count_refused(struct slot *s, unsigned shard);
void slot_note_failure(struct slot *s, unsigned cause, unsigned status, uint64_t boot_ns);
void slot_note_opened(struct slot *s);

/* A call that `s` refused goes to the key `identity` (of table_identity). True: a line of the log
 * is due for it, see below. Of destinations that find no place each call is. */
bool slot_count_rerouted(struct slot *s, uint64_t identity, unsigned shard, uint64_t boot_ns,
                         uint64_t quiet_ns);

/* Is it so long since the time that a field of a slot notes, and is it this thread, of all
 * processes, that may log now? The field then says `boot_ns`. */
bool slot_log_is_due(_Atomic uint64_t *logged_ns, uint64_t boot_ns, uint64_t quiet_ns);

struct slot_totals {
    uint64_t success, failure, neutral, refused, rerouted;
};
struct slot_totals slot_totals(const struct slot *s); /* sums the shards; for display */

#endif
