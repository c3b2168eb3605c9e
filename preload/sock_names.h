/*
 * sock_names.h - which addresses belong to which name, for the whole process: filled where names
 * are resolved (sock_resolve.c), read where connections begin.
 *
 * An entry is a name and the port that was asked for with it (0: none). What is in force of it are
 * the addresses of its latest results, IPv4 and IPv6 apart; former ones keep its name for their
 * hour, so that a program that holds an old result is still understood. Two names at one address
 * make it `shared`. What cannot be kept (no room, no lock in time) is not forgotten altogether:
 * a coarse mark at the hash of the address says for an hour that a further name may be there, which
 * makes every address of that hash that has a name look shared. So an error is always on the side
 * of `shared`.
 *
 * Time is CLOCK_MONOTONIC ns, given by the caller. Static memory (about 750 KB of zero pages, of
 * which a process touches what it uses), no allocation. Keeps errno.
 *
 * Threads: any, inside (sock_lock.h): a signal handler that interrupts a writer does not come here.
 * sock_names_find() is async-signal-safe: it takes no lock but where a writer is at work whenever
 * it looks; where it gets no consistent view all the same it knows no name and says `shared`.
 * Writers, and who reads in their turn, wait for another as long as sock_lock() does. Limits: the
 * scope of an IPv6 address is not told apart; an address that is asked for at a port with which it
 * was not resolved has no name.
 */
#ifndef BREAKER_PRELOAD_SOCK_NAMES_H
#define BREAKER_PRELOAD_SOCK_NAMES_H

#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define SOCK_NAMES_ADDRESSES  16 /* of one name that are told apart */
#define SOCK_NAMES_UNKNOWN    UINT8_MAX
#define SOCK_NAMES_ENTRIES    512 /* names with their ports that are known at a time */
#define SOCK_NAMES_EXPIRY_SEC 3600

/* Where a connect goes, as the program named it. */
struct sock_place {
    char name[256]; /* as resolved, lower case, no trailing dot; the numeric address (IPv6 in
                       brackets) when no name is known. NUL-terminated */
    uint16_t name_len;
    uint16_t port;         /* host byte order */
    bool shared;           /* more than one name may be meant by this address and port */
    uint8_t address_count; /* how many the name resolved to (1 for a numeric one), at most
                              SOCK_NAMES_ADDRESSES */
    uint8_t address_index; /* which of them this is; SOCK_NAMES_UNKNOWN: none of the latest */
    uint32_t resolution;   /* changes when the set of addresses of the name changes; 0: numeric */
};

/*
 * After a successful getaddrinfo(node, service, hints): `family` is the hints' (AF_UNSPEC without),
 * of which the result replaces the addresses. Never keeps, frees or changes the list. NULL or a
 * numeric node: nothing. An entry expires SOCK_NAMES_EXPIRY_SEC after it was last learnt.
 */
void sock_names_learn(const char *node, int family, const struct addrinfo *list, uint64_t now_ns);

/* False: no TCP/IP address (not AF_INET or AF_INET6, too short, port 0); *place untouched then.
 * v4-mapped IPv6 addresses are the IPv4 ones. */
bool sock_names_find(const struct sockaddr *address, socklen_t length, uint64_t now_ns,
                     struct sock_place *place);

/* For pthread_atfork(). A child that got the book half written begins an empty one, in which for
 * an hour everything is shared. */
void sock_names_before_fork(void);
void sock_names_after_fork(void);
void sock_names_in_child(void);

#endif
