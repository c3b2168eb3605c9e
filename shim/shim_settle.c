#include "call.h"
#include "http/head.h"

#include <errno.h>

void call_return_side(struct call_side *side, uint64_t now)
{
    static const struct breaker_extra nothing;

    if (side->admitted && side->ticket.probe)
        slot_settle(side->slot, &side->ticket, BREAKER_NEUTRAL, breaker_tick(now),
                    &side->policy.breaker, &nothing);
    side->admitted = false;
}

/* Ages are told by a clock that stops while the machine sleeps, but peers and time-outs of others
 * do not stop: after a suspend in the middle nothing is the provider's fault (DESIGN). */
static bool was_suspended(const struct call *call)
{
    uint64_t now = process_suspended_now();

    return now > call->suspended_ns + CLOCK_NS_PER_S;
}

bool call_claim(const struct call *call, struct call_side *side, bool failure)
{
    /* Off the healthy path: a slot whose claimer was killed gets its key. */
    if (!side->slot || table_key_is_missing(side->slot))
        side->slot = table_claim(call->table, side->identity, call_side_key(call, side), failure);
    return side->slot;
}

static void settle_side(struct call *call, struct call_side *side, enum breaker_outcome outcome,
                        enum outcome_cause cause, const struct call_end *end, uint64_t now)
{
    side->admitted = false;
    if (!call_claim(call, side, outcome == BREAKER_FAILURE))
        return;
    struct breaker_extra extra = {.random = 0};
    uint64_t before = slot_word(side->slot);
    if (outcome == BREAKER_FAILURE)
        extra.random = call_random(now, side->identity);
    if (cause == CAUSE_STATUS && end->status >= 500) /* lengthens the trip that it causes */
        extra.retry_after_ticks = breaker_ticks_of(end->retry_after_ms * CLOCK_NS_PER_MS);
    enum breaker_change change = slot_settle(side->slot, &side->ticket, outcome, breaker_tick(now),
                                             &side->policy.breaker, &extra);
    slot_count(side->slot, outcome, call_stat_shard());
    if (outcome == BREAKER_FAILURE)
        slot_note_failure(side->slot, cause, cause == CAUSE_STATUS ? end->status : 0, now);
    if (change == BREAKER_NO_CHANGE)
        return;
    if (change == BREAKER_TRIPPED || change == BREAKER_REOPENED)
        slot_note_opened(side->slot);
    call_log_change(call, side,
                    &(struct call_change){.change = change,
                                          .cause = outcome == BREAKER_FAILURE ? cause : CAUSE_NONE,
                                          .status = end->status,
                                          .before = before,
                                          .now = breaker_tick(now)});
}

void call_settle_provisionally(struct call *call, struct call_side *side)
{
    const struct breaker_extra extra = {.provisional = true};
    uint64_t now = process_clock->boot_ns();
    struct call_change change = {.now = breaker_tick(now), .before = slot_word(side->slot)};

    change.change = slot_settle(side->slot, &side->ticket, BREAKER_SUCCESS, change.now,
                                &side->policy.breaker, &extra);
    call_log_change(call, side, &change);
}

/* The healthy case: good ends of a breaker that has nothing to forget are counted, and no more.
 * With a failure_rate they are of its window, too. */
static bool settle_clean(struct call_side *side, enum breaker_outcome outcome)
{
    if (!side->admitted)
        return true;
    if (outcome == BREAKER_FAILURE || !side->slot || rate_is_on(&side->policy.breaker) ||
        !breaker_is_clean(slot_word(side->slot)))
        return false;
    side->admitted = false;
    slot_count(side->slot, outcome, call_stat_shard());
    return true;
}

const struct outcome_policy *call_outcome_policy(const struct call *call)
{
    return call->model.admitted ? &call->model.policy.outcome : &call->host.policy.outcome;
}

/* Did it fail by what a suspend can do? A peer's own word cannot be its doing. */
static bool failed_silently(const struct outcome *outcome)
{
    return (outcome->host == BREAKER_FAILURE || outcome->model == BREAKER_FAILURE) &&
           outcome->cause != CAUSE_STATUS && outcome->cause != CAUSE_STREAM;
}

/* Into *outcome, in its place: what is copied as a whole when its parts were just written waits for
 * them. */
static void judge(struct call *call, const struct call_end *end, struct outcome *outcome)
{
    const struct outcome_policy *policy = call_outcome_policy(call);

    *outcome = outcome_of(end, policy);
    outcome_heed_body(outcome, end, call_body_said(call), policy);
    if (failed_silently(outcome) && was_suspended(call))
        *outcome = (struct outcome){.host = end->byte_received ? BREAKER_SUCCESS : BREAKER_NEUTRAL,
                                    .model = BREAKER_NEUTRAL};
    if (call_is_excused(call))
        outcome_excuse(outcome);
    if (call->host_alone)
        outcome->host = outcome_of_host_alone(outcome);
}

uint64_t shim_age_ns(const struct shim_call *shim_call)
{
    const struct call *call = call_of_const(shim_call);

    return process_clock->boot_ns() - call->admitted_ns;
}

uint32_t shim_retry_after_ms(const struct shim_retry *said)
{
    return http_retry_ms(said->ms, said->amz, said->after, process_clock->wall_ms() / 1000);
}

void shim_settle(struct shim_call *shim_call, const struct call_end *end)
{
    struct call *call = call_of(shim_call);
    int saved = errno;

    if (call->state != CALL_ADMITTED)
        return;
    if (call->epoch != process_epoch()) {
        shim_drop(shim_call); /* admitted before a fork: the parent settles it; or before a fence */
        return;
    }
    call->state = CALL_IDLE;
    struct outcome outcome;
    judge(call, end, &outcome);
    call_park(call, end, &outcome);
    bool host_done = settle_clean(&call->host, outcome.host);
    if (settle_clean(&call->model, outcome.model) && host_done)
        return;
    uint64_t now = process_clock->boot_ns();
    if (call->host.admitted)
        settle_side(call, &call->host, outcome.host, outcome.cause, end, now);
    if (call->model.admitted)
        settle_side(call, &call->model, outcome.model, outcome.cause, end, now);
    errno = saved;
}

void shim_received(struct shim_call *shim_call)
{
    static const struct call_end end = {.kind = END_COMPLETE, .byte_received = true};
    struct call *call = call_of(shim_call);
    int saved = errno;

    if (call->state != CALL_ADMITTED || !call->host.admitted || call->host_alone ||
        call->epoch != process_epoch())
        return;
    if (!settle_clean(&call->host, BREAKER_SUCCESS))
        settle_side(call, &call->host, BREAKER_SUCCESS, CAUSE_NONE, &end, process_clock->boot_ns());
    errno = saved;
}

void shim_drop(struct shim_call *shim_call)
{
    struct call *call = call_of(shim_call);

    if (call->state == CALL_ADMITTED && process_had_epoch(call->epoch)) {
        uint64_t now = process_clock->boot_ns();
        call_return_side(&call->host, now);
        call_return_side(&call->model, now);
    }
    call->state = CALL_IDLE;
}

bool shim_admitted(const struct shim_call *shim_call)
{
    return call_of_const(shim_call)->state == CALL_ADMITTED;
}
