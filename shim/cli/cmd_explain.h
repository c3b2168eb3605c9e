/*
 * cmd_explain.h - what `breaker explain` finds out about one call, and how it is shown. Private to
 * the files of that command.
 *
 * A call has a chain of places that it could go to, tried in order: its own host, then the
 * fallback_address of that, then its fallbacks. What of that a layer can do differs: the verdict is
 * for libcurl, which can do all of it, and explain_layers() tells of the others.
 */
#ifndef BREAKER_CLI_CMD_EXPLAIN_H
#define BREAKER_CLI_CMD_EXPLAIN_H

#include "cli/cli.h"

#include "http/url.h"
#include "route/fallback.h"

#define EXPLAIN_CHAIN_MAX   (2 + 64) /* as many fallbacks as breaker.ini may have */
#define EXPLAIN_REMARKS_MAX 4
#define EXPLAIN_NAME_MAX    64 /* of a fallback: longer than the configuration allows */
#define EXPLAIN_WHY_SIZE    (2 * CLI_KEY_SIZE + 256)
#define EXPLAIN_TEXT_SIZE   (EXPLAIN_WHY_SIZE + 2 * (CLI_KEY_SIZE + EXPLAIN_NAME_MAX) + 512)

/* The call as it was asked for; all borrowed. */
struct explain_question {
    const char *url, *method, *model, *body; /* NULL: not given; `body` "-": standard input */
};

enum explain_action {
    EXPLAIN_GOES,
    EXPLAIN_PROBES,    /* goes, and holds a grant */
    EXPLAIN_UNCOUNTED, /* goes, and nothing of it is counted */
    EXPLAIN_REFUSED,
    EXPLAIN_REROUTED, /* of the whole call: its own host refuses, a fallback takes it */
    EXPLAIN_UNFIT,    /* of a fallback: the call cannot go there, whatever its breakers say */
};

enum explain_reason {
    /* goes */
    EXPLAIN_CLOSED,
    EXPLAIN_DEGRADED,
    EXPLAIN_FORCED_CLOSED,
    EXPLAIN_PASS,     /* a breaker refuses or cools down, and when_exhausted = pass */
    EXPLAIN_OBSERVED, /* the same, and mode = observe */
    /* probes */
    EXPLAIN_DUE,
    EXPLAIN_PLACE_FREE, /* half-open, and a grant is to be had */
    /* refused */
    EXPLAIN_OPEN,
    EXPLAIN_FORCED_OPEN,
    EXPLAIN_PROBE_UNDER_WAY,
    EXPLAIN_COOLING, /* its breakers would let it go */
    /* uncounted */
    EXPLAIN_DISABLED,
    EXPLAIN_SCHEME,
    EXPLAIN_NOT_LISTED,
    EXPLAIN_NO_LLM_CALL,
    EXPLAIN_MODE_OFF,
    EXPLAIN_TABLE_REFUSED,
    /* unfit */
    EXPLAIN_MISFIT, /* see explain_stop.misfit */
};

enum explain_kind { EXPLAIN_TARGET, EXPLAIN_ADDRESS, EXPLAIN_FALLBACK };

/* One of the two breakers of a call. */
struct explain_side {
    bool exists; /* the call has it, and its key is known */
    bool seen;   /* it has a slot in the table */
    char key[CLI_KEY_SIZE];
    struct policy policy;
    struct cli_row row;
    struct breaker_admission admission;
    uint32_t parked_ms; /* so long the call is to wait there, as far as its credential is known */
};

/* A place that the call could go to, and what its breakers say. */
struct explain_stop {
    enum explain_kind kind;
    struct span name; /* as the chain has it; SPAN_NONE: its own host */
    unsigned line;    /* of the [fallback], in the file of the configuration; 0: it is none */
    enum fallback_misfit misfit;
    struct span culprit;        /* of FALLBACK_VARIABLE: the variable; else SPAN_NONE */
    char url[FALLBACK_URL_MAX]; /* without user and credentials; "": none, or too long */
    bool credential_known;      /* whose quota it draws on there */
    uint64_t credential;        /* as credential.h has it; 0: it has none */
    struct explain_side host, model;
    enum explain_action action;
    enum explain_reason reason;
    const struct explain_side *by; /* whose word it is; NULL: of no one side */
    bool waits;                    /* refused: with a Retry-After of so many seconds */
    unsigned wait_min, wait_max;
};

/* Credentials that cool down at a key where this call, which may have one of them, would go. */
struct explain_waiting {
    const struct explain_side *at;    /* NULL: there are none, or their calls go as well */
    const struct explain_stop *taken; /* where those go instead; NULL: they are refused */
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
    bool is_http; /* else libcurl's calls are not covered, and sockets by their connects */
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
    const struct explain_stop *taken; /* what takes the call that its own host refuses, or NULL */
    const struct explain_stop *failover; /* what takes it should its connect fail, or NULL */
    bool fails_over;                     /* that would be asked for */
    bool exhausted;                      /* its own host refuses, and so do all others */
    struct explain_waiting waiting;
    struct explain_stop address;              /* where the host's connects go instead now ... */
    bool connects_elsewhere;                  /* ... if they do */
    char verdict[EXPLAIN_TEXT_SIZE];          /* what would happen, and why */
    char direct[EXPLAIN_TEXT_SIZE];           /* the same, where nothing goes elsewhere */
    char connect[EXPLAIN_TEXT_SIZE];          /* what happens at connect; "": it is not judged */
    const char *remarks[EXPLAIN_REMARKS_MAX]; /* static storage */
    unsigned remark_count;
};

/* Who sees the call, and what it meets there. Texts in static storage or in `verdict`. */
struct explain_layer {
    const char *name, *sees, *now;
};
#define EXPLAIN_LAYERS 4

/* --- cmd_explain_facts.c -----------------------------------------------------------------------
 */

/* URL, method, coverage, model. CLI_OK, or the exit code after a complaint. *out is all-zero. */
int explain_facts(const struct cli_context *context, const struct explain_question *question,
                  struct explanation *out);

/* Where a URL of this scheme, in any case, goes that names no port; 0: not known here. */
uint16_t explain_usual_port(struct span scheme);

/* Adds one; dropped when there is no room. `text`: static storage. */
void explain_remark(struct explanation *out, const char *text);

/* --- cmd_explain_stop.c: one place -------------------------------------------------------------
 */

/* Reads the breakers of a request there at `now`, CLOCK_BOOTTIME ns, whose credential stands in
 * *stop. `model` SPAN_NONE: M is not asked. */
void explain_read_stop(const struct cli_context *context, const struct route_key *key,
                       struct span model, uint64_t now, struct explain_stop *stop);

void explain_decide(struct explain_stop *stop, enum explain_action action,
                    enum explain_reason reason, const struct explain_side *by);

/* Decides by mode = off of H or M, or returns false. */
bool explain_is_off(struct explain_stop *stop);

/* A connect to the host is refused by its breaker, or by a cool-down of everybody; `strictly`: it
 * goes elsewhere if it can, though when_exhausted would let it pass. */
bool explain_refuses_connect(const struct explain_side *host, bool strictly);
/* Would a call of a credential that cools down there be kept from going? `strictly` as below. */
bool explain_keeps_waiting(const struct explain_side *side, bool strictly);

/* Decides by its breakers. `strictly`: what a breaker refuses is refused, whatever when_exhausted
 * says, since there is another place to go to. */
void explain_ask_breakers(struct explain_stop *stop, bool strictly);

/* Of a refusal's answer. */
static inline unsigned explain_status(const struct explain_stop *stop)
{
    return stop->reason == EXPLAIN_COOLING ? 429 : 503;
}

static inline bool explain_takes(const struct explain_stop *stop)
{
    return stop->action != EXPLAIN_REFUSED && stop->action != EXPLAIN_UNFIT;
}

/* --- cmd_explain_chain.c: the others -----------------------------------------------------------
 */

/* Appends the places that follow the call's own host, each decided. False: it has none. */
bool explain_list_chain(const struct cli_context *context, struct explanation *out, uint64_t now);
/* The policy that says where else the call may go. */
const struct policy *explain_chain_policy(const struct explanation *explanation);

/* The n-th name of its list that was left out of the chain; false past the last. */
bool explain_left_out(const struct cli_context *context, const struct explanation *explanation,
                      unsigned n, struct span *name);
/* The address of an EXPLAIN_ADDRESS as its setting has it, with the origin of that. `own`: the
 * --set of this very command, or NULL. */
bool explain_address_setting(const struct cli_context *context, const char *own,
                             const struct explanation *explanation, struct config_value *out);

/* Finds out where connects go that the host refuses. */
void explain_read_address(const struct cli_context *context, struct explanation *out, uint64_t now);

/* The call's own URL without user and credentials; "" when it does not fit. */
void explain_own_url(const struct explanation *explanation, char buf[FALLBACK_URL_MAX]);

/* --- cmd_explain_verdict.c --------------------------------------------------------------------
 */

/* After the table was attached, or not: keys, states, and where the call would go. Reads only. */
void explain_judge(const struct cli_context *context, struct explanation *out);

/* --- cmd_explain_words.c -----------------------------------------------------------------------
 */

/* Why a place takes the call, or does not. Returns `buf`. */
const char *explain_why(const struct explanation *explanation, const struct explain_stop *stop,
                        char buf[EXPLAIN_WHY_SIZE]);
/* "[fallback NAME]", "fallback_address" or "its own host". Returns `buf`. */
const char *explain_stop_title(const struct explain_stop *stop, char buf[EXPLAIN_NAME_MAX]);
/* Write `direct`, and then the verdict, as the stops are decided at that moment. */
void explain_say_direct(struct explanation *explanation);
void explain_say_verdict(struct explanation *explanation);

/* --- cmd_explain_layers.c ----------------------------------------------------------------------
 */

/* Says what happens at connect: before the verdict, which may tell of it. */
void explain_say_connect(struct explanation *explanation);
/* How many have a say in this call; 0: none. */
unsigned explain_layers(const struct explanation *explanation,
                        struct explain_layer layers[EXPLAIN_LAYERS]);

/* --- cmd_explain_names.c -----------------------------------------------------------------------
 */

const char *explain_action_name(enum explain_action action);
const char *explain_reason_name(enum explain_reason reason);
/* The reason of a stop, that of a misfit included. */
const char *explain_stop_reason(const struct explain_stop *stop);
const char *explain_kind_name(enum explain_kind kind);
const char *explain_cover_name(enum route_cover cover);
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
