#include "core/breaker.h"
#include "core/breaker_rules.h"
#include "core/breaker_word.h"

/* --- policy, clamped where used ------------------------------------------------------------- */

static uint32_t clamp(uint32_t value, uint32_t low, uint32_t high)
{
    if (value < low)
        return low;
    return value > high ? high : value;
}

static unsigned probes_of(const struct breaker_policy *policy)
{
    return clamp(policy->half_open_probes, 1, BREAKER_PROBES_MAX);
}

static unsigned successes_of(const struct breaker_policy *policy)
{
    return clamp(policy->success_threshold, 1, BREAKER_SUCCESS_MAX);
}

/* 0 stays 0: never trips. */
static unsigned threshold_of(const struct breaker_policy *policy)
{
    return clamp(policy->failure_threshold, 0, BREAKER_COUNT_MAX);
}

/* A lease of no length would grant a probe to everybody. */
static uint32_t lease_of(const struct breaker_policy *policy)
{
    return clamp(policy->lease_ticks, 1, BREAKER_HORIZON_TICKS);
}

/* --- time ------------------------------------------------------------------------------------ */

static uint32_t open_time(unsigned step, const struct breaker_policy *policy,
                          const struct breaker_extra *extra)
{
    uint64_t ticks = clamp(policy->open_ticks, 1, BREAKER_HORIZON_TICKS);
    uint64_t ceiling = clamp(policy->open_max_ticks, (uint32_t)ticks, BREAKER_HORIZON_TICKS);
    unsigned factor = policy->backoff_q8 < 256 ? 256 : policy->backoff_q8;

    for (unsigned i = 0; i < step && ticks < ceiling; i++)
        ticks = ticks * factor >> 8;
    if (ticks > ceiling)
        ticks = ceiling;
    ticks += ticks * policy->jitter_q16 * extra->random >> 32;
    if (ticks < extra->retry_after_ticks)
        ticks = extra->retry_after_ticks;
    return clamp((uint32_t)ticks, 1, BREAKER_HORIZON_TICKS);
}

/* --- transitions ----------------------------------------------------------------------------- */

/* Every way into another phase but OPEN -> HALF_OPEN: what was admitted before only feeds
 * statistics from here on. The lease number goes on, so that no old ticket can match a new one. */
static struct breaker_view moved_to(const struct breaker_view *view, enum breaker_phase phase)
{
    return (struct breaker_view){
        .phase = phase,
        .generation = (uint16_t)(view->generation + 1),
        .lease = view->lease,
    };
}

static struct breaker_view opened(const struct breaker_view *view, unsigned step, uint32_t now,
                                  const struct breaker_policy *policy,
                                  const struct breaker_extra *extra)
{
    struct breaker_view next = moved_to(view, BREAKER_OPEN);
    uint32_t length = open_time(step, policy, extra);

    /* An open time is never shortened by a further failure (litellm#40130). */
    if (view->phase == BREAKER_OPEN && breaker_is_pending(view->time, now) &&
        breaker_ticks_until(view->time, now) > length)
        length = breaker_ticks_until(view->time, now);
    next.step = (uint8_t)clamp(step, 0, BREAKER_STEP_MAX);
    next.time = (now + length) & BREAKER_TIME_MASK;
    return next;
}

static struct breaker_view closed_again(const struct breaker_view *view,
                                        const struct breaker_ticket *ticket,
                                        const struct breaker_policy *policy,
                                        const struct breaker_extra *extra)
{
    struct breaker_view next = moved_to(view, BREAKER_CLOSED);
    unsigned threshold = threshold_of(policy);

    if (!extra->provisional)
        return next;
    next.step = view->step;
    if (threshold != 1) {
        /* Dated by the probe, so that the clean end of its own stream counts as recovery. */
        next.streak = (uint16_t)(threshold > 0 ? threshold - 1 : 1);
        next.time = ticket->admitted & BREAKER_TIME_MASK;
    }
    return next;
}

/* A grant given back. Without any other the lease is over at once, so that the next caller gets a
 * whole one. */
static void free_grant(struct breaker_view *view, uint32_t now)
{
    if (view->granted > 0)
        view->granted--;
    if (view->granted == 0)
        view->time = now;
}

/* --- admission ------------------------------------------------------------------------------- */

static struct breaker_admission admitted(uint64_t word, uint32_t now)
{
    return (struct breaker_admission){
        .verdict = BREAKER_ADMIT,
        .next = word,
        .ticket = breaker_ticket_closed(word, now),
    };
}

static struct breaker_admission refused(uint64_t word, uint32_t wait_ticks)
{
    return (struct breaker_admission){
        .verdict = BREAKER_REFUSE, .next = word, .wait_ticks = wait_ticks};
}

/* All grants of a lease carry its number, also one that was given back and taken again: whoever
 * else holds one keeps it. */
static struct breaker_admission granted(struct breaker_view view, uint32_t now, bool new_lease,
                                        const struct breaker_policy *policy)
{
    if (new_lease) {
        view.phase = BREAKER_HALF_OPEN;
        view.lease = (view.lease + 1) & BREAKER_LEASE_MAX;
        view.granted = 1;
        view.time = (now + lease_of(policy)) & BREAKER_TIME_MASK;
    } else {
        view.granted++;
    }
    return (struct breaker_admission){
        .verdict = BREAKER_GRANT,
        .next = breaker_word_encode(&view),
        .ticket = {.admitted = now,
                   .generation = view.generation,
                   .lease = view.lease,
                   .probe = true,
                   .counted = true},
    };
}

struct breaker_admission breaker_admit(uint64_t word, uint32_t now,
                                       const struct breaker_policy *policy)
{
    struct breaker_view view = breaker_word_decode(word);
    struct breaker_admission admission = admitted(word, now);

    now &= BREAKER_TIME_MASK;
    switch (view.phase) {
    case BREAKER_OPEN:
        if (breaker_is_pending(view.time, now))
            return refused(word, breaker_ticks_until(view.time, now));
        return granted(view, now, true, policy);
    case BREAKER_HALF_OPEN:
        /* Nobody's lease is over, also to a caller whose clock is from before the hand-back. */
        if (view.granted == 0 || !breaker_is_pending(view.time, now))
            return granted(view, now, true, policy);
        if (view.granted < probes_of(policy))
            return granted(view, now, false, policy);
        return refused(word, 0);
    case BREAKER_FORCED_OPEN:
        return refused(word, 0);
    case BREAKER_FORCED_CLOSED:
        admission.ticket.counted = false;
        return admission;
    case BREAKER_CLOSED:
        break;
    }
    return admission;
}

/* --- settlement ------------------------------------------------------------------------------ */

static struct breaker_result unchanged(uint64_t word)
{
    return (struct breaker_result){.next = word};
}

static struct breaker_result written(const struct breaker_view *view, enum breaker_change change,
                                     bool must_land)
{
    return (struct breaker_result){
        .next = breaker_word_encode(view), .change = change, .must_land = must_land};
}

static struct breaker_result settle_closed(uint64_t word, struct breaker_view view,
                                           const struct breaker_ticket *ticket,
                                           enum breaker_outcome outcome, uint32_t now,
                                           const struct breaker_policy *policy,
                                           const struct breaker_extra *extra)
{
    bool degraded = breaker_shows_degraded(view.streak, policy);
    unsigned threshold = threshold_of(policy);
    /* No streak opens this one, but its probe failed after all. */
    bool unproved = threshold == 0 && ticket->on_trial && view.streak > 0;

    if (outcome == BREAKER_SUCCESS) {
        /* What began before the streak says nothing of now; the healthy path writes nothing. */
        if (view.streak > 0 ? !breaker_at_or_after(ticket->admitted, view.time) : view.step == 0)
            return unchanged(word);
        view.streak = view.step = 0;
        view.time = 0;
        return written(&view, degraded ? BREAKER_RECOVERED : BREAKER_NO_CHANGE, false);
    }
    if (view.streak == 0)
        view.time = now;
    view.streak++; /* saturates when encoded */
    if ((threshold > 0 && view.streak >= threshold) || unproved || extra->rate_exceeded) {
        view = opened(&view, view.step, now, policy, extra);
        return written(&view, BREAKER_TRIPPED, true);
    }
    return written(&view,
                   !degraded && breaker_shows_degraded(view.streak, policy) ? BREAKER_DEGRADED
                                                                            : BREAKER_NO_CHANGE,
                   false);
}

static struct breaker_result settle_probe(uint64_t word, struct breaker_view view,
                                          const struct breaker_ticket *ticket,
                                          enum breaker_outcome outcome, uint32_t now,
                                          const struct breaker_policy *policy,
                                          const struct breaker_extra *extra)
{
    bool holder = view.phase == BREAKER_HALF_OPEN && ticket->lease == view.lease;

    if (outcome == BREAKER_SUCCESS) {
        if (view.phase == BREAKER_OPEN || view.successes + 1u >= successes_of(policy)) {
            view = closed_again(&view, ticket, policy, extra);
            return written(&view, BREAKER_CLOSED_AGAIN, true);
        }
        view.successes++;
        if (holder)
            free_grant(&view, now);
        return written(&view, BREAKER_NO_CHANGE, true);
    }
    /* Another may hold the grant by now: what it did is not ours to undo. */
    if (!holder)
        return unchanged(word);
    if (outcome == BREAKER_FAILURE) {
        view = opened(&view, view.step + 1u, now, policy, extra);
        return written(&view, BREAKER_REOPENED, true);
    }
    free_grant(&view, now);
    return written(&view, BREAKER_NO_CHANGE, true);
}

static bool counts_for(const struct breaker_ticket *ticket, const struct breaker_view *view)
{
    return ticket->counted && ticket->generation == view->generation;
}

bool breaker_is_counting(uint64_t word, const struct breaker_ticket *ticket)
{
    struct breaker_view view = breaker_word_decode(word);

    return view.phase == BREAKER_CLOSED && !ticket->probe && counts_for(ticket, &view);
}

struct breaker_result breaker_settle(uint64_t word, const struct breaker_ticket *ticket,
                                     enum breaker_outcome outcome, uint32_t now,
                                     const struct breaker_policy *policy,
                                     const struct breaker_extra *extra)
{
    static const struct breaker_extra nothing;
    struct breaker_view view = breaker_word_decode(word);
    bool probing = view.phase == BREAKER_HALF_OPEN || view.phase == BREAKER_OPEN;

    now &= BREAKER_TIME_MASK;
    if (!extra)
        extra = &nothing;
    if (!counts_for(ticket, &view))
        return unchanged(word);
    if (ticket->probe && probing)
        return settle_probe(word, view, ticket, outcome, now, policy, extra);
    if (!ticket->probe && view.phase == BREAKER_CLOSED && outcome != BREAKER_NEUTRAL)
        return settle_closed(word, view, ticket, outcome, now, policy, extra);
    return unchanged(word);
}

void breaker_follow(struct breaker_ticket *ticket, uint64_t word)
{
    ticket->generation = breaker_word_decode(word).generation;
    ticket->probe = false;
    ticket->on_trial = true;
}

/* --- operators ------------------------------------------------------------------------------- */

uint64_t breaker_trip(uint64_t word, uint32_t now, const struct breaker_policy *policy,
                      uint16_t random)
{
    struct breaker_extra extra = {.random = random};
    struct breaker_view view = breaker_word_decode(word);

    view = opened(&view, view.step, now & BREAKER_TIME_MASK, policy, &extra);
    return breaker_word_encode(&view);
}

static uint64_t moved_word(uint64_t word, enum breaker_phase phase)
{
    struct breaker_view view = breaker_word_decode(word);

    view = moved_to(&view, phase);
    return breaker_word_encode(&view);
}

uint64_t breaker_force_open(uint64_t word)
{
    return moved_word(word, BREAKER_FORCED_OPEN);
}

uint64_t breaker_force_closed(uint64_t word)
{
    return moved_word(word, BREAKER_FORCED_CLOSED);
}

uint64_t breaker_reset(uint64_t word)
{
    return moved_word(word, BREAKER_CLOSED);
}
