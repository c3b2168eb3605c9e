/*
 * settings.h - the inside of a struct config. Private to config/.
 */
#ifndef BREAKER_CONFIG_SETTINGS_H
#define BREAKER_CONFIG_SETTINGS_H

#include "base/arena.h"
#include "config/values.h"

#define CONFIG_TARGETS_MAX   256
#define CONFIG_NAME_MAX      49 /* of a section; inih cuts there (FIELD-NOTES 8) */
#define CONFIG_PATTERN_MAX   256
#define CONFIG_FALLBACKS_MAX 64 /* one bit each (names.c) */
#define CONFIG_HEADERS_MAX   32 /* of a fallback, besides `auth` */
#define CONFIG_MODELS_MAX    4096

struct load_name; /* load.h */

/* One assignment. */
struct setting {
    unsigned line; /* 0 for the environment and --set */
    struct value value;
};

/* One place that may set any option: [breaker], a target, the environment, --set. Holds memory only
 * for what it sets: every process of a preloaded program reads the file. */
struct layer {
    uint64_t set; /* which options it sets, one bit each; the bit is set iff the pointer is */
    struct setting *setting[OPTION_COUNT];
};
_Static_assert(OPTION_COUNT <= 64, "struct layer has a bit for each option");

static inline bool layer_has(const struct layer *layer, enum config_option option)
{
    return layer->set >> option & 1;
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

static inline struct span target_host(const struct target *target)
{
    return span_of(target->pattern, target->host_len);
}

/* SPAN_NONE when the target is for all models. */
static inline struct span target_model(const struct target *target)
{
    return target->pattern[target->host_len] ? span_str(target->pattern + target->host_len + 1)
                                             : SPAN_NONE;
}

struct fallback {
    struct config_fallback seen; /* by the outside; its headers are those below */
    char name[CONFIG_NAME_MAX + 1];
    bool left_out;
    struct span key; /* H of its base */
    char *models;    /* `seen.models`, CONFIG_MODELS_MAX bytes; NULL: no `model` yet */
    /* The first place is `auth`'s. */
    const char *headers[1 + CONFIG_HEADERS_MAX];
    unsigned header_lines[1 + CONFIG_HEADERS_MAX];
};

/* All that it points to is in its own memory, itself included. */
struct config {
    struct arena memory;
    char file[256];
    struct layer breaker, environment, set;
    struct policy base; /* defaults and [breaker], before targets */
    enum config_match match;
    enum config_deepbind deepbind;
    unsigned target_count;
    unsigned target_room;
    struct target **targets; /* file order */
    struct target **ranked;  /* least specific first */
    unsigned fallback_count;
    const struct load_name *names; /* of all lists */
    struct fallback **fallbacks;   /* file order, left out ones too; NULL: there are none */
};

/* Who sets `option` for this host and model: the layer, NULL for the default. */
const struct layer *config_layer(const struct config *config, enum config_option option,
                                 struct span host, struct span model);

/* explain.c: where the layer's word on it stands: the file, "BREAKER_X" or "BREAKER_SET". */
void config_file_of(const struct config *config, const struct layer *layer,
                    enum config_option option, char *buf, size_t size);

/* Has it a '*' or a '?'? */
bool config_is_glob(struct span pattern);

/* The one host of a target, as key H; SPAN_NONE where there is a glob, or no pattern. */
struct span config_literal_host(const struct target *target);

/* apply.c: of an option that is no text. */
void config_apply(struct policy *policy, enum config_option option, const struct value *value);

/* policy.c: what a load computes once, when everything is read: ranked, base, match, deepbind.
 * False: no memory. */
bool config_settle(struct config *config);

#endif
