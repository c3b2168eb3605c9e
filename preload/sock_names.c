/*
 * sock_names.c - the book itself, its readers and what a fork does to it.
 */
#include "sock_names_book.h"

#include <string.h>

#define CHAIN_STEPS 256 /* looked at of a chain: then it is anybody's */
#define FIND_TRIES  128

struct sock_book sock_book;

static __thread bool holds_for_fork __attribute__((tls_model("initial-exec")));

/* --- readers ------------------------------------------------------------------------------- */

/* What one walk along a chain finds. */
struct view {
    const struct entry *entry; /* that named the address last; NULL: none */
    const struct record *record;
    uint64_t since; /* when it did */
    bool shared;
};

static bool same_name(const struct entry *a, const struct entry *b)
{
    if (GET(a->len) != GET(b->len))
        return false;
    for (size_t i = 0; i < SOCK_NAME_SIZE / 8; i++)
        if (GET(a->text[i]) != GET(b->text[i]))
            return false;
    return true;
}

static void view_record(struct view *view, unsigned number, uint16_t port, uint64_t now)
{
    const struct entry *entry = &sock_book.entries[number / RECORDS];
    const struct record *record = record_of(number);
    uint16_t asked = GET(entry->port);
    bool latest = GET(record->state) == RECORD_LATEST;
    uint64_t since = latest ? GET(entry->resolved) : GET(record->seen);

    if ((asked != 0 && asked != port) || is_over(since, now))
        return;
    view->shared |= view->entry && !same_name(view->entry, entry);
    /* Of the same name at any port and at this one: that of the later result. */
    if (!view->entry || since > view->since) {
        view->entry = entry;
        view->record = record;
        view->since = since;
    }
}

static struct view walk(const struct sock_address *address, uint16_t port, uint64_t now)
{
    struct view view = {.entry = NULL};
    unsigned next = GET(sock_book.chains[chain_of(address)]);

    for (unsigned steps = 0; next != 0; steps++) {
        if (steps == CHAIN_STEPS) {
            view.shared = true;
            break;
        }
        const struct record *record = record_of(next - 1);
        struct sock_address here = address_in(record);
        if (sock_address_eq(&here, address))
            view_record(&view, next - 1, port, now);
        next = GET(record->next);
    }
    return view;
}

static void describe(const struct view *view, struct sock_place *place)
{
    const struct entry *entry = view->entry;

    for (size_t i = 0; i < SOCK_NAME_SIZE / 8; i++) {
        uint64_t text = GET(entry->text[i]);
        memcpy(place->name + i * 8, &text, sizeof text);
    }
    place->name_len = GET(entry->len);
    place->resolution = GET(entry->resolution);
    place->address_count = 0;
    place->address_index = SOCK_NAMES_UNKNOWN;
    for (unsigned i = 0; i < RECORDS; i++) {
        if (GET(entry->records[i].state) != RECORD_LATEST)
            continue;
        if (&entry->records[i] == view->record)
            place->address_index = place->address_count;
        place->address_count++;
    }
}

/* False: a writer is at work, all the time. */
static bool read_consistently(const struct sock_address *address, uint64_t now,
                              struct sock_place *place, bool *named)
{
    for (int i = 0; i < FIND_TRIES; i++, relax()) {
        uint32_t before = atomic_load_explicit(&sock_book.version, memory_order_acquire);
        if (before & 1)
            continue;
        struct view view = walk(address, place->port, now);
        *named = view.entry != NULL;
        place->shared = view.shared;
        if (view.entry)
            describe(&view, place);
        if (atomic_load_explicit(&sock_book.version, memory_order_acquire) == before)
            return true;
    }
    return false;
}

/* The writer may have no core to run on: it is waited for, in whose place nobody writes. */
static bool read_in_turn(const struct sock_address *address, uint64_t now, struct sock_place *place,
                         bool *named)
{
    if (!sock_lock(&sock_book.lock))
        return false;
    bool read = read_consistently(address, now, place, named);
    sock_unlock(&sock_book.lock);
    return read;
}

static bool is_lost(uint64_t now)
{
    if (atomic_load_explicit(&sock_book.lost, memory_order_acquire)) {
        raise_to(&sock_book.lost_until, now + EXPIRY_NS);
        atomic_store_explicit(&sock_book.lost, false, memory_order_release);
    }
    return GET(sock_book.lost_until) > now;
}

bool sock_names_find(const struct sockaddr *address, socklen_t length, uint64_t now_ns,
                     struct sock_place *place)
{
    struct sock_address wanted;
    uint16_t port;
    bool named = false;

    if (!sock_address_of(address, length, &wanted, &port) || port == 0)
        return false;
    place->port = port;
    place->shared = false;
    bool read = read_consistently(&wanted, now_ns, place, &named) ||
                read_in_turn(&wanted, now_ns, place, &named);
    if (!read || !named) {
        char text[SOCK_ADDRESS_TEXT_SIZE];
        place->name_len = (uint16_t)sock_address_text(&wanted, text);
        memset(place->name, 0, sizeof place->name);
        memcpy(place->name, text, place->name_len);
        place->address_count = 1;
        place->address_index = 0;
        place->resolution = 0;
    } else {
        place->shared |= GET(sock_book.marks[chain_of(&wanted)]) > now_ns;
    }
    place->shared |= !read || is_lost(now_ns);
    return true;
}

/* --- fork ---------------------------------------------------------------------------------- */

void sock_names_before_fork(void)
{
    holds_for_fork = sock_lock(&sock_book.lock);
}

void sock_names_after_fork(void)
{
    if (holds_for_fork)
        sock_unlock(&sock_book.lock);
    holds_for_fork = false;
}

void sock_names_in_child(void)
{
    if (!holds_for_fork) {
        /* A writer that does not exist here may have got half way: nothing of it is to be used. */
        memset((void *)sock_book.entries, 0, sizeof sock_book.entries);
        memset((void *)sock_book.hashes, 0, sizeof sock_book.hashes);
        memset((void *)sock_book.chains, 0, sizeof sock_book.chains);
        atomic_store_explicit(&sock_book.version, 0, memory_order_release);
        atomic_store_explicit(&sock_book.lost, true, memory_order_release);
    }
    sock_names_after_fork();
    sock_unlock(&sock_book.lock);
}
