/* Objects of one size without lock or malloc: they come and go, and trouble of the moment passes.
 */
#include "sock_pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_given_comes_back),
        cmocka_unit_test(what_was_abandoned_is_forgotten),
        cmocka_unit_test(no_memory_passes),
    };

    return cmocka_run_group_tests_name("sock_pool", tests, NULL, NULL);
}
