/* The addresses of fallbacks: what is kept, for how long it is good, which comes first. */
#include "sock_fallback.h"
#include "sock_lock.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define S UINT64_C(1000000000)

static struct addrinfo infos[16];
static struct sockaddr_in6 addresses[16];

/* A resolver's answer. */
static const struct addrinfo *answer(const char *const *texts, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct sockaddr_in *four = (void *)&addresses[i];
        addresses[i] = (struct sockaddr_in6){.sin6_family = AF_INET6};
        if (inet_pton(AF_INET6, texts[i], &addresses[i].sin6_addr) != 1) {
            *four = (struct sockaddr_in){.sin_family = AF_INET};
            assert_int_equal(inet_pton(AF_INET, texts[i], &four->sin_addr), 1);
        }
        infos[i] = (struct addrinfo){
            .ai_family = addresses[i].sin6_family,
            .ai_addr = (struct sockaddr *)&addresses[i],
            .ai_addrlen = addresses[i].sin6_family == AF_INET ? sizeof *four : sizeof addresses[i],
            .ai_next = i + 1 < count ? &infos[i + 1] : NULL};
    }
    return count > 0 ? infos : NULL;
}

#define LEARN(name, now, ...)                                                                      \
    do {                                                                                           \
        static const char *const texts[] = {__VA_ARGS__};                                          \
        sock_fallback_learn(name, answer(texts, sizeof texts / sizeof *texts), now);               \
    } while (0)

static const union sock_name *named(const char *text)
{
    static union sock_name name;

    assert_int_equal(sock_fallback_name(span_str(text), &name), strlen(text));
    return &name;
}

/* All that is known of a name, by blanks. */
static const char *known(const char *text)
{
    static char all[1024];
    struct sock_fallback_address found[SOCK_FALLBACK_ADDRESSES];
    unsigned count = sock_fallback_find(named(text), found);
    size_t len = 0;

    all[0] = '\0';
    for (unsigned i = 0; i < count; i++) {
        if (i > 0)
            all[len++] = ' ';
        len += sock_address_text(&found[i].address, all + len);
    }
    return all;
}

static uint64_t failed_ns(const char *text, unsigned at)
{
    struct sock_fallback_address found[SOCK_FALLBACK_ADDRESSES];

    assert_true(at < sock_fallback_find(named(text), found));
    return found[at].failed_ns;
}

static void test_names_and_addresses(void **state)
{
    union sock_name name;
    struct sock_address address;
    char text[SOCK_ADDRESS_TEXT_SIZE];

    (void)state;
    assert_int_equal(sock_fallback_name(SPAN_LIT("GPU2.internal."), &name), 13);
    assert_string_equal(name.text, "gpu2.internal");
    static const char *const literal[][2] = {{"192.0.2.1", "192.0.2.1"},
                                             {"[2001:DB8::1]", "[2001:db8::1]"},
                                             {"[::ffff:192.0.2.1]", "192.0.2.1"}};
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(sock_fallback_name(span_str(literal[i][0]), &name), 0);
        assert_true(sock_fallback_literal(span_str(literal[i][0]), &address));
        sock_address_text(&address, text);
        assert_string_equal(text, literal[i][1]);
    }
    static const char *const none[] = {"gpu2", "::1", "[192.0.2.1]", "[::1",
                                       "[]",   "",    "1.2.3",       "[fe80::1%lo]"};
    for (unsigned i = 0; i < sizeof none / sizeof *none; i++)
        assert_false(sock_fallback_literal(span_str(none[i]), &address));
    /* Spans end where they end. */
    assert_true(sock_fallback_literal(span_of("192.0.2.10", 9), &address));
    sock_address_text(&address, text);
    assert_string_equal(text, "192.0.2.1");
}

static void test_what_is_kept(void **state)
{
    (void)state;
    assert_string_equal(known("kept"), "");
    LEARN(named("kept"), S, "2001:db8::1", "192.0.2.1", "fe80::1", "192.0.2.1", "192.0.2.2");
    assert_string_equal(known("kept"), "[2001:db8::1] 192.0.2.1 192.0.2.2");
    LEARN(named("kept"), 2 * S, "192.0.2.2");
    assert_string_equal(known("kept"), "192.0.2.2");
    sock_fallback_learn(named("kept"), NULL, 3 * S); /* in vain */
    LEARN(named("kept"), 4 * S, "fe80::1");
    assert_string_equal(known("kept"), "192.0.2.2");
    LEARN(named("kept"), 5 * S, "2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8::4",
          "2001:db8::5", "192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.5");
    assert_string_equal(known("kept"), "[2001:db8::1] [2001:db8::2] [2001:db8::3] [2001:db8::4] "
                                       "192.0.2.1 192.0.2.2 192.0.2.3 192.0.2.4");
}

static void test_when_it_is_asked_for(void **state)
{
    (void)state;
    assert_true(sock_fallback_is_due(named("due"), S));
    assert_true(sock_fallback_is_due(named("due"), S)); /* nothing is known yet: nobody waits */
    sock_fallback_learn(named("due"), NULL, S);
    assert_false(sock_fallback_is_due(named("due"), 10 * S));
    assert_true(sock_fallback_is_due(named("due"), 11 * S));
    LEARN(named("due"), 12 * S, "192.0.2.1");
    assert_false(sock_fallback_is_due(named("due"), 71 * S));
    assert_false(sock_fallback_is_due(named("due"), 11 * S)); /* another thread's clock */
    assert_true(sock_fallback_is_due(named("due"), 72 * S));
    assert_false(sock_fallback_is_due(named("due"), 73 * S)); /* one asks, the others use it */
    assert_string_equal(known("due"), "192.0.2.1");
    sock_fallback_learn(named("due"), NULL, 80 * S);
    assert_false(sock_fallback_is_due(named("due"), 100 * S));
    assert_string_equal(known("due"), "192.0.2.1");
}

static void test_failures_are_kept(void **state)
{
    struct sock_address address;

    (void)state;
    LEARN(named("failing"), S, "192.0.2.1", "192.0.2.2");
    assert_true(sock_fallback_literal(SPAN_LIT("192.0.2.1"), &address));
    sock_fallback_failed(named("failing"), &address, 2 * S);
    sock_fallback_failed(named("nobody"), &address, 2 * S);
    assert_true(failed_ns("failing", 0) == 2 * S && failed_ns("failing", 1) == 0);
    LEARN(named("failing"), 3 * S, "192.0.2.3", "192.0.2.1");
    assert_true(failed_ns("failing", 0) == 0 && failed_ns("failing", 1) == 2 * S);
}

static void test_the_oldest_goes(void **state)
{
    char text[16];

    (void)state;
    for (unsigned i = 0; i <= SOCK_FALLBACK_NAMES; i++) {
        snprintf(text, sizeof text, "many%u", i);
        LEARN(named(text), (100 + i) * S, "192.0.2.1");
    }
    assert_string_equal(known("many0"), "");
    assert_string_equal(known("many1"), "192.0.2.1");
    assert_string_equal(known("many16"), "192.0.2.1");
}

static void test_in_a_child(void **state)
{
    (void)state;
    LEARN(named("child"), 200 * S, "192.0.2.1");
    sock_fallback_in_child();
    assert_string_equal(known("child"), "192.0.2.1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_and_addresses),  cmocka_unit_test(test_what_is_kept),
        cmocka_unit_test(test_when_it_is_asked_for), cmocka_unit_test(test_failures_are_kept),
        cmocka_unit_test(test_the_oldest_goes),      cmocka_unit_test(test_in_a_child),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
