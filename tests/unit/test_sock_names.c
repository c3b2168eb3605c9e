/* The book of names: which name an address belongs to, which of its addresses it is, and when that
 * says nothing of a host. */
#include "sock_names_fixture.h"

static void no_name_is_numeric(void **state)
{
    (void)state;
    assert_numeric("10.0.0.1", 80, "10.0.0.1");
    assert_false(find("10.0.0.1", 80).shared);
    assert_numeric("::ffff:10.0.0.255", 80, "10.0.0.255");
    assert_numeric("::", 443, "[::]");
    assert_numeric("::1", 443, "[::1]");
    assert_numeric("fe80::", 1, "[fe80::]");
}

static void addresses_print_as_inet_ntop_does(void **state)
{
    static const char *const texts[] = {"2001:db8::1",
                                        "2001:db8:0:1:2:3:4:5",
                                        "1:0:0:2:0:0:0:3",
                                        "1:0:0:2:0:0:3:4",
                                        "1:2:3:4:5:6:7:8",
                                        "1:2:3:4:5:6::",
                                        "::2:3:4:5:6:7",
                                        "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                                        "1::8",
                                        "0:1::",
                                        "100:0:10:0:1:0:ab:0"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char wanted[INET6_ADDRSTRLEN], text[SOCK_ADDRESS_TEXT_SIZE];
        struct sockaddr_storage storage = address_of(texts[i], 1);
        struct sock_address address;
        uint16_t port;
        inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&storage)->sin6_addr, wanted, sizeof wanted);
        assert_true(sock_address_of((struct sockaddr *)&storage, sizeof storage, &address, &port));
        size_t len = sock_address_text(&address, text);
        assert_int_equal(len, strlen(wanted) + 2);
        assert_memory_equal(text + 1, wanted, len - 2);
    }
}

static void what_is_no_tcp_address(void **state)
{
    struct sockaddr_storage v4 = address_of("10.0.1.1", 80), v6 = address_of("fd00::1", 80);
    struct sock_place place;

    (void)state;
    assert_false(sock_names_find(NULL, 0, now, &place));
    assert_false(sock_names_find((struct sockaddr *)&v4, 0, now, &place));
    assert_false(sock_names_find((struct sockaddr *)&v4, 1, now, &place));
    assert_false(
        sock_names_find((struct sockaddr *)&v4, sizeof(struct sockaddr_in) - 1, now, &place));
    assert_false(sock_names_find((struct sockaddr *)&v6, sizeof(struct sockaddr_in), now, &place));
    assert_true(sock_names_find((struct sockaddr *)&v6, sizeof(struct sockaddr_in6), now, &place));
    v4.ss_family = AF_UNIX;
    assert_false(sock_names_find((struct sockaddr *)&v4, sizeof v4, now, &place));
    v4 = address_of("10.0.1.1", 0);
    assert_false(sock_names_find((struct sockaddr *)&v4, sizeof v4, now, &place));
}

static void a_name_and_which_of_its_addresses(void **state)
{
    (void)state;
    learn("One.Example.", AF_UNSPEC, "10.1.0.1 10.1.0.2 fd01::1", 443);
    struct sock_place first = find("10.1.0.1", 443), second = find("::ffff:10.1.0.2", 443),
                      third = find("fd01::1", 443);
    assert_string_equal(first.name, "one.example");
    assert_int_equal(first.address_count, 3);
    assert_int_equal(
        1 << first.address_index | 1 << second.address_index | 1 << third.address_index, 7);
    assert_int_not_equal(first.resolution, 0);
    assert_int_equal(first.resolution, second.resolution);
    assert_false(first.shared || second.shared || third.shared);
    assert_numeric("10.1.0.1", 80, "10.1.0.1"); /* it was asked for 443 */
    learn("any.one.example", AF_UNSPEC, "10.1.0.3", 0);
    assert_name("10.1.0.3", 1, "any.one.example");
    assert_name("10.1.0.3", 65535, "any.one.example");
}

static void what_is_not_learnt(void **state)
{
    static char long_name[300];
    static const char *const nodes[] = {"10.2.0.1", "127.1", "0x0a020001", "::1", "fe80::1%eth0",
                                        "1",        "",      ".",          "a b", "a/b",
                                        "a:b",      "[::1]", long_name};
    (void)state;
    memset(long_name, 'a', 256);
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        learn(nodes[i], AF_UNSPEC, "10.2.0.1", 443);
        assert_numeric("10.2.0.1", 443, "10.2.0.1");
    }
    learn(NULL, AF_UNSPEC, "10.2.0.1", 443);
    sock_names_learn("two.example", AF_UNSPEC, NULL, now);
    assert_numeric("10.2.0.1", 443, "10.2.0.1");
    assert_false(find("10.2.0.1", 443).shared);
    long_name[255] = '\0';
    learn(long_name, AF_UNSPEC, "10.2.0.2", 443);
    assert_int_equal(find("10.2.0.2", 443).name_len, 255);
    long_name[255] = '.';
    learn(long_name, AF_UNSPEC, "10.2.0.2", 443);
    assert_false(find("10.2.0.2", 443).shared);
    /* A name that cannot be kept is a further name all the same. */
    learn("bad name", AF_UNSPEC, "10.2.0.2", 443);
    assert_true(find("10.2.0.2", 443).shared);
}

static void the_set_changes_not_its_order(void **state)
{
    (void)state;
    learn("three.example", AF_UNSPEC, "10.3.0.1 10.3.0.2 10.3.0.3", 443);
    struct sock_place before = find("10.3.0.2", 443);
    learn("THREE.example", AF_UNSPEC, "10.3.0.3 10.3.0.1 10.3.0.2", 443);
    struct sock_place after = find("10.3.0.2", 443);
    assert_memory_equal(&before, &after, sizeof before);
    learn("three.example", AF_UNSPEC, "10.3.0.3 10.3.0.1", 443);
    after = find("10.3.0.1", 443);
    assert_int_not_equal(after.resolution, before.resolution);
    assert_int_equal(after.address_count, 2);
    after = find("10.3.0.2", 443); /* a former one */
    assert_string_equal(after.name, "three.example");
    assert_int_equal(after.address_index, SOCK_NAMES_UNKNOWN);
    learn("three.example", AF_UNSPEC, "10.3.0.3 10.3.0.1 10.3.0.2", 443);
    assert_int_equal(find("10.3.0.2", 443).address_count, 3);
    assert_int_not_equal(find("10.3.0.2", 443).address_index, SOCK_NAMES_UNKNOWN);
}

static void a_family_replaces_its_own(void **state)
{
    (void)state;
    learn("four.example", AF_INET, "10.4.0.1", 443);
    learn("four.example", AF_INET6, "fd04::1 fd04::2", 443);
    assert_int_equal(find("10.4.0.1", 443).address_count, 3);
    learn("four.example", AF_INET6, "fd04::2", 443);
    assert_int_equal(find("10.4.0.1", 443).address_index + find("fd04::2", 443).address_index, 1);
    assert_int_equal(find("fd04::1", 443).address_index, SOCK_NAMES_UNKNOWN);
    learn("four.example", AF_INET, "10.4.0.2", 443);
    assert_int_equal(find("10.4.0.1", 443).address_index, SOCK_NAMES_UNKNOWN);
    assert_int_not_equal(find("fd04::2", 443).address_index, SOCK_NAMES_UNKNOWN);
    learn("four.example", AF_INET6, "::ffff:10.4.0.3", 443); /* AI_V4MAPPED */
    assert_int_equal(find("10.4.0.3", 443).address_count, 2);
    assert_int_equal(find("fd04::2", 443).address_index, SOCK_NAMES_UNKNOWN);
    learn("four.example", AF_UNSPEC, "fd04::3", 443);
    assert_int_equal(find("fd04::3", 443).address_count, 1);
    assert_int_equal(find("10.4.0.2", 443).address_index, SOCK_NAMES_UNKNOWN);
}

static void two_names_share(void **state)
{
    (void)state;
    learn("five.example", AF_UNSPEC, "10.5.0.1 10.5.0.2", 443);
    learn("five.example.", AF_UNSPEC, "10.5.0.1 10.5.0.2", 0);
    assert_false(find("10.5.0.1", 443).shared);
    learn("five.other", AF_UNSPEC, "10.5.0.1", 443);
    assert_true(find("10.5.0.1", 443).shared);
    assert_false(find("10.5.0.1", 80).shared); /* at that port there is one */
    assert_false(find("10.5.0.2", 443).shared);
    learn("five.third", AF_UNSPEC, "10.5.0.2", 0);
    assert_true(find("10.5.0.2", 443).shared);
    assert_true(find("10.5.0.2", 80).shared);
    learn("five.sixth", AF_UNSPEC, "10.5.0.6", 8080);
    learn("five.seventh", AF_UNSPEC, "10.5.0.6", 8081);
    assert_false(find("10.5.0.6", 8080).shared);
    assert_name("10.5.0.6", 8081, "five.seventh");
}

/* Told apart by their letters. */
static void names_of_one_length(void **state)
{
    (void)state;
    learn("name-1.example", AF_UNSPEC, "10.20.0.1 10.20.0.2", 443);
    learn("name-2.example", AF_UNSPEC, "10.20.0.1", 443);
    assert_true(find("10.20.0.1", 443).shared);
    assert_false(find("10.20.0.2", 443).shared);
}

static unsigned entry_named(const char *node)
{
    union sock_name name;
    size_t len = sock_name_of(node, &name);

    for (unsigned i = 0; i < SOCK_NAMES_ENTRIES; i++)
        if (sock_book.entries[i].len == len &&
            memcmp((const void *)sock_book.entries[i].text, name.text, len) == 0)
            return i;
    fail_msg("%s is not there", node);
    return 0;
}

/* A hash finds an entry, but never says whose it is. */
static void names_of_one_hash(void **state)
{
    static const char *const others[] = {"hash-b.example", "hash-longer.example"};

    (void)state;
    learn("hash-a.example", AF_UNSPEC, "10.21.0.1", 443);
    unsigned entry = entry_named("hash-a.example");
    for (unsigned i = 0; i < 2; i++) {
        union sock_name name;
        size_t len = sock_name_of(others[i], &name);
        sock_book.hashes[entry] = hash64(name.text, len, 443);
        learn(others[i], AF_UNSPEC, "10.21.0.2", 443);
        assert_int_not_equal(entry_named(others[i]), entry);
        assert_string_equal(find("10.21.0.1", 443).name, "hash-a.example");
        assert_false(find("10.21.0.1", 443).shared);
    }
    assert_true(find("10.21.0.2", 443).shared);
}

static void a_former_address_shares_too(void **state)
{
    (void)state;
    learn("six.example", AF_UNSPEC, "10.6.0.1", 443);
    learn("six.example", AF_UNSPEC, "10.6.0.2", 443);
    learn("six.other", AF_UNSPEC, "10.6.0.1", 443);
    assert_true(find("10.6.0.1", 443).shared);
}

static void an_hour_later(void **state)
{
    (void)state;
    learn("seven.example", AF_UNSPEC, "10.7.0.1 10.7.0.2", 443);
    learn("seven.other", AF_UNSPEC, "10.7.0.2", 443);
    uint32_t resolution = find("10.7.0.1", 443).resolution;
    now += HOUR - 1;
    assert_name("10.7.0.1", 443, "seven.example");
    assert_true(find("10.7.0.2", 443).shared);
    learn("seven.example", AF_UNSPEC, "10.7.0.1 10.7.0.2", 443);
    now += 1;
    assert_int_equal(find("10.7.0.1", 443).resolution, resolution);
    assert_name("10.7.0.2", 443, "seven.example");
    assert_false(find("10.7.0.2", 443).shared);
    learn("seven.example", AF_UNSPEC, "10.7.0.2", 443);
    now += HOUR - 1;
    assert_numeric("10.7.0.1", 443, "10.7.0.1"); /* former since before that */
    assert_name("10.7.0.2", 443, "seven.example");
    now += 1;
    assert_numeric("10.7.0.2", 443, "10.7.0.2");
    learn("seven.example", AF_UNSPEC, "10.7.0.3", 443);
    assert_int_equal(find("10.7.0.3", 443).address_count, 1);
    assert_numeric("10.7.0.2", 443, "10.7.0.2");
}

static void ports_that_differ_by_socket_type(void **state)
{
    (void)state;
    list_count = 0;
    add("10.11.0.1", 512, SOCK_STREAM);
    add("10.11.0.1", 513, SOCK_DGRAM);
    sock_names_learn("eleven.example", AF_UNSPEC, list, now);
    assert_name("10.11.0.1", 512, "eleven.example");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_name_is_numeric),
        cmocka_unit_test(addresses_print_as_inet_ntop_does),
        cmocka_unit_test(what_is_no_tcp_address),
        cmocka_unit_test(a_name_and_which_of_its_addresses),
        cmocka_unit_test(what_is_not_learnt),
        cmocka_unit_test(the_set_changes_not_its_order),
        cmocka_unit_test(a_family_replaces_its_own),
        cmocka_unit_test(two_names_share),
        cmocka_unit_test(names_of_one_length),
        cmocka_unit_test(names_of_one_hash),
        cmocka_unit_test(a_former_address_shares_too),
        cmocka_unit_test(an_hour_later),
        cmocka_unit_test(ports_that_differ_by_socket_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
