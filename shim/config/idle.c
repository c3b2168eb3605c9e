/*
 * idle.c - which settings have an effect on no call at all: each is asked of (idle_rules.c) in
 * every view that there is, that of the calls no target is for and that of each target's pattern.
 * It has none if it has none in each view in which it is in force.
 */
#include "config/idle.h"

#include "config/load.h"

#include <stdarg.h>
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

static const struct layer *layer_of(const struct config *config, int index)
{
    return index == OF_BREAKER       ? &config->breaker
           : index == OF_ENVIRONMENT ? &config->environment
           : index == OF_SET         ? &config->set
                                     : &config->targets[index - OF_TARGETS]->layer;
}

/* --- patterns ----------------------------------------------------------------------------------
 */

/* All that `inner` matches, if true. A '?' does not stand for a '*'. */
static bool covers(struct span outer, struct span inner)
{
    bool unlike = memchr(outer.ptr, '?', outer.len) && memchr(inner.ptr, '*', inner.len);

    return !unlike && config_glob(outer, inner);
}

/* Of a host or a model; SPAN_NONE: any. */
static bool part_covers(struct span outer, struct span inner)
{
    return !outer.ptr || (inner.ptr && (span_eq(outer, inner) || covers(outer, inner)));
}

/* Do they differ before the first '*' or '?' of either, or behind the last? */
static bool ends_differ(struct span a, struct span b, bool at_end)
{
    for (size_t i = 0; i < a.len && i < b.len; i++) {
        char one = a.ptr[at_end ? a.len - 1 - i : i], other = b.ptr[at_end ? b.len - 1 - i : i];
        if (strchr("*?", one) || strchr("*?", other))
            return false;
        if (one != other)
            return true;
    }
    return false;
}

/* May something match both? */
static bool parts_meet(struct span a, struct span b)
{
    return part_covers(a, b) || part_covers(b, a) ||
           (config_is_glob(a) && config_is_glob(b) && !ends_differ(a, b, false) &&
            !ends_differ(a, b, true));
}

static bool target_covers(const struct target *outer, const struct target *inner)
{
    return part_covers(target_host(outer), target_host(inner)) &&
           part_covers(target_model(outer), target_model(inner));
}

static bool targets_meet(const struct target *a, const struct target *b)
{
    return parts_meet(target_host(a), target_host(b)) &&
           parts_meet(target_model(a), target_model(b));
}

/* --- views -------------------------------------------------------------------------------------
 */

static void put(struct idle_view *view, int index)
{
    const struct layer *layer = layer_of(view->config, index);

    for (uint64_t left = layer->set; left; left &= left - 1) {
        int option = __builtin_ctzll(left);
        view->wider[option] = view->value[option];
        view->value[option] = &layer->setting[option]->value;
        view->setter[option] = index;
    }
}

/* By the file alone. NULL: the calls that no target is for. A narrower target has its own view. */
static void see(const struct idle *idle, const struct target *target, struct idle_view *view)
{
    const struct config *config = idle->config;

    *view = (struct idle_view){.config = config};
    for (int option = 0; option < OPTION_COUNT; option++) {
        view->value[option] = view->wider[option] = &idle->defaults[option];
        view->setter[option] = IDLE_DEFAULT;
    }
    put(view, OF_BREAKER);
    for (unsigned i = 0; target && i < config->target_count; i++) {
        const struct target *other = config->ranked[i];
        if (target_covers(other, target))
            put(view, OF_TARGETS + (int)other->order);
        else if (targets_meet(other, target) && !target_covers(target, other))
            view->unsure |= other->layer.set;
    }
}

static void put_overrides(struct idle_view *view)
{
    put(view, OF_ENVIRONMENT);
    put(view, OF_SET);
}

/* scope = host: there is no breaker of a model, and no target of one has a say. */
static bool has_no_say(const struct target *target, const struct idle_view *view)
{
    return target && target_model(target).ptr && view->value[OPTION_scope]->number == SCOPE_HOST;
}

static void take_down_useful(struct idle *idle, const struct target *target,
                             const struct idle_view *view)
{
    struct idle_reason reason;

    for (int option = 0; option < OPTION_COUNT && !has_no_say(target, view); option++)
        if (view->setter[option] != IDLE_DEFAULT &&
            (!idle_rules_ask(view, (enum config_option)option, &reason) ||
             (reason.beside & view->unsure)))
            idle->useful[view->setter[option]] |= UINT64_C(1) << option;
}

/* Beside what the environment and --set say, and without: a program may run either way. */
static void look(struct idle *idle, const struct target *target)
{
    struct idle_view view;

    see(idle, target, &view);
    take_down_useful(idle, target, &view);
    put_overrides(&view);
    take_down_useful(idle, target, &view);
}

/* --- telling -----------------------------------------------------------------------------------
 */

static void tell(struct idle *idle, const char *file, unsigned line, const char *key,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));
static void tell(struct idle *idle, const char *file, unsigned line, const char *key,
                 const char *format, ...)
{
    struct config_problem problem = {.line = line, .warning = true};
    va_list values;

    if (idle->told++ >= LOAD_PROBLEMS_MAX)
        return;
    snprintf(problem.file, sizeof problem.file, "%s", file);
    snprintf(problem.key, sizeof problem.key, "%s", key);
    va_start(values, format);
    vsnprintf(problem.text, sizeof problem.text, format, values);
    va_end(values);
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
static void tell_of_winner(struct idle *idle, const struct target *winner,
                           enum config_option option, unsigned line)
{
    tell(idle, idle->config->file, line, options[option].key,
         "expected a word of this target on some calls, found [target %s] with it, for all of "
         "them, in line %u",
         winner->name, winner->layer.setting[option]->line);
}

/* What `index` sets, in the view of its own calls. */
static void tell_of(struct idle *idle, int index, const struct idle_view *view)
{
    const struct layer *layer = layer_of(idle->config, index);
    struct idle_reason reason;
    char file[sizeof idle->config->file];

    for (uint64_t left = layer->set & ~idle->useful[index]; left; left &= left - 1) {
        enum config_option option = (enum config_option)__builtin_ctzll(left);
        const struct setting *setting = layer->setting[option];
        int setter = view->setter[option];
        if (setter >= OF_TARGETS && setter != index) {
            tell_of_winner(idle, idle->config->targets[setter - OF_TARGETS], option, setting->line);
        } else if (setter == index && idle_rules_ask(view, option, &reason) &&
                   (reason.contrary || !is_default(idle, option, &setting->value))) {
            config_file_of(idle->config, layer, option, file, sizeof file);
            tell(idle, file, setting->line, options[option].key, "%s", reason.text);
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
            parts_meet(target_host(other), target_host(target)))
            return true;
    }
    return false;
}

static void tell_of_target(struct idle *idle, const struct target *target)
{
    char key[CONFIG_NAME_MAX + 10];
    struct idle_view view;

    see(idle, target, &view);
    if (!has_no_say(target, &view)) {
        tell_of(idle, OF_TARGETS + (int)target->order, &view);
    } else if (!may_have_a_say(idle->config, target)) {
        snprintf(key, sizeof key, "[target %s]", target->name);
        tell(idle, idle->config->file, target->line, key,
             "expected scope = model for its host, found host: no target of a model has a say");
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

    while (config_next_name(&items, &item)) {
        struct span rest = span_str(fallback->models);
        while (config_next_name(&rest, &before) && before.ptr < item.ptr)
            if (covers(glob_of(before), glob_of(item))) {
                tell(idle, idle->config->file, fallback->models_line, "model",
                     "expected \"%.*s\" before \"%.*s\", found it behind: its models are taken "
                     "there",
                     item.len < 40 ? (int)item.len : 40, item.ptr,
                     before.len < 40 ? (int)before.len : 40, before.ptr);
                break;
            }
    }
}

void config_advise(const struct config *config, config_report *report, void *data)
{
    struct idle idle = {.config = config, .report = report, .data = data};
    const struct config_fallback *fallback;
    struct idle_view view;

    for (int option = 0; option < OPTION_COUNT; option++)
        value_parse(&options[option], span_str(options[option].fallback), &idle.defaults[option]);
    look(&idle, NULL);
    for (unsigned i = 0; i < config->target_count; i++)
        look(&idle, config->targets[i]);
    see(&idle, NULL, &view);
    tell_of(&idle, OF_BREAKER, &view);
    for (unsigned i = 0; i < config->target_count; i++)
        tell_of_target(&idle, config->targets[i]);
    for (unsigned i = 0; (fallback = config_fallback_at(config, i)); i++)
        tell_of_models(&idle, fallback);
    see(&idle, NULL, &view);
    put_overrides(&view);
    tell_of(&idle, OF_ENVIRONMENT, &view);
    tell_of(&idle, OF_SET, &view);
}
