/*
 * idle.c - which settings have an effect on no call at all: each is asked of (idle_rules.c) in
 * every view that there is, that of the calls no target is for and that of each target's pattern.
 * It has none if it has none in each view in which it is in force.
 */
#include "config/idle.h"

#include "config/load.h"

#include <stdio.h>

/* What sets options, as an index of `useful`; targets are from OF_TARGETS on, in file order. */
enum { OF_BREAKER, OF_ENVIRONMENT, OF_SET, OF_TARGETS };

struct idle {
    const struct config *config;
    struct value defaults[OPTION_COUNT];
    uint64_t useful[OF_TARGETS + CONFIG_TARGETS_MAX]; /* options, one bit each */
    config_report *report;
    void *data;
    unsigned told;
};

struct winners {
    struct idle_view view;
    int of[OPTION_COUNT]; /* who sets it; -1: the default */
};

static const struct layer *layer_of(const struct config *config, int index)
{
    return index == OF_BREAKER       ? &config->breaker
           : index == OF_ENVIRONMENT ? &config->environment
           : index == OF_SET         ? &config->set
                                     : &config->targets[index - OF_TARGETS]->layer;
}

/* --- patterns ----------------------------------------------------------------------------------
 */

/* Of what one pattern is for, as seen from another. What is for some of it and more CROSSES; so
 * does what may. */
enum relation { APART, SAME, COVERS, WITHIN, CROSSES };

/* All that `inner` matches, if true. A '?' does not stand for a '*'. */
static bool covers(struct span outer, struct span inner)
{
    bool unlike = memchr(outer.ptr, '?', outer.len) && memchr(inner.ptr, '*', inner.len);

    return !unlike && config_glob(outer, inner);
}

/* The bytes before the first '*' or '?', or behind the last. */
static size_t plain_bytes(struct span pattern, bool at_end)
{
    size_t n = 0;

    while (n < pattern.len && !strchr("*?", pattern.ptr[at_end ? pattern.len - 1 - n : n]))
        n++;
    return n;
}

static bool ends_differ(struct span a, struct span b)
{
    size_t front = plain_bytes(a, false), back = plain_bytes(a, true);
    size_t other_front = plain_bytes(b, false), other_back = plain_bytes(b, true);

    if (other_front < front)
        front = other_front;
    if (other_back < back)
        back = other_back;
    return memcmp(a.ptr, b.ptr, front) != 0 ||
           memcmp(a.ptr + a.len - back, b.ptr + b.len - back, back) != 0;
}

/* SPAN_NONE: any. */
static enum relation relation_of_parts(struct span a, struct span b)
{
    if (!a.ptr || !b.ptr)
        return a.ptr ? WITHIN : b.ptr ? COVERS : SAME;
    if (span_eq(a, b))
        return SAME;
    if (covers(a, b))
        return COVERS;
    if (covers(b, a))
        return WITHIN;
    return !config_is_glob(a) || !config_is_glob(b) || ends_differ(a, b) ? APART : CROSSES;
}

static enum relation relation_of(const struct target *a, const struct target *b)
{
    enum relation host = relation_of_parts(target_host(a), target_host(b));

    if (host == APART)
        return APART;
    enum relation model = relation_of_parts(target_model(a), target_model(b));
    if (model == APART || model == SAME || model == host)
        return model == SAME ? host : model;
    return host == SAME ? model : CROSSES;
}

/* --- views -------------------------------------------------------------------------------------
 */

static void put(struct winners *winners, const struct config *config, int index)
{
    const struct layer *layer = layer_of(config, index);

    for (uint64_t left = layer->set; left; left &= left - 1) {
        int option = __builtin_ctzll(left);
        winners->view.wider[option] = winners->view.value[option];
        winners->view.value[option] = &layer->setting[option]->value;
        winners->view.written[option] = true;
        winners->of[option] = index;
    }
}

/* By the file alone. NULL: the calls that no target is for. */
static void see(const struct idle *idle, const struct target *target, struct winners *winners)
{
    const struct config *config = idle->config;

    *winners = (struct winners){.view.config = config};
    for (int option = 0; option < OPTION_COUNT; option++) {
        winners->view.value[option] = winners->view.wider[option] = &idle->defaults[option];
        winners->of[option] = -1;
    }
    put(winners, config, OF_BREAKER);
    for (unsigned i = 0; target && i < config->target_count; i++) {
        const struct target *other = config->ranked[i];
        enum relation relation = relation_of(other, target);
        if (relation == SAME || relation == COVERS)
            put(winners, config, OF_TARGETS + (int)other->order);
        else if (relation == CROSSES)
            winners->view.unsure |= other->layer.set;
    }
}

static void put_overrides(struct winners *winners, const struct config *config)
{
    put(winners, config, OF_ENVIRONMENT);
    put(winners, config, OF_SET);
}

/* scope = host: there is no breaker of a model, and no target of one has a say. */
static bool has_no_say(const struct target *target, const struct winners *winners)
{
    return target && target_model(target).ptr &&
           winners->view.value[OPTION_scope]->number == SCOPE_HOST;
}

static void take_down_useful(struct idle *idle, const struct target *target,
                             const struct winners *winners)
{
    struct idle_reason reason;

    for (int option = 0; option < OPTION_COUNT && !has_no_say(target, winners); option++)
        if (winners->of[option] >= 0 &&
            (!idle_rules_ask(&winners->view, (enum config_option)option, &reason) ||
             (reason.beside & winners->view.unsure)))
            idle->useful[winners->of[option]] |= UINT64_C(1) << option;
}

/* Beside what the environment and --set say, and without: a program may run either way. */
static void look(struct idle *idle, const struct target *target)
{
    struct winners winners;

    see(idle, target, &winners);
    take_down_useful(idle, target, &winners);
    put_overrides(&winners, idle->config);
    take_down_useful(idle, target, &winners);
}

/* --- telling -----------------------------------------------------------------------------------
 */

static void tell(struct idle *idle, const char *file, unsigned line, const char *key,
                 const char *expected, const char *found)
{
    struct config_problem problem = {.line = line, .warning = true};

    if (idle->told++ >= LOAD_PROBLEMS_MAX)
        return;
    snprintf(problem.file, sizeof problem.file, "%s", file);
    snprintf(problem.key, sizeof problem.key, "%s", key);
    snprintf(problem.text, sizeof problem.text, "expected %.150s, found %.150s", expected, found);
    idle->report(&problem, idle->data);
}

static bool is_default(const struct idle *idle, enum config_option option,
                       const struct value *value)
{
    const struct value *other = &idle->defaults[option];
    bool text = options[option].type >= VALUE_NAMES || options[option].type == VALUE_TEXTS ||
                options[option].type == VALUE_PATH;

    return value->number == other->number &&
           memcmp(&value->statuses, &other->statuses, sizeof value->statuses) == 0 &&
           (!text || strcmp(value->text, other->text) == 0);
}

/* The same calls have another's word: since it is the more specific, or the later. */
static void tell_of_winner(struct idle *idle, const struct winners *winners,
                           enum config_option option, unsigned line)
{
    const struct target *winner = idle->config->targets[winners->of[option] - OF_TARGETS];
    char found[120];

    snprintf(found, sizeof found, "[target %s] with it, for all of them, in line %u", winner->name,
             winner->layer.setting[option]->line);
    tell(idle, idle->config->file, line, options[option].key, "a word of this target on some calls",
         found);
}

/* What `index` sets, in the view of its own calls. */
static void tell_of(struct idle *idle, int index, const struct winners *winners)
{
    const struct layer *layer = layer_of(idle->config, index);
    struct idle_reason reason;
    char file[sizeof idle->config->file];

    for (uint64_t left = layer->set & ~idle->useful[index]; left; left &= left - 1) {
        enum config_option option = (enum config_option)__builtin_ctzll(left);
        const struct setting *setting = layer->setting[option];
        if (winners->of[option] >= OF_TARGETS && winners->of[option] != index) {
            tell_of_winner(idle, winners, option, setting->line);
        } else if (winners->of[option] == index &&
                   idle_rules_ask(&winners->view, option, &reason) &&
                   (reason.contrary || !is_default(idle, option, &setting->value))) {
            config_file_of(idle->config, layer, option, file, sizeof file);
            tell(idle, file, setting->line, options[option].key, reason.expected, reason.found);
        }
    }
}

/* Is there a host among its own for which a target says scope = model? */
static bool may_have_a_say(const struct config *config, const struct target *target)
{
    for (unsigned i = 0; i < config->target_count; i++) {
        const struct target *other = config->targets[i];
        if (layer_has(&other->layer, OPTION_scope) &&
            other->layer.setting[OPTION_scope]->value.number == SCOPE_MODEL &&
            relation_of_parts(target_host(other), target_host(target)) != APART)
            return true;
    }
    return false;
}

static void tell_of_target(struct idle *idle, const struct target *target)
{
    char key[CONFIG_NAME_MAX + 10];
    struct winners winners;

    see(idle, target, &winners);
    if (!has_no_say(target, &winners)) {
        tell_of(idle, OF_TARGETS + (int)target->order, &winners);
    } else if (!may_have_a_say(idle->config, target)) {
        snprintf(key, sizeof key, "[target %s]", target->name);
        tell(idle, idle->config->file, target->line, key, "scope = model for its host",
             "host: no target of a model has a say");
    }
}

static struct span glob_of(struct span item)
{
    return span_until(item, ':');
}

/* The first of `model` that fits is taken: what all fits one before is never. Which of its lines
 * that is on is not known any more; the item says it. */
static void tell_of_models(struct idle *idle, const struct config_fallback *fallback)
{
    struct span items = span_str(fallback->models), item, before;
    char expected[120];

    while (config_next_name(&items, &item)) {
        struct span rest = span_str(fallback->models);
        while (config_next_name(&rest, &before) && before.ptr < item.ptr)
            if (covers(glob_of(before), glob_of(item))) {
                snprintf(expected, sizeof expected, "\"%.*s\" before \"%.*s\"",
                         item.len < 40 ? (int)item.len : 40, item.ptr,
                         before.len < 40 ? (int)before.len : 40, before.ptr);
                tell(idle, idle->config->file, fallback->models_line, "model", expected,
                     "it behind: its models are taken there");
                break;
            }
    }
}

void config_advise(const struct config *config, config_report *report, void *data)
{
    struct idle idle = {.config = config, .report = report, .data = data};
    const struct config_fallback *fallback;
    struct winners winners;

    for (int option = 0; option < OPTION_COUNT; option++)
        value_parse(&options[option], span_str(options[option].fallback), &idle.defaults[option]);
    look(&idle, NULL);
    for (unsigned i = 0; i < config->target_count; i++)
        look(&idle, config->targets[i]);
    see(&idle, NULL, &winners);
    tell_of(&idle, OF_BREAKER, &winners);
    for (unsigned i = 0; i < config->target_count; i++)
        tell_of_target(&idle, config->targets[i]);
    for (unsigned i = 0; (fallback = config_fallback_at(config, i)); i++)
        tell_of_models(&idle, fallback);
    see(&idle, NULL, &winners);
    put_overrides(&winners, config);
    tell_of(&idle, OF_ENVIRONMENT, &winners);
    tell_of(&idle, OF_SET, &winners);
}
