/* The table's file in hard places: limits, a full file system, no /proc, other users, another boot.
 */
#include "table_fixture.h"

#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

enum { STRANGER = 65534, GROUP = 54321 };

static int open_with_small_limit(void)
{
    struct rlimit limit = {TABLE_FILE_SIZE - 1, TABLE_FILE_SIZE - 1};
    setrlimit(RLIMIT_FSIZE, &limit);
    return open_once(true);
}

static void test_file_size_limit(void **state)
{
    (void)state;
    assert_int_equal(in_child(open_with_small_limit), TABLE_E_NO_SPACE);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(open_once(true), TABLE_OK);
    assert_int_equal(in_child(open_with_small_limit), TABLE_OK);
}

static int open_on_full_file_system(void)
{
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", dir, "tmpfs", 0, "size=64k,mode=0700") != 0)
        return 99; /* not allowed here */
    int error = open_once(true);
    return error == TABLE_E_NO_SPACE && entries_of(dir) != 2 ? 98 : error;
}

static void test_full_file_system(void **state)
{
    (void)state;
    mkdir(dir, 0700);
    int result = in_child(open_on_full_file_system);
    if (result == 99)
        skip();
    assert_int_equal(result, TABLE_E_NO_SPACE);
}

static int open_without_proc(void)
{
    struct table t;
    if (chroot(base) != 0)
        return 99;
    int error = table_open(&t, "/dir/table", false);
    return error == TABLE_OK && entries_of("/dir") != 3 ? 98 : error;
}

static void test_without_proc(void **state)
{
    (void)state;
    int result = in_child(open_without_proc);
    if (result == 99)
        skip();
    assert_int_equal(result, TABLE_OK);
    assert_int_equal(attach(false), TABLE_OK);
}

static int attach_as_member(void)
{
    gid_t group = GROUP;
    return setgroups(1, &group) == 0 && setgid(STRANGER) == 0 && setuid(STRANGER) == 0
               ? attach(true)
               : 99;
}

static int attach_as_outsider(void)
{
    return setgroups(0, NULL) == 0 && setgid(STRANGER) == 0 && setuid(STRANGER) == 0 ? attach(true)
                                                                                     : 99;
}

static int attach_unnamed_as_member(void)
{
    gid_t group = GROUP;
    return setgroups(1, &group) == 0 && setgid(STRANGER) == 0 && setuid(STRANGER) == 0
               ? attach(false)
               : 99;
}

static void test_table_of_a_group(void **state)
{
    (void)state;
    struct stat st;

    if (geteuid() != 0)
        skip();
    assert_int_equal(open_once(true), TABLE_OK);
    assert_int_equal(chmod(base, 0755) + chmod(dir, 0755), 0);
    assert_int_equal(in_child(attach_as_member), TABLE_E_REFUSED);
    assert_int_equal(chown(path, 0, GROUP) + chmod(path, 0660), 0);
    assert_int_equal(in_child(attach_as_member), TABLE_OK);
    assert_int_equal(in_child(attach_unnamed_as_member), TABLE_E_REFUSED);
    assert_int_equal(in_child(attach_as_outsider), TABLE_E_REFUSED);
    assert_int_equal(attach(true), TABLE_OK);
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(in_child(attach_as_member), TABLE_E_REFUSED);
    assert_int_equal(in_child(attach_as_outsider), TABLE_E_REFUSED);
    /* A reset by the administrator leaves it to the group. */
    assert_int_equal(chmod(path, 0660), 0);
    assert_int_equal(table_replace(path, true), TABLE_OK);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_gid, GROUP);
    assert_int_equal(st.st_mode & 07777, 0660);
    assert_int_equal(in_child(attach_as_member), TABLE_OK);
}

static void test_table_of_another_boot(void **state)
{
    (void)state;
    struct table t;

    assert_int_equal(table_open(&t, path, false), TABLE_OK);
    assert_int_equal(strlen(t.header->boot_id), 36);
    table_claim(&t, 77, SPAN_LIT("k"), true);
    assert_int_equal(attach(false), TABLE_OK);
    t.header->boot_id[0] ^= 1;
    assert_int_equal(attach(false), TABLE_E_ABSENT);
    struct table fresh;
    assert_int_equal(table_open(&fresh, path, false), TABLE_OK);
    assert_false(table_is_current(&t, path));
    assert_null(table_find(&fresh, 77));
    assert_int_equal(entries_of(dir), 3);
    /* An unknown id is no other id. */
    memset(fresh.header->boot_id, 0, sizeof fresh.header->boot_id);
    assert_int_equal(attach(false), TABLE_OK);
    table_close(&t);
    table_close(&fresh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN(set_up, test_file_size_limit),
        IN(set_up, test_full_file_system),
        IN(set_up, test_without_proc),
        IN(set_up, test_table_of_a_group),
        IN(set_up_on_disk, test_table_of_another_boot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
