#include "sock_fallback.h"

#include "base/clock.h"
#include "sock_lock.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

/* All under `lock`. */
static struct entry {
    union sock_name name; /* empty: unused */
    uint64_t asked_ns;    /* when it was last asked for, or the answer came */
    unsigned count;       /* 0: asked for in vain */
    struct sock_fallback_address addresses[SOCK_FALLBACK_ADDRESSES];
} entries[SOCK_FALLBACK_NAMES];

static struct sock_lock lock;

bool sock_fallback_literal(struct span host, struct sock_address *address)
{
    char text[INET6_ADDRSTRLEN];
    unsigned char bytes[16] = {[10] = 0xff, [11] = 0xff};
    bool v6 = host.len > 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']';

    if (v6)
        host = span_of(host.ptr + 1, host.len - 2);
    if (host.len >= sizeof text)
        return false;
    memcpy(text, host.ptr, host.len);
    text[host.len] = '\0';
    if (inet_pton(v6 ? AF_INET6 : AF_INET, text, v6 ? bytes : bytes + 12) != 1)
        return false;
    memcpy(address->word, bytes, sizeof bytes);
    return true;
}

size_t sock_fallback_name(struct span host, union sock_name *name)
{
    struct sock_address address;
    char text[SOCK_NAME_SIZE + 1];

    if (host.len >= sizeof text || sock_fallback_literal(host, &address))
        return 0;
    memcpy(text, host.ptr, host.len);
    text[host.len] = '\0';
    return sock_name_of(text, name);
}

static struct entry *find(const union sock_name *name)
{
    for (unsigned i = 0; i < SOCK_FALLBACK_NAMES; i++)
        if (memcmp(&entries[i].name, name, sizeof *name) == 0)
            return &entries[i];
    return NULL;
}

static struct entry *find_or_begin(const union sock_name *name)
{
    struct entry *entry = find(name);

    if (entry)
        return entry;
    entry = &entries[0];
    for (unsigned i = 1; i < SOCK_FALLBACK_NAMES; i++)
        if (entries[i].asked_ns < entry->asked_ns)
            entry = &entries[i];
    entry->name = *name;
    entry->count = 0;
    return entry;
}

bool sock_fallback_is_due(const union sock_name *name, uint64_t now_ns)
{
    bool due = true;

    if (!sock_lock(&lock))
        return false;
    struct entry *entry = find(name);
    if (entry) {
        due = clock_has_passed(entry->asked_ns, now_ns,
                               entry->count > 0 ? SOCK_FALLBACK_FRESH_NS : SOCK_FALLBACK_AGAIN_NS);
        if (due && entry->count > 0)
            entry->asked_ns = now_ns;
    }
    sock_unlock(&lock);
    return due;
}

/* --- answers -------------------------------------------------------------------------------------
 */

static bool is_link_local(const struct sock_address *address)
{
    struct in6_addr v6;

    memcpy(&v6, address->word, sizeof v6);
    return IN6_IS_ADDR_LINKLOCAL(&v6);
}

static const struct sock_fallback_address *address_in(const struct sock_fallback_address *addresses,
                                                      unsigned count,
                                                      const struct sock_address *wanted)
{
    for (unsigned i = 0; i < count; i++)
        if (sock_address_eq(&addresses[i].address, wanted))
            return &addresses[i];
    return NULL;
}

static unsigned of_kind(const struct entry *entry, bool v4)
{
    unsigned count = 0;

    for (unsigned i = 0; i < entry->count; i++)
        count += sock_address_is_v4(&entry->addresses[i].address) == v4;
    return count;
}

/* Addresses that stay keep what is known of them. */
static void replace(struct entry *entry, const struct addrinfo *list)
{
    const struct entry before = *entry;

    entry->count = 0;
    for (; list; list = list->ai_next) {
        struct sock_address address;
        uint16_t port;
        if (!sock_address_of(list->ai_addr, list->ai_addrlen, &address, &port) ||
            is_link_local(&address) || address_in(entry->addresses, entry->count, &address) ||
            of_kind(entry, sock_address_is_v4(&address)) == SOCK_FALLBACK_PER_KIND)
            continue;
        const struct sock_fallback_address *known =
            address_in(before.addresses, before.count, &address);
        entry->addresses[entry->count++] =
            (struct sock_fallback_address){address, known ? known->failed_ns : 0};
    }
    if (entry->count == 0)
        *entry = before;
}

void sock_fallback_learn(const union sock_name *name, const struct addrinfo *list, uint64_t now_ns)
{
    if (!sock_lock(&lock))
        return;
    struct entry *entry = find_or_begin(name);
    replace(entry, list);
    entry->asked_ns = now_ns;
    sock_unlock(&lock);
}

unsigned sock_fallback_find(const union sock_name *name,
                            struct sock_fallback_address found[SOCK_FALLBACK_ADDRESSES])
{
    unsigned count = 0;

    if (!sock_lock(&lock))
        return 0;
    const struct entry *entry = find(name);
    if (entry) {
        count = entry->count;
        memcpy(found, entry->addresses, count * sizeof *found);
    }
    sock_unlock(&lock);
    return count;
}

void sock_fallback_failed(const union sock_name *name, const struct sock_address *address,
                          uint64_t now_ns)
{
    if (!sock_lock(&lock))
        return;
    struct entry *entry = find(name);
    for (unsigned i = 0; entry && i < entry->count; i++)
        if (sock_address_eq(&entry->addresses[i].address, address))
            entry->addresses[i].failed_ns = now_ns;
    sock_unlock(&lock);
}

void sock_fallback_in_child(void)
{
    if (!atomic_load_explicit(&lock.owner, memory_order_relaxed))
        return; /* most children's: no page is touched */
    memset(entries, 0, sizeof entries);
    sock_unlock(&lock);
}
