#include "http/outcome.h"

#include <stddef.h>

const char *outcome_cause_name(enum outcome_cause cause)
{
    static const char *const names[] = {
        [CAUSE_NONE] = "none",
        [CAUSE_STATUS] = "status",
        [CAUSE_CONNECT] = "connect",
        [CAUSE_HANDSHAKE] = "handshake",
        [CAUSE_BROKEN] = "broken",
        [CAUSE_TIMEOUT] = "timeout",
        [CAUSE_HANG] = "hang",
        [CAUSE_CONNECT_HANG] = "connect_hang",
        [CAUSE_MANUAL] = "manual",
        [CAUSE_STREAM] = "stream",
        [CAUSE_SLOW_FIRST_BYTE] = "slow_first_byte",
        [CAUSE_STALL] = "stall",
    };

    return (size_t)cause < sizeof names / sizeof *names ? names[cause] : "unknown";
}

enum breaker_outcome outcome_of_status(unsigned status, const struct outcome_policy *policy)
{
    if (status_set_has(&policy->neutral_status, status))
        return BREAKER_NEUTRAL;
    if (status_set_has(&policy->failure_status, status))
        return BREAKER_FAILURE;
    if (status == 101 || (status >= 200 && status < 400))
        return BREAKER_SUCCESS;
    return BREAKER_NEUTRAL;
}

static struct outcome host_failed(enum outcome_cause cause)
{
    return (struct outcome){.host = BREAKER_FAILURE, .model = BREAKER_NEUTRAL, .cause = cause};
}

static struct outcome model_said(const struct call_end *end, enum breaker_outcome model,
                                 enum outcome_cause cause)
{
    return (struct outcome){
        .host = end->byte_received ? BREAKER_SUCCESS : BREAKER_NEUTRAL,
        .model = model,
        .cause = model == BREAKER_FAILURE ? cause : CAUSE_NONE,
    };
}

static struct outcome neutral(const struct call_end *end)
{
    return model_said(end, BREAKER_NEUTRAL, CAUSE_NONE);
}

/* A neutral head says that the request was at fault; its body may end as it likes. */
static bool request_at_fault(const struct call_end *end, const struct outcome_policy *policy)
{
    return end->status != 0 && outcome_of_status(end->status, policy) == BREAKER_NEUTRAL;
}

/* What the application held up itself is nobody's slowness. */
static bool is_late(const struct call_end *end, const struct outcome_policy *policy)
{
    return !end->paused && outcome_is_late(end->first_byte_ns, policy);
}

/* A good head that came too late is a failure of its own kind. */
static struct outcome by_head(const struct call_end *end, const struct outcome_policy *policy)
{
    enum breaker_outcome said = outcome_of_status(end->status, policy);

    if (said == BREAKER_SUCCESS && is_late(end, policy))
        return model_said(end, BREAKER_FAILURE, CAUSE_SLOW_FIRST_BYTE);
    return model_said(end, said, CAUSE_STATUS);
}

static bool is_stalled(const struct call_end *end, const struct outcome_policy *policy)
{
    return end->phase == PHASE_BODY && !end->paused && policy->stall_after_ns > 0 &&
           end->silent_ns > policy->stall_after_ns;
}

/* Who gave up had reason to, however old the call was: it waited too long for the first byte, or
 * for the next one. CAUSE_NONE: neither is known. */
static enum outcome_cause slowness(const struct call_end *end, const struct outcome_policy *policy)
{
    if (request_at_fault(end, policy))
        return CAUSE_NONE;
    if (is_late(end, policy))
        return CAUSE_SLOW_FIRST_BYTE;
    return is_stalled(end, policy) ? CAUSE_STALL : CAUSE_NONE;
}

static bool is_connecting(const struct call_end *end)
{
    return end->phase == PHASE_CONNECTING || end->phase == PHASE_HANDSHAKE;
}

/* The caller's time-out. A hang exists only for who waited for it: young ones are impatience. */
static struct outcome timed_out(const struct call_end *end, const struct outcome_policy *policy)
{
    if (end->paused || end->age_ns <= policy->timeout_after_ns || request_at_fault(end, policy))
        return neutral(end);
    return model_said(end, BREAKER_FAILURE, CAUSE_TIMEOUT);
}

static struct outcome aborted(const struct call_end *end, const struct outcome_policy *policy)
{
    if (end->phase == PHASE_WAITING && !end->paused && end->age_ns > policy->hang_after_ns)
        return model_said(end, BREAKER_FAILURE, CAUSE_HANG);
    return neutral(end);
}

static struct outcome given_up(const struct call_end *end, const struct outcome_policy *policy)
{
    if (is_connecting(end))
        return end->age_ns > policy->connect_hang_after_ns ? host_failed(CAUSE_CONNECT_HANG)
                                                           : neutral(end);
    enum outcome_cause slow = slowness(end, policy);
    if (slow != CAUSE_NONE)
        return model_said(end, BREAKER_FAILURE, slow);
    return end->kind == END_TIMEOUT ? timed_out(end, policy) : aborted(end, policy);
}

static struct outcome by_kind(const struct call_end *end, const struct outcome_policy *policy)
{
    switch (end->kind) {
    case END_COMPLETE:
        return by_head(end, policy);
    case END_CONNECT:
        return host_failed(CAUSE_CONNECT);
    case END_HANDSHAKE:
        return host_failed(CAUSE_HANDSHAKE);
    case END_BROKEN:
        if (request_at_fault(end, policy))
            return neutral(end);
        return model_said(end, BREAKER_FAILURE, CAUSE_BROKEN);
    case END_TIMEOUT:
    case END_ABORTED:
        return given_up(end, policy);
    case END_LOCAL:
    case END_UNSENT:
        break;
    }
    return neutral(end);
}

struct outcome outcome_of(const struct call_end *end, const struct outcome_policy *policy)
{
    struct outcome outcome;

    /* A failing status is a failure however its body ended, and 101 has said all with its head. */
    if ((end->status == 101 ||
         (end->status != 0 && status_set_has(&policy->failure_status, end->status))) &&
        end->kind != END_LOCAL && end->kind != END_UNSENT)
        outcome = by_head(end, policy);
    else
        outcome = by_kind(end, policy);
    if (end->redirected_away) { /* what another host did says nothing of the first one's model */
        outcome.model = BREAKER_NEUTRAL;
        outcome.host = end->byte_received ? BREAKER_SUCCESS : BREAKER_NEUTRAL;
        outcome.cause = CAUSE_NONE;
    }
    return outcome;
}

static struct outcome body_outcome(const struct call_end *end, enum stream_state said,
                                   const struct outcome_policy *policy)
{
    switch (said) {
    case STREAM_OVER:
        return by_head(end, policy);
    case STREAM_FAILURE:
        return model_said(end, BREAKER_FAILURE, CAUSE_STREAM);
    case STREAM_RATE:
    case STREAM_QUOTA:
        return model_said(end, outcome_of_status(429, policy), CAUSE_STREAM);
    case STREAM_CALLER:
    case STREAM_BLIND:
    case STREAM_RUNNING:
        break;
    }
    return neutral(end);
}

void outcome_heed_body(struct outcome *outcome, const struct call_end *end, enum stream_state said,
                       const struct outcome_policy *policy)
{
    if (said == STREAM_BLIND || said == STREAM_RUNNING || end->redirected_away ||
        outcome_of_status(end->status, policy) != BREAKER_SUCCESS)
        return;
    *outcome = body_outcome(end, said, policy);
    outcome->body = said;
}

void outcome_excuse(struct outcome *outcome)
{
    if (outcome->cause != CAUSE_STATUS)
        return;
    outcome->model = BREAKER_NEUTRAL;
    outcome->cause = CAUSE_NONE;
}
