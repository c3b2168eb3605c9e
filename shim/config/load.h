/*
 * load.h - a load of the configuration under way. Private to config/.
 */
#ifndef BREAKER_CONFIG_LOAD_H
#define BREAKER_CONFIG_LOAD_H

#include "config/reader.h"
#include "config/settings.h"

#define LOAD_PROBLEMS_MAX 100 /* then the rest of the file is not read: it is something else */

struct load {
    struct config *config;
    config_report *report;
    void *data;
    unsigned problems;
    struct reader reader;
    struct layer *layer;   /* of the section in hand; NULL: a refused one, told once */
    struct target *target; /* of the section in hand, if it is one */
    bool in_section;       /* false: before the first one */
    bool breaker_seen;
    bool passing; /* told with the problems from now on (config_problem) */
};

void load_problem(struct load *load, const char *file, unsigned line, struct span key,
                  const char *expected, const char *found);

/* No memory for it: a problem of the moment. */
void load_no_memory(struct load *load, const char *file, unsigned line, struct span key);

/* The same of the line of the file that is in hand. */
void load_problem_here(struct load *load, struct span key, const char *expected, const char *found);

/* Judges one assignment and puts it into `layer`. */
void load_value(struct load *load, struct layer *layer, const char *file, unsigned line,
                struct span key, struct span text);

/* Takes an option out of `layer`, if it is one and there. */
void load_unset(struct layer *layer, struct span key);

/* sections.c: a section's head; SPAN_NONE: one that was refused. */
void sections_begin(struct load *load, struct span name);
/* One assignment in it. */
void sections_set(struct load *load, struct span key, struct span text);
/* At the end of the file: what only then can be judged. */
void sections_check(struct load *load);

/* overrides.c: the environment, then --set. */
void overrides_load(struct load *load, const struct config_source *source);

#endif
