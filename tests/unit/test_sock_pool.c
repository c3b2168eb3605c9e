/* Objects of one size without lock or malloc: they come and go, and trouble of the moment passes.
 */
#include "sock_pool.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

struct thing {
    struct sock_pooled pooled;
    char rest[1000];
};

static void what_was_given_comes_back(void **state)
{
    static struct sock_pool pool = {.object_size = sizeof(struct thing), .per_block = 4};
    struct thing *taken[10];

    (void)state;
    for (unsigned i = 0; i < 10; i++) {
        taken[i] = sock_pool_take(&pool);
        assert_non_null(taken[i]);
        for (unsigned j = 0; j < i; j++)
            assert_ptr_not_equal(taken[i], taken[j]);
    }
    sock_pool_give(&pool, taken[3]);
    assert_ptr_equal(sock_pool_take(&pool), taken[3]);
}

/* The child of a fork comes back into work that a handler interrupted. */
static void what_was_abandoned_is_forgotten(void **state)
{
    static struct sock_pool pool = {.object_size = sizeof(struct thing), .per_block = 4};
    struct thing *first = sock_pool_take(&pool), *second = sock_pool_take(&pool);

    (void)state;
    sock_pool_abandon(&pool);
    sock_pool_give(&pool, second); /* nothing was mapped since */
    struct thing *other = sock_pool_take(&pool);
    assert_non_null(other);
    sock_pool_give(&pool, first); /* its number is another's by now */
    for (unsigned i = 0; i < 10; i++) {
        struct thing *taken = sock_pool_take(&pool);
        assert_non_null(taken);
        assert_ptr_not_equal(taken, first);
        assert_ptr_not_equal(taken, second);
    }
}

static void no_memory_passes(void **state)
{
    static struct sock_pool pool = {.object_size = sizeof(struct thing) * 4096, .per_block = 4};
    struct rlimit before, none;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    none = (struct rlimit){.rlim_cur = 4096, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
    for (unsigned i = 0; i < 2 * SOCK_POOL_BLOCKS; i++)
        if (sock_pool_take(&pool))
            break;
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_non_null(sock_pool_take(&pool));
}

static size_t resident_pages(void *at, size_t pages)
{
    unsigned char there[64];
    size_t count = 0;

    assert_true(pages <= sizeof there);
    assert_int_equal(mincore(at, pages * (size_t)sysconf(_SC_PAGESIZE), there), 0);
    for (size_t i = 0; i < pages; i++)
        count += there[i] & 1;
    return count;
}

static void what_was_never_taken_costs_no_page(void **state)
{
    enum { BLOCK = 4, PAGES = 2 };
    static struct sock_pool pool = {.per_block = BLOCK};
    struct sock_pooled *taken[BLOCK];

    (void)state;
    pool.object_size = PAGES * (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < BLOCK; i++) {
        taken[i] = sock_pool_take(&pool);
        assert_non_null(taken[i]);
        assert_int_equal(taken[i]->number, i + 1);
        assert_int_equal(resident_pages(taken[0], BLOCK * PAGES), i + 1);
    }
    for (size_t i = 0; i < BLOCK; i++)
        sock_pool_give(&pool, taken[i]);
    for (size_t i = BLOCK; i > 0; i--) /* no further block */
        assert_ptr_equal(sock_pool_take(&pool), taken[i - 1]);
    assert_int_equal(resident_pages(taken[0], BLOCK * PAGES), BLOCK);
}

enum { THREADS = 4, EACH = 400 };

static struct sock_pool crowded = {.object_size = sizeof(struct thing), .per_block = 4};
static struct thing *crowd[THREADS][EACH];
static pthread_barrier_t together;

static void *take_many(void *mine)
{
    struct thing **taken = mine;

    pthread_barrier_wait(&together);
    for (unsigned i = 0; i < EACH; i++) {
        taken[i] = sock_pool_take(&crowded);
        if (taken[i])
            taken[i]->rest[0]++; /* zero until somebody had it */
        if (taken[i] && i % 3 == 0) {
            taken[i]->rest[0] = 0;
            sock_pool_give(&crowded, taken[i]);
            taken[i] = NULL;
        }
    }
    return NULL;
}

static void each_is_one_threads_alone(void **state)
{
    pthread_t threads[THREADS];

    (void)state;
    pthread_barrier_init(&together, NULL, THREADS);
    for (unsigned t = 0; t < THREADS; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, take_many, crowd[t]), 0);
    for (unsigned t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    pthread_barrier_destroy(&together);
    for (unsigned t = 0; t < THREADS; t++)
        for (unsigned i = 0; i < EACH; i++) {
            if (i % 3 == 0)
                continue;
            assert_non_null(crowd[t][i]);
            assert_int_equal(crowd[t][i]->rest[0], 1);
            crowd[t][i]->rest[0] = 2;
        }
}

static void there_are_no_more_than_the_blocks_hold(void **state)
{
    static struct sock_pool pool = {.object_size = sizeof(struct thing), .per_block = 2};

    (void)state;
    for (unsigned i = 0; i < 2 * SOCK_POOL_BLOCKS; i++)
        assert_non_null(sock_pool_take(&pool));
    assert_null(sock_pool_take(&pool));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_given_comes_back),
        cmocka_unit_test(what_was_abandoned_is_forgotten),
        cmocka_unit_test(no_memory_passes),
        cmocka_unit_test(what_was_never_taken_costs_no_page),
        cmocka_unit_test(each_is_one_threads_alone),
        cmocka_unit_test(there_are_no_more_than_the_blocks_hold),
    };

    return cmocka_run_group_tests_name("sock_pool", tests, NULL, NULL);
}
