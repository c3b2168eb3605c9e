/*
 * settings.h - the inside of a struct config. Private to config/.
 */
#ifndef BREAKER_CONFIG_SETTINGS_H
#define BREAKER_CONFIG_SETTINGS_H

#include "config/values.h"

#define CONFIG_TARGETS_MAX 256
#define CONFIG_NAME_MAX    48 /* inih cuts section names at 49 characters (FIELD-NOTES 8) */
#define CONFIG_PATTERN_MAX 256

/* One place that may set any option: [breaker], a target, the environment, --set. */
struct layer {
    uint32_t set[(OPTION_COUNT + 31) / 32]; /* which options it sets, one bit each */
    unsigned line[OPTION_COUNT];            /* where; 0 for the environment and --set */
    struct value value[OPTION_COUNT];
};

static inline bool layer_has(const struct layer *layer, enum config_option option)
{
    return layer->set[option / 32] >> (option % 32) & 1;
}

struct target {
    char name[CONFIG_NAME_MAX + 1];
    char pattern[CONFIG_PATTERN_MAX]; /* host part in lower case, ":443" dropped */
    size_t host_len;                  /* of the host part; pattern[host_len] is '/' or NUL */
    unsigned line;
    unsigned order; /* in the file */
    bool pattern_given;
    struct layer layer;
};

struct config {
    char file[256];
    struct layer breaker, environment, set;
    struct policy base; /* defaults and [breaker], before targets */
    unsigned target_count;
    unsigned target_room;
    struct target **targets; /* file order */
    struct target **ranked;  /* least specific first */
};

/* Who sets `option` for this host and model: the layer, NULL for the default. */
const struct layer *config_layer(const struct config *config, enum config_option option,
                                 struct span host, struct span model);

/* policy.c: orders config->ranked. */
void config_rank(struct config *config);
/* policy.c: makes config->base. */
void config_base(struct config *config);

#endif
