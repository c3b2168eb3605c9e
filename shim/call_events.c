#include "call.h"

#include <stdio.h>

/* What a change is called in the log: from which shown state to which. */
static const struct {
    const char *from, *to;
} change_names[] = {
    [BREAKER_DEGRADED] = {"closed", "degraded"},      [BREAKER_RECOVERED] = {"degraded", "closed"},
    [BREAKER_TRIPPED] = {"closed", "open"},           [BREAKER_REOPENED] = {"half_open", "open"},
    [BREAKER_CLOSED_AGAIN] = {"half_open", "closed"}, [BREAKER_PROBING] = {"open", "half_open"},
};

/* As `status` showed it before. */
static const char *from_name(const struct call_side *side, const struct call_change *change)
{
    if (change->change != BREAKER_TRIPPED)
        return change_names[change->change].from;
    return breaker_state_name(
        breaker_effective(change->before, change->now, &side->policy.breaker).state);
}

/* A trip that the streak does not explain: "10 of 20 calls failed". NULL: it is none. */
static const char *rate_detail(const struct call_side *side, const struct call_change *change,
                               char *buf, size_t size)
{
    const struct breaker_policy *policy = &side->policy.breaker;

    if (change->change != BREAKER_TRIPPED || !rate_is_on(policy))
        return NULL;
    struct rate_sum sum =
        slot_rate(side->slot, breaker_decode(change->before).generation, change->now, policy);
    if (!rate_exceeded(&sum, policy))
        return NULL;
    snprintf(buf, size, "%u of %u calls failed", sum.failures, sum.calls);
    return buf;
}

#define CAUSE_SIZE 48

/* "status 503", "connect". Returns `buf`, or static storage. */
static const char *cause_text(enum outcome_cause cause, unsigned status, char buf[CAUSE_SIZE])
{
    if (cause != CAUSE_STATUS)
        return outcome_cause_name(cause);
    snprintf(buf, CAUSE_SIZE, "status %u", status);
    return buf;
}

void call_log_change(const struct call *call, const struct call_side *side,
                     const struct call_change *change)
{
    char cause[CAUSE_SIZE], detail[64];

    if (change->change == BREAKER_NO_CHANGE)
        return;
    struct log_event event = {
        .event = "transition",
        .key = call_side_key(call, side),
        .from = from_name(side, change),
        .to = change_names[change->change].to,
        .detail = rate_detail(side, change, detail, sizeof detail),
    };
    if (change->cause != CAUSE_NONE)
        event.cause = cause_text(change->cause, change->status, cause);
    else
        event.cause = change->change == BREAKER_PROBING ? "open time over" : "success";
    process_log(call->config, &event);
}

/* A breaker that refuses is told of at the first refusal and then once in so long per key. */
static bool refusal_is_due(const struct call *call, struct slot *slot, uint64_t now)
{
    return slot && *config_log_path(call->config) &&
           slot_log_is_due(&slot->refusal_logged_ns, now, CALL_LOG_QUIET_NS);
}

const char *call_refusal_name(const struct call *call)
{
    return call->refusal.parked ? "cooling_down" : breaker_state_name(call->refusal.state);
}

void call_log_cooldown(const struct call *call, const struct call_side *side, uint64_t credential,
                       enum outcome_cause cause, unsigned status, uint32_t ms)
{
    char text[CAUSE_SIZE], detail[64];
    struct log_event event = {
        .event = "cooldown",
        .key = call_side_key(call, side),
        .cause = cause_text(cause, status, text),
        .detail = detail,
    };

    snprintf(detail, sizeof detail, "%s for %u.%03u s",
             credential == COOLDOWN_ALL ? "all credentials" : "a credential", ms / 1000, ms % 1000);
    process_log(call->config, &event);
}

void call_log_observed(const struct call *call, const struct call_side *side, bool parked,
                       uint64_t now)
{
    if (!refusal_is_due(call, side->slot, now))
        return;
    const char *state = breaker_state_name(call_shown(side, now).state);
    struct log_event event = {
        .event = "observed",
        .key = call_side_key(call, side),
        .from = state,
        .cause = parked ? "cooling_down" : state,
        .refused_total = slot_totals(side->slot).refused,
    };
    process_log(call->config, &event);
}

void call_log_refusal(const struct call *call, uint64_t now, bool passes)
{
    const struct call_side *side = call_refuser(call);

    if (!refusal_is_due(call, side->slot, now))
        return;
    struct log_event event = {
        .event = passes ? "passed" : "refused",
        .key = call_side_key(call, side),
        .from = breaker_state_name(call->refusal.state),
        .cause = call_refusal_name(call),
        .detail = call->refusal.why_not,
        .refused_total = slot_totals(side->slot).refused,
    };
    process_log(call->config, &event);
}

void call_log_reroute(const struct call *call, struct span to, bool failover, const char *detail)
{
    char text[CALL_KEY_MAX + 1];
    const struct call_side *side = !failover                ? call_refuser(call)
                                   : call_knows_model(call) ? &call->model
                                                            : &call->host;

    if (!*config_log_path(call->config))
        return;
    if (to.ptr)
        *(char *)mempcpy(text, to.ptr, to.len) = '\0';
    struct log_event event = {
        .event = to.ptr ? "rerouted" : "failover",
        .key = call_side_key(call, side),
        .from = failover ? NULL : breaker_state_name(call->refusal.state),
        .to = to.ptr ? text : NULL,
        .cause = failover ? to.ptr ? "connect failed" : "no fallback" : call_refusal_name(call),
        .detail = detail,
    };
    process_log(call->config, &event);
}
