/* Finding and claiming slots, and the printable keys. All on private tables. */
#include "base/hash.h"
#include "table/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int open_table(void **state)
{
    struct table *t = calloc(1, sizeof *t);
    *state = t;
    return t && table_open_private(t) == TABLE_OK ? 0 : -1;
}

static int close_table(void **state)
{
    table_close(*state);
    free(*state);
    return 0;
}

static struct slot *claim_text(const struct table *t, const char *key)
{
    struct span span = span_str(key);
    return table_claim(t, table_identity(t, span), span, true);
}

static void test_find_and_claim(void **state)
{
    const struct table *t = *state;
    uint64_t identity = table_identity(t, SPAN_LIT("api.openai.com/m"));

    assert_null(table_find(t, identity));
    assert_int_equal(table_used(t), 0);
    struct slot *s = claim_text(t, "api.openai.com/m");
    assert_non_null(s);
    assert_ptr_equal(claim_text(t, "api.openai.com/m"), s);
    assert_ptr_equal(table_find(t, identity), s);
    assert_ptr_not_equal(claim_text(t, "api.openai.com"), s);
    assert_int_equal(table_used(t), 2);
    assert_int_equal(t->header->used, 2);
    assert_int_equal(s->word, 0);
    assert_int_not_equal(table_identity(t, SPAN_NONE), 0);
}

static void test_seeds_differ(void **state)
{
    const struct table *t = *state;
    struct table other;

    assert_int_equal(table_open_private(&other), TABLE_OK);
    assert_int_not_equal(t->seed, other.seed);
    assert_int_not_equal(table_identity(t, SPAN_LIT("a")), table_identity(&other, SPAN_LIT("a")));
    table_close(&other);
    assert_null(other.header);
    table_close(&other);
}

static void test_colliding_identities_walk_on(void **state)
{
    const struct table *t = *state;

    /* Same place, same stride of 1: the last slots of the table, so that the walk wraps. */
    for (unsigned i = 0; i < TABLE_PROBES; i++) {
        uint64_t identity = (uint64_t)(i + 1) * TABLE_CAPACITY + TABLE_CAPACITY - 3;
        struct slot *s = table_claim(t, identity, SPAN_LIT("k"), true);
        assert_ptr_equal(s, &t->slots[(TABLE_CAPACITY - 3 + i) % TABLE_CAPACITY]);
        assert_ptr_equal(table_find(t, identity), s);
    }
    /* Same place, another stride: it has room yet. */
    uint64_t other = (UINT64_C(6) << 32) + TABLE_CAPACITY - 3;
    assert_ptr_equal(table_claim(t, other, SPAN_LIT("k"), true),
                     &t->slots[(TABLE_CAPACITY - 3 + 7 * 3) % TABLE_CAPACITY]);
    uint64_t one_more = (uint64_t)99 * TABLE_CAPACITY + TABLE_CAPACITY - 3;
    assert_null(table_find(t, one_more));
    assert_int_equal(t->header->table_full, 0);
    assert_null(table_claim(t, one_more, SPAN_LIT("k"), true));
    assert_int_equal(t->header->table_full, 1);
    assert_int_equal(table_used(t), TABLE_PROBES + 1);
}

static void test_last_quarter_is_for_failures(void **state)
{
    const struct table *t = *state;
    char key[32];
    unsigned claimed = 0;

    for (unsigned i = 0; claimed < TABLE_CAPACITY * 3 / 4; i++) {
        snprintf(key, sizeof key, "host%u", i);
        claimed += table_claim(t, table_identity(t, span_str(key)), span_str(key), false) != NULL;
    }
    uint64_t full = t->header->table_full;
    for (unsigned i = 0; i < 100; i++) {
        snprintf(key, sizeof key, "late%u", i);
        uint64_t identity = table_identity(t, span_str(key));
        assert_null(table_claim(t, identity, span_str(key), false));
    }
    assert_int_equal(table_used(t), TABLE_CAPACITY * 3 / 4);
    assert_int_equal(t->header->table_full - full, 100); /* calls that passed uncounted */
    assert_non_null(table_claim(t, table_identity(t, SPAN_LIT("host0")), SPAN_LIT("host0"), false));
    unsigned failures = 0;
    for (unsigned i = 0; i < 100; i++) {
        snprintf(key, sizeof key, "late%u", i);
        failures += claim_text(t, key) != NULL;
    }
    assert_true(failures > 85);
}

static void test_printable_keys(void **state)
{
    const struct table *t = *state;
    char buf[TABLE_KEY_TEXT_SIZE], hex[TABLE_KEY_TEXT_SIZE], key[301];
    struct slot *s = claim_text(t, "h/m");

    assert_int_equal(table_key_read(s, buf, sizeof buf), 3);
    assert_string_equal(buf, "h/m");
    assert_ptr_equal(table_lookup_text(t, SPAN_LIT("h/m")), s);
    snprintf(hex, sizeof hex, "#%016llx", (unsigned long long)s->identity);
    assert_ptr_equal(table_lookup_text(t, span_str(hex)), s);
    assert_null(table_lookup_text(t, SPAN_LIT("h/n")));
    assert_null(table_lookup_text(t, SPAN_LIT("#0000000000000000")));
    assert_null(table_lookup_text(t, SPAN_LIT("#00000000000000zz")));
    assert_null(table_lookup_text(t, SPAN_NONE));

    memset(key, 'x', sizeof key);
    for (size_t len = TABLE_KEY_MAX - 1; len <= 300; len += len < TABLE_KEY_MAX + 2 ? 1 : 50) {
        key[len] = '\0';
        s = claim_text(t, key);
        size_t shown = table_key_read(s, buf, sizeof buf);
        assert_int_equal(shown, strlen(buf));
        assert_int_equal(shown, len <= TABLE_KEY_MAX ? len : TABLE_KEY_MAX + 20);
        assert_ptr_equal(table_lookup_text(t, span_of(buf, shown)), s);
        assert_ptr_equal(table_lookup_text(t, span_str(key)), s);
        if (len > TABLE_KEY_MAX) {
            buf[0] = 'y'; /* right identity, wrong text */
            assert_null(table_lookup_text(t, span_of(buf, shown)));
        }
        key[len] = 'x';
    }
}

static void test_damaged_keys_show_the_identity_and_are_mended(void **state)
{
    const struct table *t = *state;
    char buf[TABLE_KEY_TEXT_SIZE], hex[TABLE_KEY_TEXT_SIZE];
    struct slot *s = claim_text(t, "host/model");

    snprintf(hex, sizeof hex, "#%016llx", (unsigned long long)s->identity);
    for (int damage = 0; damage < 4; damage++) {
        if (damage == 0)
            s->key_text[3] ^= 1;
        else if (damage == 1)
            s->key_checksum ^= 1;
        else if (damage == 2)
            s->key_checksum = 0; /* killed between claim and text */
        else
            s->key_len = UINT16_MAX;
        assert_int_equal(table_key_read(s, buf, sizeof buf), 17);
        assert_string_equal(buf, hex);
        assert_ptr_equal(table_lookup_text(t, span_str(buf)), s);
        assert_ptr_equal(claim_text(t, "host/model"), s);
        assert_int_equal(table_key_read(s, buf, sizeof buf), 10);
        assert_string_equal(buf, "host/model");
    }
    assert_int_equal(table_key_read(s, buf, 5), 0); /* no room: nothing, no overrun */
}

static void test_key_with_a_nul(void **state)
{
    const struct table *t = *state;
    struct span key = SPAN_LIT("h/a\0b");
    char buf[TABLE_KEY_TEXT_SIZE];
    struct slot *s = table_claim(t, table_identity(t, key), key, true);

    assert_int_equal(table_key_read(s, buf, sizeof buf), 5);
    assert_memory_equal(buf, key.ptr, 5);
    assert_ptr_equal(table_lookup_text(t, span_of(buf, 5)), s);
}

static void test_private_table_is_shared_with_children(void **state)
{
    const struct table *t = *state;
    int status;
    pid_t pid = fork();

    if (pid == 0)
        _exit(claim_text(t, "from-child") == NULL);
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    assert_non_null(table_lookup_text(t, SPAN_LIT("from-child")));
    assert_false(t->shared);
    assert_true(t->dev == 0 && t->ino == 0);
}

/* --- threads --------------------------------------------------------------------------------- */

enum { THREADS = 4, KEYS = 600 };

struct claimer {
    const struct table *table;
    pthread_barrier_t *barrier;
    struct slot *slots[KEYS];
};

static void *claim_all(void *data)
{
    struct claimer *claimer = data;
    char key[32];

    pthread_barrier_wait(claimer->barrier);
    for (unsigned i = 0; i < KEYS; i++) {
        snprintf(key, sizeof key, "key%u", i);
        claimer->slots[i] = claim_text(claimer->table, key);
    }
    return NULL;
}

static void test_a_key_stands_in_one_slot(void **state)
{
    const struct table *t = *state;
    static struct claimer claimers[THREADS];
    pthread_t threads[THREADS];
    pthread_barrier_t barrier;

    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        claimers[i] = (struct claimer){.table = t, .barrier = &barrier};
        pthread_create(&threads[i], NULL, claim_all, &claimers[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 1; i < THREADS; i++)
        assert_memory_equal(claimers[i].slots, claimers[0].slots, sizeof claimers[0].slots);
    for (unsigned a = 0; a < TABLE_CAPACITY; a++)
        for (unsigned b = a + 1; b < TABLE_CAPACITY; b++)
            assert_true(t->slots[a].identity == 0 || t->slots[a].identity != t->slots[b].identity);
    assert_int_equal(t->header->used, table_used(t));
    pthread_barrier_destroy(&barrier);
}

#define WITH_TABLE(test) cmocka_unit_test_setup_teardown(test, open_table, close_table)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TABLE(test_find_and_claim),
        WITH_TABLE(test_seeds_differ),
        WITH_TABLE(test_colliding_identities_walk_on),
        WITH_TABLE(test_last_quarter_is_for_failures),
        WITH_TABLE(test_printable_keys),
        WITH_TABLE(test_damaged_keys_show_the_identity_and_are_mended),
        WITH_TABLE(test_key_with_a_nul),
        WITH_TABLE(test_private_table_is_shared_with_children),
        WITH_TABLE(test_a_key_stands_in_one_slot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
