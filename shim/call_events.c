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

static struct span key_of(const struct call *call, bool model)
{
    return model ? call_model_key(call) : call_host_key(call);
}

/* As `status` showed it before: a trip is the failure after failure_threshold - 1 others, which
 * show as degraded when they reached degrade_threshold. */
static const char *from_name(const struct call_side *side, enum breaker_change change)
{
    const struct breaker_policy *policy = &side->policy.breaker;

    if (change == BREAKER_TRIPPED && policy->degrade_threshold > 0 &&
        policy->degrade_threshold < policy->failure_threshold)
        return breaker_state_name(BREAKER_SHOW_DEGRADED);
    return change_names[change].from;
}

void call_log_change(const struct call *call, bool model, enum breaker_change change,
                     enum outcome_cause cause, unsigned status)
{
    char text[48];

    if (change == BREAKER_NO_CHANGE)
        return;
    struct log_event event = {
        .event = "transition",
        .key = key_of(call, model),
        .from = from_name(model ? &call->model : &call->host, change),
        .to = change_names[change].to,
    };
    if (cause == CAUSE_STATUS) {
        snprintf(text, sizeof text, "status %u", status);
        event.cause = text;
    } else if (cause != CAUSE_NONE) {
        event.cause = outcome_cause_name(cause);
    } else {
        event.cause = change == BREAKER_PROBING ? "open time over" : "success";
    }
    process_log(call->config, &event);
}

/* A breaker that refuses is told of at the first refusal and then once in so long per key. */
void call_log_refusal(const struct call *call, uint64_t now, bool passes)
{
    struct slot *slot = call->refusal.model ? call->model.slot : call->host.slot;

    if (!slot || !*config_log_path(call->config))
        return;
    if (!slot_log_is_due(&slot->refusal_logged_ns, now, CALL_LOG_QUIET_NS))
        return;
    struct log_event event = {
        .event = passes ? "passed" : "refused",
        .key = key_of(call, call->refusal.model),
        .from = breaker_state_name(call->refusal.state),
        .cause = breaker_state_name(call->refusal.state),
        .detail = call->refusal.why_not,
        .refused_total = slot_totals(slot).refused,
    };
    process_log(call->config, &event);
}

void call_log_reroute(const struct call *call, struct span to, bool failover, const char *detail)
{
    char text[CALL_KEY_MAX + 1];
    bool model = failover ? call_knows_model(call) : call->refusal.model;

    if (!*config_log_path(call->config))
        return;
    if (to.ptr)
        *(char *)mempcpy(text, to.ptr, to.len) = '\0';
    struct log_event event = {
        .event = to.ptr ? "rerouted" : "failover",
        .key = key_of(call, model),
        .from = failover ? NULL : breaker_state_name(call->refusal.state),
        .to = to.ptr ? text : NULL,
        .cause = failover ? to.ptr ? "connect failed" : "no fallback"
                          : breaker_state_name(call->refusal.state),
        .detail = detail,
    };
    process_log(call->config, &event);
}
