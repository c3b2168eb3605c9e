/* The share of failures over a window: all short histories, and any words. */
#include "core/rate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#define TIME_MASK ((UINT32_C(1) << BREAKER_TIME_BITS) - 1)
#define TICK_MS   (1000.0 * (1 << 25) / 1e9)

/* Of so many ticks a bucket. */
static struct breaker_policy policy_of(uint32_t bucket_ticks)
{
    struct breaker_policy policy = {
        .failure_rate = RATE_ONE / 2,
        .window_ms = (uint32_t)(bucket_ticks * RATE_BUCKETS * TICK_MS),
        .min_calls = 2,
    };

    assert_int_equal(rate_bucket_ticks(&policy), bucket_ticks);
    return policy;
}

static void add(uint64_t *words, unsigned generation, bool failed, uint32_t now,
                const struct breaker_policy *policy)
{
    struct rate_place place = rate_add(words, generation, failed, now, policy);

    assert_true(place.bucket < RATE_BUCKETS);
    words[place.bucket] = place.next;
}

static void test_a_bucket_is_an_eighth_rounded_up(void **state)
{
    (void)state;
    static const struct {
        uint32_t window_ms, ticks;
    } cases[] = {{0, 1}, {1, 1}, {268, 1}, {269, 2}, {536, 2}, {60000, 224}, {86400000, 321866}};

    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct breaker_policy policy = {.window_ms = cases[i].window_ms};
        assert_int_equal(rate_bucket_ticks(&policy), cases[i].ticks);
    }
    struct breaker_policy longest = {.window_ms = UINT32_MAX}; /* no overflow */
    assert_int_equal(rate_bucket_ticks(&longest), BREAKER_HORIZON_TICKS);
}

/* --- all histories --------------------------------------------------------------------------- */

enum { STEPS = 5 };

struct history {
    uint32_t at[STEPS]; /* without a wrap: from 0 on */
    bool failed[STEPS];
    unsigned len;
};

static uint32_t start; /* tick of time 0 */

/* How many of the calls (or of the failures alone) were settled within the last `ticks`. */
static uint32_t count_since(const struct history *history, uint32_t now, uint32_t ticks,
                            bool failures)
{
    uint32_t count = 0;

    for (unsigned i = 0; i < history->len; i++)
        count += now - history->at[i] <= ticks && (history->failed[i] || !failures);
    return count;
}

static void check_sum(const uint64_t *words, const struct history *history, uint32_t now,
                      const struct breaker_policy *policy)
{
    uint32_t bucket = rate_bucket_ticks(policy);
    struct rate_sum sum = rate_sum(words, 3, start + now, policy);

    assert_true(sum.calls <= count_since(history, now, 8 * bucket - 1, false));
    assert_true(sum.calls >= count_since(history, now, 7 * bucket, false));
    assert_true(sum.failures <= count_since(history, now, 8 * bucket - 1, true));
    assert_true(sum.failures >= count_since(history, now, 7 * bucket, true));
    assert_int_equal(rate_exceeded(&sum, policy), sum.calls >= 2 && 2 * sum.failures >= sum.calls);
}

static void walk(const uint64_t *words, struct history history, uint32_t now,
                 const struct breaker_policy *policy)
{
    static const uint32_t gaps[] = {0, 1, 2, 3, 7, 23};

    for (uint32_t later = 0; later <= 9 * rate_bucket_ticks(policy); later++)
        check_sum(words, &history, now + later, policy);
    if (history.len == STEPS)
        return;
    for (unsigned i = 0; i < sizeof gaps / sizeof *gaps; i++)
        for (unsigned failed = 0; failed < 2; failed++) {
            uint64_t next[RATE_BUCKETS];
            struct history longer = history;
            uint32_t then = now + gaps[i];
            struct rate_sum before = rate_sum(words, 3, start + then, policy), after;
            memcpy(next, words, sizeof next);
            add(next, 3, failed, start + then, policy);
            after = rate_sum(next, 3, start + then, policy);
            assert_int_equal(after.calls, before.calls + 1);
            assert_int_equal(after.failures, before.failures + failed);
            longer.at[longer.len] = then;
            longer.failed[longer.len++] = failed;
            walk(next, longer, then, policy);
        }
}

static void test_all_short_histories(void **state)
{
    (void)state;
    static const uint64_t none[RATE_BUCKETS];

    for (uint32_t bucket = 1; bucket <= 3; bucket++) {
        struct breaker_policy policy = policy_of(bucket);
        start = TIME_MASK - 10; /* over the wrap */
        walk(none, (struct history){.len = 0}, 0, &policy);
    }
}

static void test_a_steady_flow_fills_every_bucket(void **state)
{
    (void)state;
    uint64_t words[RATE_BUCKETS] = {0};
    struct breaker_policy policy = policy_of(4);

    for (uint32_t i = 0; i < 200; i++) {
        uint32_t now = (TIME_MASK - 100 + i) & TIME_MASK;
        add(words, 0, i % 4 == 0, now, &policy);
        struct rate_sum sum = rate_sum(words, 0, now, &policy);
        uint32_t begun = i / 4 < 7 ? i / 4 : 7; /* buckets that are full */
        assert_int_equal(sum.calls, begun * 4 + i % 4 + 1);
        assert_int_equal(sum.failures, begun + 1);
    }
    assert_int_equal(rate_sum(words, 0, 95 + 31, &policy).calls, 4);
    assert_int_equal(rate_sum(words, 0, 95 + 32, &policy).calls, 0);
}

/* --- generations ----------------------------------------------------------------------------- */

static void test_an_older_generation_is_empty_and_used_up_first(void **state)
{
    (void)state;
    uint64_t words[RATE_BUCKETS] = {0};
    struct breaker_policy policy = policy_of(10);

    for (uint32_t i = 0; i < 8; i++)
        add(words, 2047, true, 1000 + 10 * i, &policy);
    assert_int_equal(rate_sum(words, 2047, 1079, &policy).calls, 8);
    assert_int_equal(rate_sum(words, 0, 1079, &policy).calls, 0);
    add(words, 0, false, 1079, &policy);
    assert_int_equal(rate_sum(words, 2047, 1079, &policy).calls, 7); /* the oldest made room */
    assert_int_equal(rate_sum(words, 2047, 1079, &policy).failures, 7);
    for (uint32_t i = 1; i < 8; i++)
        add(words, i, false, 1079, &policy);
    assert_int_equal(rate_sum(words, 2047, 1079, &policy).calls, 0);
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(rate_sum(words, i, 1079, &policy).calls, 1);
}

static void test_what_still_counts_makes_room_last(void **state)
{
    (void)state;
    uint64_t words[RATE_BUCKETS] = {0};
    struct breaker_policy policy = policy_of(10);

    for (unsigned i = 0; i < 8; i++)
        add(words, i, true, i == 5 ? 1010 : 1070, &policy);
    add(words, 5, true, 1075, &policy);
    assert_int_equal(rate_sum(words, 5, 1075, &policy).calls, 2); /* younger ones went */
}

/* All zeroes, as a fresh slot has it, are no bucket that began at tick 0. */
static void test_an_empty_word_never_began(void **state)
{
    (void)state;
    uint64_t words[RATE_BUCKETS] = {0};
    struct breaker_policy policy = policy_of(10);

    add(words, 0, true, 9, &policy);
    assert_int_equal(rate_sum(words, 0, 9 + 79, &policy).calls, 1);
}

/* --- clocks that differ by a moment ----------------------------------------------------------- */

static void test_a_bucket_of_a_moment_later_is_the_current_one(void **state)
{
    (void)state;
    uint64_t words[RATE_BUCKETS] = {0};
    struct breaker_policy policy = policy_of(10);

    add(words, 1, true, 500, &policy);
    add(words, 1, true, 491, &policy); /* looked at the clock before, settles after */
    assert_int_equal(rate_sum(words, 1, 500, &policy).calls, 2);
    assert_int_equal(words[1], 0);
    assert_int_equal(rate_sum(words, 1, 490, &policy).calls, 0); /* that is no moment */
    add(words, 1, true, 490, &policy);
    assert_int_not_equal(words[1], 0);
}

/* --- decision -------------------------------------------------------------------------------- */

static void test_when_the_share_is_reached(void **state)
{
    (void)state;
    static const struct {
        uint32_t rate, min_calls, calls, failures;
        bool exceeded;
    } cases[] = {
        {0, 1, 10, 10, false},       /* off */
        {500000, 20, 19, 19, false}, /* too few */
        {500000, 20, 20, 10, true},
        {500000, 20, 20, 9, false},
        {1000000, 3, 3, 3, true},
        {1000000, 3, 3, 2, false},
        {333333, 3, 3, 1, true},
        {333334, 3, 3, 1, false},
        {1, 1, 131064, 0, false},
        {1, 1, 131064, 1, true},
        {500000, 1, 131064, 65532, true},
        {500000, 1, 131064, 65531, false},
        {1, 0, 0, 0, false}, /* nothing is no share */
        {UINT32_MAX, 1, UINT32_MAX, UINT32_MAX, false},
    };

    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct breaker_policy policy = {.failure_rate = cases[i].rate,
                                        .min_calls = cases[i].min_calls};
        struct rate_sum sum = {cases[i].calls, cases[i].failures};
        assert_int_equal(rate_exceeded(&sum, &policy), cases[i].exceeded);
    }
}

static void test_a_full_bucket_keeps_its_share(void **state)
{
    (void)state;
    uint64_t words[RATE_BUCKETS] = {0};
    struct breaker_policy policy = policy_of(100);

    for (uint32_t i = 0; i < 100000; i++) {
        add(words, 0, i % 4 == 0, 7, &policy);
        struct rate_sum sum = rate_sum(words, 0, 7, &policy);
        assert_true(i < 8000 ? sum.calls == i + 1 : sum.calls >= 8000);
        if (i > 1000)
            assert_in_range(sum.failures * 1000 / sum.calls, 248, 252);
    }
    assert_int_equal(words[1], 0);
}

/* However much went well before it in the same bucket. */
static void test_a_full_bucket_sees_an_outage(void **state)
{
    (void)state;
    uint64_t words[RATE_BUCKETS] = {0};
    struct breaker_policy policy = policy_of(100);

    for (uint32_t i = 0; i < 200000; i++)
        add(words, 0, i >= 180000, 7, &policy);
    struct rate_sum sum = rate_sum(words, 0, 7, &policy);
    assert_true(rate_exceeded(&sum, &policy));
}

/* --- any words ------------------------------------------------------------------------------- */

static uint64_t random_word(void)
{
    static uint64_t state = UINT64_C(0x9e3779b97f4a7c15);

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void test_any_words(void **state)
{
    (void)state;
    uint64_t words[RATE_BUCKETS];

    for (unsigned i = 0; i < 300000; i++) {
        struct breaker_policy policy = {.failure_rate = (uint32_t)random_word(),
                                        .window_ms = (uint32_t)random_word() >> i % 32,
                                        .min_calls = (uint32_t)random_word()};
        uint32_t now = (uint32_t)random_word();
        unsigned generation = (unsigned)random_word();
        for (unsigned j = 0; j < RATE_BUCKETS; j++)
            words[j] = random_word();
        struct rate_sum sum = rate_sum(words, generation, now, &policy);
        assert_true(sum.failures <= sum.calls && sum.calls <= RATE_BUCKETS * RATE_COUNT_MAX);
        rate_exceeded(&sum, &policy);
        bool failed = i % 2;
        add(words, generation, failed, now, &policy);
        sum = rate_sum(words, generation, now, &policy);
        assert_true(sum.calls >= 1 && sum.failures >= failed && sum.failures <= sum.calls);
    }
}

static void test_no_word_counts_for_longer_than_the_window_and_a_bucket(void **state)
{
    (void)state;
    struct breaker_policy policy = policy_of(5);

    for (unsigned i = 0; i < 20000; i++) {
        uint64_t words[RATE_BUCKETS] = {random_word() | UINT64_C(1) << RATE_CALLS_SHIFT};
        unsigned generation = (unsigned)(words[0] >> RATE_GENERATION_SHIFT);
        uint32_t begin = (uint32_t)(words[0] >> RATE_BEGIN_SHIFT), counts = 0;
        for (uint32_t after = 0; after < 200; after++)
            counts += rate_sum(words, generation, begin - 100 + after, &policy).calls > 0;
        assert_int_equal(counts, 9 * 5 - 1);
        assert_int_equal(rate_sum(words, generation, begin + (1 << 29), &policy).calls, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_bucket_is_an_eighth_rounded_up),
        cmocka_unit_test(test_all_short_histories),
        cmocka_unit_test(test_a_steady_flow_fills_every_bucket),
        cmocka_unit_test(test_an_older_generation_is_empty_and_used_up_first),
        cmocka_unit_test(test_what_still_counts_makes_room_last),
        cmocka_unit_test(test_an_empty_word_never_began),
        cmocka_unit_test(test_a_bucket_of_a_moment_later_is_the_current_one),
        cmocka_unit_test(test_when_the_share_is_reached),
        cmocka_unit_test(test_a_full_bucket_keeps_its_share),
        cmocka_unit_test(test_a_full_bucket_sees_an_outage),
        cmocka_unit_test(test_any_words),
        cmocka_unit_test(test_no_word_counts_for_longer_than_the_window_and_a_bucket),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
