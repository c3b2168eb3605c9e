/* Many processes that start at once on one path: one table comes into being, and all map it. */
#include "table/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "crowd.h"

enum { CROWD = 64, ROUNDS = 40, STALE_CROWD = 16, STALE_ROUNDS = 10 };

struct seen {
    ino_t ino;
    uint64_t seed;
};

static char base[64], dir[80], path[96];
static pthread_barrier_t *barrier;
static struct seen *seen;

static int start(unsigned index)
{
    struct table t;

    umask(index % 2 ? 0777 : 0);
    pthread_barrier_wait(barrier);
    if (table_open(&t, path, false) != TABLE_OK)
        return 1;
    seen[index] = (struct seen){t.ino, t.seed};
    return table_claim(&t, table_identity(&t, SPAN_LIT("k")), SPAN_LIT("k"), true) == NULL;
}

static void assert_one_table(unsigned crowd)
{
    struct table t;
    struct stat st;
    pid_t pids[CROWD];

    crowd_start(pids, crowd, start);
    assert_int_equal(crowd_wait(pids, crowd, NULL), 0);
    for (unsigned i = 1; i < crowd; i++) {
        assert_true(seen[i].ino == seen[0].ino);
        assert_true(seen[i].seed == seen[0].seed);
    }
    assert_int_equal(table_attach(&t, path, false), TABLE_OK);
    assert_true(t.ino == seen[0].ino && t.seed == seen[0].seed);
    assert_int_equal(table_used(&t), 1);
    table_close(&t);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode, S_IFREG | 0600);
    DIR *listing = opendir(dir);
    unsigned entries = 0;
    while (readdir(listing))
        entries++;
    closedir(listing);
    assert_int_equal(entries, 3);
}

static void make_base(const char *where, unsigned crowd)
{
    snprintf(base, sizeof base, "%s/breaker-stress-XXXXXX", where);
    assert_non_null(mkdtemp(base));
    snprintf(dir, sizeof dir, "%s/dir", base);
    snprintf(path, sizeof path, "%s/table", dir);
    barrier = crowd_barrier(crowd);
    seen = crowd_shared(sizeof *seen * crowd);
}

static void remove_base(void)
{
    unlink(path);
    rmdir(dir);
    assert_int_equal(rmdir(base), 0);
    munmap(barrier, sizeof *barrier);
}

static void test_first_starts(void **state)
{
    (void)state;
    make_base(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", CROWD);
    for (unsigned round = 0; round < ROUNDS; round++) {
        assert_one_table(CROWD);
        unlink(path);
        if (round % 2)
            rmdir(dir);
    }
    remove_base();
}

static void test_first_starts_after_a_reboot(void **state)
{
    (void)state;
    struct table t;

    make_base("/var/tmp", STALE_CROWD);
    for (unsigned round = 0; round < STALE_ROUNDS; round++) {
        assert_int_equal(table_open(&t, path, false), TABLE_OK);
        ino_t before = t.ino;
        table_claim(&t, 77, SPAN_LIT("old"), true);
        t.header->boot_id[0] ^= 1; /* without effect on a tmpfs: then all keep the old one */
        bool stale = table_attach(&(struct table){0}, path, false) == TABLE_E_ABSENT;
        if (stale) {
            assert_one_table(STALE_CROWD);
            assert_true(seen[0].ino != before);
        }
        table_close(&t);
        unlink(path);
    }
    remove_base();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_starts),
        cmocka_unit_test(test_first_starts_after_a_reboot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
