/*
 * load.h - a load of the configuration under way. Private to config/.
 */
#ifndef BREAKER_CONFIG_LOAD_H
#define BREAKER_CONFIG_LOAD_H

#include "config/reader.h"
#include "config/settings.h"

#define LOAD_PROBLEMS_MAX 100 /* then the rest of the file is not read: it is something else */

/* One name of a `fallback` key, wherever that stands. In the configuration's memory. */
struct load_name {
    struct load_name *next;
    struct layer *layer;         /* NULL: the layer was given another list since */
    const struct target *target; /* NULL: [breaker], the environment, --set */
    unsigned line;
    bool left_out; /* the first of its name in the list */
    bool told;     /* by advice.c */
    struct span name;
};

struct load {
    struct config *config;
    config_report *report;
    void *data;
    unsigned problems; /* that leave no configuration */
    unsigned others;   /* that leave out a fallback, and warnings */
    bool cut;          /* the rest of the file was not read */
    struct reader reader;
    struct layer *layer;       /* of the section in hand; NULL: a refused one, told once */
    struct target *target;     /* of the section in hand, if it is one */
    struct fallback *fallback; /* the same */
    struct load_name *names, *names_last; /* in the order that they were read in */
    bool in_section;                      /* false: before the first one */
    bool breaker_seen;
    bool passing; /* told with the problems from now on (config_problem) */
};

void load_problem(struct load *load, const char *file, unsigned line, struct span key,
                  const char *expected, const char *found);

/* No memory for it: a problem of the moment. */
void load_no_memory(struct load *load, const char *file, unsigned line, struct span key);

/* A problem that leaves out a fallback, or a part of one, and the configuration good. */
void load_skip(struct load *load, const char *file, unsigned line, struct span key,
               const char *expected, const char *found);

/* Nothing wrong: in force, but of less use than it looks. */
void load_warn(struct load *load, const char *file, unsigned line, struct span key,
               const char *expected, const char *found);

/* The same of the line of the file that is in hand. */
void load_skip_here(struct load *load, struct span key, const char *expected, const char *found);
void load_problem_here(struct load *load, struct span key, const char *expected, const char *found);

/* Judges one assignment and puts it into `layer`. */
void load_value(struct load *load, struct layer *layer, const char *file, unsigned line,
                struct span key, struct span text);

/* Takes an option out of `layer`, if it is one and there. */
void load_unset(struct load *load, struct layer *layer, struct span key);

/* sections.c: a section's head; SPAN_NONE: one that was refused. */
void sections_begin(struct load *load, struct span name);
/* One assignment in it. */
void sections_set(struct load *load, struct span key, struct span text);
/* At the end of the file: what only then can be judged. */
void sections_check(struct load *load);

/* fallbacks.c: a [fallback NAME] and its keys; `key` is the section's head as problems show it. */
void fallbacks_begin(struct load *load, struct span key, struct span name);
void fallbacks_set(struct load *load, struct span key, struct span text);
/* When everything is read: leaves out those that are not whole. */
void fallbacks_check(struct load *load, const struct config_source *source);
/* Left out ones too; NULL: none. */
struct fallback *fallbacks_find(const struct config *config, struct span name);

/* names.c: takes down the names of a `fallback` key. False: no memory. */
bool names_add(struct load *load, struct layer *layer, unsigned line, struct span names);
/* The layer is given another list. */
void names_forget(struct load *load, const struct layer *layer);
/* When everything is read: takes those out of the lists that lead nowhere, or back. */
void names_check(struct load *load);
/* What a problem of that name has as its file. */
const char *names_file(const struct load *load, const struct load_name *entry);

/* advice.c: when the configuration is settled; changes nothing of it. */
void advice_give(struct load *load);

/* overrides.c: the environment, then --set. */
void overrides_load(struct load *load, const struct config_source *source);

#endif
