/*
 * moves.h - all that can happen next in a world.
 */
#ifndef BREAKER_TESTS_MOVES_H
#define BREAKER_TESTS_MOVES_H

#include "laws.h"

/* The caller read a word by its load or by a swap that lost; or it has swapped. */
static inline void after_admit(struct world *w, struct caller *c,
                               const struct breaker_admission *admission, uint64_t found,
                               unsigned now, enum breaker_change change)
{
    memset(c, 0, sizeof *c);
    law(steps.landed == (admission->verdict == BREAKER_GRANT),
        "a grant is written, nothing else is");
    if (admission->verdict == BREAKER_REFUSE) {
        check_refusal(w, found, now);
        return;
    }
    c->at = CALLER_CALLING;
    c->admitted = (uint16_t)now & WORLD_TICKS_MAX;
    c->generation = admission->ticket.generation & BREAKER_GENERATION_MAX;
    c->lease = admission->ticket.lease & BREAKER_LEASE_MAX;
    c->probe = admission->ticket.probe;
    c->counted = admission->ticket.counted;
    law(admission->ticket.admitted == tick_of(now), "a ticket knows when it was admitted");
    if (admission->verdict == BREAKER_GRANT) {
        check_grant(w, c, found, now, change);
        return;
    }
    c->this_era = 1;
    tally.admitted++;
    law(!c->probe && c->generation == breaker_decode(found).generation,
        "a ticket carries the generation");
    law(breaker_decode(found).phase == (c->counted ? BREAKER_CLOSED : BREAKER_FORCED_CLOSED),
        "only a closed breaker admits without a grant");
}

static inline void step_admit(struct world *w, struct caller *c, enum steps_until until,
                              unsigned now)
{
    enum breaker_change change = BREAKER_NO_CHANGE;
    uint64_t found = c->at == CALLER_IDLE ? w->word : c->found;

    steps_begin(until, found, c->overtaken, w->word);
    struct breaker_admission admission = steps_admit(tick_of(now), &policy, &change);
    if (steps.stopped) {
        law(steps.expected == w->word &&
                steps.desired == breaker_admit(w->word, tick_of(now), &policy).next,
            "who lost a race decides by the word that it found");
        c->at = CALLER_ADMITTING;
        c->overtaken = 0;
        c->found = w->word;
        c->now = (uint16_t)now & WORLD_TICKS_MAX;
        return;
    }
    found = steps.landed ? found : w->word;
    w->word = steps.word;
    after_admit(w, c, &admission, found, now, change);
}

/* What slot.c made of the ticket. A head that closed goes on as a counted call of the new era. */
static inline void after_end(struct caller *c, const struct breaker_ticket *ticket,
                             const struct settled *s)
{
    bool headed = s->end == END_HEAD, closed = headed && s->change == BREAKER_CLOSED_AGAIN;
    struct caller next = {.at = headed ? CALLER_CALLING : CALLER_IDLE};

    if (headed) {
        law(closed ? ticket->counted && !ticket->probe && ticket->generation == s->after.generation
                   : !ticket->counted || !c->this_era,
            "a probe's head and its end are one success");
        next.admitted = c->admitted;
        next.generation = ticket->generation & BREAKER_GENERATION_MAX;
        next.lease = ticket->lease & BREAKER_LEASE_MAX;
        next.probe = ticket->probe;
        next.counted = ticket->counted;
        next.this_era = closed || c->this_era;
        next.headed = 1;
    }
    *c = next;
}

static inline void step_settle(struct world *w, struct caller *c, enum steps_until until,
                               enum caller_end end, unsigned now)
{
    struct breaker_ticket ticket = ticket_of(c);
    struct breaker_extra extra = extra_of_end;
    enum breaker_outcome outcome = end == END_HEAD ? BREAKER_SUCCESS : (enum breaker_outcome)end;
    uint64_t found = c->at == CALLER_CALLING ? w->word : c->found;

    extra.provisional = end == END_HEAD;
    steps_begin(until, found, c->overtaken, w->word);
    enum breaker_change change = steps_settle(&ticket, outcome, tick_of(now), &policy, &extra);
    if (steps.stopped && until == STEPS_LOSE)
        return; /* it goes on trying */
    if (steps.stopped) {
        struct breaker_ticket own = ticket_of(c);
        law(steps.expected == w->word &&
                steps.desired ==
                    breaker_settle(w->word, &own, outcome, tick_of(now), &policy, &extra).next,
            "who lost a race decides by the word that it found");
        c->lost = c->at == CALLER_SETTLING;
        tally.overtaken += c->lost;
        c->at = CALLER_SETTLING;
        c->overtaken = 0;
        c->found = w->word;
        c->now = (uint16_t)now & WORLD_TICKS_MAX;
        c->end = (uint16_t)end & 3;
        return;
    }
    struct settled s = {.before = breaker_decode(steps.landed ? found : w->word),
                        .after = breaker_decode(steps.word),
                        .changed = steps.landed,
                        .change = change,
                        .end = end,
                        .now = now};
    w->word = steps.word;
    if (steps.swaps == STEPS_TRIES && !steps.landed)
        check_drop(w, c, &s);
    else
        check_end(w, c, &s);
    after_end(c, &ticket, &s);
}

/* --- operators ------------------------------------------------------------------------------- */

static inline void step_operator(struct world *w, unsigned order)
{
    static const enum breaker_phase phases[] = {BREAKER_OPEN, BREAKER_FORCED_OPEN,
                                                BREAKER_FORCED_CLOSED, BREAKER_CLOSED};
    struct breaker_view before = breaker_decode(w->word), after;

    w->operators--;
    tally.orders++;
    if (order == 0)
        w->word = breaker_trip(w->word, tick_of(w->now), &policy, 0);
    else
        w->word = order == 1   ? breaker_force_open(w->word)
                  : order == 2 ? breaker_force_closed(w->word)
                               : breaker_reset(w->word);
    after = breaker_decode(w->word);
    law(after.phase == phases[order] && after.streak == 0, "an operator's order is obeyed");
    law(after.generation == ((before.generation + 1) & BREAKER_GENERATION_MAX),
        "an operator moves the generation");
    if (order == 0 && before.phase == BREAKER_OPEN)
        law(ticks_left(after.time, w->now) >= ticks_left(before.time, w->now),
            "a trip never shortens");
    era_begins(w, 0, 0);
}

/* --- all of them ----------------------------------------------------------------------------- */

enum move {
    MOVE_ADMIT, /* IDLE: reads the clock and the word */
    MOVE_SWAP,  /* ADMITTING, SETTLING: its swap */
    MOVE_DROP,  /* SETTLING: it loses all races that are left to it */
    MOVE_CRASH, /* anywhere but IDLE */
    MOVE_END,   /* CALLING: reads the clock and the word; MOVE_END + enum caller_end */
    MOVES = MOVE_END + 4,
};

/* One move of one caller, whose clock shows `lag` ticks less when it reads it in this move. False:
 * it cannot come now, and nothing is changed. */
static inline bool world_move(struct world *w, struct caller *c, enum move move, unsigned lag)
{
    bool reads_clock = move == MOVE_ADMIT || move >= MOVE_END,
         swaps = c->at == CALLER_ADMITTING || c->at == CALLER_SETTLING;

    if (reads_clock ? lag > w->now : lag > 0)
        return false;
    if (move == MOVE_ADMIT && c->at == CALLER_IDLE) {
        step_admit(w, c, STEPS_LOAD, w->now - lag);
    } else if (move == MOVE_SWAP && swaps) {
        if (c->at == CALLER_ADMITTING)
            step_admit(w, c, STEPS_SWAP, c->now);
        else
            step_settle(w, c, STEPS_SWAP, c->end, c->now);
    } else if (move == MOVE_DROP && c->at == CALLER_SETTLING && c->lost && c->found == w->word) {
        step_settle(w, c, STEPS_LOSE, c->end, c->now);
    } else if (move == MOVE_CRASH && c->at != CALLER_IDLE) {
        memset(c, 0, sizeof *c);
        tally.crashes++;
    } else if (move >= MOVE_END && c->at == CALLER_CALLING &&
               (move != MOVE_END + END_HEAD || (c->probe && !c->headed))) {
        step_settle(w, c, STEPS_LOAD, (enum caller_end)(move - MOVE_END), w->now - lag);
    } else {
        return false;
    }
    check_world(w);
    return true;
}

#endif
