/* The book of names: which name an address belongs to, which of its addresses it is, and when that
 * says nothing of a host. */
#include "child_check.h"
#include "sock_address.h"
#include "sock_names_book.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)
#define HOUR   (3600 * SECOND)

/* The book is the process's: each test has hosts and addresses of its own. */
static uint64_t now = 1000 * SECOND;

static struct sockaddr_storage address_of(const char *text, unsigned port)
{
    struct sockaddr_storage storage = {0};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&storage;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&storage;

    if (strchr(text, ':')) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t)port);
        assert_int_equal(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
    } else {
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)port);
        assert_int_equal(inet_pton(AF_INET, text, &v4->sin_addr), 1);
    }
    return storage;
}

#define LIST_SIZE 2048
static struct addrinfo list[LIST_SIZE];
static struct sockaddr_storage list_addresses[LIST_SIZE];
static unsigned list_count;

static void add(const char *text, unsigned port, int type)
{
    assert_true(list_count < LIST_SIZE);
    list_addresses[list_count] = address_of(text, port);
    list[list_count] = (struct addrinfo){
        .ai_family = list_addresses[list_count].ss_family,
        .ai_socktype = type,
        .ai_addrlen = strchr(text, ':') ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in),
        .ai_addr = (struct sockaddr *)&list_addresses[list_count],
    };
    if (list_count > 0)
        list[list_count - 1].ai_next = &list[list_count];
    list_count++;
}

/* "192.0.2.1 2001:db8::1": each of them three times, as without a socket type. */
static void learn(const char *node, int family, const char *addresses, unsigned port)
{
    char copy[2048], *rest = copy;

    list_count = 0;
    assert_true(snprintf(copy, sizeof copy, "%s", addresses) < (int)sizeof copy);
    for (char *one; (one = strtok_r(rest, " ", &rest));) {
        add(one, port, SOCK_STREAM);
        add(one, port, SOCK_DGRAM);
        add(one, port, SOCK_RAW);
    }
    sock_names_learn(node, family, list_count ? list : NULL, now);
}

static struct sock_place find(const char *text, unsigned port)
{
    struct sockaddr_storage address = address_of(text, port);
    struct sock_place place;

    memset(&place, 0x5a, sizeof place);
    assert_true(sock_names_find((struct sockaddr *)&address, sizeof address, now, &place));
    assert_int_equal(place.port, port);
    assert_int_equal(place.name_len, strlen(place.name));
    return place;
}

#define assert_name(text, port, wanted) assert_string_equal(find(text, port).name, wanted)

static void assert_numeric(const char *text, unsigned port, const char *wanted)
{
    struct sock_place place = find(text, port);

    assert_string_equal(place.name, wanted);
    assert_int_equal(place.address_count, 1);
    assert_int_equal(place.address_index, 0);
    assert_int_equal(place.resolution, 0);
}

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

static void ports_that_differ_by_socket_type(void **state)
{
    (void)state;
    list_count = 0;
    add("10.11.0.1", 512, SOCK_STREAM);
    add("10.11.0.1", 513, SOCK_DGRAM);
    sock_names_learn("eleven.example", AF_UNSPEC, list, now);
    assert_name("10.11.0.1", 512, "eleven.example");
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

/* --- threads and forks ----------------------------------------------------------------------- */

static atomic_bool stop;

static void stress_learn(const char *node, unsigned from, unsigned count, unsigned port)
{
    struct sockaddr_in addresses[8] = {0};
    struct addrinfo infos[8] = {0};

    for (unsigned i = 0; i < count; i++) {
        addresses[i] = (struct sockaddr_in){.sin_family = AF_INET,
                                            .sin_port = htons((uint16_t)port),
                                            .sin_addr.s_addr = htonl(0x0a140000 + from + i)};
        infos[i] = (struct addrinfo){.ai_family = AF_INET,
                                     .ai_addrlen = sizeof addresses[i],
                                     .ai_addr = (struct sockaddr *)&addresses[i],
                                     .ai_next = i + 1 < count ? &infos[i + 1] : NULL};
    }
    sock_names_learn(node, AF_INET, infos, now);
}

/* The set of "turn.a" or "turn.b" is always the one half or the other, of four or three. */
static void *turn(void *name)
{
    unsigned base = strcmp(name, "turn.a") == 0 ? 0 : 100;

    for (unsigned i = 0; !atomic_load(&stop); i++)
        stress_learn(name, base + (i % 2) * 8, i % 2 ? 3 : 4, 443);
    return NULL;
}

static void *look(void *data)
{
    unsigned long *named = data;

    for (unsigned i = 0; i < 100000; i++) {
        unsigned at = i % 8 + (i / 8 % 2) * 8 + (i / 16 % 2) * 100;
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_port = htons(443),
                                      .sin_addr.s_addr = htonl(0x0a140000 + at)};
        struct sock_place place;
        if (!sock_names_find((struct sockaddr *)&address, sizeof address, now, &place))
            abort();
        if (place.resolution == 0)
            continue; /* not yet learnt, none of theirs, or no consistent view: then shared */
        if (strcmp(place.name, at < 100 ? "turn.a" : "turn.b") != 0 || place.name_len != 6 ||
            (place.address_count != 4 && place.address_count != 3) ||
            (place.address_index != SOCK_NAMES_UNKNOWN &&
             (place.address_index >= place.address_count ||
              place.address_count != (at % 100 < 8 ? 4 : 3))))
            abort();
        ++*named;
    }
    return NULL;
}

static void readers_see_whole_results(void **state)
{
    pthread_t writers[2], readers[2];
    unsigned long named[2] = {0};

    (void)state;
    stress_learn("turn.a", 0, 4, 443);
    stress_learn("turn.b", 100, 4, 443);
    pthread_create(&writers[0], NULL, turn, "turn.a");
    pthread_create(&writers[1], NULL, turn, "turn.b");
    for (int i = 0; i < 2; i++)
        pthread_create(&readers[i], NULL, look, &named[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(readers[i], NULL);
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++)
        pthread_join(writers[i], NULL);
    assert_true(named[0] + named[1] > 0);
}

/* Who waits for a writer has nothing by which it could be seen to. */
static void somebody_else_runs(void)
{
    const struct timespec a_slice = {0, 5000000};

    nanosleep(&a_slice, NULL);
}

/* A writer whose core is somebody else's for a while, in the middle of its work. */
static void *write_slowly(void *begun)
{
    assert_true(sock_lock(&sock_book.lock));
    atomic_fetch_add(&sock_book.version, 1);
    atomic_store((atomic_bool *)begun, true);
    somebody_else_runs();
    atomic_fetch_add(&sock_book.version, 1);
    sock_unlock(&sock_book.lock);
    return NULL;
}

static void begin_slowly(pthread_t *writer)
{
    atomic_bool begun = false;

    pthread_create(writer, NULL, write_slowly, &begun);
    while (!atomic_load(&begun))
        sched_yield();
}

static void a_slow_writer_is_waited_for(void **state)
{
    pthread_t writer;

    (void)state;
    learn("slow.a", AF_UNSPEC, "10.15.0.1", 443);
    begin_slowly(&writer);
    assert_name("10.15.0.1", 443, "slow.a");
    assert_false(find("10.15.0.1", 443).shared);
    pthread_join(writer, NULL);
    begin_slowly(&writer);
    learn("slow.b", AF_UNSPEC, "10.15.0.2", 443);
    pthread_join(writer, NULL);
    assert_name("10.15.0.2", 443, "slow.b");
    assert_false(find("10.15.0.2", 443).shared);
}

static void body_whole(void)
{
    sock_names_in_child();
    CHECK(strcmp(find("10.14.0.1", 443).name, "fork.example") == 0);
    CHECK(!find("10.14.0.1", 443).shared);
    learn("fork.child", AF_UNSPEC, "10.14.0.2", 443); /* it can be written */
    CHECK(strcmp(find("10.14.0.2", 443).name, "fork.child") == 0);
}

/* As if a writer, here this test, was at work all the time that the fork waits. */
static void body_half(void)
{
    sock_names_in_child();
    CHECK(strcmp(find("10.14.0.1", 443).name, "10.14.0.1") == 0);
    CHECK(find("10.14.0.1", 443).shared);
    learn("fork.child", AF_UNSPEC, "10.14.0.2", 443);
    CHECK(strcmp(find("10.14.0.2", 443).name, "fork.child") == 0);
    CHECK(find("10.14.0.2", 443).shared);
    now += HOUR;
    learn("fork.child", AF_UNSPEC, "10.14.0.2", 443);
    CHECK(!find("10.14.0.2", 443).shared);
}

static void *hold_the_lock(void *data)
{
    (void)data;
    sock_names_before_fork();
    return NULL;
}

static void a_child_never_finds_it_locked(void **state)
{
    pthread_t holder;

    (void)state;
    now += HOUR;
    learn("fork.example", AF_UNSPEC, "10.14.0.1", 443);
    sock_names_before_fork();
    assert_true(child_ends_well(body_whole));
    sock_names_after_fork();
    learn("fork.parent", AF_UNSPEC, "10.14.0.3", 443);
    assert_name("10.14.0.3", 443, "fork.parent");

    pthread_create(&holder, NULL, hold_the_lock, NULL);
    pthread_join(holder, NULL);
    sock_names_before_fork(); /* gives up */
    assert_true(child_ends_well(body_half));
    sock_names_after_fork();

    /* The lock is held for ever: nothing is learnt, nobody waits for long, further names are
     * marked. */
    learn("fork.late", AF_UNSPEC, "10.14.0.1 10.14.0.4", 443);
    assert_numeric("10.14.0.4", 443, "10.14.0.4");
    assert_name("10.14.0.1", 443, "fork.example");
    assert_true(find("10.14.0.1", 443).shared);
    assert_false(find("10.14.0.3", 443).shared);
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
        cmocka_unit_test(more_addresses_than_are_told_apart),
        cmocka_unit_test(a_pool_that_turns),
        cmocka_unit_test(a_result_without_end),
        cmocka_unit_test(ports_that_differ_by_socket_type),
        cmocka_unit_test(a_full_book),
        cmocka_unit_test(readers_see_whole_results),
        cmocka_unit_test(a_slow_writer_is_waited_for),
        cmocka_unit_test(a_child_never_finds_it_locked), /* the last: leaves it locked */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
