/*
 * load.c - problems and assignments of a load, wherever they come from.
 */
#include "config/load.h"

#include <stdio.h>

void load_problem(struct load *load, const char *file, unsigned line, struct span key,
                  const char *expected, const char *found)
{
    struct config_problem problem = {.line = line, .passing = load->passing};

    load->problems++;
    if (!load->report || load->problems >= LOAD_PROBLEMS_MAX)
        load->reader.text.len = 0; /* nobody wants the rest */
    if (!load->report || load->problems > LOAD_PROBLEMS_MAX)
        return;
    snprintf(problem.file, sizeof problem.file, "%s", file);
    snprintf(problem.key, sizeof problem.key, "%.*s", (int)(key.len < 60 ? key.len : 60), key.ptr);
    snprintf(problem.text, sizeof problem.text, "expected %.180s, found %.120s", expected, found);
    load->report(&problem, load->data);
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

static void problem_of_value(struct load *load, const struct option *option, const char *file,
                             unsigned line, struct span text)
{
    char expected[200], found[120];
    bool bounded = option->min != option->max && option->type != VALUE_STATUS;

    snprintf(expected, sizeof expected, "%s%s%s", option->expected, bounded ? " " : "",
             bounded ? option->bounds : "");
    snprintf(found, sizeof found, "\"%.*s\"", (int)(text.len < 100 ? text.len : 100), text.ptr);
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
    layer->set |= UINT32_C(1) << option;
    return true;
}

void load_unset(struct layer *layer, struct span key)
{
    enum config_option option = option_find(key);

    if (option == OPTION_COUNT)
        return;
    layer->setting[option] = NULL;
    layer->set &= ~(UINT32_C(1) << option);
}

void load_value(struct load *load, struct layer *layer, const char *file, unsigned line,
                struct span key, struct span text)
{
    enum config_option option = option_find(key);
    struct value value;

    if (option == OPTION_COUNT) {
        char expected[80];
        snprintf(expected, sizeof expected, "a key such as %s", option_nearest(key));
        load_problem(load, file, line, key, expected, "an unknown key");
        return;
    }
    const struct option *info = &options[option];
    if (load->target && info->global) {
        load_problem(load, file, line, key, "a key that a target may set",
                     "one for [breaker] only");
    } else if (layer_has(layer, option) && info->type != VALUE_STATUS) {
        load_problem(load, file, line, key, "each key once", "it again");
    } else if (layer_has(layer, option)) {
        if (!value_append(info, text, &layer->setting[option]->value))
            problem_of_value(load, info, file, line, text);
    } else if (!value_parse(info, text, &value)) {
        problem_of_value(load, info, file, line, text);
    } else if (!put(load, layer, option, line, &value)) {
        load_no_memory(load, file, line, key);
    }
}
