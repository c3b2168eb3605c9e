/*
 * world.h - callers of one breaker, each between two steps of its call, and the laws that hold
 * whatever step comes next. The book that the laws are told by (which calls belong to this era and
 * this lease, who holds a grant, how many failures stand in a row) is kept here and never read from
 * the word's small numbers.
 *
 * A kill -9 is a step, too: the caller is gone, with it what it held, and another starts in its
 * place. Define WORLD_CALLERS first.
 */
#ifndef BREAKER_TESTS_WORLD_H
#define BREAKER_TESTS_WORLD_H

#include <stdio.h>
#include <string.h>

#include "steps.h"

#define WORLD_TIME_MASK ((UINT32_C(1) << BREAKER_TIME_BITS) - 1)
/* The world's tick 0: the clock wraps on the way. */
#define WORLD_BEGIN     (WORLD_TIME_MASK - 2)
#define WORLD_TICKS_MAX 16383u
/* The longest Retry-After that a failure brings along. */
#define WORLD_RETRY_AFTER_MAX 5u

enum caller_at { CALLER_IDLE, CALLER_ADMITTING, CALLER_CALLING, CALLER_SETTLING };

/* How a call ends. A head is the good head of a probe's stream, whose end then comes as another. */
enum caller_end { END_NEUTRAL, END_SUCCESS, END_FAILURE, END_HEAD };

/* Without padding: worlds are compared as bytes. What does not matter in a state is 0. */
struct caller {
    uint64_t found;           /* ADMITTING, SETTLING: the word that its swap expects */
    uint16_t now : 14;        /* likewise: the clock as it read it, in ticks of the world */
    uint16_t at : 2;          /* enum caller_at */
    uint16_t admitted : 14;   /* CALLING, SETTLING: the ticket, from here on */
    uint16_t end : 2;         /* SETTLING: enum caller_end */
    uint16_t generation : 11; /* of the ticket */
    uint16_t probe : 1;       /* of the ticket */
    uint16_t counted : 1;     /* of the ticket */
    uint16_t this_era : 1;    /* book: no generation began since the admission (or the head) */
    uint16_t this_lease : 1;  /* book: a probe, and no lease began since */
    uint16_t lost : 1;        /* SETTLING: another overtook it */
    uint16_t lease : 7;       /* of the ticket */
    uint16_t headed : 1;      /* its head was settled */
    uint16_t overtaken : 1;   /* ADMITTING, SETTLING: it found another word than there is now, which
                                 is not kept */
    uint16_t unused : 7;
};

struct world {
    uint64_t word;
    uint16_t now;
    uint16_t streak;     /* book: counted failures in a row */
    uint16_t first;      /* book: the tick of the first of them */
    uint8_t outstanding; /* book: grants of this lease that nobody settled, the dead's included */
    uint8_t operators;   /* orders that may still come */
    struct caller callers[WORLD_CALLERS];
};

_Static_assert(sizeof(struct caller) == 16, "no padding");
_Static_assert(sizeof(struct world) == 16 + 16 * WORLD_CALLERS, "no padding");

/* What the steps met: a law that was never put to the test proves nothing. */
static struct {
    unsigned long admitted, refused, grants, new_leases, overtaken, dropped, trips, reopened,
        closed, closed_late, closed_by_head, head_broke, hand_backs, lost_leases, old_tickets,
        old_successes, crashes, uncounted, orders;
} tally;

static struct breaker_policy policy;
static struct breaker_extra extra_of_end; /* what a failure brings along */
static const char *broken;                /* the first law that did not hold */

static inline void law(bool holds, const char *text)
{
    if (!holds && !broken)
        broken = text;
}

/* --- time ------------------------------------------------------------------------------------ */

static inline uint32_t tick_of(unsigned now)
{
    return (WORLD_BEGIN + now) & WORLD_TIME_MASK;
}

/* Ticks from `now` to a deadline; negative when it has passed. Without the horizon: no world lives
 * so long. */
static inline int32_t ticks_left(uint32_t deadline, unsigned now)
{
    return (int32_t)((deadline - tick_of(now)) << 2) >> 2;
}

/* --- the book -------------------------------------------------------------------------------- */

static inline void era_begins(struct world *w, unsigned streak, unsigned first)
{
    w->streak = (uint16_t)streak;
    w->first = (uint16_t)(streak > 0 ? first : 0);
    w->outstanding = 0;
    for (unsigned i = 0; i < WORLD_CALLERS; i++)
        w->callers[i].this_era = w->callers[i].this_lease = 0;
}

static inline void lease_begins(struct world *w)
{
    w->outstanding = 0;
    for (unsigned i = 0; i < WORLD_CALLERS; i++)
        w->callers[i].this_lease = 0;
}

static inline struct breaker_ticket ticket_of(const struct caller *c)
{
    return (struct breaker_ticket){.admitted = tick_of(c->admitted),
                                   .generation = c->generation,
                                   .lease = c->lease,
                                   .probe = c->probe,
                                   .on_trial = c->headed,
                                   .counted = c->counted};
}

/* --- telling --------------------------------------------------------------------------------- */

static inline void world_print(const struct world *w)
{
    static const char *const at[] = {"idle", "admitting", "calling", "settling"};
    static const char *const ends[] = {"neutral", "success", "failure", "head"};
    static const char *const phases[] = {"closed", "open", "half-open", "forced open",
                                         "forced closed"};
    struct breaker_view v = breaker_decode(w->word);

    fprintf(stderr,
            "  tick %u: %s, generation %u, lease %u, step %u, streak %u, granted %u, successes %u, "
            "time %d;",
            w->now, phases[v.phase], v.generation, v.lease, v.step, v.streak, v.granted,
            v.successes, ticks_left(v.time, 0));
    for (unsigned i = 0; i < WORLD_CALLERS; i++) {
        const struct caller *c = &w->callers[i];
        if (c->at != CALLER_IDLE)
            fprintf(stderr, " %s", at[c->at]);
        if (c->at >= CALLER_CALLING)
            fprintf(stderr, "%s %u.%u of %u", c->probe ? " probe" : "", c->generation, c->lease,
                    c->admitted);
        if (c->at == CALLER_SETTLING)
            fprintf(stderr, " as %s", ends[c->end]);
        if (c->at == CALLER_ADMITTING || c->at == CALLER_SETTLING)
            fprintf(stderr, " at %u", c->now);
        if (c->at != CALLER_IDLE)
            fputc(',', stderr);
    }
    fputc('\n', stderr);
}

/* Was every law put to the test? */
static inline bool world_met_all(void)
{
    static const char *const names[] = {
        "admitted",       "refused",    "grants",     "new leases",  "overtaken",
        "dropped",        "trips",      "reopened",   "closed",      "closed late",
        "closed by head", "head broke", "hand backs", "lost leases", "old tickets",
        "old successes",  "crashes",    "uncounted",  "orders"};
    const unsigned long *count = &tally.admitted;
    bool all = true;

    _Static_assert(sizeof names / sizeof *names == sizeof tally / sizeof *count, "one for each");
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        printf("%s%s %lu", i ? ", " : "met: ", names[i], count[i]);
        all = all && count[i] > 0;
    }
    putchar('\n');
    return all;
}

#endif
