/* Who is parked and for how long: against a book without bits, and any words. */
#include "core/cooldown.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#define TIME_MASK ((UINT32_C(1) << BREAKER_TIME_BITS) - 1)
#define DAY       BREAKER_HORIZON_TICKS

static const uint64_t A = 0x2aaaaaaaa, B = 2, C = 3, D = 4, E = 5;

static void set(uint64_t *words, uint64_t credential, uint32_t ticks, uint32_t now)
{
    struct cooldown_place place = cooldown_set(words, credential, ticks, now);

    assert_true(place.word < COOLDOWN_WORDS);
    words[place.word] = place.next;
}

static void test_a_credential_is_parked_until_its_deadline(void **state)
{
    (void)state;
    static const uint32_t starts[] = {0, 1, 5000, TIME_MASK - 50, TIME_MASK};

    for (unsigned i = 0; i < sizeof starts / sizeof *starts; i++) {
        uint64_t words[COOLDOWN_WORDS] = {0};
        uint32_t now = starts[i];
        assert_int_equal(cooldown_left(words, A, now), 0);
        set(words, A, 100, now);
        assert_int_equal(cooldown_left(words, A, now), 100);
        assert_int_equal(cooldown_left(words, A, now + 99), 1);
        assert_int_equal(cooldown_left(words, A, now + 100), 0);
        assert_int_equal(cooldown_left(words, A, now + 101), 0);
        assert_int_equal(cooldown_left(words, B, now), 0);
        assert_int_equal(cooldown_left(words, 0, now), 0);
    }
}

static void test_the_later_deadline_stays(void **state)
{
    (void)state;
    uint64_t words[COOLDOWN_WORDS] = {0};

    set(words, A, 100, 10);
    set(words, A, 30, 50);
    assert_int_equal(cooldown_left(words, A, 50), 60);
    set(words, A, 60, 50); /* the same: nothing to write */
    assert_true(cooldown_set(words, A, 60, 50).next == words[0]);
    set(words, A, 61, 50);
    assert_int_equal(cooldown_left(words, A, 50), 61);
    set(words, A, 5, 200); /* that one was over */
    assert_int_equal(cooldown_left(words, A, 200), 5);
    assert_true(words[1] == 0 && words[2] == 0 && words[3] == 0);
}

static void test_lengths_are_clamped(void **state)
{
    (void)state;
    uint64_t words[COOLDOWN_WORDS] = {0};

    set(words, A, 0, 7);
    assert_int_equal(cooldown_left(words, A, 7), 1);
    set(words, B, UINT32_MAX, 7);
    assert_int_equal(cooldown_left(words, B, 7), DAY);
    set(words, C, DAY + 1, 7);
    assert_int_equal(cooldown_left(words, C, 7), DAY);
}

static void test_four_credentials_and_then_the_one_that_ends_first_makes_room(void **state)
{
    (void)state;
    uint64_t words[COOLDOWN_WORDS] = {0};

    set(words, A, 400, 0);
    set(words, B, 100, 0);
    set(words, C, 300, 0);
    set(words, D, 200, 0);
    assert_int_equal(cooldown_left(words, A, 0), 400);
    assert_int_equal(cooldown_left(words, B, 0), 100);
    assert_int_equal(cooldown_left(words, C, 0), 300);
    assert_int_equal(cooldown_left(words, D, 0), 200);
    set(words, E, 50, 0);
    assert_int_equal(cooldown_left(words, B, 0), 0);
    assert_int_equal(cooldown_left(words, E, 0), 50);
    set(words, B, 50, 60); /* E's is over: no other is moved */
    assert_int_equal(cooldown_left(words, D, 60), 140);
    set(words, C, 1000, 60); /* its own word, though others would be free before it */
    assert_int_equal(cooldown_left(words, C, 60), 1000);
    assert_int_equal(cooldown_left(words, A, 60), 340);
    assert_int_equal(cooldown_left(words, B, 60), 50);
    assert_int_equal(cooldown_left(words, D, 60), 140);
}

static uint64_t random_word(void)
{
    static uint64_t state = UINT64_C(0x9e3779b97f4a7c15);

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Up to four credentials never move each other: each is as in a book of its own. */
static void test_four_credentials_as_in_a_book(void **state)
{
    (void)state;
    uint64_t words[COOLDOWN_WORDS] = {0};
    uint64_t until[COOLDOWN_WORDS] = {0}, now = TIME_MASK - 5000;
    uint32_t end = 0;

    for (unsigned i = 0; i < 200000; i++) {
        unsigned who = (unsigned)(random_word() >> 20) % COOLDOWN_WORDS;
        uint32_t ticks = 1 + (uint32_t)(random_word() >> 20) % 50;
        if (random_word() >> 20 & 1) {
            end = cooldown_end(end, ticks, (uint32_t)now);
            set(words, who + 1, ticks, (uint32_t)now);
            if (until[who] < now + ticks)
                until[who] = now + ticks;
        }
        now += (random_word() >> 20) % 12;
        for (unsigned j = 0; j < COOLDOWN_WORDS; j++) {
            uint64_t left = until[j] > now ? until[j] - now : 0;
            assert_int_equal(cooldown_left(words, j + 1, (uint32_t)now), left);
            assert_true(left == 0 || !cooldown_is_over(end, (uint32_t)now));
        }
    }
}

static void test_the_end_of_all(void **state)
{
    (void)state;
    uint32_t end = cooldown_end(0, 100, 10);

    assert_true(cooldown_is_over(0, 10));
    assert_false(cooldown_is_over(end, 10));
    assert_false(cooldown_is_over(end, 109));
    assert_true(cooldown_is_over(end, 110));
    assert_int_equal(cooldown_end(end, 50, 20), end);
    assert_int_equal(cooldown_end(end, 91, 20), end + 1);
    assert_int_equal(cooldown_end(end, 5, 500), 505);
    assert_int_equal(cooldown_end(0, UINT32_MAX, 1), 1 + DAY);
    assert_int_equal(cooldown_end(1 + DAY + 9, 4, 1), 5); /* nonsense is not kept */
    /* The deadline 0 is told from nobody's. */
    end = cooldown_end(0, 8, TIME_MASK - 7);
    assert_false(cooldown_is_over(end, TIME_MASK));
    assert_true(cooldown_is_over(0, TIME_MASK));
}

static void test_a_credential_is_never_none(void **state)
{
    (void)state;
    assert_int_equal(cooldown_credential(0), 1);
    assert_int_equal(cooldown_credential((UINT64_C(1) << BREAKER_TIME_BITS) - 1), 1);
    assert_int_equal(cooldown_credential(UINT64_MAX), COOLDOWN_ALL - 1);
    assert_int_equal(COOLDOWN_ALL, UINT64_MAX >> BREAKER_TIME_BITS);
    for (unsigned i = 0; i < 1000; i++) {
        uint64_t hash = random_word(), words[COOLDOWN_WORDS] = {0};
        set(words, cooldown_credential(hash), 9, 3);
        assert_int_equal(cooldown_left(words, cooldown_credential(hash), 3), 9);
    }
}

static void test_all_are_parked_at_once(void **state)
{
    uint64_t words[COOLDOWN_WORDS] = {0};
    uint32_t longest;

    (void)state;
    assert_int_equal(cooldown_count(words, 5, &longest), 0);
    assert_int_equal(longest, 0);
    set(words, COOLDOWN_ALL, 9, 5);
    set(words, 7, 20, 5);
    set(words, 8, 2, 5);
    assert_int_equal(cooldown_left(words, 7, 5), 20);
    assert_int_equal(cooldown_left(words, 8, 5), 9);
    assert_int_equal(cooldown_left(words, 6, 5), 9);
    assert_int_equal(cooldown_left(words, COOLDOWN_ALL, 5), 9);
    assert_int_equal(cooldown_count(words, 5, &longest), 3);
    assert_int_equal(longest, 20);
    assert_int_equal(cooldown_count(words, 14, &longest), 1);
    assert_int_equal(longest, 11);
    assert_int_equal(cooldown_left(words, 6, 14), 0);
}

static void test_any_words(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 300000; i++) {
        uint64_t words[COOLDOWN_WORDS];
        uint32_t now = (uint32_t)random_word(), ticks = (uint32_t)random_word();
        for (unsigned j = 0; j < COOLDOWN_WORDS; j++)
            words[j] = random_word();
        uint64_t credential = cooldown_credential(i % 2 ? words[i % COOLDOWN_WORDS] : ~words[0]);
        if (i % 4 < 2) /* near enough to count */
            words[0] = credential << BREAKER_TIME_BITS |
                       ((now + (uint32_t)random_word() % (2 * DAY)) & TIME_MASK);
        uint32_t before = cooldown_left(words, credential, now);
        assert_true(before <= DAY);
        set(words, credential, ticks, now);
        uint32_t after = cooldown_left(words, credential, now);
        uint32_t wanted = ticks == 0 ? 1 : ticks > DAY ? DAY : ticks;
        assert_int_equal(after, wanted > before ? wanted : before);
        uint32_t end = cooldown_end((uint32_t)random_word(), ticks, now);
        assert_true(end != 0 && !cooldown_is_over(end, now));
        assert_true(cooldown_is_over(end, now + DAY + 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_credential_is_parked_until_its_deadline),
        cmocka_unit_test(test_the_later_deadline_stays),
        cmocka_unit_test(test_lengths_are_clamped),
        cmocka_unit_test(test_four_credentials_and_then_the_one_that_ends_first_makes_room),
        cmocka_unit_test(test_four_credentials_as_in_a_book),
        cmocka_unit_test(test_the_end_of_all),
        cmocka_unit_test(test_a_credential_is_never_none),
        cmocka_unit_test(test_all_are_parked_at_once),
        cmocka_unit_test(test_any_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
