/*
 * cli.h - what the subcommands of `breaker` share.
 *
 * A subcommand is one function cmd_<name>() in a file of that name. It prints its result on stdout,
 * its complaints on stderr, and returns an exit code. Nothing here is thread-safe: one command is
 * one process with one thread. Command-line settings are put into the environment first
 * (cli_settings_apply), so that the command, the library under `breaker run`, and every child read
 * them from the same place and by the same rules.
 */
#ifndef BREAKER_CLI_CLI_H
#define BREAKER_CLI_CLI_H

#include "base/span.h"
#include "config/config.h"
#include "core/breaker.h"
#include "http/model_scan.h"
#include "route/route.h"
#include "table/slot.h"
#include "table/table.h"

#include <argp.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#ifndef BREAKER_VERSION
#define BREAKER_VERSION "0.1.0"
#endif

enum cli_exit {
    CLI_OK = 0,
    CLI_WRONG = 1, /* something was found wrong, or could not be done */
    CLI_USAGE = 2, /* the command line is wrong */
    CLI_CANNOT_EXECUTE = 126,
    CLI_NOT_FOUND = 127,
};

/* --- subcommands; argv[0] is "breaker NAME" ----------------------------------------------------
 */

int cmd_run(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_trip(int argc, char **argv);
int cmd_reset(int argc, char **argv);
int cmd_force(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_config(int argc, char **argv);
int cmd_explain(int argc, char **argv);

/* --- cli_text.c: output ------------------------------------------------------------------------
 */

/* Copies `text` with whatever could act on a terminal (control characters, invalid UTF-8, bidi
 * marks) as \xNN; NUL-terminated, cut at `size`. Returns the length. */
size_t cli_text_safe(struct span text, char *buf, size_t size);
/* Columns of a harmless text: its code points. */
size_t cli_text_width(const char *text);
/* "812ms", "29.1s", "12m", "3h", "2d". Returns `buf`. */
const char *cli_text_duration(uint64_t ms, char *buf, size_t size);
/* A JSON string with its quotes. */
void cli_text_json(FILE *out, struct span text);
/* On stdout: "name":"text", or null for SPAN_NONE. */
void cli_text_json_member(const char *name, struct span text);
/* On stdout: one setting with its origin, as a member of an object. */
void cli_text_json_setting(const char *key, const struct config_value *value);
/* "breaker: …" on stderr, one harmless line. */
void cli_text_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A config_report: "PREFIXfile:line: key: text" on stderr; `data` is the prefix, or NULL. */
void cli_text_problem(const struct config_problem *problem, void *data);
/* The same, but as a warning of this command where the configuration is good all the same. */
void cli_text_problem_or_warning(const struct config_problem *problem, void *data);

/* Why a host or a call is covered, or not. */
const char *cli_text_cover(enum route_cover cover);

/* One setting with its origin, as a line behind `indent`. */
void cli_text_setting(const char *indent, const char *key, const struct config_value *value);

/* --- cli_settings.c: --config, --table, --log, --set -------------------------------------------
 */

struct cli_settings {
    const char *config, *table, *log; /* borrowed from argv; NULL: not given */
    char *set;                        /* owned, "key=value\n" per --set; NULL: none */
};

/* An argp child; its input is a struct cli_settings that is all-zero at first. */
extern const struct argp cli_settings_argp;

/* Judges the --set values and puts everything into the environment, paths made absolute, over what
 * an outer `breaker run` set. Frees settings->set. CLI_OK, or the exit code after a complaint. */
int cli_settings_apply(struct cli_settings *settings);

/* "A or B": where a breaker.ini is looked for that nobody names. Returns `buf`. */
#define CLI_PLACES_SIZE (PATH_MAX + 128)
const char *cli_settings_places(char buf[CLI_PLACES_SIZE]);

/* Puts a path into the environment, made absolute: a program that changes its directory must still
 * find the file. True without doing anything for NULL and "". False: errno tells. */
bool cli_settings_set_path(const char *name, const char *path);

/* Reads the configuration as the library does: found by the environment. NULL when there is any
 * problem but those that leave it good; all are told in the order of the lines. `path` (PATH_MAX
 * bytes) becomes the file's, or "". */
struct config *cli_settings_load(char *path, config_report *report, void *data);
/* The same, with the ${VAR} of fallbacks looked up here and now. */
struct config *cli_settings_load_strictly(char *path, config_report *report, void *data);
/* getenv(), as config_source.variable wants it. */
const char *cli_settings_variable(const char *name);

/* config_explain(), with "--set" as the origin of what `own`, the --set of this very command (NULL:
 * none), sets. */
bool cli_settings_explain(const struct config *config, enum config_option option, struct span host,
                          struct span model, const char *own, struct config_value *out);

/* --- cli_sorted.c: problems in the order of the lines -------------------------------------------
 */

/* What was found, kept to be told: some is only seen when all is read. */
struct cli_sorted {
    config_report *report;
    void *data; /* of `report` */
    struct cli_finding *list;
    size_t count, room;
};

/* A config_report; `data`: a struct cli_sorted that is all-zero but for `report` and its data. */
void cli_sorted_keep(const struct config_problem *problem, void *data);
/* File by file, as the first of each came, and the lines of a file in their order. Empties it. */
void cli_sorted_tell(struct cli_sorted *sorted);

/* --- cli_findings.c: what is wrong outside of the configuration's own words ---------------------
 */

/* Why the library is off in what is started here; NULL: it is not. */
const char *cli_disabled(void);

/* Each returns how many problems it told through `report`. */

/* Variables that are nearly ours: no key, nothing that we read. The library ignores them. */
unsigned cli_find_unknown_variables(config_report *report, void *data);

/* A log or a table that programs could not use here and now. Whether one could be made is tried,
 * and none is left behind; of a table with holes it reserves the blocks. */
unsigned cli_find_unusable_files(const struct config *config, config_report *report, void *data);

/* --- cli_table.c: a table that may not be used ---------------------------------------------------
 */

#define CLI_WHY_SIZE (PATH_MAX + 256)

/* Why the table at `path` is none to use, after table_attach() or another said `error`: which rule
 * it breaks and what mends it, as far as that can be seen; else table_strerror()'s words. In `buf`,
 * or static. */
const char *cli_table_why(int error, const char *path, bool named, char buf[CLI_WHY_SIZE]);

/* Copies the directory of an absolute path. */
void cli_path_directory(const char *path, char buf[PATH_MAX]);

/* --- cli_context.c: the configuration and the table in force -----------------------------------
 */

struct cli_context {
    struct config *config; /* never NULL after cli_context_open() */
    bool config_good;      /* false: defaults stand in for a bad configuration */
    bool table_sure;       /* false: a bad configuration may have named another table */
    bool named;            /* the table's path was given, not the default */
    char ini[PATH_MAX];    /* the configuration's file, or "" */
    char path[PATH_MAX];   /* the table's */
    struct table table;    /* after cli_context_attach() */
};

/* Loads the configuration, warning of its problems, and finds the table's path; attaches nothing.
 * CLI_OK, or the exit code after a complaint. */
int cli_context_open(struct cli_context *context);
/* The same for who needs a good one: a bad one's problems are told as `check` tells them, and it is
 * CLI_WRONG. Of a good one there are warnings too. */
int cli_context_open_good(struct cli_context *context);
void cli_context_close(struct cli_context *context); /* accepts a zeroed struct */

/* TABLE_OK, TABLE_E_ABSENT in silence, or another table_error after a complaint. Creates the table
 * only for `create`. */
int cli_context_attach(struct cli_context *context, bool create);

/* The policy of a printable key. */
void cli_context_policy(const struct cli_context *context, struct span key, struct policy *out);

/* --- cli_row.c: the state of one breaker ------------------------------------------------------
 */

/* Where calls went instead, as a slot says it. */
struct cli_destination {
    uint64_t identity; /* 0: none */
    uint64_t count;
};

/* Read once, so that all of it is of one moment. */
struct cli_row {
    uint64_t word;
    struct breaker_effective effective;
    bool observed; /* mode = observe: what it refuses passes */
    uint64_t retry_in_ms;
    bool rated; /* failure_rate is set */
    struct rate_sum rate;
    uint32_t window_ms;
    unsigned parked;    /* credentials that are told to wait */
    uint64_t parked_ms; /* the longest of them */
    bool parks_all;     /* every credential is */
    uint64_t opened;
    struct slot_totals totals;
    struct cli_destination to[TABLE_STAT_SHARDS];
    uint64_t elsewhere; /* of the rerouted calls those that are in no `to` */
    bool failed;        /* last_failure and its age are known */
    unsigned cause, status;
    uint64_t age_ms;
};

/* `now`: CLOCK_BOOTTIME ns. Without a slot (NULL): a breaker that no call has met. Writes nothing
 * to the slot. */
void cli_row_read(const struct slot *slot, const struct policy *policy, uint64_t now,
                  struct cli_row *row);
/* Open or half-open, and the open time or the lease is over: the next call is the probe. */
bool cli_row_is_due(const struct cli_row *row);
/* "status 503, 812ms ago", or "-". Returns `buf`. */
const char *cli_row_failure(const struct cli_row *row, char *buf, size_t size);

/* The key of a destination, as the breakers of the table are shown, or "#<16 hex>" where it has
 * none there. Returns `buf`. */
const char *cli_row_destination(const struct table *table, const struct cli_destination *to,
                                char buf[TABLE_KEY_TEXT_SIZE]);

/* "10/20 in 60s": failures, calls, window. Returns `buf`. */
const char *cli_row_rate(const struct cli_row *row, char *buf, size_t size);

/* Whom its cool-downs keep waiting: "all" (credentials), or how many. Returns `buf`. */
const char *cli_row_parked(const struct cli_row *row, char *buf, size_t size);

/* Members of a JSON object, on stdout: key, level, host, model; state to rerouted_to. `table`: the
 * row's. */
void cli_row_json_key(struct span key);
void cli_row_json_state(const struct table *table, const struct cli_row *row);

/* --- cli_key.c: keys as people type them -------------------------------------------------------
 */

#define CLI_HOST_MAX ROUTE_HOST_MAX /* as long as calls can have */
#define CLI_KEY_SIZE (CLI_HOST_MAX + 1 + MODEL_MAX + 1)

/* HOST[:PORT][/MODEL]: lower-cases the host, drops :443, keeps the model. NUL-terminated; false:
 * this cannot be a key. */
bool cli_key_normalise(struct span text, char *buf, size_t size);

/* Complains of a host of `len` bytes with its port, if that is too long. */
bool cli_key_complain_long_host(size_t len);
/* Complains of what cli_key_normalise() refuses. */
void cli_key_complain_form(struct span text);

/* The two parts of a key; the model is SPAN_NONE for a host's. */
void cli_key_split(struct span key, struct span *host, struct span *model);

/* The slot of a key as typed or as shown by status; NULL: unknown. */
struct slot *cli_key_find(const struct table *table, struct span text);

/* Complains that `text` is unknown, naming the nearest keys of the table (NULL: there is none).
 * `hint`: --create would make it. */
void cli_key_complain(const struct table *table, struct span text, bool hint);

/* --- cli_refusing.c ----------------------------------------------------------------------------
 */

/* On stdout: which breakers refuse calls that the breaker `key` lets pass, those of a host's models
 * or that of a model's host; nothing where there is none. The table is attached. */
void cli_refusing_tell(const struct cli_context *context, struct span key);

/* --- cli_operate.c: what trip, force and reset do ----------------------------------------------
 */

enum cli_operation { CLI_TRIP, CLI_FORCE_OPEN, CLI_FORCE_CLOSED, CLI_RESET };

/* Applies it to one key, tells what it did, logs it. `create`: an unknown key is claimed. Returns
 * the exit code. */
int cli_operate(enum cli_operation operation, const char *key, bool create);

/* --- cli_preload.c: LD_PRELOAD -----------------------------------------------------------------
 */

/* Finds libbreaker.so: $BREAKER_LIB, beside this program, or below its prefix; with a literal $LIB
 * where the loader's own directory is meant. False after a complaint. */
bool cli_preload_library(char *buf, size_t size);

/* LD_PRELOAD with `library` first, behind a libasan only, and everything of `old` (may be NULL) but
 * other mentions of libbreaker.so. malloc'ed; NULL: no memory. */
char *cli_preload_value(const char *library, const char *old);

#endif
