/* The book of names has an end: more addresses, results and names than it keeps. */
#include "sock_names_fixture.h"

static void more_addresses_than_are_told_apart(void **state)
{
    char all[2048] = "", one[32];
    unsigned told = 0, seen = 0;

    (void)state;
    for (unsigned i = 0; i < 24; i++) {
        snprintf(one, sizeof one, "10.8.0.%u ", i + 1);
        strcat(all, one);
    }
    learn("eight.example", AF_UNSPEC, all, 443);
    uint32_t resolution = find("10.8.0.1", 443).resolution;
    for (unsigned i = 0; i < 24; i++) {
        snprintf(one, sizeof one, "10.8.0.%u", i + 1);
        struct sock_place place = find(one, 443);
        assert_string_equal(place.name, "eight.example");
        assert_int_equal(place.address_count, SOCK_NAMES_ADDRESSES);
        if (place.address_index == SOCK_NAMES_UNKNOWN)
            continue;
        told++;
        seen |= 1u << place.address_index;
    }
    assert_int_equal(told, SOCK_NAMES_ADDRESSES);
    assert_int_equal(seen, (1u << SOCK_NAMES_ADDRESSES) - 1);
    memmove(all, all + 63, strlen(all + 63) + 1); /* another order of most of them... */
    strcat(all, "10.8.0.1 10.8.0.2 10.8.0.3 10.8.0.4 10.8.0.5 10.8.0.6 10.8.0.7");
    learn("eight.example", AF_UNSPEC, all, 443);
    assert_int_equal(find("10.8.0.1", 443).resolution, resolution);
}

/* A service whose name turns from pool to pool: what falls out of the book has no name, but shares.
 */
static void a_pool_that_turns(void **state)
{
    char one[32];
    unsigned named = 0;

    (void)state;
    for (unsigned i = 0; i < 100; i++, now += SECOND) {
        snprintf(one, sizeof one, "10.9.0.%u", i + 1);
        learn("nine.example", AF_UNSPEC, one, 443);
        assert_name(one, 443, "nine.example");
    }
    for (unsigned i = 0; i < 100; i++) {
        snprintf(one, sizeof one, "10.9.0.%u", i + 1);
        bool known = find(one, 443).resolution != 0;
        named += known;
        learn("nine.other", AF_UNSPEC, one, 443);
        assert_true(find(one, 443).shared);
    }
    assert_in_range(named, 20, 99);
    now += 3 * HOUR;
    learn("nine.other", AF_UNSPEC, "10.9.0.1", 443);
    assert_false(find("10.9.0.1", 443).shared);
}

static void a_result_without_end(void **state)
{
    char one[32];

    (void)state;
    list_count = 0;
    for (unsigned i = 0; i < LIST_SIZE; i++) {
        snprintf(one, sizeof one, "10.10.%u.%u", i / 250, i % 250 + 1);
        add(one, 443, SOCK_STREAM);
    }
    list[LIST_SIZE - 1].ai_next = &list[0]; /* goes round */
    sock_names_learn("ten.example", AF_UNSPEC, list, now);
    list[LIST_SIZE - 1].ai_next = NULL;
    assert_int_equal(find("10.10.0.1", 443).address_count, SOCK_NAMES_ADDRESSES);
    learn("ten.other", AF_UNSPEC, "10.10.1.100", 443); /* it was not kept */
    assert_true(find("10.10.1.100", 443).shared);
}

static void a_full_book(void **state)
{
    char name[32], one[32];

    (void)state;
    now += 3 * HOUR; /* nothing of the other tests is left */
    for (unsigned i = 0; i < SOCK_NAMES_ENTRIES; i++) {
        snprintf(name, sizeof name, "n%u.example", i);
        snprintf(one, sizeof one, "10.12.%u.%u", i / 250, i % 250 + 1);
        learn(name, AF_UNSPEC, one, 443);
        assert_name(one, 443, name);
    }
    learn("further.example", AF_UNSPEC, "10.12.0.1 10.13.0.1", 443);
    assert_numeric("10.13.0.1", 443, "10.13.0.1");
    assert_name("10.12.0.1", 443, "n0.example");
    assert_true(find("10.12.0.1", 443).shared);
    for (unsigned i = 0; i < SOCK_NAMES_ENTRIES; i++) {
        snprintf(name, sizeof name, "n%u.example", i);
        snprintf(one, sizeof one, "10.12.%u.%u", i / 250, i % 250 + 1);
        assert_name(one, 443, name);
    }
    now += HOUR;
    learn("further.example", AF_UNSPEC, "10.12.0.1", 443);
    assert_name("10.12.0.1", 443, "further.example");
    assert_false(find("10.12.0.1", 443).shared);
    now += HOUR;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_addresses_than_are_told_apart),
        cmocka_unit_test(a_pool_that_turns),
        cmocka_unit_test(a_result_without_end),
        cmocka_unit_test(a_full_book),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
