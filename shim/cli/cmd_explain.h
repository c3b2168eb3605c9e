/*
 * cmd_explain.h - what `breaker explain` finds out about one call, and how it is shown. Private to
 * the files of that command.
 *
 * A call has a chain of places that it could go to, tried in order: today its own host alone.
 */
#ifndef BREAKER_CLI_CMD_EXPLAIN_H
#define BREAKER_CLI_CMD_EXPLAIN_H

#include "cli/cli.h"

#include "http/url.h"

#define EXPLAIN_CHAIN_MAX   1
#define EXPLAIN_REMARKS_MAX 4
#define EXPLAIN_WHY_SIZE    (2 * CLI_KEY_SIZE + 256)
#define EXPLAIN_TEXT_SIZE   (EXPLAIN_WHY_SIZE + CLI_KEY_SIZE + 256)

/* The call as it was asked for; all borrowed. */
struct explain_question {
    const char *url, *method, *model, *body; /* NULL: not given; `body` "-": standard input */
};

enum explain_action {
    EXPLAIN_GOES,
    EXPLAIN_PROBES,    /* goes, and holds a grant */
    EXPLAIN_UNCOUNTED, /* goes, and nothing of it is counted */
    EXPLAIN_REFUSED,
};

enum explain_reason {
    /* goes */
    EXPLAIN_CLOSED,
    EXPLAIN_DEGRADED,
    EXPLAIN_FORCED_CLOSED,
    EXPLAIN_PASS, /* a breaker refuses, and when_exhausted = pass */
    /* probes */
    EXPLAIN_DUE,
    EXPLAIN_PLACE_FREE, /* half-open, and a grant is to be had */
    /* refused */
    EXPLAIN_OPEN,
    EXPLAIN_FORCED_OPEN,
    EXPLAIN_PROBE_UNDER_WAY,
    /* uncounted */
    EXPLAIN_DISABLED,
    EXPLAIN_SCHEME,
    EXPLAIN_NOT_LISTED,
    EXPLAIN_NO_LLM_CALL,
    EXPLAIN_MODE_OFF,
    EXPLAIN_TABLE_REFUSED,
};

/* One of the two breakers of a call. */
struct explain_side {
    bool exists; /* the call has it, and its key is known */
    bool seen;   /* it has a slot in the table */
    char key[CLI_KEY_SIZE];
    struct policy policy;
    struct cli_row row;
    struct breaker_admission admission;
};

/* A place that the call could go to, and what its breakers say. */
struct explain_stop {
    struct explain_side host, model;
    enum explain_action action;
    enum explain_reason reason;
    const struct explain_side *by; /* whose word it is; NULL: of no one side */
    bool waits;                    /* refused: with a Retry-After of so many seconds */
    unsigned wait_min, wait_max;
};

enum explain_place {
    EXPLAIN_NONE,   /* no LLM shape */
    EXPLAIN_PATH,   /* of the URL */
    EXPLAIN_MEMBER, /* of a JSON body */
    EXPLAIN_FIELD,  /* of a form */
};

struct explanation {
    struct span method;
    bool method_assumed;
    struct url url;
    struct route_key key;
    bool is_http; /* a scheme that is covered at all */
    bool known_host;
    bool covered;           /* the rules below take it, no mode = off, not disabled */
    enum route_cover cover; /* by URL and method alone */
    bool at_connect;        /* already the connect is judged */
    const char *disabled;   /* why the library is off; NULL: it is not */
    enum explain_place place;
    bool host_alone;  /* scope = host: the model has no breaker */
    bool model_known; /* false: it is in a body that was not shown */
    char model[MODEL_MAX + 1];
    int table_error; /* of the attach */
    struct explain_stop chain[EXPLAIN_CHAIN_MAX];
    unsigned chain_len;
    char why[EXPLAIN_WHY_SIZE];
    char verdict[EXPLAIN_TEXT_SIZE];          /* what would happen, and why */
    const char *remarks[EXPLAIN_REMARKS_MAX]; /* static storage */
    unsigned remark_count;
};

/* Who sees the call, and what it meets there. Texts in static storage or in `verdict`. */
struct explain_layer {
    const char *name, *sees, *now;
};
#define EXPLAIN_LAYERS 3

/* --- cmd_explain_facts.c -----------------------------------------------------------------------
 */

/* URL, method, coverage, model. CLI_OK, or the exit code after a complaint. *out is all-zero. */
int explain_facts(const struct cli_context *context, const struct explain_question *question,
                  struct explanation *out);

/* Adds one; dropped when there is no room. `text`: static storage. */
void explain_remark(struct explanation *out, const char *text);

/* --- cmd_explain_verdict.c --------------------------------------------------------------------
 */

/* After the table was attached, or not: keys, states, and where the call would go. Reads only. */
void explain_judge(const struct cli_context *context, struct explanation *out);

/* False: no layer has a say in this call. */
bool explain_layers(const struct explanation *explanation,
                    struct explain_layer layers[EXPLAIN_LAYERS]);

/* --- cmd_explain_names.c -----------------------------------------------------------------------
 */

const char *explain_action_name(enum explain_action action);
const char *explain_reason_name(enum explain_reason reason);
const char *explain_cover_name(enum route_cover cover);
const char *explain_cover_text(enum route_cover cover);
const char *explain_place_name(enum explain_place place);
const char *explain_dialect_name(enum api api);

/* --- cmd_explain_text.c, cmd_explain_json.c ----------------------------------------------------
 */

/* `own`: the --set of this very command, or NULL. */
void explain_print_text(const struct cli_context *context, const char *own,
                        const struct explanation *explanation);
void explain_print_json(const struct cli_context *context, const char *own,
                        const struct explanation *explanation);

#endif
