/*
 * cmd_explain_stop.c - what the breakers of one place say, by the reads that an admission begins
 * with (shim_admit.c), and without what it writes.
 */
#include "cli/cmd_explain.h"

#include "http/synthetic.h"

/* --- the two sides ---------------------------------------------------------------------------- */

static void read_side(const struct cli_context *context, uint64_t now, struct explain_side *side)
{
    struct span key = span_str(side->key);
    const struct table *table = &context->table;
    const struct slot *slot = table->slots ? table_find(table, table_identity(table, key)) : NULL;

    cli_context_policy(context, key, &side->policy);
    cli_row_read(slot, &side->policy, now, &side->row);
    side->admission = breaker_admit(side->row.word, breaker_tick(now), &side->policy.breaker);
    side->seen = slot != NULL;
    side->exists = true;
}

void explain_read_stop(const struct cli_context *context, const struct route_key *key,
                       struct span model, uint64_t now, struct explain_stop *stop)
{
    char *at = stop->model.key;

    memcpy(stop->host.key, key->text, key->len);
    read_side(context, now, &stop->host);
    if (key->shape.place == MODEL_NONE || !model.ptr ||
        route_host_alone(&stop->host.policy, key->shape.place))
        return;
    model = route_model(model);
    at = mempcpy(at, key->text, key->len);
    *at++ = '/';
    memcpy(at, model.ptr, model.len);
    read_side(context, now, &stop->model);
}

/* --- what they decide ------------------------------------------------------------------------- */

void explain_decide(struct explain_stop *stop, enum explain_action action,
                    enum explain_reason reason, const struct explain_side *by)
{
    stop->action = action;
    stop->reason = reason;
    stop->by = by;
    stop->waits = false;
    stop->wait_min = stop->wait_max = 0;
}

bool explain_is_off(struct explain_stop *stop)
{
    const struct explain_side *off = stop->host.policy.mode == MODE_OFF ? &stop->host
                                     : stop->model.exists && stop->model.policy.mode == MODE_OFF
                                         ? &stop->model
                                         : NULL;

    if (off)
        explain_decide(stop, EXPLAIN_UNCOUNTED, EXPLAIN_MODE_OFF, off);
    return off;
}

static enum explain_reason reason_of_refusal(const struct explain_side *side)
{
    enum breaker_state state = side->row.effective.state;

    return state == BREAKER_SHOW_OPEN          ? EXPLAIN_OPEN
           : state == BREAKER_SHOW_FORCED_OPEN ? EXPLAIN_FORCED_OPEN
                                               : EXPLAIN_PROBE_UNDER_WAY;
}

static void refuse(struct explain_stop *stop, const struct explain_side *side)
{
    uint32_t wait_ms = route_wait_ms(&side->policy, &side->admission, side->row.effective.state);

    explain_decide(stop, EXPLAIN_REFUSED, reason_of_refusal(side), side);
    stop->waits = true;
    stop->wait_min = synthetic_seconds(wait_ms ? wait_ms : ROUTE_SOON_MS);
    stop->wait_max = synthetic_seconds(wait_ms ? wait_ms : ROUTE_SOON_MS + ROUTE_SOON_SPREAD_MS);
}

static const struct explain_side *side_with(const struct explain_stop *stop,
                                            enum breaker_verdict verdict)
{
    return stop->host.admission.verdict == verdict                          ? &stop->host
           : stop->model.exists && stop->model.admission.verdict == verdict ? &stop->model
                                                                            : NULL;
}

static const struct explain_side *side_in(const struct explain_stop *stop, enum breaker_state state)
{
    return stop->host.row.effective.state == state                          ? &stop->host
           : stop->model.exists && stop->model.row.effective.state == state ? &stop->model
                                                                            : NULL;
}

static bool refuses(const struct explain_side *side, bool strictly)
{
    return side->exists && (strictly ? route_turns_away(&side->policy, &side->admission)
                                     : route_refuses(&side->policy, &side->admission));
}

/* H before M, refusals before grants: as the library asks. */
void explain_ask_breakers(struct explain_stop *stop, bool strictly)
{
    const struct explain_side *side;

    if (refuses(&stop->host, strictly))
        refuse(stop, &stop->host);
    else if (refuses(&stop->model, strictly))
        refuse(stop, &stop->model);
    else if ((side = side_with(stop, BREAKER_GRANT)))
        explain_decide(stop, EXPLAIN_PROBES,
                       side->row.effective.state == BREAKER_SHOW_OPEN ? EXPLAIN_DUE
                                                                      : EXPLAIN_PLACE_FREE,
                       side);
    else if ((side = side_with(stop, BREAKER_REFUSE)))
        explain_decide(stop, EXPLAIN_GOES,
                       side->policy.mode == MODE_OBSERVE ? EXPLAIN_OBSERVED : EXPLAIN_PASS, side);
    else if ((side = side_in(stop, BREAKER_SHOW_FORCED_CLOSED)))
        explain_decide(stop, EXPLAIN_GOES, EXPLAIN_FORCED_CLOSED, side);
    else if ((side = side_in(stop, BREAKER_SHOW_DEGRADED)))
        explain_decide(stop, EXPLAIN_GOES, EXPLAIN_DEGRADED, side);
    else
        explain_decide(stop, EXPLAIN_GOES, EXPLAIN_CLOSED, NULL);
}
