/*
 * config.h - breaker.ini, the environment and --set, read into one immutable object.
 *
 * A `struct config` never changes after config_load() and may be read by any thread. A reload
 * builds another; old ones are kept by the caller as long as calls may point into them.
 *
 * Precedence per key: --set, BREAKER_<KEY>, target, [breaker], default. Among targets that match:
 * the host part decides before the model part, literal before glob, longer before shorter, later
 * before earlier. A target that does not set a key leaves it to the next.
 */
#ifndef BREAKER_CONFIG_CONFIG_H
#define BREAKER_CONFIG_CONFIG_H

#include "base/span.h"
#include "core/breaker.h"
#include "http/outcome.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

enum config_match { MATCH_LLM, MATCH_LISTED, MATCH_ALL };
enum config_mode { MODE_ENFORCE, MODE_OBSERVE, MODE_OFF };
enum config_scope { SCOPE_MODEL, SCOPE_HOST };
enum config_exhausted { EXHAUSTED_503, EXHAUSTED_PASS };
enum config_failover { FAILOVER_CONNECT, FAILOVER_OFF };
/* Bits; the last one stands alone. */
enum config_rate_limit { RATE_LIMIT_COOLDOWN = 1, RATE_LIMIT_COUNT = 2, RATE_LIMIT_IGNORE = 4 };
enum config_deepbind { DEEPBIND_MASK, DEEPBIND_KEEP };

/* Who is told to wait, and for how long. */
struct cooldown_policy {
    uint8_t rate_limit; /* enum config_rate_limit */
    bool on_connect;    /* one of `on`: a host that cannot be connected to */
    uint32_t max_ms;    /* of one 429 */
    uint32_t quota_ms;  /* of a spent quota */
    uint32_t brief_ms;  /* after one failure of `on`, whoever asked; 0: not at all */
    struct status_set on;
};

/* Everything that a call's key decides; copied by value, its texts borrowed from the
 * configuration. */
struct policy {
    struct breaker_policy breaker;
    struct outcome_policy outcome; /* with rate_limit = count, 429 is among failure_status */
    struct cooldown_policy cooldown;
    enum config_mode mode;
    enum config_scope scope; /* of the policy of a key H; that of a key M says nothing */
    enum config_exhausted when_exhausted;
    bool lease_of_call; /* probe_lease = call: a probe's lease is its own time-out, if that is
                           longer than breaker.lease_ticks */
    bool should_retry;
    bool allow_fallbacks;
    bool holds_models; /* of a key H, and of the model "-": a target of one of its models does not
                          allow fallbacks, and has a say (scope): whose model is not known goes
                          nowhere */
    bool allow_cleartext;
    enum config_failover failover;
    /* Texts of the configuration, as long as it lives; "" where there is none. */
    const char *fallback;         /* names, by commas and blanks; those of the target that are left
                                     out (config_problem.skipped) are not in it */
    const char *base;             /* CONFIG_NO_BASE: one that is none was written */
    const char *fallback_address; /* HOST:PORT, as a key H spells it but with 443 too */
    const char *error_code;       /* 1..CONFIG_CODE_MAX bytes that JSON takes as they are */
};

#define CONFIG_VALUE_MAX            512 /* bytes of any value as written, with a NUL */
#define CONFIG_CODE_MAX             64
#define CONFIG_LEASE_OF_CALL_MIN_NS UINT64_C(30000000000)

/* Where policy.base stands for one that could not be read: no URL begins with it. */
#define CONFIG_NO_BASE "?"

enum config_option {
#define OPTION(key, type, fallback, min, max, scope, text) OPTION_##key,
#include "config/options.def"
#undef OPTION
    OPTION_COUNT
};

/* Where configuration comes from. All strings borrowed for the duration of config_load(). */
struct config_source {
    const char *path; /* of the ini file, absolute; NULL: none, defaults only */
    const char *set;  /* "key=value" lines separated by '\n' (BREAKER_SET, which --set fills), of
                         which the last of a key counts; or NULL */
    const char *const *environ; /* NULL-terminated "NAME=value"; only BREAKER_<KEY> are looked at */
    /* getenv() for the ${VAR} of fallbacks, so that those which are not set are told of now. NULL:
     * they are looked up when a call is to go there (config/variable.h), as programs may set them
     * for themselves. */
    const char *(*variable)(const char *name);
};

/* One thing that is wrong. Text is complete: what was expected, what was found. */
struct config_problem {
    char file[CONFIG_VALUE_MAX]; /* path, or "BREAKER_X", "BREAKER_SET" too */
    unsigned line;               /* 1-based; 0 = not of a line */
    char key[64];                /* or "[section]" */
    char text[320];
    bool passing; /* of the moment (no descriptors, no memory), not of what is written there */
    bool skipped; /* of a fallback, which is left out: the configuration is good without it */
    bool warning; /* in force as it is written, but of less use than it looks */
};

/* Called once per problem: those of lines in order, then those that only the whole shows. */
typedef void config_report(const struct config_problem *problem, void *data);

struct config;

/*
 * Reads and judges everything; reports every problem, at most 100, and at most 100 `skipped` ones
 * and warnings. Returns the configuration, or NULL when there was any problem but those, or no
 * memory (`report` may be NULL). Most warnings are of the whole, told only of a good one. The file
 * must be regular, belong to root or to the effective user and not be writable by group or others;
 * a missing file at a default place is no problem (path NULL), one that was named is. Free with
 * config_free().
 */
struct config *config_load(const struct config_source *source, config_report *report, void *data);
void config_free(struct config *config); /* accepts NULL */

/* Tells of settings that have no effect, since others say so or say the contrary, as warnings; at
 * most 100. A value that is the default is told of only against another that is not. For `breaker
 * check`: programs that run do not ask. Some 40 KB of stack. */
void config_advise(const struct config *config, config_report *report, void *data);

/* First of $BREAKER_CONFIG (named: returned even if it does not exist), $HOME/.config/breaker/
 * breaker.ini, /etc/breaker/breaker.ini that exists; NULL: none. Never the working directory.
 * *named tells which. The result points into `buf` or is `named_path`. */
const char *config_find(const char *named_path, const char *home, char *buf, size_t size,
                        bool *named);

/* Globals. */
enum config_match config_match(const struct config *config);
enum config_deepbind config_deepbind(const struct config *config);
const char *config_table_path(const struct config *config); /* "" = default */
const char *config_log_path(const struct config *config);   /* "" = none */

/* The policy of key H (model SPAN_NONE: only targets without a model part match) or of key M.
 * `host` is a key H: lower case, port included unless 443. No allocation. Returns true when any
 * target matched (the host is listed). For a model span given, targets without a model part match
 * too. */
bool config_policy(const struct config *config, struct span host, struct span model,
                   struct policy *out);

/* Is any target for this host, with or without a model part? */
bool config_lists_host(const struct config *config, struct span host);

/* For `breaker config` and for the page that documents options. Static storage. */
struct config_option_info {
    const char *key, *type, *fallback, *text;
    bool global;
};
const struct config_option_info *config_option_info(enum config_option option);

/* The effective value as text and its origin ("default", "FILE:LINE", "BREAKER_X", "BREAKER_SET")
 * for a host and model (SPAN_NONE for [breaker] level). Returns false for an option out of range.
 */
struct config_value {
    char text[512];
    char origin[320];
};
bool config_explain(const struct config *config, enum config_option option, struct span host,
                    struct span model, struct config_value *out);

/* The names that were left out (config_problem.skipped) of the `fallback` list which is in force
 * there, as they stand in it, each once; false past the last. */
bool config_left_out(const struct config *config, struct span host, struct span model,
                     unsigned index, struct span *name);

/* Iterates over targets in file order: name and pattern; false past the end. */
struct config_target_info {
    const char *name, *pattern;
    unsigned line;
};
bool config_target(const struct config *config, unsigned index, struct config_target_info *out);
/* Is that one for this host, with or without a model part? */
bool config_target_lists(const struct config *config, unsigned index, struct span host);

/*
 * A [fallback NAME]: a place that calls may go to instead. Only those that are whole are there: one
 * with a problem is left out, told of as `skipped`. Everything lives as long as the configuration.
 */
struct config_fallback {
    const char *name;
    unsigned line;
    unsigned base_line;
    const char *base;   /* as written, without a '/' at its end */
    struct span scheme; /* of the base: "http" or "https", in lower case */
    struct span host;   /* as a URL has it; IPv6 in brackets */
    uint16_t port;      /* 443 or 80 where the base has none */
    struct span path;   /* of the base; empty or "/...", without a '/' at its end */
    bool loopback;      /* the host is "localhost" (or below it), 127.0.0.0/8 or [::1] */
    const char *models; /* `model`: "GLOB:NAME, GLOB:NAME"; "": the model stays. The first colon of
                           an item ends its glob; {model} in NAME is the model asked for */
    unsigned models_line; /* the first; 0: there is none */
    bool has_auth;
    const char *const *headers; /* `auth` first if it is given, then each `header`: "Name: value",
                                   with its ${VAR} unexpanded */
    const unsigned *header_lines;
    unsigned header_count;
};
/* NULL: there is none of that name, or it is left out. */
const struct config_fallback *config_fallback(const struct config *config, struct span name);
/* In file order; NULL past the end. */
const struct config_fallback *config_fallback_at(const struct config *config, unsigned index);
/* Takes the next name off a list of them, separated by commas or blanks; false at its end. Between
 * two commas there is an empty one, which policy.fallback never has. */
bool config_next_name(struct span *names, struct span *name);

/* The same of policy.outcome.neutral_body: commas alone separate, and blanks inside stay. */
#define CONFIG_TEXTS_MAX 16  /* in such a list */
#define CONFIG_TEXT_MAX  128 /* bytes of one */
bool config_next_text(struct span *texts, struct span *text);

/* Glob over spans: '*' any run, '?' one byte; nothing else is special. Linear in practice. */
bool config_glob(struct span pattern, struct span text);

#endif
