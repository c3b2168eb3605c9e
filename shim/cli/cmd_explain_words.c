/*
 * cmd_explain_words.c - what was decided, in words.
 */
#include "cli/cmd_explain.h"

#include "base/clock.h"

#include <stdarg.h>
#include <time.h>

static struct text text_in(char *buf, size_t size)
{
    buf[0] = '\0';
    return (struct text){.buf = buf, .size = size};
}

/* Up to where it fits: it is for people. */
__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int len = vsnprintf(text->buf + text->len, text->size - text->len, format, args);
    va_end(args);
    if (len > 0)
        text->len +=
            (size_t)len < text->size - text->len ? (size_t)len : text->size - text->len - 1;
}

/* --- one place -------------------------------------------------------------------------------- */

/* "for 12.1s (until 2026-01-31T12:00:00Z)" */
static void say_how_long(uint64_t ms, struct text *text)
{
    time_t end = (time_t)((clock_system.wall_ms() + (int64_t)ms) / 1000);
    char left[32], until[32] = "";
    struct tm tm;

    strftime(until, sizeof until, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&end, &tm));
    add(text, "for %s (until %s)", cli_text_duration(ms, left, sizeof left), until);
}

/* "KEY is open for 12.1s (until 2026-01-31T12:00:00Z), last failure: status 500, 3.0s ago" */
static void say_refusal(const struct explain_stop *stop, struct text *text)
{
    const struct explain_side *by = stop->by;
    char failure[64];

    add(text, "%s is ", by->key);
    if (stop->reason == EXPLAIN_OPEN) {
        add(text, "open ");
        say_how_long(by->row.retry_in_ms, text);
    } else if (stop->reason == EXPLAIN_COOLING) {
        add(text, "cooling down for %s ", by->row.parks_all ? "all credentials" : "its credential");
        say_how_long(by->parked_ms, text);
    } else {
        add(text, "%s",
            stop->reason == EXPLAIN_FORCED_OPEN ? "held open by hand"
                                                : "half-open, and a probe is under way");
    }
    if (by->row.failed)
        add(text, ", last failure: %s", cli_row_failure(&by->row, failure, sizeof failure));
}

/* Of libcurl's calls; what connects meet is another matter. */
static void say_scheme(const struct explanation *explanation, struct text *text)
{
    if (*explanation->connect)
        add(text,
            "not covered through libcurl, where only http and https are; a program with its own "
            "sockets meets the host's breaker: %s",
            explanation->connect);
    else
        add(text, "not covered: only http and https are through libcurl; by sockets: %s",
            explanation->at_connect ? "the table may not be used"
                                    : cli_text_cover(explanation->cover));
}

static void say_uncounted(const struct explanation *explanation, const struct explain_stop *stop,
                          struct text *text)
{
    if (stop->reason == EXPLAIN_TABLE_REFUSED)
        add(text, "the table may not be used");
    else if (stop->reason == EXPLAIN_DISABLED)
        add(text, "not covered: %s", explanation->disabled);
    else if (stop->reason == EXPLAIN_SCHEME)
        say_scheme(explanation, text);
    else if (stop->reason == EXPLAIN_MODE_OFF)
        add(text, "not covered: mode = off for %s", stop->by->key);
    else
        add(text, "not covered: %s", cli_text_cover(explanation->cover));
}

/* What would refuse it, were it not for its policy. */
static void say_not_refused(const struct explain_stop *stop, struct text *text)
{
    bool cools = stop->by->admission.verdict != BREAKER_REFUSE;

    add(text, "%s is %s, but %s", stop->by->key,
        cools ? "cooling down" : breaker_state_name(stop->by->row.effective.state),
        stop->reason == EXPLAIN_OBSERVED ? "mode = observe" : "when_exhausted = pass");
    if (!cools)
        add(text, ": the call moves its statistics only");
}

static void say_going(const struct explain_stop *stop, struct text *text)
{
    const struct explain_side *by = stop->by;

    if (!by) {
        add(text, "closed");
        return;
    }
    switch (stop->reason) {
    case EXPLAIN_DUE:
        add(text, "the open time of %s is over", by->key);
        break;
    case EXPLAIN_PLACE_FREE:
        add(text, "%s is half-open, and a probe may go", by->key);
        break;
    case EXPLAIN_PASS:
    case EXPLAIN_OBSERVED:
        say_not_refused(stop, text);
        break;
    case EXPLAIN_FORCED_CLOSED:
        add(text, "%s is held closed by hand", by->key);
        break;
    case EXPLAIN_DEGRADED:
        add(text, "%s is closed, but degraded: %u failures in a row", by->key,
            by->row.effective.streak);
        break;
    default: /* nothing else goes by what a breaker says */
        break;
    }
}

/* Is it the model that is missing? */
static bool is_for_model(const struct explain_stop *stop)
{
    return stop->action == EXPLAIN_UNFIT &&
           (stop->misfit == FALLBACK_MODEL_UNKNOWN || stop->misfit == FALLBACK_HELD);
}

static void say_unfit(const struct explanation *explanation, const struct explain_stop *stop,
                      struct text *text)
{
    add(text, "%s", fallback_misfit_text(stop->misfit));
    if (stop->culprit.ptr)
        add(text, " here: %.*s", (int)stop->culprit.len, stop->culprit.ptr);
    if (is_for_model(stop) && !explanation->model_known)
        add(text, ": give --model or --body");
}

static void say_why(const struct explanation *explanation, const struct explain_stop *stop,
                    struct text *text)
{
    switch (stop->action) {
    case EXPLAIN_REFUSED:
        say_refusal(stop, text);
        break;
    case EXPLAIN_UNCOUNTED:
        say_uncounted(explanation, stop, text);
        break;
    case EXPLAIN_UNFIT:
        say_unfit(explanation, stop, text);
        break;
    default:
        say_going(stop, text);
    }
}

const char *explain_why(const struct explanation *explanation, const struct explain_stop *stop,
                        char buf[EXPLAIN_WHY_SIZE])
{
    struct text text = text_in(buf, EXPLAIN_WHY_SIZE);

    say_why(explanation, stop, &text);
    return buf;
}

const char *explain_stop_title(const struct explain_stop *stop, char buf[EXPLAIN_NAME_MAX])
{
    struct text text = text_in(buf, EXPLAIN_NAME_MAX);
    bool section = stop->kind == EXPLAIN_FALLBACK;

    if (stop->kind == EXPLAIN_TARGET)
        add(&text, "its own host");
    else
        add(&text, "%s%.*s%s", section ? "[fallback " : "", (int)stop->name.len, stop->name.ptr,
            section ? "]" : "");
    return buf;
}

/* --- the whole call --------------------------------------------------------------------------- */

/* "to KEY as the probe by [fallback NAME]" */
static void say_way(const struct explain_stop *stop, struct text *text)
{
    char title[EXPLAIN_NAME_MAX];

    add(text, "to %s%s by %s", stop->model.exists ? stop->model.key : stop->host.key,
        stop->action == EXPLAIN_PROBES      ? " as the probe"
        : stop->action == EXPLAIN_UNCOUNTED ? " uncounted"
                                            : "",
        explain_stop_title(stop, title));
}

static void say_hard_stop(const struct policy *policy, struct text *text)
{
    if (!policy->allow_fallbacks)
        add(text, "; allow_fallbacks = false: a hard stop%s",
            policy->when_exhausted == EXHAUSTED_PASS ? ", whatever when_exhausted says" : "");
}

/* As if there were no other place. */
static void say_own(const struct explanation *explanation, struct text *text)
{
    const struct explain_stop *stop = &explanation->chain[0];

    switch (stop->action) {
    case EXPLAIN_REFUSED:
        add(text, "refused with a synthetic %u, Retry-After %u", explain_status(stop),
            stop->wait_min);
        if (stop->wait_min != stop->wait_max)
            add(text, " to %u", stop->wait_max);
        add(text, ": ");
        break;
    case EXPLAIN_UNCOUNTED:
        add(text, "passes uncounted: ");
        break;
    default:
        add(text, "goes to %s%s: ", stop->host.key,
            stop->action == EXPLAIN_PROBES ? " as the probe" : "");
    }
    say_why(explanation, stop, text);
    if (stop->action == EXPLAIN_REFUSED)
        say_hard_stop(&stop->by->policy, text);
    else if (stop->action != EXPLAIN_UNCOUNTED && !explanation->model_known &&
             !explanation->host_alone)
        add(text, "; its model may say otherwise: give --model or --body");
}

static const char depends_on_model[] =
    "whether a fallback takes it depends on its model: give --model or --body";

/* Would some fallback be told what to do by the model, which is not known here? */
static bool waits_for_model(const struct explanation *explanation)
{
    for (unsigned i = 1; !explanation->model_known && i < explanation->chain_len; i++)
        if (is_for_model(&explanation->chain[i]))
            return true;
    return false;
}

/* Of credentials, when it is not known whether the call's is one of them. `direct`: where nothing
 * goes elsewhere. */
static void say_waiting(const struct explanation *explanation, bool direct, struct text *text)
{
    const struct explain_side *at = explanation->waiting.at;
    char longest[32];

    if (!at || !explain_takes(&explanation->chain[0]) ||
        (direct && !explain_keeps_waiting(at, false)))
        return;
    bool one = at->row.parked == 1;
    add(text,
        "; but %u credential%s of at most %u that are known %s cooling down at %s, the last for "
        "%s: their calls ",
        at->row.parked, one ? "" : "s", COOLDOWN_WORDS, one ? "is" : "are", at->key,
        cli_text_duration(at->row.parked_ms, longest, sizeof longest));
    if (explanation->waiting.taken && !direct) {
        add(text, "go ");
        say_way(explanation->waiting.taken, text);
    } else {
        add(text, "are refused with a synthetic 429");
    }
}

void explain_say_direct(struct explanation *explanation)
{
    struct text text = text_in(explanation->direct, sizeof explanation->direct);

    say_own(explanation, &text);
    say_waiting(explanation, true, &text);
}

void explain_say_verdict(struct explanation *explanation)
{
    struct text text = text_in(explanation->verdict, sizeof explanation->verdict);

    if (explanation->taken) {
        add(&text, "goes ");
        say_way(explanation->taken, &text);
        add(&text, ": ");
        say_why(explanation, &explanation->chain[0], &text);
        if (!explanation->model_known)
            add(&text, "; its model may say otherwise: give --model or --body");
        return;
    }
    say_own(explanation, &text);
    say_waiting(explanation, false, &text);
    if (explanation->failover) {
        add(&text, "; should its connect fail: ");
        say_way(explanation->failover, &text);
    } else if (explanation->fails_over) {
        add(&text, "; should its connect fail: %s",
            waits_for_model(explanation) ? depends_on_model : "none of its fallbacks takes it");
    } else if (explanation->exhausted) {
        add(&text, "; %s%s", waits_for_model(explanation) ? "but " : "",
            waits_for_model(explanation) ? depends_on_model : "none of its fallbacks takes it");
    }
}
