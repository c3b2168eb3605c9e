/*
 * sock_address.h - IP addresses and host names in the one form in which they are compared. Pure and
 * async-signal-safe.
 */
#ifndef BREAKER_PRELOAD_SOCK_ADDRESS_H
#define BREAKER_PRELOAD_SOCK_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* The 16 bytes of an IPv6 address; an IPv4 one is v4-mapped. */
struct sock_address {
    uint64_t word[2];
};

/* False: not AF_INET or AF_INET6, or too short. *port in host byte order. */
bool sock_address_of(const struct sockaddr *from, socklen_t length, struct sock_address *address,
                     uint16_t *port);

bool sock_address_is_v4(const struct sock_address *address);

static inline bool sock_address_eq(const struct sock_address *a, const struct sock_address *b)
{
    return a->word[0] == b->word[0] && a->word[1] == b->word[1];
}

/* "192.0.2.1" or "[2001:db8::1]", NUL-terminated; returns its length. */
#define SOCK_ADDRESS_TEXT_SIZE 64
size_t sock_address_text(const struct sock_address *address, char text[SOCK_ADDRESS_TEXT_SIZE]);

/* A host name in lower case without its trailing dot, zeros behind it. */
#define SOCK_NAME_SIZE 256
union sock_name {
    char text[SOCK_NAME_SIZE];
    uint64_t word[SOCK_NAME_SIZE / 8];
};

/* Returns the length; 0: longer than a host name can be, empty, or with bytes that would make
 * something else of a key (blanks, '/', ':', brackets). */
size_t sock_name_of(const char *node, union sock_name *name);

/* Is it an address as getaddrinfo reads one ("127.1" and "fe80::1%eth0" included)? */
bool sock_name_is_numeric(const char *node);

#endif
