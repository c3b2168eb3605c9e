#include "call.h"

/* DESIGN, Outcomes: who is told to come back sooner is not parked. */
#define WORTH_PARKING_MS 2000

static uint64_t credential_of(const struct call *call)
{
    return table_credential(call->table, call->credential);
}

bool call_knows_credential(struct call *call)
{
    if (!call->credential_asked) {
        call->credential_asked = true;
        if (call->credential_tell)
            call->credential_tell(call->credential_data);
    }
    return call->credential_known;
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
    return slot_cooldown_left(side->slot,
                              side == &call->model || call->host_alone ? credential_to_ask_for(call)
                                                                       : COOLDOWN_ALL,
                              tick);
}

bool call_parked_with_all(const struct call_side *side, uint64_t now)
{
    return slot_cooldown_left(side->slot, COOLDOWN_ALL, breaker_tick(now)) > 0;
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
    return outcome->body != STREAM_BLIND              ? CAUSE_STREAM
           : outcome_cause_is_connect(outcome->cause) ? outcome->cause
                                                      : CAUSE_STATUS;
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

/* Who is to wait at which key, and for how long; `ms` 0: nobody. */
struct parking {
    struct call_side *side;
    uint64_t credential;
    uint32_t ms;
};

/* A rate limit is of a credential, whatever else is of the key; a failed connect is of the host. */
static struct parking parking_of(struct call *call, const struct call_end *end,
                                 const struct outcome *outcome)
{
    bool connect = outcome_cause_is_connect(outcome->cause);
    struct parking parking = {.side = connect ? &call->host : call_parking_side(call),
                              .credential = COOLDOWN_ALL};

    if (!parking.side || !parking.side->admitted)
        return parking;
    const struct cooldown_policy *policy = &parking.side->policy.cooldown;
    if (connect) {
        parking.ms = policy->on_connect ? policy->brief_ms : 0;
    } else if (!is_limit(end, outcome)) {
        parking.ms = brief_ms(policy, end->status);
    } else if ((policy->rate_limit & RATE_LIMIT_COOLDOWN) && call_knows_credential(call)) {
        parking.credential = credential_of(call);
        parking.ms = limit_ms(call, policy, end, outcome);
    }
    return parking;
}

void call_park(struct call *call, const struct call_end *end, const struct outcome *outcome)
{
    if (end->redirected_away || call_is_excused(call) ||
        (end->status < 400 && !outcome_cause_is_connect(outcome->cause) && !is_limit(end, outcome)))
        return;
    struct parking parking = parking_of(call, end, outcome);
    if (parking.ms == 0 || !call_claim(call, parking.side, true))
        return;
    struct slot *slot = parking.side->slot;
    uint64_t now = process_clock->boot_ns();
    bool parked = slot_cooldown_left(slot, parking.credential, breaker_tick(now)) > 0;
    slot_cooldown_set(slot, parking.credential, breaker_ticks_of(parking.ms * CLOCK_NS_PER_MS),
                      breaker_tick(now));
    if (!parked)
        call_log_cooldown(call, parking.side, parking.credential, cause_of(outcome), end->status,
                          parking.ms);
}
