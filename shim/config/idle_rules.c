/*
 * idle_rules.c - which option is void beside which values of others. What only forbids (
 * allow_fallbacks = false, failover = off) holds where there is nothing to forbid, and mode =
 * observe is a trial of what it holds back: neither is here.
 */
#include "config/idle.h"

#include <stdarg.h>
#include <stdio.h>

#define BIT(option) (UINT64_C(1) << OPTION_##option)
#define ONE         UINT64_C(1000000) /* of RATIO and FACTOR */

static uint64_t number(const struct idle_view *view, enum config_option option)
{
    return view->value[option]->number;
}

static const char *text(const struct idle_view *view, enum config_option option)
{
    return view->value[option]->text;
}

static const struct status_set *statuses(const struct idle_view *view, enum config_option option)
{
    return &view->value[option]->statuses;
}

/* True. */
static bool say(struct idle_reason *reason, uint64_t beside, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool say(struct idle_reason *reason, uint64_t beside, const char *format, ...)
{
    va_list values;

    reason->beside = beside;
    va_start(values, format);
    vsnprintf(reason->text, sizeof reason->text, format, values);
    va_end(values);
    return true;
}

/* --- counting and opening ----------------------------------------------------------------------
 */

/* Of `min_calls` calls or more of which so many fail, failure_threshold in a row do: the successes
 * between them are too few to keep them apart. */
static bool ask_failure_rate(const struct idle_view *view, struct idle_reason *reason)
{
    uint64_t threshold = number(view, OPTION_failure_threshold);
    uint64_t rate = number(view, OPTION_failure_rate), calls = number(view, OPTION_min_calls);
    const char *found = text(view, OPTION_failure_threshold);

    return rate != 0 && threshold != 0 &&
           (threshold - 1) * ((ONE - rate) * calls + ONE) < rate * calls &&
           say(reason, BIT(failure_threshold) | BIT(min_calls),
               "expected failure_threshold above %.12s, or 0, found %.12s: when %.12s of %.12s "
               "calls fail, so many fail in a row",
               found, found, text(view, OPTION_failure_rate), text(view, OPTION_min_calls));
}

static bool ask_of_rate(const struct idle_view *view, struct idle_reason *reason)
{
    return number(view, OPTION_failure_rate) == 0 &&
           say(reason, BIT(failure_rate),
               "expected failure_rate above 0, found 0: no share of failures opens");
}

static bool ask_degrade_threshold(const struct idle_view *view, struct idle_reason *reason)
{
    uint64_t threshold = number(view, OPTION_failure_threshold);

    reason->contrary = true;
    return threshold != 0 && number(view, OPTION_degrade_threshold) >= threshold &&
           say(reason, BIT(failure_threshold),
               "expected less than failure_threshold = %.12s, found %.12s: it opens before it is "
               "degraded",
               text(view, OPTION_failure_threshold), text(view, OPTION_degrade_threshold));
}

static bool grows(const struct idle_view *view)
{
    return number(view, OPTION_backoff) > ONE;
}

static bool ask_open_max(const struct idle_view *view, struct idle_reason *reason)
{
    if (!grows(view))
        return say(reason, BIT(backoff),
                   "expected backoff above 1, found 1: the open time never grows");
    reason->contrary = true;
    return number(view, OPTION_open_max) < number(view, OPTION_open_seconds) &&
           say(reason, BIT(open_seconds),
               "expected open_seconds = %.20s or more, found %.20s: it stays open for open_seconds",
               text(view, OPTION_open_seconds), text(view, OPTION_open_max));
}

/* Not beside an open_max of the user's own that is told itself. */
static bool ask_backoff(const struct idle_view *view, struct idle_reason *reason)
{
    uint64_t longest = number(view, OPTION_open_max), open = number(view, OPTION_open_seconds);
    bool told = longest < open && view->setter[OPTION_open_max] != IDLE_DEFAULT;

    return grows(view) && longest <= open && !told &&
           say(reason, BIT(open_seconds) | BIT(open_max),
               "expected open_max above open_seconds = %.20s, found %.20s: the open time never "
               "grows",
               text(view, OPTION_open_seconds), text(view, OPTION_open_max));
}

/* It may be there to take a longer one back. */
static bool ask_probe_lease(const struct idle_view *view, struct idle_reason *reason)
{
    uint64_t open = number(view, OPTION_open_seconds);

    return number(view, OPTION_probe_lease) < open &&
           view->wider[OPTION_probe_lease]->number <= open &&
           say(reason, BIT(open_seconds) | BIT(probe_lease),
               "expected open_seconds = %.20s or more, found %.20s: the longer of the two counts",
               text(view, OPTION_open_seconds), text(view, OPTION_probe_lease));
}

/* --- outcomes ----------------------------------------------------------------------------------
 */

/* Is there a status of `set` that `other` has, or one that it has not? */
static bool any(const struct status_set *set, const struct status_set *other, bool has)
{
    for (unsigned status = STATUS_SET_FIRST; status < STATUS_SET_FIRST + STATUS_SET_COUNT; status++)
        if (status_set_has(set, status) && status_set_has(other, status) == has)
            return true;
    return false;
}

static bool counts_limits(const struct idle_view *view)
{
    return number(view, OPTION_rate_limit) & RATE_LIMIT_COUNT;
}

/* What is a failure unless it is neutral. */
static struct status_set failures(const struct idle_view *view)
{
    struct status_set set = *statuses(view, OPTION_failure_status);

    if (counts_limits(view))
        status_set_add(&set, 429);
    return set;
}

static bool ask_failure_status(const struct idle_view *view, struct idle_reason *reason)
{
    const struct status_set *failure = statuses(view, OPTION_failure_status);
    const struct status_set *neutral = statuses(view, OPTION_neutral_status);

    return any(failure, neutral, true) && !any(failure, neutral, false) &&
           say(reason, BIT(neutral_status),
               "expected one that is not in neutral_status, found all of them there: they are "
               "neutral");
}

/* What is neither a failure nor a success is neutral by itself. It may be there to put some of a
 * wider one back. */
static bool ask_neutral_status(const struct idle_view *view, struct idle_reason *reason)
{
    struct status_set judged = failures(view);

    status_set_add(&judged, 101);
    for (unsigned status = 200; status < 400; status++)
        status_set_add(&judged, status);
    return !any(statuses(view, OPTION_neutral_status), &judged, true) &&
           !any(&view->wider[OPTION_neutral_status]->statuses, &judged, true) &&
           say(reason, BIT(failure_status) | BIT(rate_limit) | BIT(neutral_status),
               "expected a failure (failure_status) or a success, found \"%.20s\": neutral anyway",
               text(view, OPTION_neutral_status));
}

static bool ask_neutral_body(const struct idle_view *view, struct idle_reason *reason)
{
    struct status_set failure = failures(view);

    return *text(view, OPTION_neutral_body) &&
           !any(&failure, statuses(view, OPTION_neutral_status), false) &&
           say(reason, BIT(failure_status) | BIT(neutral_status) | BIT(rate_limit),
               "expected a status that is a failure, found none: there is nothing to excuse");
}

static bool ask_rate_limit(const struct idle_view *view, struct idle_reason *reason)
{
    return counts_limits(view) && status_set_has(statuses(view, OPTION_neutral_status), 429) &&
           say(reason, BIT(neutral_status),
               "expected 429 not in neutral_status, found it there: count has no effect");
}

/* --- cool-downs --------------------------------------------------------------------------------
 */

static bool parks_limits(const struct idle_view *view)
{
    return number(view, OPTION_rate_limit) & RATE_LIMIT_COOLDOWN;
}

static bool ask_of_limit(const struct idle_view *view, struct idle_reason *reason)
{
    return !parks_limits(view) &&
           say(reason, BIT(rate_limit),
               "expected cooldown in rate_limit, found %.20s: no 429 parks anybody",
               text(view, OPTION_rate_limit));
}

static bool ask_cooldown_seconds(const struct idle_view *view, struct idle_reason *reason)
{
    struct status_set parking = {0};

    for (unsigned status = 400; status < STATUS_SET_FIRST + STATUS_SET_COUNT; status++)
        if (status != 429 || parks_limits(view))
            status_set_add(&parking, status);
    return number(view, OPTION_cooldown_seconds) != 0 && number(view, OPTION_cooldown_on) == 0 &&
           !any(statuses(view, OPTION_cooldown_on), &parking, true) &&
           say(reason, BIT(cooldown_on) | BIT(rate_limit),
               "expected something in cooldown_on that parks, found nothing: it parks nobody");
}

static bool ask_cooldown_on(const struct idle_view *view, struct idle_reason *reason)
{
    return number(view, OPTION_cooldown_seconds) == 0 &&
           say(reason, BIT(cooldown_seconds),
               "expected cooldown_seconds above 0, found 0: nobody is parked");
}

/* --- refusals ----------------------------------------------------------------------------------
 */

static bool stays_home(const struct idle_view *view)
{
    return number(view, OPTION_allow_fallbacks) == 0;
}

static bool ask_when_exhausted(const struct idle_view *view, struct idle_reason *reason)
{
    return number(view, OPTION_when_exhausted) == EXHAUSTED_PASS && stays_home(view) &&
           say(reason, BIT(allow_fallbacks),
               "expected allow_fallbacks = true, found false: a refused call gets the 503");
}

static bool ask_of_answer(const struct idle_view *view, struct idle_reason *reason)
{
    return number(view, OPTION_when_exhausted) == EXHAUSTED_PASS && !stays_home(view) &&
           say(reason, BIT(when_exhausted) | BIT(allow_fallbacks),
               "expected when_exhausted = 503, found pass: no call gets an answer of ours");
}

static bool ask_of_elsewhere(const struct idle_view *view, struct idle_reason *reason)
{
    return stays_home(view) &&
           say(reason, BIT(allow_fallbacks),
               "expected allow_fallbacks = true, found false: no call goes elsewhere");
}

static bool ask_base(const struct idle_view *view, struct idle_reason *reason)
{
    if (strcmp(text(view, OPTION_base), CONFIG_NO_BASE) == 0)
        return false; /* of one that is none worse was told */
    return ask_of_elsewhere(view, reason) ||
           (!*text(view, OPTION_fallback) &&
            say(reason, BIT(fallback), "expected a fallback whose base replaces it, found none"));
}

static bool ask_allow_cleartext(const struct idle_view *view, struct idle_reason *reason)
{
    struct span names = span_str(text(view, OPTION_fallback)), name;

    if (number(view, OPTION_allow_cleartext) == 0)
        return false;
    if (ask_of_elsewhere(view, reason))
        return true;
    while (config_next_name(&names, &name)) {
        const struct config_fallback *fallback = config_fallback(view->config, name);
        if (fallback && !fallback->loopback && span_eq(fallback->scheme, SPAN_LIT("http")))
            return false;
    }
    return say(reason, BIT(fallback),
               "expected a fallback over http on another machine, found none");
}

static bool ask_match(const struct idle_view *view, struct idle_reason *reason)
{
    return number(view, OPTION_match) == MATCH_LISTED && view->config->target_count == 0 &&
           say(reason, 0, "expected a [target NAME] beside listed, found none: no call is covered");
}

/* --- all ---------------------------------------------------------------------------------------
 */

bool idle_rules_ask(const struct idle_view *view, enum config_option option,
                    struct idle_reason *reason)
{
    static bool (*const rules[OPTION_COUNT])(const struct idle_view *view,
                                             struct idle_reason *reason) = {
        [OPTION_match] = ask_match,
        [OPTION_failure_rate] = ask_failure_rate,
        [OPTION_window] = ask_of_rate,
        [OPTION_min_calls] = ask_of_rate,
        [OPTION_degrade_threshold] = ask_degrade_threshold,
        [OPTION_backoff] = ask_backoff,
        [OPTION_open_max] = ask_open_max,
        [OPTION_probe_lease] = ask_probe_lease,
        [OPTION_failure_status] = ask_failure_status,
        [OPTION_neutral_status] = ask_neutral_status,
        [OPTION_neutral_body] = ask_neutral_body,
        [OPTION_rate_limit] = ask_rate_limit,
        [OPTION_cooldown_max] = ask_of_limit,
        [OPTION_quota_cooldown] = ask_of_limit,
        [OPTION_cooldown_seconds] = ask_cooldown_seconds,
        [OPTION_cooldown_on] = ask_cooldown_on,
        [OPTION_when_exhausted] = ask_when_exhausted,
        [OPTION_should_retry] = ask_of_answer,
        [OPTION_error_code] = ask_of_answer,
        [OPTION_fallback] = ask_of_elsewhere,
        [OPTION_base] = ask_base,
        [OPTION_allow_cleartext] = ask_allow_cleartext,
        [OPTION_fallback_address] = ask_of_elsewhere,
    };

    *reason = (struct idle_reason){0};
    if (!options[option].global && option != OPTION_mode && number(view, OPTION_mode) == MODE_OFF)
        return say(reason, BIT(mode),
                   "expected mode = enforce or observe, found off: its calls are not covered");
    return rules[option] && rules[option](view, reason);
}
