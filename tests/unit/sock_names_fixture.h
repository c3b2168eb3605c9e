/* sock_names_fixture.h - results that the book learns, and the place it finds an address at. */
#ifndef BREAKER_TESTS_SOCK_NAMES_FIXTURE_H
#define BREAKER_TESTS_SOCK_NAMES_FIXTURE_H

#include "sock_address.h"
#include "sock_names_book.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)
#define HOUR   (3600 * SECOND)

/* The book is the process's: each test has hosts and addresses of its own. */
static uint64_t now = 1000 * SECOND;

static inline struct sockaddr_storage address_of(const char *text, unsigned port)
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

static inline void add(const char *text, unsigned port, int type)
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
static inline void learn(const char *node, int family, const char *addresses, unsigned port)
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

static inline struct sock_place find(const char *text, unsigned port)
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

static inline void assert_numeric(const char *text, unsigned port, const char *wanted)
{
    struct sock_place place = find(text, port);

    assert_string_equal(place.name, wanted);
    assert_int_equal(place.address_count, 1);
    assert_int_equal(place.address_index, 0);
    assert_int_equal(place.resolution, 0);
}

#endif
