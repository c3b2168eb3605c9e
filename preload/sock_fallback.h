/*
 * sock_fallback.h - the addresses of the hosts that connects may go to instead (fallback_address in
 * the configuration): resolved where the program resolves names (sock_resolve.c), read at connect.
 *
 * Kept apart from the book of names (sock_names.h), where what the program itself never asked for
 * would make addresses look shared. What is known of a name is used however old it is; it is asked
 * for anew when it is older than SOCK_FALLBACK_FRESH_NS and the program resolves a name that may
 * need it. Static memory, no allocation. Time is CLOCK_MONOTONIC ns. Keeps errno.
 *
 * Threads: any; a lock that is waited for for a bounded time (sock_lock.h), without which nothing
 * is known. Inside only (sock_enter()).
 */
#ifndef BREAKER_PRELOAD_SOCK_FALLBACK_H
#define BREAKER_PRELOAD_SOCK_FALLBACK_H

#include "base/span.h"
#include "sock_address.h"

#include <netdb.h>

/* Known at a time; then the one that was not asked for longest goes. */
#define SOCK_FALLBACK_NAMES     16
#define SOCK_FALLBACK_PER_KIND  4 /* addresses of a name, IPv4 and IPv6 each */
#define SOCK_FALLBACK_ADDRESSES (2 * SOCK_FALLBACK_PER_KIND)
#define SOCK_FALLBACK_FRESH_NS  (UINT64_C(60) * 1000000000)
#define SOCK_FALLBACK_AGAIN_NS  (UINT64_C(10) * 1000000000) /* after one that came to nothing */

struct sock_fallback_address {
    struct sock_address address;
    uint64_t failed_ns; /* when it last failed to be connected to; 0: never */
};

/* The name of a host as in a URL (no port). 0: an address, or not one. */
size_t sock_fallback_name(struct span host, union sock_name *name);

/* The address that a host is, "[2001:db8::1]" or "192.0.2.1"; false: a name. */
bool sock_fallback_literal(struct span host, struct sock_address *address);

/* Should the name be asked for now? Who is told so asks; others meanwhile use what is known, if
 * anything is. */
bool sock_fallback_is_due(const union sock_name *name, uint64_t now_ns);

/* What came of it; NULL: nothing, and what was known stays. Link-local addresses, which mean
 * nothing without a scope, are left out. */
void sock_fallback_learn(const union sock_name *name, const struct addrinfo *list, uint64_t now_ns);

/* How many are known, in the resolver's order. */
unsigned sock_fallback_find(const union sock_name *name,
                            struct sock_fallback_address found[SOCK_FALLBACK_ADDRESSES]);

/* It could not be connected to, by the peer's fault: the others come first from now on. */
void sock_fallback_failed(const union sock_name *name, const struct sock_address *address,
                          uint64_t now_ns);

/* In the child of a fork: what another thread left half written is forgotten. */
void sock_fallback_in_child(void);

#endif
