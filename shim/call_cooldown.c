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

/* What a 429 says, in ms; 0: nothing that parks. */
static uint32_t told_ms(const struct cooldown_policy *policy, const struct call_end *end,
                        bool quota_spent)
{
    uint32_t ms = end->retry_after_ms < policy->max_ms ? end->retry_after_ms : policy->max_ms;

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

/* How long, and whom: a 429 is of a credential, whatever else is of the key. */
static uint32_t ms_of(struct call *call, const struct cooldown_policy *policy,
                      const struct call_end *end, uint64_t *credential)
{
    *credential = COOLDOWN_ALL;
    if (end->status != 429)
        return brief_ms(policy, end->status);
    if (!call->credential_known || !(policy->rate_limit & RATE_LIMIT_COOLDOWN))
        return 0;
    *credential = credential_of(call);
    bool quota_spent = end->quota_spent || call_quota_is_spent(call);
    return end->retry_after_ms > 0 || quota_spent ? told_ms(policy, end, quota_spent)
                                                  : brief_ms(policy, end->status);
}

void call_park(struct call *call, const struct call_end *end)
{
    struct call_side *side = call_parking_side(call);
    uint64_t credential;

    if (end->status < 400 || end->redirected_away || !side || !side->admitted ||
        call_is_excused(call))
        return;
    uint32_t ms = ms_of(call, &side->policy.cooldown, end, &credential);
    if (ms == 0 || !call_claim(call, side, true))
        return;
    uint64_t now = process_clock->boot_ns();
    bool parked = slot_cooldown_left(side->slot, credential, breaker_tick(now)) > 0;
    slot_cooldown_set(side->slot, credential, breaker_ticks_of(ms * CLOCK_NS_PER_MS),
                      breaker_tick(now));
    if (!parked)
        call_log_cooldown(call, side, credential, end->status, ms);
    process_table_recheck(call->config, now);
}
