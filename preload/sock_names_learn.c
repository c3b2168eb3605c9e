/*
 * sock_names_learn.c - the writers of sock_names.
 */
#include "sock_names_book.h"

#include <netinet/in.h>

#define LIST_MAX   1024 /* members of a result that are looked at */
#define RESULT_MAX 64   /* its distinct addresses; more are only marked */

static void begin_write(void)
{
    atomic_fetch_add_explicit(&sock_book.version, 1, memory_order_acq_rel);
}

static void end_write(void)
{
    atomic_fetch_add_explicit(&sock_book.version, 1, memory_order_release);
}

static void mark(const struct sock_address *address, uint64_t now)
{
    raise_to(&sock_book.marks[chain_of(address)], now + EXPIRY_NS);
}

static void remove_record(struct entry *entry, unsigned at)
{
    struct record *record = &entry->records[at];
    struct sock_address address = address_in(record);
    _Atomic uint16_t *link = &sock_book.chains[chain_of(&address)];

    while (GET(*link) != 0 && GET(*link) != number_of(entry, at) + 1)
        link = &record_of(GET(*link) - 1u)->next;
    if (GET(*link) != 0)
        SET(*link, GET(record->next));
    SET(record->state, RECORD_FREE);
}

/* A place for one more address: a free one, an expired one, else the oldest of the former, of which
 * only the mark is kept; RECORDS when all are of the latest. */
static unsigned room_in(struct entry *entry, uint64_t now)
{
    unsigned oldest = RECORDS;

    for (unsigned i = 0; i < RECORDS; i++) {
        struct record *record = &entry->records[i];
        if (GET(record->state) == RECORD_FREE)
            return i;
        if (GET(record->state) == RECORD_FORMER &&
            (oldest == RECORDS || GET(record->seen) < GET(entry->records[oldest].seen)))
            oldest = i;
    }
    if (oldest < RECORDS) {
        struct sock_address address = address_in(&entry->records[oldest]);
        if (!is_over(GET(entry->records[oldest].seen), now))
            mark(&address, now);
        remove_record(entry, oldest);
    }
    return oldest;
}

static void add_record(struct entry *entry, const struct sock_address *address,
                       enum record_state state, uint64_t now)
{
    unsigned at = room_in(entry, now), chain = chain_of(address);

    if (at == RECORDS) {
        mark(address, now);
        return;
    }
    struct record *record = &entry->records[at];
    SET(record->address[0], address->word[0]);
    SET(record->address[1], address->word[1]);
    SET(record->seen, now);
    SET(record->state, (uint8_t)state);
    SET(record->next, GET(sock_book.chains[chain]));
    SET(sock_book.chains[chain], (uint16_t)(number_of(entry, at) + 1));
}

/* --- what was resolved --------------------------------------------------------------------- */

struct result {
    union sock_name name;
    size_t name_len;
    uint64_t hash;
    uint64_t now;
    int family;
    uint16_t port;
    unsigned count;
    struct sock_address addresses[RESULT_MAX];
};

static unsigned place_in(const struct sock_address *addresses, unsigned count,
                         const struct sock_address *address)
{
    unsigned i = 0;

    while (i < count && !sock_address_eq(&addresses[i], address))
        i++;
    return i;
}

/* One address comes once per socket type; and with ports that differ by type, if the service has
 * such: then any is meant. */
static void collect(struct result *result, const struct addrinfo *list)
{
    bool first = true;

    for (unsigned i = 0; list && i < LIST_MAX; i++, list = list->ai_next) {
        struct sock_address address;
        uint16_t port;
        if (!sock_address_of(list->ai_addr, list->ai_addrlen, &address, &port))
            continue;
        result->port = first || port == result->port ? port : 0;
        first = false;
        if (place_in(result->addresses, result->count, &address) < result->count)
            continue;
        if (result->count < RESULT_MAX)
            result->addresses[result->count++] = address;
        else
            mark(&address, result->now);
    }
}

static bool is_named(const struct entry *entry, const struct result *result)
{
    if (GET(entry->len) != result->name_len || GET(entry->port) != result->port)
        return false;
    for (size_t i = 0; i * 8 < result->name_len; i++)
        if (GET(entry->text[i]) != result->name.word[i])
            return false;
    return true;
}

/* Its entry, or a free or expired one in *unused; both NULL: no room. */
static struct entry *find_entry(const struct result *result, struct entry **unused)
{
    *unused = NULL;
    for (unsigned i = 0; i < SOCK_NAMES_ENTRIES; i++) {
        struct entry *entry = &sock_book.entries[i];
        bool used = GET(entry->len) != 0;
        if (used && GET(sock_book.hashes[i]) == result->hash && is_named(entry, result))
            return entry;
        if (!*unused && (!used || is_over(GET(entry->resolved), result->now)))
            *unused = entry;
        if (!used)
            break; /* they are taken in order */
    }
    return NULL;
}

static void clear(struct entry *entry)
{
    for (unsigned i = 0; i < RECORDS; i++)
        if (GET(entry->records[i].state) != RECORD_FREE)
            remove_record(entry, i);
}

static void begin_entry(struct entry *entry, const struct result *result)
{
    clear(entry);
    for (size_t i = 0; i < SOCK_NAME_SIZE / 8; i++)
        SET(entry->text[i], result->name.word[i]);
    SET(entry->port, result->port);
    SET(entry->len, (uint16_t)result->name_len);
    SET(sock_book.hashes[entry - sock_book.entries], result->hash);
}

/* Does a result of that family speak of this address? */
static bool is_replaced(int family, const struct sock_address *address)
{
    return family == AF_UNSPEC || (family == AF_INET) == sock_address_is_v4(address);
}

/* Takes what is known already out of the result. Returns whether the latest became fewer. */
static bool update_known(struct entry *entry, struct result *result, unsigned *latest)
{
    bool changed = false;

    for (unsigned i = 0; i < RECORDS; i++) {
        struct record *record = &entry->records[i];
        if (GET(record->state) != RECORD_LATEST)
            continue;
        struct sock_address address = address_in(record);
        unsigned at = place_in(result->addresses, result->count, &address);
        if (at < result->count) {
            result->addresses[at] = result->addresses[--result->count];
        } else if (is_replaced(result->family, &address)) {
            SET(record->seen, GET(entry->resolved));
            SET(record->state, RECORD_FORMER);
            changed = true;
            continue;
        }
        ++*latest;
    }
    return changed;
}

/* One that is new, or was former: among the latest while there is room. */
static bool update_new(struct entry *entry, const struct sock_address *address, uint64_t now,
                       unsigned *latest)
{
    enum record_state state = *latest < SOCK_NAMES_ADDRESSES ? RECORD_LATEST : RECORD_FORMER;
    unsigned at = 0;

    for (; at < RECORDS; at++) {
        struct sock_address known = address_in(&entry->records[at]);
        if (GET(entry->records[at].state) == RECORD_FORMER && sock_address_eq(&known, address))
            break;
    }
    if (at == RECORDS) {
        add_record(entry, address, state, now);
    } else {
        SET(entry->records[at].seen, now);
        SET(entry->records[at].state, (uint8_t)state);
    }
    *latest += state == RECORD_LATEST;
    return state == RECORD_LATEST;
}

static void put(struct result *result)
{
    struct entry *unused, *entry = find_entry(result, &unused);
    unsigned latest = 0;

    if (!entry && !unused) {
        for (unsigned i = 0; i < result->count; i++)
            mark(&result->addresses[i], result->now);
        return;
    }
    begin_write();
    if (!entry)
        begin_entry(entry = unused, result);
    else if (is_over(GET(entry->resolved), result->now))
        clear(entry);
    bool changed = update_known(entry, result, &latest);
    for (unsigned i = 0; i < result->count; i++)
        changed |= update_new(entry, &result->addresses[i], result->now, &latest);
    SET(entry->resolved, result->now);
    if (changed) {
        sock_book.resolutions +=
            sock_book.resolutions == UINT32_MAX ? 2 : 1; /* 0 is for numeric ones */
        SET(entry->resolution, sock_book.resolutions);
    }
    end_write();
}

void sock_names_learn(const char *node, int family, const struct addrinfo *list, uint64_t now_ns)
{
    struct result result = {.now = now_ns, .family = family};

    if (!node || sock_name_is_numeric(node))
        return;
    collect(&result, list);
    if (result.count == 0)
        return;
    result.name_len = sock_name_of(node, &result.name);
    if (result.name_len > 0 && sock_lock(&sock_book.lock)) {
        result.hash = hash64(result.name.text, result.name_len, result.port);
        put(&result);
        sock_unlock(&sock_book.lock);
        return;
    }
    for (unsigned i = 0; i < result.count; i++)
        mark(&result.addresses[i], now_ns);
}
