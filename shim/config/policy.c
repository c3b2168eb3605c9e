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

bool config_is_glob(struct span pattern)
{
    return pattern.len &&
           (memchr(pattern.ptr, '*', pattern.len) || memchr(pattern.ptr, '?', pattern.len));
}

struct span config_literal_host(const struct target *target)
{
    struct span host = target_host(target);

    return host.len == 0 || config_is_glob(host) ? SPAN_NONE : host;
}

/* Positive: `a` is more specific. Literal before glob, longer before shorter. */
static int compare_parts(struct span a, struct span b)
{
    if (!a.ptr || !b.ptr)
        return (a.ptr != NULL) - (b.ptr != NULL);
    if (config_is_glob(a) != config_is_glob(b))
        return config_is_glob(b) - config_is_glob(a);
    return (a.len > b.len) - (a.len < b.len);
}

static int compare_targets(const struct target *a, const struct target *b)
{
    int order = compare_parts(target_host(a), target_host(b));

    if (order == 0)
        order = compare_parts(target_model(a), target_model(b));
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
    struct span wanted = target_model(target);

    return config_glob(target_host(target), host) &&
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

/* The policy borrows `text`. False: the option is none of those that are texts. */
static bool apply_text(struct policy *policy, enum config_option option, const char *text)
{
    const char **place = option == OPTION_fallback           ? &policy->fallback
                         : option == OPTION_base             ? &policy->base
                         : option == OPTION_fallback_address ? &policy->fallback_address
                         : option == OPTION_neutral_body     ? &policy->outcome.neutral_body
                         : option == OPTION_error_code       ? &policy->error_code
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
            config_apply(policy, option, value);
    }
}

/* Is it for a model of the host, and a hard stop? */
static bool is_held_model(const struct target *target, struct span host)
{
    return layer_has(&target->layer, OPTION_allow_fallbacks) &&
           target->layer.setting[OPTION_allow_fallbacks]->value.number == 0 &&
           target_model(target).ptr && config_glob(target_host(target), host);
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
    if (out->cooldown.rate_limit & RATE_LIMIT_COUNT)
        status_set_add(&out->outcome.failure_status, 429);
    /* A probe keeps its place for the longer of the two (DESIGN, State machine). */
    if (out->breaker.lease_ticks < out->breaker.open_ticks)
        out->breaker.lease_ticks = out->breaker.open_ticks;
    return listed;
}

bool config_target_lists(const struct config *config, unsigned index, struct span host)
{
    return index < config->target_count && config_glob(target_host(config->targets[index]), host);
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
        config_apply(&config->base, option, &value);
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
