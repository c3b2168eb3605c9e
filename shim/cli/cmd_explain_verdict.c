/*
 * cmd_explain_verdict.c - where the call would go now: its own host, or the first of its chain
 * that takes it.
 */
#include "cli/cmd_explain.h"

#include "base/clock.h"

/* False: it is covered. */
static bool is_uncovered(const struct explanation *explanation, struct explain_stop *stop)
{
    if (explanation->disabled)
        explain_decide(stop, EXPLAIN_UNCOUNTED, EXPLAIN_DISABLED, NULL);
    else if (!explanation->is_http) {
        if (!explain_is_off(stop))
            explain_decide(stop, EXPLAIN_UNCOUNTED, EXPLAIN_SCHEME, NULL);
    } else if (!route_is_covered(explanation->cover))
        explain_decide(stop, EXPLAIN_UNCOUNTED,
                       explanation->cover == ROUTE_NOT_LISTED ? EXPLAIN_NOT_LISTED
                                                              : EXPLAIN_NO_LLM_CALL,
                       NULL);
    else
        return explain_is_off(stop);
    return true;
}

static const struct explain_stop *first_that_takes(const struct explanation *explanation)
{
    for (unsigned i = 1; i < explanation->chain_len; i++)
        if (explain_takes(&explanation->chain[i]))
            return &explanation->chain[i];
    return NULL;
}

/* Its own breakers first, without another place to go to and with one; then the others'. */
static void walk_chain(const struct cli_context *context, struct explanation *out, uint64_t now)
{
    struct explain_stop *own = &out->chain[0];

    explain_ask_breakers(own, false);
    explain_say_direct(out);
    if (!explain_list_chain(context, out, now))
        return;
    explain_ask_breakers(own, true);
    const struct explain_stop *next = first_that_takes(out);
    if (own->action != EXPLAIN_REFUSED) {
        out->fails_over = explain_chain_policy(out)->failover == FAILOVER_CONNECT;
        out->failover = out->fails_over ? next : NULL;
    } else if (next) {
        out->taken = next;
    } else {
        out->exhausted = true;
        explain_ask_breakers(own, false);
    }
}

static void remark_on_chain(struct explanation *out)
{
    const struct policy *policy = explain_chain_policy(out);

    if (out->key.shape.place != MODEL_NONE || !policy->allow_fallbacks)
        return;
    if (*policy->fallback)
        explain_remark(out,
                       *policy->fallback_address
                           ? "this is no LLM call: it goes to fallback_address, and to no fallback"
                           : "this is no LLM call: it goes to no fallback");
}

/* Of a call whose credential is not known: is it of those that wait? */
static void read_waiting(struct explanation *out)
{
    const struct explain_stop *own = &out->chain[0];
    const struct explain_side *side = out->host_alone ? &own->host : &own->model;

    if (side->exists && side->row.parked > 0 && !own->credential_known &&
        side->row.effective.state != BREAKER_SHOW_FORCED_CLOSED)
        out->waiting.at = side;
}

/* And what becomes of those, where the call itself goes. */
static void judge_waiting(struct explanation *out)
{
    struct explain_waiting *waiting = &out->waiting;

    if (!waiting->at)
        return;
    waiting->taken = first_that_takes(out);
    if (!explain_takes(&out->chain[0]) ||
        !explain_keeps_waiting(waiting->at, waiting->taken != NULL))
        waiting->at = NULL;
}

void explain_judge(const struct cli_context *context, struct explanation *out)
{
    struct explain_stop *own = &out->chain[0];
    uint64_t now = clock_system.boot_ns();

    out->chain_len = 1;
    explain_own_url(out, own->url);
    explain_read_stop(context, &out->key, out->model_known ? span_str(out->model) : SPAN_NONE, now,
                      own);
    explain_read_address(context, out, now);
    explain_say_connect(out);
    out->covered = !is_uncovered(out, own);
    if (out->table_error != TABLE_OK && out->table_error != TABLE_E_ABSENT &&
        !table_is_refused(out->table_error))
        explain_remark(out, "no shared table can be had: each process counts alone");
    if (out->covered && table_is_refused(out->table_error))
        explain_decide(own, EXPLAIN_UNCOUNTED, EXPLAIN_TABLE_REFUSED, NULL);
    else if (out->covered) {
        read_waiting(out);
        walk_chain(context, out, now);
        judge_waiting(out);
        remark_on_chain(out);
    }
    if (!*out->direct)
        explain_say_direct(out);
    explain_say_verdict(out);
}
