/*
 * load.c - problems and assignments of a load, wherever they come from.
 */
#include "config/load.h"

#include "config/place.h"

#include <stdio.h>

/* Tells of it, unless `count` is beyond what anybody wants to read. */
static void tell(struct load *load, struct config_problem *problem, unsigned count,
                 struct span place, const char *expected, const char *found)
{
    if (!load->report || count > LOAD_PROBLEMS_MAX)
        return;
    if (place.len == 0) /* nothing before the '=' */
        place = SPAN_LIT("line");
    snprintf(problem->key, sizeof problem->key, "%.*s", (int)(place.len < 60 ? place.len : 60),
             place.ptr);
    snprintf(problem->text, sizeof problem->text, "expected %.180s, found %.120s", expected, found);
    load->report(problem, load->data);
}

void load_problem(struct load *load, const char *file, unsigned line, struct span key,
                  const char *expected, const char *found)
{
    struct config_problem problem = {.line = line, .passing = load->passing};

    load->problems++;
    if (!load->report || load->problems >= LOAD_PROBLEMS_MAX) {
        load->reader.text.len = 0; /* nobody wants the rest */
        load->cut = true;
    }
    snprintf(problem.file, sizeof problem.file, "%s", file);
    tell(load, &problem, load->problems, key, expected, found);
}

void load_skip(struct load *load, const char *file, unsigned line, struct span key,
               const char *expected, const char *found)
{
    struct config_problem problem = {.line = line, .skipped = true};

    snprintf(problem.file, sizeof problem.file, "%s", file);
    tell(load, &problem, ++load->others, key, expected, found);
}

void load_warn(struct load *load, const char *file, unsigned line, struct span key,
               const char *expected, const char *found)
{
    struct config_problem problem = {.line = line, .warning = true};

    snprintf(problem.file, sizeof problem.file, "%s", file);
    tell(load, &problem, ++load->others, key, expected, found);
}

void load_no_memory(struct load *load, const char *file, unsigned line, struct span key)
{
    load->passing = true;
    load_problem(load, file, line, key, "memory", "none");
    load->passing = false;
}

void load_problem_here(struct load *load, struct span key, const char *expected, const char *found)
{
    load_problem(load, load->config->file, load->reader.line, key, expected, found);
}

void load_skip_here(struct load *load, struct span key, const char *expected, const char *found)
{
    load_skip(load, load->config->file, load->reader.line, key, expected, found);
}

static void quote(struct span text, char *buf, size_t size)
{
    snprintf(buf, size, "\"%.*s%s\"", (int)(text.len < 100 ? text.len : 100), text.ptr,
             text.len > 100 ? "..." : "");
}

static void problem_of_value(struct load *load, const struct option *option, const char *file,
                             unsigned line, struct span text)
{
    char expected[200], found[120];
    bool bounded = option->min != option->max && !value_has_statuses(option);

    if (text.len < CONFIG_VALUE_MAX) {
        snprintf(expected, sizeof expected, "%s%s%s", option->expected, bounded ? " " : "",
                 bounded ? option->bounds : "");
        quote(text, found, sizeof found);
    } else {
        snprintf(expected, sizeof expected, "at most %d bytes", CONFIG_VALUE_MAX - 1);
        snprintf(found, sizeof found, "%zu", text.len);
    }
    load_problem(load, file, line, span_str(option->key), expected, found);
}

/* The first assignment of an option in a layer. False: no memory. */
static bool put(struct load *load, struct layer *layer, enum config_option option, unsigned line,
                const struct value *value)
{
    struct setting *setting = arena_alloc(&load->config->memory, sizeof *setting);

    if (!setting)
        return false;
    *setting = (struct setting){line, *value};
    layer->setting[option] = setting;
    layer->set |= UINT64_C(1) << option;
    return true;
}

void load_unset(struct load *load, struct layer *layer, struct span key)
{
    enum config_option option = option_find(key);

    if (option == OPTION_COUNT)
        return;
    layer->setting[option] = NULL;
    layer->set &= ~(UINT64_C(1) << option);
    if (option == OPTION_fallback)
        names_forget(load, layer);
}

/* A base or an address that is none costs the fallbacks that would need it, not the configuration.
 * What stands for it keeps those of wider targets out. */
static bool stand_in(struct load *load, const struct option *option, const char *file,
                     unsigned line, struct span text, struct value *value)
{
    char found[120];

    if (option->type == VALUE_BASE)
        place_base_describe(text, found, sizeof found);
    else if (option->type == VALUE_ADDRESS)
        quote(text, found, sizeof found);
    else
        return false;
    load_skip(load, file, line, span_str(option->key), option->expected, found);
    *value = (struct value){.text = ""};
    if (option->type == VALUE_BASE)
        strcpy(value->text, CONFIG_NO_BASE);
    return true;
}

/* Good values of which something is to be told or kept besides. False: no memory. */
static bool note_value(struct load *load, struct layer *layer, enum config_option option,
                       const char *file, unsigned line, struct span text)
{
    char found[120];

    if (option == OPTION_fallback)
        return names_add(load, layer, line, text);
    if (option == OPTION_fallback_address && text.len > 0 && text.ptr[0] == '[') {
        quote(text, found, sizeof found);
        load_warn(load, file, line, span_str(options[option].key),
                  "a name or an IPv4 address, for sockets of IPv4 too", found);
    }
    return true;
}

void load_value(struct load *load, struct layer *layer, const char *file, unsigned line,
                struct span key, struct span text)
{
    enum config_option option = option_find(key);
    struct value value;

    if (option == OPTION_COUNT) {
        char expected[80];
        const char *nearest = option_nearest(key);
        snprintf(expected, sizeof expected, "a key %s%s",
                 nearest ? "such as " : "that `breaker config` shows", nearest ? nearest : "");
        load_problem(load, file, line, key, expected, "an unknown key");
        return;
    }
    const struct option *info = &options[option];
    bool again = layer_has(layer, option);
    if (load->target && info->global) {
        load_problem(load, file, line, key, "a key that a target may set",
                     "one for [breaker] only");
    } else if (again && !value_is_list(info)) {
        load_problem(load, file, line, key, "each key once", "it again");
    } else if (again ? !value_append(info, text, &layer->setting[option]->value)
                     : !value_parse(info, text, &value) &&
                           !stand_in(load, info, file, line, text, &value)) {
        problem_of_value(load, info, file, line, text);
    } else if ((!again && !put(load, layer, option, line, &value)) ||
               !note_value(load, layer, option, file, line, text)) {
        load_no_memory(load, file, line, key);
    }
}
