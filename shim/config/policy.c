/*
 * policy.c - which value is in force for a host and a model.
 */
#include "config/settings.h"

bool config_glob(struct span pattern, struct span text)
{
    size_t p = 0, t = 0, star = SIZE_MAX, mark = 0;

    while (t < text.len) {
        if (p < pattern.len && pattern.ptr[p] == '*') {
            star = p++;
            mark = t;
        } else if (p < pattern.len && (pattern.ptr[p] == '?' || pattern.ptr[p] == text.ptr[t])) {
            p++;
            t++;
        } else if (star != SIZE_MAX) {
            p = star + 1; /* the last star takes one byte more */
            t = ++mark;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.ptr[p] == '*')
        p++;
    return p == pattern.len;
}

static struct span host_part(const struct target *target)
{
    return span_of(target->pattern, target->host_len);
}

/* SPAN_NONE when the target is for all models. */
static struct span model_part(const struct target *target)
{
    return target->pattern[target->host_len] ? span_str(target->pattern + target->host_len + 1)
                                             : SPAN_NONE;
}

static bool is_glob(struct span pattern)
{
    return pattern.len &&
           (memchr(pattern.ptr, '*', pattern.len) || memchr(pattern.ptr, '?', pattern.len));
}

struct span config_literal_host(const struct target *target)
{
    struct span host = host_part(target);

    return host.len == 0 || is_glob(host) ? SPAN_NONE : host;
}

/* Positive: `a` is more specific. Literal before glob, longer before shorter. */
static int compare_parts(struct span a, struct span b)
{
    if (!a.ptr || !b.ptr)
        return (a.ptr != NULL) - (b.ptr != NULL);
    if (is_glob(a) != is_glob(b))
        return is_glob(b) - is_glob(a);
    return (a.len > b.len) - (a.len < b.len);
}

static int compare_targets(const struct target *a, const struct target *b)
{
    int order = compare_parts(host_part(a), host_part(b));

    if (order == 0)
        order = compare_parts(model_part(a), model_part(b));
    return order ? order : (a->order > b->order) - (a->order < b->order);
}

/* By insertion, its place found by halving: qsort takes memory from malloc (base/arena.h). */
static bool rank(struct config *config)
{
    config->ranked =
        arena_alloc(&config->memory, (config->target_count + 1) * sizeof(*config->ranked));
    if (!config->ranked)
        return false;
    for (unsigned count = 0; count < config->target_count; count++) {
        struct target *target = config->targets[count];
        unsigned low = 0, high = count;
        while (low < high) {
            unsigned middle = (low + high) / 2;
            if (compare_targets(config->ranked[middle], target) < 0)
                low = middle + 1;
            else
                high = middle;
        }
        memmove(config->ranked + low + 1, config->ranked + low,
                (count - low) * sizeof(*config->ranked));
        config->ranked[low] = target;
    }
    return true;
}

static bool target_matches(const struct target *target, struct span host, struct span model)
{
    struct span wanted = model_part(target);

    return config_glob(host_part(target), host) &&
           (!wanted.ptr || (model.ptr && config_glob(wanted, model)));
}

const struct layer *config_layer(const struct config *config, enum config_option option,
                                 struct span host, struct span model)
{
    if (layer_has(&config->set, option))
        return &config->set;
    if (layer_has(&config->environment, option))
        return &config->environment;
    for (unsigned i = host.ptr ? config->target_count : 0; i > 0; i--) {
        const struct target *target = config->ranked[i - 1];
        if (layer_has(&target->layer, option) && target_matches(target, host, model))
            return &target->layer;
    }
    return layer_has(&config->breaker, option) ? &config->breaker : NULL;
}

/* --- policies ----------------------------------------------------------------------------------
 */

/* The default of an option, parsed: a policy is built from values only. */
static struct value default_value(enum config_option option)
{
    struct value value = {0};

    value_parse(&options[option], span_str(options[option].fallback), &value);
    return value;
}

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
    case OPTION_probe_lease:
        breaker->lease_ticks = breaker_ticks_of(value->number);
        break;
    default:
        break; /* apply() knows which are the breaker's */
    }
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
    case OPTION_failure_status:
        outcome->failure_status = value->statuses;
        break;
    case OPTION_neutral_status:
        outcome->neutral_status = value->statuses;
        break;
    default:
        break; /* apply() knows which are the outcome's */
    }
}

static void apply(struct policy *policy, enum config_option option, const struct value *value)
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
    case OPTION_probe_lease:
        apply_to_breaker(&policy->breaker, option, value);
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
    case OPTION_failure_status:
    case OPTION_neutral_status:
        apply_to_outcome(&policy->outcome, option, value);
        break;
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
    case OPTION_fallback:
    case OPTION_base:
    case OPTION_fallback_address:
        break; /* texts */
    case OPTION_match:
    case OPTION_table:
    case OPTION_log:
    case OPTION_deepbind:
    case OPTION_COUNT:
        break; /* of the process, not of a key */
    }
}

/* The policy borrows `text`. False: the option is none of those that are texts. */
static bool apply_text(struct policy *policy, enum config_option option, const char *text)
{
    const char **place = option == OPTION_fallback           ? &policy->fallback
                         : option == OPTION_base             ? &policy->base
                         : option == OPTION_fallback_address ? &policy->fallback_address
                                                             : NULL;

    if (place)
        *place = text;
    return place != NULL;
}

static void apply_layer(struct policy *policy, const struct layer *layer)
{
    for (uint64_t left = layer->set; left; left &= left - 1) {
        enum config_option option = (enum config_option)__builtin_ctzll(left);
        const struct value *value = &layer->setting[option]->value;
        if (!apply_text(policy, option, value->text))
            apply(policy, option, value);
    }
}

/* Is it for a model of the host, and a hard stop? */
static bool is_held_model(const struct target *target, struct span host)
{
    return layer_has(&target->layer, OPTION_allow_fallbacks) &&
           target->layer.setting[OPTION_allow_fallbacks]->value.number == 0 &&
           model_part(target).ptr && config_glob(host_part(target), host);
}

bool config_policy(const struct config *config, struct span host, struct span model,
                   struct policy *out)
{
    bool listed = false;

    *out = config->base;
    for (unsigned i = 0; i < config->target_count; i++) {
        const struct target *target = config->ranked[i];
        if (target_matches(target, host, model)) {
            apply_layer(out, &target->layer);
            listed = true;
        } else if (!model.ptr || span_eq(model, SPAN_LIT("-"))) {
            out->holds_models |= is_held_model(target, host);
        }
    }
    apply_layer(out, &config->environment);
    apply_layer(out, &config->set);
    out->holds_models &= out->scope == SCOPE_MODEL &&
                         !layer_has(&config->environment, OPTION_allow_fallbacks) &&
                         !layer_has(&config->set, OPTION_allow_fallbacks);
    /* A probe keeps its place for the longer of the two (DESIGN, State machine). */
    if (out->breaker.lease_ticks < out->breaker.open_ticks)
        out->breaker.lease_ticks = out->breaker.open_ticks;
    return listed;
}

bool config_target_lists(const struct config *config, unsigned index, struct span host)
{
    return index < config->target_count && config_glob(host_part(config->targets[index]), host);
}

bool config_lists_host(const struct config *config, struct span host)
{
    for (unsigned i = 0; i < config->target_count; i++)
        if (config_target_lists(config, i, host))
            return true;
    return false;
}

/* --- of the process ----------------------------------------------------------------------------
 */

static uint64_t choice_of(const struct config *config, enum config_option option)
{
    const struct layer *layer = config_layer(config, option, SPAN_NONE, SPAN_NONE);

    return layer ? layer->setting[option]->value.number : default_value(option).number;
}

static const char *path_of(const struct config *config, enum config_option option)
{
    const struct layer *layer = config_layer(config, option, SPAN_NONE, SPAN_NONE);

    return layer ? layer->setting[option]->value.text : options[option].fallback;
}

bool config_settle(struct config *config)
{
    if (!rank(config))
        return false;
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        enum config_option option = (enum config_option)i;
        if (apply_text(&config->base, option, options[option].fallback))
            continue;
        struct value value = default_value(option);
        apply(&config->base, option, &value);
    }
    apply_layer(&config->base, &config->breaker);
    config->match = (enum config_match)choice_of(config, OPTION_match);
    config->deepbind = (enum config_deepbind)choice_of(config, OPTION_deepbind);
    return true;
}

enum config_match config_match(const struct config *config)
{
    return config->match;
}

enum config_deepbind config_deepbind(const struct config *config)
{
    return config->deepbind;
}

const char *config_table_path(const struct config *config)
{
    return path_of(config, OPTION_table);
}

const char *config_log_path(const struct config *config)
{
    return path_of(config, OPTION_log);
}
