/*
 * laws.h - what has to hold of each step, told by the book of world.h.
 */
#ifndef BREAKER_TESTS_LAWS_H
#define BREAKER_TESTS_LAWS_H

#include "world.h"

/* --- admission ------------------------------------------------------------------------------- */

/* Does a probe of an earlier lease carry its number? */
static inline bool number_is_taken(const struct world *w, const struct caller *self)
{
    for (unsigned i = 0; i < WORLD_CALLERS; i++) {
        const struct caller *c = &w->callers[i];
        if (c->at >= CALLER_CALLING && c->probe && c->counted && c->this_era && !c->this_lease &&
            c->lease == self->lease)
            return true;
    }
    return false;
}

static inline void check_grant(struct world *w, struct caller *c, uint64_t found, unsigned now,
                               enum breaker_change change)
{
    struct breaker_view before = breaker_decode(found), after = breaker_decode(w->word);
    bool was_open = before.phase == BREAKER_OPEN;

    law(was_open || before.phase == BREAKER_HALF_OPEN, "only an open breaker grants probes");
    law(!was_open || ticks_left(before.time, now) <= 0,
        "nothing passes before the open time is over");
    law(change == (was_open ? BREAKER_PROBING : BREAKER_NO_CHANGE),
        "the first grant is told, no other");
    if (was_open || before.granted == 0 || ticks_left(before.time, now) <= 0) {
        lease_begins(w);
        law(ticks_left(after.time, now) == (int32_t)policy.lease_ticks,
            "a new lease is a whole one");
        tally.new_leases++;
    } else {
        law(after.time == before.time, "a further grant does not lengthen the lease");
    }
    w->outstanding++;
    c->this_era = c->this_lease = 1;
    law(w->outstanding <= policy.half_open_probes,
        "no more grants of a lease than half_open_probes");
    law(after.phase == BREAKER_HALF_OPEN && after.generation == before.generation &&
            after.step == before.step && after.successes == (was_open ? 0 : before.successes),
        "a grant changes nothing else");
    law(c->probe && c->counted && c->generation == after.generation,
        "a grant's ticket is a counted probe's");
    law(!number_is_taken(w, c), "no two leases carry the same numbers");
    tally.grants++;
}

static inline void check_refusal(const struct world *w, uint64_t found, unsigned now)
{
    struct breaker_view view = breaker_decode(found);
    bool pending = ticks_left(view.time, now) > 0;

    tally.refused++;
    if (view.phase == BREAKER_HALF_OPEN)
        law(pending && w->outstanding >= policy.half_open_probes, "a free grant refuses nobody");
    else
        law(view.phase == BREAKER_FORCED_OPEN || (view.phase == BREAKER_OPEN && pending),
            "only an open breaker refuses");
}

/* --- settlement ------------------------------------------------------------------------------ */

struct settled {
    struct breaker_view before, after;
    bool changed; /* the word */
    enum breaker_change change;
    enum caller_end end;
    unsigned now;
};

static inline void check_opened(const struct settled *s, unsigned step)
{
    int32_t left = ticks_left(s->after.time, s->now);

    law(s->after.phase == BREAKER_OPEN &&
            s->after.step == (step < BREAKER_STEP_MAX ? step : BREAKER_STEP_MAX),
        "an opened breaker knows its step");
    law(left >= (int32_t)policy.open_ticks && left >= (int32_t)extra_of_end.retry_after_ticks,
        "an open time is a whole one");
}

static inline bool trips_at(unsigned streak)
{
    return policy.failure_threshold > 0 && streak >= policy.failure_threshold;
}

static inline void check_counted_end(struct world *w, const struct caller *c,
                                     const struct settled *s)
{
    bool reset = s->end == END_SUCCESS && (w->streak == 0 || c->admitted >= w->first);
    bool degraded = policy.degrade_threshold > 0 && s->before.streak >= policy.degrade_threshold;

    if (s->end == END_SUCCESS) {
        law(s->changed == (reset && (s->before.streak > 0 || s->before.step > 0)),
            "a success resets the streak that it saw begin, nothing else");
        law(s->after.step == (reset ? 0 : s->before.step),
            "a clean end resets the step with the streak");
        law(s->change == (reset && degraded ? BREAKER_RECOVERED : BREAKER_NO_CHANGE),
            "recovery is told once");
        if (reset)
            w->streak = w->first = 0;
        else
            tally.old_successes++;
        return;
    }
    if (w->streak == 0)
        w->first = (uint16_t)s->now;
    bool unproved = policy.failure_threshold == 0 && c->headed && w->streak > 0;
    w->streak += w->streak < BREAKER_COUNT_MAX;
    if (!trips_at(w->streak) && !unproved) {
        law(s->after.phase == BREAKER_CLOSED && s->after.streak == w->streak,
            "each counted failure counts once");
        law(s->change ==
                (w->streak == policy.degrade_threshold ? BREAKER_DEGRADED : BREAKER_NO_CHANGE),
            "degraded is told once");
        return;
    }
    law(s->after.phase == BREAKER_OPEN && s->change == BREAKER_TRIPPED,
        "failures in a row open at the threshold");
    check_opened(s, s->before.step);
    era_begins(w, 0, 0);
    tally.trips++;
    tally.head_broke += c->headed;
}

static inline void check_close(struct world *w, const struct caller *c, const struct settled *s)
{
    unsigned threshold = policy.failure_threshold, on_trial = threshold > 0 ? threshold - 1 : 1;
    unsigned streak = s->end == END_HEAD ? on_trial : 0;

    tally.closed++;
    tally.closed_late += !c->this_lease;
    tally.closed_by_head += s->end == END_HEAD;
    law(s->after.phase == BREAKER_CLOSED && s->change == BREAKER_CLOSED_AGAIN,
        "a probe's success closes, however slow");
    law(s->after.step == (s->end == END_HEAD ? s->before.step : 0) && s->after.streak == streak,
        "a close by a head alone is one failure from opening, any other forgets");
    law(streak == 0 || s->after.time == tick_of(c->admitted),
        "the streak left by a head begins with its probe");
    era_begins(w, streak, c->admitted);
}

static inline void check_probe_end(struct world *w, const struct caller *c, const struct settled *s)
{
    bool holder = c->this_lease && c->this_era;

    law(s->before.phase == BREAKER_HALF_OPEN, "a probe's generation is half-open");
    if (s->end == END_SUCCESS || s->end == END_HEAD) {
        if (s->before.successes + 1u >= policy.success_threshold) {
            check_close(w, c, s);
            return;
        }
        law(s->after.successes == s->before.successes + 1, "each success of a probe counts once");
    } else if (!holder) {
        law(!s->changed, "a probe that lost its lease undoes nothing");
        tally.lost_leases++;
        return;
    } else if (s->end == END_FAILURE) {
        law(s->change == BREAKER_REOPENED, "a probe's failure opens again");
        check_opened(s, s->before.step + 1u);
        era_begins(w, 0, 0);
        tally.reopened++;
        return;
    } else {
        law(s->after.successes == s->before.successes, "a hand-back is no success");
        tally.hand_backs++;
    }
    w->outstanding -= holder;
    law(s->after.phase == BREAKER_HALF_OPEN && s->after.generation == s->before.generation &&
            s->change == BREAKER_NO_CHANGE && s->after.granted == s->before.granted - holder,
        "an end that decides nothing frees its own grant");
    law(s->after.time == (holder && w->outstanding == 0 ? tick_of(s->now) : s->before.time),
        "the last grant that is freed ends the lease");
}

static inline void check_end(struct world *w, const struct caller *c, const struct settled *s)
{
    law((s->before.phase != s->after.phase) == (s->before.generation != s->after.generation),
        "the generation moves with the phase");
    if (!c->counted || !c->this_era) {
        law(!s->changed, "an older generation changes nothing, nor what is not counted");
        tally.uncounted += !c->counted;
        tally.old_tickets += !c->this_era;
        return;
    }
    if (s->end == END_NEUTRAL)
        law(s->before.streak == s->after.streak && s->before.phase == s->after.phase,
            "a neutral end changes no streak and no phase");
    if (c->probe)
        check_probe_end(w, c, s);
    else if (s->end == END_NEUTRAL)
        law(!s->changed, "a neutral end of a plain call changes nothing");
    else
        check_counted_end(w, c, s);
}

static inline void check_drop(const struct world *w, const struct caller *c,
                              const struct settled *s)
{
    tally.dropped++;
    law(!c->probe, "a probe's settle is never dropped");
    law(s->end != END_FAILURE || !trips_at(w->streak + 1u), "a trip is never dropped");
    law(s->change == BREAKER_NO_CHANGE, "what was dropped is not told");
}

/* --- every state ----------------------------------------------------------------------------- */

static inline unsigned holders_of(const struct world *w)
{
    unsigned holders = 0;

    for (unsigned i = 0; i < WORLD_CALLERS; i++)
        holders += w->callers[i].at >= CALLER_CALLING && w->callers[i].this_lease;
    return holders;
}

static inline uint32_t longest_wait(void)
{
    uint32_t open =
        policy.open_max_ticks > policy.open_ticks ? policy.open_max_ticks : policy.open_ticks;

    open += (uint32_t)((uint64_t)open * policy.jitter_q16 >> 16);
    if (open < policy.lease_ticks)
        open = policy.lease_ticks;
    return open > WORLD_RETRY_AFTER_MAX ? open : WORLD_RETRY_AFTER_MAX;
}

static inline void check_world(const struct world *w)
{
    struct breaker_view view = breaker_decode(w->word);

    law(breaker_encode(&view) == w->word, "what is written is what is read");
    if (view.phase == BREAKER_CLOSED) {
        law(view.streak == w->streak && !trips_at(view.streak),
            "the streak is the book's, below the threshold");
        law(w->streak == 0 || view.time == tick_of(w->first),
            "a streak begins with its first failure");
        return;
    }
    law(holders_of(w) <= w->outstanding && w->outstanding <= policy.half_open_probes,
        "no more grants of a lease than half_open_probes");
    law(view.granted == w->outstanding, "the word counts the grants that are out");
    if (view.phase > BREAKER_HALF_OPEN)
        return;
    /* Whoever is dead, and whatever happened. */
    law(ticks_left(view.time, w->now) <= (int32_t)longest_wait(),
        "no wait is longer than the settings allow");
    law(breaker_admit(w->word, view.time, &policy).verdict == BREAKER_GRANT,
        "an open breaker always ends");
}

#endif
