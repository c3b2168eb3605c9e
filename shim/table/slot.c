#include "table/slot.h"

/* A streak update that lost so many races says nothing that the winners did not say. */
#define STREAK_TRIES 8

static uint64_t load_relaxed(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void add_relaxed(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* On failure `expected` becomes the word that was found. acq_rel: the word alone carries the
 * decision, the order serves who reads the word and then the event fields for display. */
static bool swap_word(struct slot *s, uint64_t *expected, uint64_t next)
{
    return atomic_compare_exchange_strong_explicit(&s->word, expected, next, memory_order_acq_rel,
                                                   memory_order_acquire);
}

/* No slot: admitted, and the ticket says that nothing is counted. */
static struct breaker_admission admit_uncounted(uint32_t now)
{
    return (struct breaker_admission){.verdict = BREAKER_ADMIT, .ticket = {.admitted = now}};
}

struct breaker_admission slot_peek_rest(const struct slot *s, uint64_t word, uint32_t now,
                                        const struct breaker_policy *policy)
{
    return s ? breaker_admit(word, now, policy) : admit_uncounted(now);
}

struct breaker_admission slot_admit_rest(struct slot *s, uint64_t word, uint32_t now,
                                         const struct breaker_policy *policy,
                                         enum breaker_change *change)
{
    if (!s)
        return admit_uncounted(now);
    for (;;) {
        struct breaker_admission admission = breaker_admit(word, now, policy);

        if (admission.verdict != BREAKER_GRANT)
            return admission;
        uint64_t before = word;
        if (swap_word(s, &word, admission.next)) {
            if (change && breaker_decode(before).phase == BREAKER_OPEN)
                *change = BREAKER_PROBING;
            return admission;
        }
    }
}

/* A probe judged by its stream's head settles again at the stream's end: in the new generation when
 * the head closed the breaker, else as statistics only, or one probe would count as two. */
static void move_ticket_on(struct breaker_ticket *ticket, const struct breaker_result *result)
{
    if (result->change == BREAKER_CLOSED_AGAIN)
        breaker_follow(ticket, result->next);
    else if (ticket->probe)
        ticket->counted = false;
}

/* Counts it. Is the share of failures too large then? */
static bool count_rate(struct slot *s, uint64_t word, const struct breaker_ticket *ticket,
                       enum breaker_outcome outcome, uint32_t now,
                       const struct breaker_policy *policy)
{
    if (!rate_is_on(policy) || outcome == BREAKER_NEUTRAL || !breaker_is_counting(word, ticket))
        return false;
    struct rate_sum sum =
        slot_rate_add(s, ticket->generation, outcome == BREAKER_FAILURE, now, policy);
    return rate_exceeded(&sum, policy);
}

enum breaker_change slot_settle_rest(struct slot *s, uint64_t word, struct breaker_ticket *ticket,
                                     enum breaker_outcome outcome, uint32_t now,
                                     const struct breaker_policy *policy,
                                     const struct breaker_extra *extra)
{
    struct breaker_extra exceeded;
    struct breaker_result result;

    if (count_rate(s, word, ticket, outcome, now, policy)) {
        exceeded = extra ? *extra : (struct breaker_extra){0};
        exceeded.rate_exceeded = true;
        extra = &exceeded;
    }
    for (unsigned tries = 0;; tries++) {
        result = breaker_settle(word, ticket, outcome, now, policy, extra);
        if (result.next == word)
            break; /* nothing to write: the line stays shared in every core */
        if (!result.must_land && tries == STREAK_TRIES) {
            result.change = BREAKER_NO_CHANGE;
            break;
        }
        if (swap_word(s, &word, result.next))
            break;
    }
    if (extra && extra->provisional)
        move_ticket_on(ticket, &result);
    return result.change;
}

static struct slot_stats *shard_of(struct slot *s, unsigned shard)
{
    return &s->stats[shard % TABLE_STAT_SHARDS];
}

void slot_count(struct slot *s, enum breaker_outcome outcome, unsigned shard)
{
    if (!s)
        return;
    struct slot_stats *stats = shard_of(s, shard);
    if (outcome == BREAKER_SUCCESS)
        add_relaxed(&stats->success);
    else if (outcome == BREAKER_FAILURE)
        add_relaxed(&stats->failure);
    else
        add_relaxed(&stats->neutral);
}

void slot_count_refused(struct slot *s, unsigned shard)
{
    if (s)
        add_relaxed(&shard_of(s, shard)->refused);
}

/* The place of a destination, its own or a free one that it takes; NULL: both are others'. */
static struct slot_destination *destination_of(struct slot *s, uint64_t identity)
{
    for (unsigned i = 0; i < TABLE_STAT_SHARDS; i++) {
        struct slot_destination *to = &s->stats[i].to;
        uint64_t found = 0;
        if (atomic_compare_exchange_strong_explicit(&to->identity, &found, identity,
                                                    memory_order_relaxed, memory_order_relaxed) ||
            found == identity)
            return to;
    }
    return NULL;
}

bool slot_count_rerouted(struct slot *s, uint64_t identity, unsigned shard, uint64_t boot_ns,
                         uint64_t quiet_ns)
{
    if (!s)
        return true;
    add_relaxed(&shard_of(s, shard)->rerouted);
    struct slot_destination *to = destination_of(s, identity);
    if (!to)
        return true;
    add_relaxed(&to->count);
    return slot_log_is_due(&to->logged_ns, boot_ns, quiet_ns);
}

bool slot_log_is_due(_Atomic uint64_t *logged_ns, uint64_t boot_ns, uint64_t quiet_ns)
{
    uint64_t last = load_relaxed(logged_ns);

    /* Of a call that began before another that logged first, it is the earlier time. */
    if (last != 0 && (boot_ns > last ? boot_ns - last : last - boot_ns) < quiet_ns)
        return false;
    return atomic_compare_exchange_strong_explicit(logged_ns, &last, boot_ns, memory_order_relaxed,
                                                   memory_order_relaxed);
}

void slot_note_failure(struct slot *s, unsigned cause, unsigned status, uint64_t boot_ns)
{
    if (!s)
        return;
    atomic_store_explicit(&s->last_failure, (uint32_t)(cause << 16 | (status & 0xffff)),
                          memory_order_relaxed);
    atomic_store_explicit(&s->last_failure_ns, boot_ns, memory_order_relaxed);
}

void slot_note_opened(struct slot *s)
{
    if (s)
        add_relaxed(&s->opened);
}

struct slot_totals slot_totals(const struct slot *s)
{
    struct slot_totals totals = {0};

    for (unsigned i = 0; s && i < TABLE_STAT_SHARDS; i++) {
        const struct slot_stats *stats = &s->stats[i];
        totals.success += load_relaxed(&stats->success);
        totals.failure += load_relaxed(&stats->failure);
        totals.neutral += load_relaxed(&stats->neutral);
        totals.refused += load_relaxed(&stats->refused);
        totals.rerouted += load_relaxed(&stats->rerouted);
    }
    return totals;
}
