/* The invariants of breaker.h, checked after each step of long random walks, and totality over
 * random words. The walk keeps its own book of who holds what, without the word's small numbers. */
#include "core/breaker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#define TIME_MASK ((UINT32_C(1) << BREAKER_TIME_BITS) - 1)
#define POOL      24

struct held {
    struct breaker_ticket ticket;
    uint64_t lease; /* of the book, never wraps */
    uint64_t era;   /* likewise for generations */
    bool live;
};

struct walk {
    uint64_t random;
    uint64_t word;
    uint32_t now;
    struct breaker_policy policy;
    struct held pool[POOL];
    uint64_t lease, era;
    unsigned outstanding; /* grants of the current lease that are not yet settled */
    unsigned streak;      /* counted failures in a row since the last reset of any kind */
    unsigned trips, closes, grants, handbacks;
};

static uint32_t rnd(struct walk *w, uint32_t below)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return (uint32_t)(w->random >> 24) % below;
}

static bool pending(uint32_t deadline, uint32_t now)
{
    uint32_t left = (deadline - now) & TIME_MASK;
    return left != 0 && left <= BREAKER_HORIZON_TICKS;
}

static void check_word(const struct walk *w)
{
    struct breaker_view view = breaker_decode(w->word);
    struct breaker_effective shown = breaker_effective(w->word, w->now, &w->policy);
    struct breaker_admission admission = breaker_admit(w->word, w->now, &w->policy);

    assert_true(breaker_encode(&view) == w->word);
    assert_true(view.phase == BREAKER_CLOSED || view.streak == 0);
    assert_true(view.streak > 0 || view.phase != BREAKER_CLOSED || view.time == 0);
    if (view.phase == BREAKER_CLOSED)
        assert_int_equal(admission.verdict, BREAKER_ADMIT);
    if (admission.verdict != BREAKER_GRANT)
        assert_true(admission.next == w->word);
    if (shown.state == BREAKER_SHOW_OPEN) {
        assert_int_equal(admission.verdict, shown.wait_ticks ? BREAKER_REFUSE : BREAKER_GRANT);
        assert_int_equal(admission.wait_ticks, shown.wait_ticks);
    }
    if (shown.state == BREAKER_SHOW_HALF_OPEN && shown.wait_ticks == 0)
        assert_int_equal(admission.verdict, BREAKER_GRANT);
}

static void keep(struct walk *w, const struct breaker_ticket *ticket)
{
    struct held *h = &w->pool[rnd(w, POOL)];
    *h = (struct held){*ticket, w->lease, w->era, true}; /* the one forgotten is a kill -9 */
}

static void step_admit(struct walk *w)
{
    struct breaker_view before = breaker_decode(w->word);
    struct breaker_admission admission = breaker_admit(w->word, w->now, &w->policy);

    if (admission.verdict == BREAKER_REFUSE) {
        assert_false(admission.ticket.counted);
        return;
    }
    if (admission.verdict == BREAKER_GRANT) {
        struct breaker_view after = breaker_decode(admission.next);
        bool fresh = before.phase == BREAKER_OPEN || !pending(before.time, w->now);
        if (fresh) {
            w->lease++;
            w->outstanding = 0;
            assert_true(pending(after.time, w->now));
        } else {
            assert_int_equal(after.time, before.time);
        }
        w->outstanding++;
        w->grants++;
        assert_true(w->outstanding <= w->policy.half_open_probes);
        assert_int_equal(after.phase, BREAKER_HALF_OPEN);
        assert_int_equal(after.generation, before.generation);
        w->word = admission.next;
    }
    keep(w, &admission.ticket);
}

/* The laws of a settle, told by the book. */
static void check_settle(struct walk *w, const struct held *h, enum breaker_outcome outcome,
                         const struct breaker_result *result)
{
    struct breaker_view before = breaker_decode(w->word), after = breaker_decode(result->next);
    bool changed = result->next != w->word;
    bool phase_moved = before.phase != after.phase;

    if (!h->ticket.counted || h->era != w->era)
        assert_false(changed);
    if (h->ticket.probe && h->lease != w->lease && outcome != BREAKER_SUCCESS)
        assert_false(changed);
    if (outcome == BREAKER_NEUTRAL) {
        assert_false(phase_moved);
        assert_int_equal(before.streak, after.streak);
    }
    assert_int_equal(phase_moved, before.generation != after.generation);
    if (phase_moved)
        assert_true(result->must_land);
    if (result->change == BREAKER_TRIPPED) {
        assert_int_equal(w->streak + 1, w->policy.failure_threshold);
        w->trips++;
    }
    if (before.phase == BREAKER_CLOSED && after.phase == BREAKER_CLOSED && changed) {
        uint32_t since = (h->ticket.admitted - before.time) & TIME_MASK;
        if (outcome == BREAKER_SUCCESS)
            assert_true(before.streak == 0 || since <= TIME_MASK / 2);
        else
            assert_int_equal(after.streak, before.streak + 1);
    }
    if (after.phase == BREAKER_OPEN && before.phase != BREAKER_OPEN) {
        assert_true(pending(after.time, w->now));
        assert_true(((after.time - w->now) & TIME_MASK) >= w->policy.open_ticks);
    }
    if (after.phase == BREAKER_CLOSED && before.phase != BREAKER_CLOSED)
        w->closes++;
}

static void step_settle(struct walk *w)
{
    struct held *h = &w->pool[rnd(w, POOL)];
    enum breaker_outcome outcome = (enum breaker_outcome)rnd(w, 3);
    struct breaker_extra extra = {.random = (uint16_t)rnd(w, 65536)};

    if (!h->live)
        return;
    h->live = false;
    struct breaker_result result =
        breaker_settle(w->word, &h->ticket, outcome, w->now, &w->policy, &extra);
    check_settle(w, h, outcome, &result);
    struct breaker_view before = breaker_decode(w->word), after = breaker_decode(result.next);
    if (h->ticket.probe && h->era == w->era && h->lease == w->lease && w->outstanding > 0) {
        w->outstanding--;
        w->handbacks += outcome == BREAKER_NEUTRAL;
    }
    if (before.phase == BREAKER_CLOSED && after.phase == BREAKER_CLOSED && result.next != w->word)
        w->streak = outcome == BREAKER_SUCCESS ? 0 : w->streak + 1;
    if (before.generation != after.generation) {
        w->era++;
        w->streak = 0;
    }
    w->word = result.next;
}

static void step_operator(struct walk *w)
{
    uint64_t before = w->word;

    switch (rnd(w, 4)) {
    case 0:
        w->word = breaker_trip(w->word, w->now, &w->policy, 0);
        break;
    case 1:
        w->word = breaker_force_open(w->word);
        break;
    case 2:
        w->word = breaker_force_closed(w->word);
        break;
    default:
        w->word = breaker_reset(w->word);
    }
    assert_int_equal((breaker_decode(before).generation + 1) & 2047,
                     breaker_decode(w->word).generation);
    w->era++;
    w->streak = 0;
}

static void walk_for(struct walk *w, unsigned steps)
{
    for (unsigned i = 0; i < steps; i++) {
        unsigned dice = rnd(w, 1000);
        if (dice < 450)
            step_admit(w);
        else if (dice < 900)
            step_settle(w);
        else if (dice < 997)
            w->now = (w->now + rnd(w, 60)) & TIME_MASK;
        else
            step_operator(w);
        /* A forced breaker would stay so for most of the walk. */
        if (breaker_decode(w->word).phase >= BREAKER_FORCED_OPEN && rnd(w, 8) == 0) {
            w->word = breaker_reset(w->word);
            w->era++;
            w->streak = 0;
        }
        check_word(w);
    }
}

static void test_laws_hold_on_random_walks(void **state)
{
    (void)state;
    unsigned trips = 0, closes = 0, grants = 0, handbacks = 0;

    for (unsigned run = 0; run < 60; run++) {
        struct walk w = {.random = 0x9e3779b97f4a7c15u * (run + 1), .lease = 1, .era = 1};
        w.now = TIME_MASK - rnd(&w, 20000); /* the clock wraps on the way */
        w.policy = (struct breaker_policy){
            .failure_threshold = (uint16_t)(1 + rnd(&w, 6)),
            .degrade_threshold = (uint16_t)rnd(&w, 4),
            .half_open_probes = (uint8_t)(1 + rnd(&w, run % 2 ? 15 : 2)),
            .success_threshold = (uint8_t)(1 + rnd(&w, 4)),
            .backoff_q8 = (uint16_t)(256 + rnd(&w, 512)),
            .jitter_q16 = (uint16_t)rnd(&w, 65536),
            .open_ticks = 1 + rnd(&w, 40),
            .open_max_ticks = rnd(&w, 200),
            .lease_ticks = 1 + rnd(&w, 100),
        };
        walk_for(&w, 20000);
        trips += w.trips;
        closes += w.closes;
        grants += w.grants;
        handbacks += w.handbacks;
    }
    /* The walk went where it had to. */
    assert_true(trips > 1000 && closes > 1000 && grants > 10000 && handbacks > 1000);
}

static void test_total_over_random_words(void **state)
{
    (void)state;
    struct walk w = {.random = 88172645463325252u};

    for (unsigned i = 0; i < 2000000; i++) {
        uint64_t word = (uint64_t)rnd(&w, UINT32_MAX) << 32 | rnd(&w, UINT32_MAX);
        struct breaker_ticket ticket;
        struct breaker_policy policy;
        struct breaker_extra extra = {.random = (uint16_t)i,
                                      .retry_after_ticks = rnd(&w, 1u << 31)};
        memset(&policy, (int)rnd(&w, 256), sizeof policy);
        memset(&ticket, 0, sizeof ticket);
        struct breaker_view view = breaker_decode(word);
        uint64_t canonical = breaker_encode(&view);
        struct breaker_view again = breaker_decode(canonical);
        assert_true(view.phase <= BREAKER_FORCED_CLOSED && breaker_encode(&again) == canonical);
        ticket.generation = (uint16_t)(view.generation ^ (rnd(&w, 4) == 0));
        ticket.lease = (uint8_t)(rnd(&w, 2) ? view.lease : rnd(&w, 256));
        ticket.probe = rnd(&w, 2);
        ticket.counted = true;
        extra.provisional = rnd(&w, 2);
        extra.rate_exceeded = rnd(&w, 2);
        struct breaker_result result = breaker_settle(
            word, &ticket, (enum breaker_outcome)rnd(&w, 4), rnd(&w, UINT32_MAX), &policy, &extra);
        if (result.next != word) {
            struct breaker_view next = breaker_decode(result.next);
            assert_true(breaker_encode(&next) == result.next);
        }
        struct breaker_admission admission = breaker_admit(word, rnd(&w, UINT32_MAX), &policy);
        assert_true(admission.verdict == BREAKER_GRANT || admission.next == word);
        if (breaker_is_closed(word))
            assert_true(view.phase == BREAKER_CLOSED && admission.verdict == BREAKER_ADMIT);
        assert_false(breaker_is_clean(word) && (view.streak || view.step));
        assert_true(admission.wait_ticks <= BREAKER_HORIZON_TICKS);
        assert_non_null(breaker_state_name(breaker_effective(word, 0, &policy).state));
    }
}

/* What is read is what stands there: of each field that its phase has, nothing lost; of a phase
 * that nobody knows, the numbers alone. */
static void test_decoding_keeps_what_the_phase_has(void **state)
{
    (void)state;
    struct walk w = {.random = 31415926535897u};
    const uint64_t time = TIME_MASK, count = UINT64_C(511) << 30, numbers = UINT64_C(0x3ffff) << 39;
    const uint64_t step = UINT64_C(15) << 57, phase = UINT64_C(7) << 61;
    const uint64_t kept[8] = {
        [BREAKER_CLOSED] = phase | step | numbers | count,
        [BREAKER_OPEN] = phase | step | numbers | time,
        [BREAKER_HALF_OPEN] = phase | step | numbers | count | time,
        [BREAKER_FORCED_OPEN] = phase | step | numbers,
        [BREAKER_FORCED_CLOSED] = phase | step | numbers,
        [5] = numbers,
        [6] = numbers,
        [7] = numbers,
    };

    for (unsigned i = 0; i < 2000000; i++) {
        uint64_t word = (uint64_t)rnd(&w, UINT32_MAX) << 32 | rnd(&w, UINT32_MAX);
        struct breaker_view view;
        if (rnd(&w, 4) == 0)
            word &= ~count;
        uint64_t mask = kept[word >> 61];
        if (word >> 61 == BREAKER_CLOSED && (word & count) != 0)
            mask |= time; /* of the streak's first failure */
        view = breaker_decode(word);
        assert_true(breaker_encode(&view) == (word & mask));
    }
}

/* The short cuts of the healthy path say what the whole rules say. */
static void test_short_cuts_agree(void **state)
{
    (void)state;
    struct walk w = {.random = 987654321};
    struct breaker_policy policy = {.failure_threshold = 5, .half_open_probes = 1};

    for (unsigned i = 0; i < 300000; i++) {
        struct breaker_view view = {.generation = (uint16_t)rnd(&w, 2048),
                                    .lease = (uint8_t)rnd(&w, 128),
                                    .step = (uint8_t)(rnd(&w, 4) ? 0 : rnd(&w, 16)),
                                    .streak = (uint16_t)(rnd(&w, 4) ? 0 : rnd(&w, 512))};
        uint64_t word = breaker_encode(&view);
        uint32_t now = rnd(&w, UINT32_MAX);
        struct breaker_ticket slow = breaker_admit(word, now, &policy).ticket;
        struct breaker_ticket fast = breaker_ticket_closed(word, now);
        assert_true(breaker_is_closed(word));
        assert_int_equal(fast.generation, view.generation);
        assert_int_equal(fast.lease, view.lease);
        assert_int_equal(fast.admitted, now & TIME_MASK);
        assert_true(fast.counted && !fast.probe && slow.counted);
        assert_int_equal(breaker_is_clean(word), view.step == 0 && view.streak == 0);
        fast.probe = rnd(&w, 2);
        fast.counted = rnd(&w, 2);
        if (breaker_is_clean(word))
            for (int outcome = BREAKER_NEUTRAL; outcome <= BREAKER_SUCCESS; outcome++)
                assert_true(
                    breaker_settle(word, &fast, (enum breaker_outcome)outcome, now, &policy, NULL)
                        .next == word);
    }
}

/* A word that is wrong in any bit lets calls through again within the horizon. */
static void test_nothing_refuses_beyond_the_horizon(void **state)
{
    (void)state;
    struct walk w = {.random = 123456789};
    struct breaker_policy policy = {.open_ticks = 10, .lease_ticks = 10, .half_open_probes = 1};

    for (unsigned i = 0; i < 500000; i++) {
        uint64_t word = (uint64_t)rnd(&w, UINT32_MAX) << 32 | rnd(&w, UINT32_MAX);
        uint32_t later = rnd(&w, TIME_MASK);
        if (breaker_decode(word).phase == BREAKER_FORCED_OPEN)
            continue;
        bool refused = true;
        for (unsigned k = 0; k < 2 && refused; k++) {
            refused = breaker_admit(word, later, &policy).verdict == BREAKER_REFUSE;
            later = (later + BREAKER_HORIZON_TICKS) & TIME_MASK;
        }
        assert_false(refused);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_laws_hold_on_random_walks),
        cmocka_unit_test(test_total_over_random_words),
        cmocka_unit_test(test_decoding_keeps_what_the_phase_has),
        cmocka_unit_test(test_short_cuts_agree),
        cmocka_unit_test(test_nothing_refuses_beyond_the_horizon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
