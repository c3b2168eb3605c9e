#include "call.h"

/* DESIGN, Outcomes: who is told to come back sooner is not parked. */
#define WORTH_PARKING_MS 2000

static uint64_t credential_of(const struct call *call)
{
    return cooldown_credential(
        hash64(&call->credential, sizeof call->credential, call->table->header->hash_seed));
}

/* Where no layer tells the credential, only what is meant for all of them counts. */
static uint64_t credential_to_ask_for(const struct call *call)
{
    return call->credential_known ? credential_of(call) : COOLDOWN_ALL;
}

uint32_t call_parked(const struct call *call, const struct call_side *side, uint64_t now)
{
    uint32_t tick = breaker_tick(now);

    if (!slot_cooldown_may_be(side->slot, tick) ||
        breaker_decode(slot_word(side->slot)).phase == BREAKER_FORCED_CLOSED)
        return 0;
    return slot_cooldown_left(side->slot, credential_to_ask_for(call), tick);
}

/* What a limit says that names so many ms; 0: nothing that parks. */
static uint32_t told_ms(const struct cooldown_policy *policy, uint32_t named_ms, bool quota_spent)
{
    uint32_t ms = named_ms < policy->max_ms ? named_ms : policy->max_ms;

    if (quota_spent && policy->quota_ms > ms)
        ms = policy->quota_ms;
    else if (ms < WORTH_PARKING_MS)
        ms = 0;
    return ms;
}

static uint32_t brief_ms(const struct cooldown_policy *policy, unsigned status)
{
    return status_set_has(&policy->on, status) ? policy->brief_ms : 0;
}

static bool is_limit(const struct call_end *end, const struct outcome *outcome)
{
    return end->status == 429 || outcome->body == STREAM_RATE || outcome->body == STREAM_QUOTA;
}

static enum outcome_cause cause_of(const struct outcome *outcome)
{
    return outcome->body != STREAM_BLIND ? CAUSE_STREAM : CAUSE_STATUS;
}

/* A good answer that tells of a limit in its body names no time. */
static uint32_t limit_ms(struct call *call, const struct cooldown_policy *policy,
                         const struct call_end *end, const struct outcome *outcome)
{
    uint32_t named_ms = end->status == 429 ? end->retry_after_ms : 0;
    bool quota_spent =
        end->quota_spent || outcome->body == STREAM_QUOTA || call_quota_is_spent(call);

    return named_ms > 0 || quota_spent ? told_ms(policy, named_ms, quota_spent)
                                       : brief_ms(policy, 429);
}

/* How long, and whom: a rate limit is of a credential, whatever else is of the key. */
static uint32_t ms_of(struct call *call, const struct cooldown_policy *policy,
                      const struct call_end *end, const struct outcome *outcome,
                      uint64_t *credential)
{
    *credential = COOLDOWN_ALL;
    if (!is_limit(end, outcome))
        return brief_ms(policy, end->status);
    if (!call->credential_known || !(policy->rate_limit & RATE_LIMIT_COOLDOWN))
        return 0;
    *credential = credential_of(call);
    return limit_ms(call, policy, end, outcome);
}

void call_park(struct call *call, const struct call_end *end, const struct outcome *outcome)
{
    struct call_side *side = call_parking_side(call);
    uint64_t credential;

    if ((end->status < 400 && !is_limit(end, outcome)) || end->redirected_away || !side ||
        !side->admitted || call_is_excused(call))
        return;
    uint32_t ms = ms_of(call, &side->policy.cooldown, end, outcome, &credential);
    if (ms == 0 || !call_claim(call, side, true))
        return;
    uint64_t now = process_clock->boot_ns();
    bool parked = slot_cooldown_left(side->slot, credential, breaker_tick(now)) > 0;
    slot_cooldown_set(side->slot, credential, breaker_ticks_of(ms * CLOCK_NS_PER_MS),
                      breaker_tick(now));
    if (!parked)
        call_log_cooldown(call, side, credential, cause_of(outcome), end->status, ms);
    process_table_recheck(call->config, now);
}
