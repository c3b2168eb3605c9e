/*
 * cmd_explain_verdict.c - where the call would go now: by the reads that an admission begins with
 * (shim_admit.c), and without what it writes.
 */
#include "cli/cmd_explain.h"

#include "base/clock.h"
#include "http/synthetic.h"

#include <inttypes.h>
#include <time.h>

/* --- the two sides ---------------------------------------------------------------------------- */

static void read_side(const struct cli_context *context, uint64_t now, struct explain_side *side)
{
    struct span key = span_str(side->key);
    const struct table *table = &context->table;
    const struct slot *slot = table->slots ? table_find(table, table_identity(table, key)) : NULL;

    cli_context_policy(context, key, &side->policy);
    cli_row_read(slot, &side->policy.breaker, now, &side->row);
    side->admission = breaker_admit(side->row.word, breaker_tick(now), &side->policy.breaker);
    side->seen = slot != NULL;
    side->exists = true;
}

static void read_stop(const struct cli_context *context, const struct explanation *explanation,
                      uint64_t now, struct explain_stop *stop)
{
    struct span host = span_of(explanation->key.text, explanation->key.len);
    char *model = stop->model.key + host.len;

    memcpy(stop->host.key, host.ptr, host.len);
    read_side(context, now, &stop->host);
    if (explanation->place == EXPLAIN_NONE || explanation->host_alone || !explanation->model_known)
        return;
    memcpy(stop->model.key, host.ptr, host.len);
    *model++ = '/';
    strcpy(model, explanation->model);
    read_side(context, now, &stop->model);
}

/* --- what they decide ------------------------------------------------------------------------- */

static void decide(struct explain_stop *stop, enum explain_action action,
                   enum explain_reason reason, const struct explain_side *by)
{
    stop->action = action;
    stop->reason = reason;
    stop->by = by;
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

    decide(stop, EXPLAIN_REFUSED, reason_of_refusal(side), side);
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

/* H before M, refusals before grants: as the library asks. */
static void ask_breakers(struct explain_stop *stop)
{
    const struct explain_side *side;

    if (route_refuses(&stop->host.policy, &stop->host.admission))
        refuse(stop, &stop->host);
    else if (stop->model.exists && route_refuses(&stop->model.policy, &stop->model.admission))
        refuse(stop, &stop->model);
    else if ((side = side_with(stop, BREAKER_GRANT)))
        decide(stop, EXPLAIN_PROBES,
               side->row.effective.state == BREAKER_SHOW_OPEN ? EXPLAIN_DUE : EXPLAIN_PLACE_FREE,
               side);
    else if ((side = side_with(stop, BREAKER_REFUSE)))
        decide(stop, EXPLAIN_GOES, EXPLAIN_PASS, side);
    else if ((side = side_in(stop, BREAKER_SHOW_FORCED_CLOSED)))
        decide(stop, EXPLAIN_GOES, EXPLAIN_FORCED_CLOSED, side);
    else if ((side = side_in(stop, BREAKER_SHOW_DEGRADED)))
        decide(stop, EXPLAIN_GOES, EXPLAIN_DEGRADED, side);
    else
        decide(stop, EXPLAIN_GOES, EXPLAIN_CLOSED, NULL);
}

/* False: it is covered. */
static bool is_uncovered(const struct explanation *explanation, struct explain_stop *stop)
{
    const struct explain_side *off = stop->host.policy.mode == MODE_OFF ? &stop->host
                                     : stop->model.exists && stop->model.policy.mode == MODE_OFF
                                         ? &stop->model
                                         : NULL;

    if (explanation->disabled)
        decide(stop, EXPLAIN_UNCOUNTED, EXPLAIN_DISABLED, NULL);
    else if (!explanation->is_http)
        decide(stop, EXPLAIN_UNCOUNTED, EXPLAIN_SCHEME, NULL);
    else if (!route_is_covered(explanation->cover))
        decide(stop, EXPLAIN_UNCOUNTED,
               explanation->cover == ROUTE_NOT_LISTED ? EXPLAIN_NOT_LISTED : EXPLAIN_NO_LLM_CALL,
               NULL);
    else if (off)
        decide(stop, EXPLAIN_UNCOUNTED, EXPLAIN_MODE_OFF, off);
    else
        return false;
    return true;
}

/* --- in words --------------------------------------------------------------------------------- */

/* "KEY is open for 12.1s (until 2026-01-31T12:00:00Z), last failure: status 500, 3.0s ago" */
static void say_refusal(const struct explain_stop *stop, char *buf, size_t size)
{
    const struct explain_side *by = stop->by;
    char left[32], until[32] = "", failure[64];
    int used = snprintf(buf, size, "%s is ", by->key);

    if (stop->reason == EXPLAIN_OPEN) {
        time_t end = (time_t)((clock_system.wall_ms() + (int64_t)by->row.retry_in_ms) / 1000);
        struct tm tm;
        strftime(until, sizeof until, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&end, &tm));
        used += snprintf(buf + used, size - (size_t)used, "open for %s (until %s)",
                         cli_text_duration(by->row.retry_in_ms, left, sizeof left), until);
    } else {
        used +=
            snprintf(buf + used, size - (size_t)used, "%s",
                     stop->reason == EXPLAIN_FORCED_OPEN ? "held open by hand"
                                                         : "half-open, and a probe is under way");
    }
    if (by->row.failed)
        snprintf(buf + used, size - (size_t)used, ", last failure: %s",
                 cli_row_failure(&by->row, failure, sizeof failure));
}

static void say_uncounted(const struct explanation *explanation, const struct explain_stop *stop,
                          char *buf, size_t size)
{
    static const char *const texts[] = {
        [EXPLAIN_SCHEME] = "not covered: only http and https are",
        [EXPLAIN_NOT_LISTED] = "not covered: no target is for the host, and match = listed",
        [EXPLAIN_NO_LLM_CALL] = ("not covered: no known provider, no target is for the host, and "
                                 "no POST to the path of an LLM call"),
        [EXPLAIN_TABLE_REFUSED] = "the table may not be used",
    };

    if (stop->reason == EXPLAIN_DISABLED)
        snprintf(buf, size, "not covered: %s", explanation->disabled);
    else if (stop->reason == EXPLAIN_MODE_OFF)
        snprintf(buf, size, "not covered: mode = off for %s", stop->by->key);
    else
        snprintf(buf, size, "%s", texts[stop->reason]);
}

static void say_going(const struct explain_stop *stop, char *buf, size_t size)
{
    const char *by = stop->by ? stop->by->key : "";

    switch (stop->reason) {
    case EXPLAIN_DUE:
        snprintf(buf, size, "the open time of %s is over", by);
        break;
    case EXPLAIN_PLACE_FREE:
        snprintf(buf, size, "%s is half-open, and a probe may go", by);
        break;
    case EXPLAIN_PASS:
        snprintf(buf, size, "%s is %s, but when_exhausted = pass; it is not counted there", by,
                 breaker_state_name(stop->by->row.effective.state));
        break;
    case EXPLAIN_FORCED_CLOSED:
        snprintf(buf, size, "%s is held closed by hand", by);
        break;
    case EXPLAIN_DEGRADED:
        snprintf(buf, size, "%s is closed, but degraded: %u failures in a row", by,
                 stop->by->row.effective.streak);
        break;
    default:
        snprintf(buf, size, "closed");
    }
}

static void say(struct explanation *explanation)
{
    const struct explain_stop *stop = &explanation->chain[0];
    char *why = explanation->why, wait[32];
    const char *condition =
        explanation->model_known || explanation->host_alone || stop->action == EXPLAIN_REFUSED
            ? ""
            : "; its model may say otherwise: give --model or --body";

    if (stop->action == EXPLAIN_REFUSED)
        say_refusal(stop, why, sizeof explanation->why);
    else if (stop->action == EXPLAIN_UNCOUNTED)
        say_uncounted(explanation, stop, why, sizeof explanation->why);
    else
        say_going(stop, why, sizeof explanation->why);
    if (stop->wait_min == stop->wait_max)
        snprintf(wait, sizeof wait, "%u", stop->wait_min);
    else
        snprintf(wait, sizeof wait, "%u to %u", stop->wait_min, stop->wait_max);
    switch (stop->action) {
    case EXPLAIN_REFUSED:
        snprintf(explanation->verdict, sizeof explanation->verdict,
                 "refused with a synthetic 503, Retry-After %s: %s", wait, why);
        break;
    case EXPLAIN_UNCOUNTED:
        snprintf(explanation->verdict, sizeof explanation->verdict, "passes uncounted: %s", why);
        break;
    case EXPLAIN_PROBES:
    case EXPLAIN_GOES:
        snprintf(explanation->verdict, sizeof explanation->verdict, "goes to %s%s: %s%s",
                 stop->host.key, stop->action == EXPLAIN_PROBES ? " as the probe" : "", why,
                 condition);
        break;
    }
}

void explain_judge(const struct cli_context *context, struct explanation *out)
{
    struct explain_stop *stop = &out->chain[0];

    out->chain_len = 1;
    read_stop(context, out, clock_system.boot_ns(), stop);
    out->covered = !is_uncovered(out, stop);
    if (out->table_error != TABLE_OK && out->table_error != TABLE_E_ABSENT &&
        !table_is_refused(out->table_error))
        explain_remark(out, "no shared table can be had: each process counts alone");
    if (out->covered && table_is_refused(out->table_error))
        decide(stop, EXPLAIN_UNCOUNTED, EXPLAIN_TABLE_REFUSED, NULL);
    else if (out->covered)
        ask_breakers(stop);
    say(out);
}

/* --- who sees it ------------------------------------------------------------------------------ */

/* What a connect meets, which is judged by H alone. */
static const char *connect_now(const struct explain_side *host)
{
    return route_refuses(&host->policy, &host->admission) ? "connect fails with ECONNREFUSED"
           : host->admission.verdict == BREAKER_GRANT     ? "connects as the probe"
                                                          : "connects";
}

bool explain_layers(const struct explanation *explanation,
                    struct explain_layer layers[EXPLAIN_LAYERS])
{
    const struct explain_stop *stop = &explanation->chain[0];
    bool clear = span_ieq(explanation->url.scheme, SPAN_LIT("http"));
    bool refused_at_connect =
        explanation->at_connect && route_refuses(&stop->host.policy, &stop->host.admission);

    if (explanation->disabled || !explanation->is_http || !route_is_covered(explanation->cover) ||
        stop->host.policy.mode == MODE_OFF || stop->reason == EXPLAIN_TABLE_REFUSED)
        return false;
    layers[0] = (struct explain_layer){"libcurl", "the whole request", explanation->verdict};
    layers[1].name = "sockets";
    layers[1].sees = clear && explanation->at_connect ? "the connect, then the whole request"
                     : clear                          ? "the whole request, no connect"
                     : explanation->at_connect        ? "the host, at connect"
                                               : "nothing: of TLS only the connect could be seen, "
                                                 "and the host alone is none that counts";
    layers[1].now = clear && !refused_at_connect ? explanation->verdict
                    : explanation->at_connect    ? connect_now(&stop->host)
                                                 : "passes uncounted";
    layers[2] = (struct explain_layer){"static, Go, set-uid", "nothing", "passes uncounted"};
    return true;
}
