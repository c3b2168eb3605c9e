/*
 * breaker.h - the circuit breaker as a pure function: (word, event, now, policy) -> (word,
 * verdict).
 *
 * The whole breaker is ONE 64-bit word, so that every transition is one compare-and-swap by the
 * caller (table/slot.h) and there is no instruction at which kill -9 leaves it torn or anyone
 * waiting. This file never touches memory that it is not given, reads no clock and allocates
 * nothing. All functions are total: any word decodes (an unknown phase is CLOSED), any ticket is
 * safe. Async-signal-safe, thread-safe.
 *
 * The word, from the high bits down:
 *
 *   63..61 phase        enum breaker_phase; unknown values decode as CLOSED with nothing counted
 *   60..57 step         back-off step: failed probes since the last proven recovery, saturates
 *   56..46 generation   moves on trip, close, force and reset; wraps
 *   45..39 lease        moves when a lease begins, all of whose grants carry it; wraps
 *   38..30 count        CLOSED: the streak. HALF_OPEN: grants of this lease (low 4 bits) and
 *                       successes (high 5 bits). Else 0
 *   29..0  time         ticks, modulo 2^30. OPEN: deadline. HALF_OPEN: lease end. CLOSED with a
 *                       streak: when its first failure was settled. Else 0
 *
 * The word 0 is CLOSED, no failures: a fresh page of the table needs no initialisation.
 *
 * A tick is 2^25 ns (33.6 ms), so the time field wraps after 417 days. A deadline further ahead
 * than BREAKER_HORIZON_TICKS (24 h) counts as expired: clock faults and corruption heal themselves.
 */
#ifndef BREAKER_CORE_BREAKER_H
#define BREAKER_CORE_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

#define BREAKER_TICK_SHIFT 25
#define BREAKER_TIME_BITS  30
/* Moves when a field of the word moves: part of the fingerprint of the table. */
#define BREAKER_WORD_LAYOUT      1
#define BREAKER_PHASE_SHIFT      61
#define BREAKER_STEP_SHIFT       57
#define BREAKER_GENERATION_SHIFT 46
#define BREAKER_LEASE_SHIFT      39
#define BREAKER_COUNT_SHIFT      30
#define BREAKER_STEP_MAX         15
#define BREAKER_GENERATION_MAX   2047 /* modulo 2048 */
#define BREAKER_LEASE_MAX        127  /* modulo 128 */
#define BREAKER_COUNT_MAX        511  /* largest streak the word can hold */
#define BREAKER_PROBES_MAX       15   /* largest half_open_probes */
#define BREAKER_SUCCESS_MAX      31   /* largest success_threshold */
#define BREAKER_HORIZON_TICKS    ((uint32_t)(UINT64_C(86400000000000) >> BREAKER_TICK_SHIFT))

enum breaker_phase {
    BREAKER_CLOSED = 0,
    BREAKER_OPEN = 1,
    BREAKER_HALF_OPEN = 2,
    BREAKER_FORCED_OPEN = 3,
    BREAKER_FORCED_CLOSED = 4,
};

/* Ticks of a CLOCK_BOOTTIME time or of a duration in ns (rounded up for durations, so that a
 * deadline never comes early). */
static inline uint32_t breaker_tick(uint64_t boot_ns)
{
    return (uint32_t)(boot_ns >> BREAKER_TICK_SHIFT) & ((UINT32_C(1) << BREAKER_TIME_BITS) - 1);
}

static inline uint32_t breaker_ticks_of(uint64_t duration_ns)
{
    uint64_t ticks = (duration_ns >> BREAKER_TICK_SHIFT) +
                     ((duration_ns & ((UINT64_C(1) << BREAKER_TICK_SHIFT) - 1)) != 0);
    return ticks > BREAKER_HORIZON_TICKS ? BREAKER_HORIZON_TICKS : (uint32_t)ticks;
}

static inline uint64_t breaker_tick_ns(uint32_t ticks)
{
    return (uint64_t)ticks << BREAKER_TICK_SHIFT;
}

/* What the configuration says of one breaker; values out of range are clamped where used. */
struct breaker_policy {
    uint16_t failure_threshold; /* consecutive failures that trip; 0 = never */
    uint16_t degrade_threshold; /* streak from which CLOSED is shown as degraded; 0 = never */
    uint8_t half_open_probes;   /* grants per lease, 1..BREAKER_PROBES_MAX */
    uint8_t success_threshold;  /* successes that close, 1..BREAKER_SUCCESS_MAX */
    uint16_t backoff_q8;        /* factor per failed probe, 8.8 fixed point; 256 = none */
    uint16_t jitter_q16;        /* share of the open time added at most, 0.16 fixed point */
    uint32_t open_ticks;        /* open time of the first trip */
    uint32_t open_max_ticks;    /* ceiling of the backed-off open time (jitter comes on top) */
    uint32_t lease_ticks;       /* how long a probe keeps its grant: max(open time, probe_lease) */
    uint32_t failure_rate; /* share of failures that trips, in millionths; 0 = never (rate.h) */
    uint32_t window_ms;    /* over which it is told */
    uint32_t min_calls;    /* in the window; fewer say nothing of the share */
};

/* The word taken apart. */
struct breaker_view {
    enum breaker_phase phase;
    uint8_t step;
    uint16_t generation;
    uint8_t lease;
    uint16_t streak;   /* CLOSED only */
    uint8_t granted;   /* HALF_OPEN only */
    uint8_t successes; /* HALF_OPEN only */
    uint32_t time;     /* ticks, see above */
};

/* A right to settle once. Plain data, owned by the caller; all-zero settles as statistics only. */
struct breaker_ticket {
    uint32_t admitted; /* tick of the admission */
    uint16_t generation;
    uint8_t lease;
    bool probe;    /* holds a grant of a HALF_OPEN lease */
    bool on_trial; /* a probe's whose head closed the breaker: the stream is to prove it */
    bool counted;  /* false: passed although (or while) the breaker would refuse, or with no
                      say at all (forced closed): moves statistics only */
};

enum breaker_verdict {
    BREAKER_ADMIT,  /* goes through; the word is not to be written */
    BREAKER_GRANT,  /* goes through as a probe, if the CAS to `next` succeeds */
    BREAKER_REFUSE, /* does not go through; the word is not to be written */
};

struct breaker_admission {
    enum breaker_verdict verdict;
    uint64_t next;                /* BREAKER_GRANT only, else equal to the word given */
    struct breaker_ticket ticket; /* ADMIT and GRANT; all-zero for REFUSE */
    uint32_t wait_ticks;          /* REFUSE: until a probe is due (0: forced open, nobody knows, or
                                     half-open with the grants taken: soon) */
};

enum breaker_outcome { BREAKER_NEUTRAL = 0, BREAKER_SUCCESS = 1, BREAKER_FAILURE = 2 };

/* What a settle or an operator did to the phase, for the log and the statistics. */
enum breaker_change {
    BREAKER_NO_CHANGE = 0, /* phase as before (the word may still differ: a streak, a grant) */
    BREAKER_DEGRADED,      /* CLOSED, the streak reached degrade_threshold */
    BREAKER_RECOVERED,     /* CLOSED, a success ended a streak that showed as degraded */
    BREAKER_TRIPPED,       /* CLOSED -> OPEN */
    BREAKER_REOPENED,      /* HALF_OPEN -> OPEN, a probe failed */
    BREAKER_CLOSED_AGAIN,  /* HALF_OPEN (or OPEN, by a slow probe) -> CLOSED */
    BREAKER_PROBING,       /* OPEN -> HALF_OPEN, at an admission */
};

struct breaker_result {
    uint64_t next; /* equal to the word given: nothing to write */
    enum breaker_change change;
    bool must_land; /* the CAS may not be given up (a grant's settle, a trip, an
                       operator); false: drop it after 8 lost races */
};

/* What a failing call adds to the trip that it causes. Zero means nothing. */
struct breaker_extra {
    uint16_t random; /* for the jitter, uniform */
    uint32_t
        retry_after_ticks; /* Retry-After of the failing 5xx: the trip lasts at least so long */
    bool provisional;      /* success of a probe judged by a stream's head (DESIGN, Streams):
                              the close leaves streak = threshold - 1 (without a threshold 1)
                              and the step as it was */
    bool rate_exceeded;    /* of a failure: the share of failures, this one included, is reached */
};

struct breaker_view breaker_decode(uint64_t word);
uint64_t breaker_encode(const struct breaker_view *view);

/*
 * May a call go through at tick `now`? Never fails and never writes: for BREAKER_GRANT the caller
 * must CAS `word` to `next` and ask again with the word it found if that loses. Reading state to
 * show it must use breaker_effective() instead (resilience4j#858).
 */
struct breaker_admission breaker_admit(uint64_t word, uint32_t now,
                                       const struct breaker_policy *policy);

/* The healthy case of breaker_admit, inlined where calls pass: CLOSED admits without more. */
static inline bool breaker_is_closed(uint64_t word)
{
    return word >> BREAKER_PHASE_SHIFT == BREAKER_CLOSED;
}

static inline struct breaker_ticket breaker_ticket_closed(uint64_t word, uint32_t now)
{
    return (struct breaker_ticket){
        .admitted = now & ((UINT32_C(1) << BREAKER_TIME_BITS) - 1),
        .generation = (word >> BREAKER_GENERATION_SHIFT) & BREAKER_GENERATION_MAX,
        .lease = (word >> BREAKER_LEASE_SHIFT) & BREAKER_LEASE_MAX,
        .counted = true,
    };
}

/* The healthy case of breaker_settle: CLOSED with no streak and no step, where neither a success
 * nor a neutral end of any ticket changes the word. */
static inline bool breaker_is_clean(uint64_t word)
{
    return breaker_is_closed(word) && (word >> BREAKER_STEP_SHIFT) == 0 &&
           ((word >> BREAKER_COUNT_SHIFT) & BREAKER_COUNT_MAX) == 0;
}

/*
 * One call ended. Invariants (each a property test):
 * - a ticket of an older generation, or one not `counted`, never changes the word;
 * - a probe's success needs the generation only; its failure and its hand-back (NEUTRAL) need the
 *   lease as well, so a probe that lost its lease to another cannot undo what that one did;
 * - NEUTRAL never changes a streak, and gives a held grant back at once (lease ended when it was
 *   the last);
 * - a success resets a streak only if it was admitted at or after the streak's first failure;
 * - failure_threshold counted failures in a row leave CLOSED for OPEN, and so does a counted one
 *   with extra->rate_exceeded, whatever the streak and failure_threshold say;
 * - without a threshold, so does that of the call on trial, unless a success came between.
 */
struct breaker_result breaker_settle(uint64_t word, const struct breaker_ticket *ticket,
                                     enum breaker_outcome outcome, uint32_t now,
                                     const struct breaker_policy *policy,
                                     const struct breaker_extra *extra);

/* Is a call with this ticket one of those that a closed breaker counts, for its streak and for the
 * share of failures (rate.h)? */
bool breaker_is_counting(uint64_t word, const struct breaker_ticket *ticket);

/* After a provisional close the probe's ticket takes the new generation, so that a break of its own
 * stream counts (DESIGN, Streams). `word` is the word that the settle wrote. */
void breaker_follow(struct breaker_ticket *ticket, uint64_t word);

/* Operators. Each moves the generation, so calls under way only feed statistics afterwards. */
uint64_t breaker_trip(uint64_t word, uint32_t now, const struct breaker_policy *policy,
                      uint16_t random);
uint64_t breaker_force_open(uint64_t word);
uint64_t breaker_force_closed(uint64_t word);
uint64_t breaker_reset(uint64_t word); /* CLOSED, nothing counted; also `force none` */

/* Display: the state an admission at `now` would meet. Computes, never mutates. */
enum breaker_state {
    BREAKER_SHOW_CLOSED,
    BREAKER_SHOW_DEGRADED,
    BREAKER_SHOW_OPEN, /* wait_ticks 0: the open time is over, a probe is due */
    BREAKER_SHOW_HALF_OPEN,
    BREAKER_SHOW_FORCED_OPEN,
    BREAKER_SHOW_FORCED_CLOSED,
};
struct breaker_effective {
    enum breaker_state state;
    uint16_t streak;
    uint16_t generation;
    uint32_t wait_ticks; /* OPEN: until the probe is due; HALF_OPEN: until the lease ends */
};
struct breaker_effective breaker_effective(uint64_t word, uint32_t now,
                                           const struct breaker_policy *policy);

/* "closed", "degraded", "open", "half_open", "forced_open", "forced_closed": as in status --json
 * and in X-Breaker-State. Static storage. */
const char *breaker_state_name(enum breaker_state state);

#endif
