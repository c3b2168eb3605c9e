#include "table/table.h"

#include "base/hash.h"
#include "base/kernel.h"
#include "core/cooldown.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Past so many claimed slots only a failure may claim: what is left is kept for trouble. */
#define CLAIM_ALL_BELOW (TABLE_CAPACITY / 4 * 3)

_Static_assert((TABLE_CAPACITY & (TABLE_CAPACITY - 1)) == 0, "slot_at() masks, any odd stride");
_Static_assert(TABLE_PROBES <= TABLE_CAPACITY, "a walk meets no slot twice");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "the table is shared: its atomics take no lock");

int table_default_path(char *buf, size_t size)
{
    int len = snprintf(buf, size, "/dev/shm/breaker-%lu/table.v%d", (unsigned long)kernel_euid(),
                       TABLE_LAYOUT);

    return len > 0 && (size_t)len < size ? TABLE_OK : TABLE_E_PATH;
}

void table_close(struct table *t)
{
    int saved = errno;

    if (t->header)
        munmap(t->header, TABLE_FILE_SIZE);
    *t = (struct table){0};
    errno = saved;
}

bool table_is_current(const struct table *t, const char *path)
{
    int saved = errno;
    struct stat st;
    bool current;

    if (kernel_stat(path, &st) == 0)
        current = st.st_dev == t->dev && st.st_ino == t->ino;
    else
        current = errno != ENOENT;
    errno = saved;
    return current;
}

/* --- slots ----------------------------------------------------------------------------------- */

uint64_t table_identity(const struct table *t, struct span key)
{
    uint64_t identity = hash64(key.ptr, key.len, t->seed);

    return identity ? identity : 1; /* 0 is "not claimed" */
}

uint64_t table_credential(const struct table *t, uint64_t credential)
{
    return cooldown_credential(hash64(&credential, sizeof credential, t->seed));
}

/* Where a walk stands at its n-th step. Each identity walks with a stride of its own: odd, so that
 * it meets no slot twice, and so that full stretches do not grow together, which would leave a
 * fifth of the late keys without room. Part of the layout (table_fingerprint). */
static struct slot *slot_at(const struct table *t, uint64_t identity, unsigned step)
{
    uint64_t stride = identity >> 32 | 1;

    return &t->slots[(identity + step * stride) & (TABLE_CAPACITY - 1)];
}

struct slot *table_find(const struct table *t, uint64_t identity)
{
    for (unsigned step = 0; step < TABLE_PROBES; step++) {
        struct slot *s = slot_at(t, identity, step);
        /* Pairs with the release of the claim in claim_slot(). */
        uint64_t found = atomic_load_explicit(&s->identity, memory_order_acquire);

        if (found == identity)
            return s;
        if (found == 0)
            return NULL; /* nothing is ever given back: the key is not further on */
    }
    return NULL;
}

/* Whoever wants the same key meets the same first free slot, and its CAS tells the loser who won:
 * so no key can come to stand in two slots. */
static struct slot *claim_slot(const struct table *t, uint64_t identity, bool may_claim)
{
    for (unsigned step = 0; step < TABLE_PROBES; step++) {
        struct slot *s = slot_at(t, identity, step);
        uint64_t found = atomic_load_explicit(&s->identity, memory_order_acquire);

        if (found == 0) {
            if (!may_claim)
                break;
            if (atomic_compare_exchange_strong_explicit(
                    &s->identity, &found, identity, memory_order_acq_rel, memory_order_acquire)) {
                atomic_fetch_add_explicit(&t->header->used, 1, memory_order_relaxed);
                return s;
            }
        }
        if (found == identity)
            return s;
    }
    atomic_fetch_add_explicit(&t->header->table_full, 1, memory_order_relaxed);
    return NULL;
}

unsigned table_used(const struct table *t)
{
    unsigned used = 0;

    for (unsigned i = 0; i < TABLE_CAPACITY; i++)
        used += atomic_load_explicit(&t->slots[i].identity, memory_order_relaxed) != 0;
    return used;
}

/* --- printable keys -------------------------------------------------------------------------- */

static uint16_t stored_len(size_t key_len)
{
    return (uint16_t)(key_len < TABLE_KEY_MAX ? key_len : TABLE_KEY_MAX);
}

static uint32_t key_checksum(const char *text, size_t len, uint64_t identity)
{
    uint32_t sum = (uint32_t)hash64(text, len, identity);

    return sum ? sum : 1; /* 0 is "not written" */
}

/* Copies the text out; false when it is not what its writer meant. */
static bool key_load(const struct slot *s, uint64_t identity, char text[TABLE_KEY_MAX],
                     uint16_t *key_len)
{
    *key_len = atomic_load_explicit(&s->key_len, memory_order_relaxed);
    uint16_t len = stored_len(*key_len);

    for (uint16_t i = 0; i < len; i++)
        text[i] = (char)atomic_load_explicit(&s->key_text[i], memory_order_relaxed);
    return atomic_load_explicit(&s->key_checksum, memory_order_relaxed) ==
           key_checksum(text, len, identity);
}

/* All writers of a slot write the same bytes, so races and repeats do no harm. */
static void key_store(struct slot *s, uint64_t identity, struct span key)
{
    uint16_t len = stored_len(key.len);
    uint16_t full = (uint16_t)(key.len < UINT16_MAX ? key.len : UINT16_MAX);
    char text[TABLE_KEY_MAX];
    uint16_t found;

    if (key_load(s, identity, text, &found) && found == full && memcmp(text, key.ptr, len) == 0)
        return;
    for (uint16_t i = 0; i < len; i++)
        atomic_store_explicit(&s->key_text[i], (uint8_t)key.ptr[i], memory_order_relaxed);
    atomic_store_explicit(&s->key_len, full, memory_order_relaxed);
    atomic_store_explicit(&s->key_checksum, key_checksum(key.ptr, len, identity),
                          memory_order_relaxed);
}

struct slot *table_claim(const struct table *t, uint64_t identity, struct span key, bool failure)
{
    uint32_t used = atomic_load_explicit(&t->header->used, memory_order_relaxed);
    struct slot *s = claim_slot(t, identity, failure || used < CLAIM_ALL_BELOW);

    if (s)
        key_store(s, identity, key);
    return s;
}

size_t table_key_read(const struct slot *s, char *buf, size_t size)
{
    uint64_t identity = atomic_load_explicit(&s->identity, memory_order_acquire);
    char text[TABLE_KEY_MAX], suffix[TABLE_KEY_TEXT_SIZE - TABLE_KEY_MAX] = "";
    uint16_t key_len;
    bool whole = key_load(s, identity, text, &key_len);
    size_t len = whole ? stored_len(key_len) : 0;

    if (!whole || key_len > TABLE_KEY_MAX)
        snprintf(suffix, sizeof suffix, "%s#%016llx", whole ? "..." : "",
                 (unsigned long long)identity);
    size_t suffix_len = strlen(suffix);
    if (size < len + suffix_len + 1)
        return 0;
    memcpy(buf, text, len); /* not a string: a model's name may hold a NUL */
    memcpy(buf + len, suffix, suffix_len + 1);
    return len + suffix_len;
}

/* The identity in "#<16 hex>" at the end of a text; false when there is none. */
static bool parse_identity(struct span text, uint64_t *identity)
{
    if (text.len < 17 || text.ptr[text.len - 17] != '#')
        return false;
    *identity = 0;
    for (size_t i = text.len - 16; i < text.len; i++) {
        char c = span_lower(text.ptr[i]);
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return false;
        *identity = *identity << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return *identity != 0;
}

struct slot *table_lookup_text(const struct table *t, struct span text)
{
    struct slot *s = table_find(t, table_identity(t, text));
    char shown[TABLE_KEY_TEXT_SIZE];
    uint64_t identity;

    if (s || !parse_identity(text, &identity))
        return s;
    s = table_find(t, identity);
    if (!s || text.len == 17)
        return s;
    size_t len = table_key_read(s, shown, sizeof shown);
    return span_eq(text, span_of(shown, len)) ? s : NULL;
}
