/*
 * cmd_explain_stop.c - what the breakers of one place say, by the reads that an admission begins
 * with (shim_admit.c), and without what it writes.
 */
#include "cli/cmd_explain.h"

#include "base/clock.h"
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

/* How long a credential, COOLDOWN_ALL: each, is to wait at the key. */
static uint32_t parked_ms(const struct cli_context *context, uint64_t now,
                          const struct explain_side *side, uint64_t credential)
{
    const struct table *table = &context->table;

    if (!side->seen || side->row.effective.state == BREAKER_SHOW_FORCED_CLOSED)
        return 0;
    const struct slot *slot = table_find(table, table_identity(table, span_str(side->key)));
    uint32_t ticks = slot_cooldown_left(slot, credential, breaker_tick(now));
    return (uint32_t)(breaker_tick_ns(ticks) / CLOCK_NS_PER_MS);
}

void explain_read_stop(const struct cli_context *context, const struct route_key *key,
                       struct span model, uint64_t now, struct explain_stop *stop)
{
    char *at = stop->model.key;

    memcpy(stop->host.key, key->text, key->len);
    read_side(context, now, &stop->host);
    bool alone = route_host_alone(&stop->host.policy, key->shape.place);
    uint64_t credential = stop->credential_known && context->table.slots
                              ? table_credential(&context->table, stop->credential)
                              : COOLDOWN_ALL;
    stop->host.parked_ms = parked_ms(context, now, &stop->host, alone ? credential : COOLDOWN_ALL);
    if (key->shape.place == MODEL_NONE || !model.ptr || alone)
        return;
    model = route_model(model);
    at = mempcpy(at, key->text, key->len);
    *at++ = '/';
    memcpy(at, model.ptr, model.len);
    read_side(context, now, &stop->model);
    stop->model.parked_ms = parked_ms(context, now, &stop->model, credential);
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

static bool refuses(const struct explain_side *side, const struct breaker_admission *admission,
                    bool strictly)
{
    return side->exists && (strictly ? route_turns_away(&side->policy, admission)
                                     : route_refuses(&side->policy, admission));
}

bool explain_keeps_waiting(const struct explain_side *side, bool strictly)
{
    static const struct breaker_admission kept = {.verdict = BREAKER_REFUSE};

    return refuses(side, &kept, strictly);
}

bool explain_refuses_connect(const struct explain_side *host, bool strictly)
{
    bool cools = host->row.parks_all && host->row.effective.state != BREAKER_SHOW_FORCED_CLOSED;

    return refuses(host, &host->admission, strictly) ||
           (cools && explain_keeps_waiting(host, strictly));
}

static uint32_t kept_ms(const struct explain_side *side, bool strictly)
{
    return explain_keeps_waiting(side, strictly) ? side->parked_ms : 0;
}

static uint32_t later(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static void wait_for(struct explain_stop *stop, uint32_t min_ms, uint32_t max_ms)
{
    stop->waits = true;
    stop->wait_min = synthetic_seconds(min_ms);
    stop->wait_max = synthetic_seconds(max_ms);
}

/* `parked`: what a cool-down says besides. */
static void refuse(struct explain_stop *stop, const struct explain_side *side, uint32_t parked)
{
    uint32_t wait_ms = route_wait_ms(&side->policy, &side->admission, side->row.effective.state);

    explain_decide(stop, EXPLAIN_REFUSED, reason_of_refusal(side), side);
    wait_for(stop, later(wait_ms ? wait_ms : ROUTE_SOON_MS, parked),
             later(wait_ms ? wait_ms : ROUTE_SOON_MS + ROUTE_SOON_SPREAD_MS, parked));
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

static const struct explain_side *side_that_cools(const struct explain_stop *stop)
{
    return stop->host.parked_ms > 0 ? &stop->host : stop->model.parked_ms > 0 ? &stop->model : NULL;
}

/* What lets it go, from what most of all to what least. */
static void let_go(struct explain_stop *stop)
{
    const struct explain_side *side;

    if ((side = side_with(stop, BREAKER_GRANT)))
        explain_decide(stop, EXPLAIN_PROBES,
                       side->row.effective.state == BREAKER_SHOW_OPEN ? EXPLAIN_DUE
                                                                      : EXPLAIN_PLACE_FREE,
                       side);
    else if ((side = side_with(stop, BREAKER_REFUSE)) || (side = side_that_cools(stop)))
        explain_decide(stop, EXPLAIN_GOES,
                       side->policy.mode == MODE_OBSERVE ? EXPLAIN_OBSERVED : EXPLAIN_PASS, side);
    else if ((side = side_in(stop, BREAKER_SHOW_FORCED_CLOSED)))
        explain_decide(stop, EXPLAIN_GOES, EXPLAIN_FORCED_CLOSED, side);
    else if ((side = side_in(stop, BREAKER_SHOW_DEGRADED)))
        explain_decide(stop, EXPLAIN_GOES, EXPLAIN_DEGRADED, side);
    else
        explain_decide(stop, EXPLAIN_GOES, EXPLAIN_CLOSED, NULL);
}

/* H before M, breakers before cool-downs, refusals before grants: as the library asks. */
void explain_ask_breakers(struct explain_stop *stop, bool strictly)
{
    const struct explain_side *host = &stop->host, *model = &stop->model;
    uint32_t at_host = kept_ms(host, strictly), at_model = kept_ms(model, strictly);
    uint32_t parked = later(at_host, at_model);

    if (refuses(host, &host->admission, strictly)) {
        refuse(stop, host, parked);
    } else if (refuses(model, &model->admission, strictly)) {
        refuse(stop, model, parked);
    } else if (parked > 0) {
        explain_decide(stop, EXPLAIN_REFUSED, EXPLAIN_COOLING, at_host > 0 ? host : model);
        wait_for(stop, parked, parked);
    } else {
        let_go(stop);
    }
}
