/*
 * apply.c - one value into its place in a policy, in the units of who reads it there.
 */
#include "config/settings.h"

static uint16_t q8(uint64_t millionths)
{
    return (uint16_t)(millionths * 256 / 1000000);
}

static uint16_t q16(uint64_t millionths)
{
    uint64_t q = millionths * 65536 / 1000000;

    return (uint16_t)(q > UINT16_MAX ? UINT16_MAX : q);
}

static void apply_to_breaker(struct breaker_policy *breaker, enum config_option option,
                             const struct value *value)
{
    switch (option) {
    case OPTION_failure_threshold:
        breaker->failure_threshold = (uint16_t)value->number;
        break;
    case OPTION_failure_rate:
        breaker->failure_rate = (uint32_t)value->number;
        break;
    case OPTION_window:
        breaker->window_ms = (uint32_t)(value->number / 1000000);
        break;
    case OPTION_min_calls:
        breaker->min_calls = (uint32_t)value->number;
        break;
    case OPTION_degrade_threshold:
        breaker->degrade_threshold = (uint16_t)value->number;
        break;
    case OPTION_open_seconds:
        breaker->open_ticks = breaker_ticks_of(value->number);
        break;
    case OPTION_backoff:
        breaker->backoff_q8 = q8(value->number);
        break;
    case OPTION_open_max:
        breaker->open_max_ticks = breaker_ticks_of(value->number);
        break;
    case OPTION_jitter:
        breaker->jitter_q16 = q16(value->number);
        break;
    case OPTION_half_open_probes:
        breaker->half_open_probes = (uint8_t)value->number;
        break;
    case OPTION_success_threshold:
        breaker->success_threshold = (uint8_t)value->number;
        break;
    default:
        break; /* config_apply() knows which are the breaker's */
    }
}

static void apply_lease(struct policy *policy, uint64_t number)
{
    policy->lease_of_call = number == VALUE_LEASE_OF_CALL;
    policy->breaker.lease_ticks =
        breaker_ticks_of(policy->lease_of_call ? CONFIG_LEASE_OF_CALL_MIN_NS : number);
}

static void apply_to_outcome(struct outcome_policy *outcome, enum config_option option,
                             const struct value *value)
{
    switch (option) {
    case OPTION_timeout_after:
        outcome->timeout_after_ns = value->number;
        break;
    case OPTION_hang_after:
        outcome->hang_after_ns = value->number;
        break;
    case OPTION_connect_hang_after:
        outcome->connect_hang_after_ns = value->number;
        break;
    case OPTION_slow_first_byte:
        outcome->slow_first_byte_ns = value->number;
        break;
    case OPTION_stall_after:
        outcome->stall_after_ns = value->number;
        break;
    case OPTION_failure_status:
        outcome->failure_status = value->statuses;
        break;
    case OPTION_neutral_status:
        outcome->neutral_status = value->statuses;
        break;
    default:
        break; /* config_apply() knows which are the outcome's */
    }
}

static void apply_to_cooldown(struct cooldown_policy *cooldown, enum config_option option,
                              const struct value *value)
{
    switch (option) {
    case OPTION_rate_limit:
        cooldown->rate_limit = (uint8_t)value->number;
        break;
    case OPTION_cooldown_max:
        cooldown->max_ms = (uint32_t)(value->number / 1000000);
        break;
    case OPTION_quota_cooldown:
        cooldown->quota_ms = (uint32_t)(value->number / 1000000);
        break;
    case OPTION_cooldown_seconds:
        cooldown->brief_ms = (uint32_t)(value->number / 1000000);
        break;
    case OPTION_cooldown_on:
        cooldown->on = value->statuses;
        cooldown->on_connect = value->number != 0;
        break;
    default:
        break; /* config_apply() knows which are the cool-down's */
    }
}

/* What becomes of a call that is refused, or whose connect fails. */
static void apply_to_refused(struct policy *policy, enum config_option option,
                             const struct value *value)
{
    switch (option) {
    case OPTION_when_exhausted:
        policy->when_exhausted = (enum config_exhausted)value->number;
        break;
    case OPTION_should_retry:
        policy->should_retry = value->number != 0;
        break;
    case OPTION_allow_fallbacks:
        policy->allow_fallbacks = value->number != 0;
        break;
    case OPTION_allow_cleartext:
        policy->allow_cleartext = value->number != 0;
        break;
    case OPTION_failover:
        policy->failover = (enum config_failover)value->number;
        break;
    default:
        break; /* config_apply() knows which are these */
    }
}

void config_apply(struct policy *policy, enum config_option option, const struct value *value)
{
    switch (option) {
    case OPTION_failure_threshold:
    case OPTION_failure_rate:
    case OPTION_window:
    case OPTION_min_calls:
    case OPTION_degrade_threshold:
    case OPTION_open_seconds:
    case OPTION_backoff:
    case OPTION_open_max:
    case OPTION_jitter:
    case OPTION_half_open_probes:
    case OPTION_success_threshold:
        apply_to_breaker(&policy->breaker, option, value);
        break;
    case OPTION_probe_lease:
        apply_lease(policy, value->number);
        break;
    case OPTION_mode:
        policy->mode = (enum config_mode)value->number;
        break;
    case OPTION_scope:
        policy->scope = (enum config_scope)value->number;
        break;
    case OPTION_timeout_after:
    case OPTION_hang_after:
    case OPTION_connect_hang_after:
    case OPTION_slow_first_byte:
    case OPTION_stall_after:
    case OPTION_failure_status:
    case OPTION_neutral_status:
        apply_to_outcome(&policy->outcome, option, value);
        break;
    case OPTION_rate_limit:
    case OPTION_cooldown_max:
    case OPTION_quota_cooldown:
    case OPTION_cooldown_seconds:
    case OPTION_cooldown_on:
        apply_to_cooldown(&policy->cooldown, option, value);
        break;
    case OPTION_when_exhausted:
    case OPTION_should_retry:
    case OPTION_allow_fallbacks:
    case OPTION_allow_cleartext:
    case OPTION_failover:
        apply_to_refused(policy, option, value);
        break;
    case OPTION_neutral_body:
    case OPTION_fallback:
    case OPTION_base:
    case OPTION_fallback_address:
    case OPTION_error_code:
    case OPTION_match:
    case OPTION_table:
    case OPTION_log:
    case OPTION_deepbind:
    case OPTION_COUNT:
        break; /* texts; and what is of the process, not of a key */
    }
}
