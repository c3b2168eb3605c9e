/*
 * load.h - a load of the configuration under way. Private to config/.
 */
#ifndef BREAKER_CONFIG_LOAD_H
#define BREAKER_CONFIG_LOAD_H

#include "config/reader.h"
#include "config/settings.h"

/* A load under way. */
struct load {
    struct config *config;
    config_report *report;
    void *data;
    unsigned problems;
    struct reader reader;
    struct layer *layer;   /* of the section in hand; NULL: an unknown one, told once */
    struct target *target; /* of the section in hand, if it is one */
    char section[CONFIG_NAME_MAX + 16];
    bool in_section;
};

void load_problem(struct load *load, const char *file, unsigned line, struct span key,
                  const char *expected, const char *found);

/* Judges one assignment and puts it into `layer`. */
void load_value(struct load *load, struct layer *layer, const char *file, unsigned line,
                struct span key, struct span text);

/* overrides.c: the environment, then --set. */
void load_overrides(struct load *load, const struct config_source *source);

#endif
