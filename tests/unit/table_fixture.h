/* A directory of its own for each test of the table's file. */
#ifndef BREAKER_TESTS_TABLE_FIXTURE_H
#define BREAKER_TESTS_TABLE_FIXTURE_H

#include "table/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* base/ is ours and 0700; table files go to base/dir/table, whose directory a test may be without.
 */
static char base[64], dir[80], path[96];

static inline int make_base(const char *where)
{
    snprintf(base, sizeof base, "%s/breaker-test-XXXXXX", where);
    if (!mkdtemp(base))
        return -1;
    snprintf(dir, sizeof dir, "%s/dir", base);
    snprintf(path, sizeof path, "%s/table", dir);
    return 0;
}

static inline int set_up(void **state)
{
    (void)state;
    return make_base("/dev/shm") == 0 ? 0 : make_base("/tmp");
}

static inline int set_up_on_disk(void **state)
{
    (void)state;
    return make_base("/var/tmp") == 0 ? 0 : make_base("/tmp");
}

static inline int tear_down(void **state)
{
    (void)state;
    char name[400];
    DIR *listing = opendir(dir);
    struct dirent *entry;

    while (listing && (entry = readdir(listing)))
        if (entry->d_name[0] != '.' || strlen(entry->d_name) > 2) {
            snprintf(name, sizeof name, "%s/%s", dir, entry->d_name);
            if (unlink(name) != 0)
                rmdir(name);
        }
    if (listing)
        closedir(listing);
    if (rmdir(dir) != 0)
        unlink(dir);
    return rmdir(base);
}

static inline int attach(bool named)
{
    struct table t;
    int error = table_attach(&t, path, named);
    if (error == TABLE_OK)
        table_close(&t);
    return error;
}

static inline int open_once(bool named)
{
    struct table t;
    int error = table_open(&t, path, named);
    if (error == TABLE_OK)
        table_close(&t);
    return error;
}

static inline unsigned entries_of(const char *name)
{
    DIR *listing = opendir(name);
    unsigned count = 0;

    while (listing && readdir(listing))
        count++;
    if (listing)
        closedir(listing);
    return count;
}

/* Runs `body` in a child; what it returns is the exit status. A signal fails the test. */
static inline int in_child(int (*body)(void))
{
    int status;
    pid_t pid = fork();

    if (pid == 0)
        _exit(body() & 0xff);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return (signed char)WEXITSTATUS(status);
}

#define IN(set_up, test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

#endif
