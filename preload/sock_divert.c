#include "sock_divert.h"

#include "real.h"
#include "sock_attempt.h"
#include "sock_fallback.h"

#include <string.h>

/* --- the address ---------------------------------------------------------------------------------
 */

/* What a socket can be connected to. */
struct reach {
    bool v4, v6;
};

/* To the kernel one that is bound to an IPv6 address is V6ONLY from then on; one that is bound to a
 * v4-mapped address speaks IPv4 alone. */
static struct reach reach_of(int fd, sa_family_t family)
{
    struct sockaddr_in6 bound = {.sin6_family = AF_UNSPEC};
    socklen_t length = sizeof bound, size = sizeof(int);
    int only = 0;

    if (family == AF_INET)
        return (struct reach){.v4 = true};
    if (real_sock()->getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, &size) != 0 || only)
        return (struct reach){.v6 = true};
    bool is_v4 = getsockname(fd, (struct sockaddr *)&bound, &length) == 0 &&
                 bound.sin6_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&bound.sin6_addr);
    return (struct reach){.v4 = true, .v6 = !is_v4};
}

/* The host's addresses; it may be one itself. */
static unsigned addresses_of(struct span host,
                             struct sock_fallback_address found[SOCK_FALLBACK_ADDRESSES])
{
    union sock_name name;

    found[0].failed_ns = 0;
    if (sock_fallback_literal(host, &found[0].address))
        return 1;
    return sock_fallback_name(host, &name) > 0 ? sock_fallback_find(&name, found) : 0;
}

/* Of those in reach one that has not failed, or whose failure is the longest ago; then one of the
 * kind that the program wanted; then the first. */
static bool choose(const struct sock_conn *conn, int fd, struct span host,
                   struct sock_address *chosen)
{
    struct sock_fallback_address found[SOCK_FALLBACK_ADDRESSES];
    struct sock_address wanted;
    unsigned count = addresses_of(host, found);
    uint64_t best_failed = 0;
    bool any = false, best_alike = false;
    uint16_t port;

    if (count == 0 ||
        !sock_address_of((const void *)&conn->peer, sizeof conn->peer, &wanted, &port))
        return false;
    struct reach reach = reach_of(fd, conn->peer.ss_family);
    for (unsigned i = 0; i < count; i++) {
        bool v4 = sock_address_is_v4(&found[i].address), alike = v4 == sock_address_is_v4(&wanted);
        if (!(v4 ? reach.v4 : reach.v6))
            continue;
        if (any && (found[i].failed_ns > best_failed ||
                    (found[i].failed_ns == best_failed && (best_alike || !alike))))
            continue;
        any = true;
        best_failed = found[i].failed_ns;
        best_alike = alike;
        *chosen = found[i].address;
    }
    return any;
}

/* In the socket's own family. */
static void put_peer(struct sockaddr_storage *peer, sa_family_t family,
                     const struct sock_address *address, uint16_t port)
{
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

    memcpy(&six.sin6_addr, address->word, sizeof six.sin6_addr);
    memcpy(&four.sin_addr, six.sin6_addr.s6_addr + 12, sizeof four.sin_addr);
    if (family == AF_INET)
        memcpy(peer, &four, sizeof four);
    else
        memcpy(peer, &six, sizeof six);
}

/* --- the connection ------------------------------------------------------------------------------
 */

/* The walk is the program's: each of its steps leads to the same host, and all of them in vain are
 * one attempt that failed there. */
static void put_place(struct sock_place *place, const struct sock_place *meant, struct span host,
                      const struct sock_address *address, uint16_t port)
{
    union sock_name name;
    char text[SOCK_ADDRESS_TEXT_SIZE];
    size_t len = sock_fallback_name(host, &name);

    memset(place->name, 0, sizeof place->name);
    if (len > 0) {
        memcpy(place->name, name.text, len);
    } else {
        len = sock_address_text(address, text);
        memcpy(place->name, text, len);
    }
    place->name_len = (uint16_t)len;
    place->port = port;
    place->shared = false;
    place->address_count = meant->address_count;
    place->address_index = meant->address_index;
    place->resolution = meant->resolution;
}

/* Its own breaker has the say, even where what it refuses would pass. */
static bool admits(struct sock_conn *conn, struct span host)
{
    const struct shim_request request = {
        .scheme = SPAN_LIT("https"),
        .host = host,
        .port = conn->place.port,
        .path = SPAN_LIT(""),
        .is_fallback = true,
    };

    if (shim_open(&conn->host, &request) == SHIM_UNCOVERED)
        return true;
    if (sock_attempt_admit(conn) == SHIM_REFUSED)
        return false;
    conn->judged = true;
    if (!shim_overruled(&conn->host))
        return true;
    sock_attempt_withdraw(conn);
    shim_drop(&conn->host);
    return false;
}

struct sock_conn *sock_divert(struct sock_conn *conn, int fd)
{
    struct sock_address address;
    struct sock_conn *diverted;
    struct span host;
    uint16_t port;

    if (!shim_fallback_address(&conn->host, &host, &port) || !choose(conn, fd, host, &address) ||
        !(diverted = sock_conn_make()))
        return NULL;
    diverted->diverted = true;
    diverted->started_ns = conn->started_ns;
    put_peer(&diverted->peer, conn->peer.ss_family, &address, port);
    put_place(&diverted->place, &conn->place, host, &address, port);
    if (!admits(diverted, host)) {
        sock_conn_give(diverted);
        return NULL;
    }
    sock_attempt_withdraw(conn);
    shim_rerouted(&conn->host, &diverted->host);
    sock_conn_give(conn);
    return diverted;
}

void sock_divert_failed(const struct sock_conn *conn)
{
    struct sock_address address;
    union sock_name name;
    uint16_t port;

    if (sock_fallback_name(span_of(conn->place.name, conn->place.name_len), &name) > 0 &&
        sock_address_of((const void *)&conn->peer, sizeof conn->peer, &address, &port))
        sock_fallback_failed(&name, &address, shim_mono_ns());
}
