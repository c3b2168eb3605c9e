/* The table's file: made whole, accepted only as it must be, and never a harm to the program. */
#include "table_fixture.h"

#include <errno.h>
#include <fcntl.h>

enum { STRANGER = 65534 };

static void test_create_then_attach(void **state)
{
    (void)state;
    struct table first, second;
    struct stat st;
    unsigned descriptors = entries_of("/proc/self/fd");

    errno = 4711;
    assert_int_equal(table_attach(&first, path, false), TABLE_E_ABSENT);
    assert_int_equal(access(dir, F_OK), -1); /* attaching makes nothing */
    errno = 4711;
    assert_int_equal(table_open(&first, path, false), TABLE_OK);
    assert_int_equal(table_attach(&second, path, false), TABLE_OK);
    assert_true(table_is_current(&first, path));
    assert_int_equal(errno, 4711);
    assert_true(first.shared && first.dev == second.dev && first.ino == second.ino);
    assert_int_equal(first.euid, geteuid());
    assert_true(first.seed == second.seed && first.seed == first.header->hash_seed);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode, S_IFREG | 0600);
    assert_int_equal(st.st_size, TABLE_FILE_SIZE);
    assert_true(st.st_blocks * 512 >= TABLE_FILE_SIZE);
    assert_int_equal(stat(dir, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(entries_of("/proc/self/fd"), descriptors);
    assert_int_equal(entries_of(dir), 3); /* ., .., table: nothing left over */
    /* One mapping sees what the other does. */
    assert_non_null(table_claim(&first, 77, SPAN_LIT("k"), true));
    assert_non_null(table_find(&second, 77));
    table_close(&first);
    table_close(&second);
}

static void test_any_umask(void **state)
{
    (void)state;
    struct stat st;
    mode_t before = umask(0777);

    assert_int_equal(open_once(false), TABLE_OK);
    umask(before);
    assert_int_equal(stat(dir, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    /* Its maker was killed between mkdir and chmod. */
    unlink(path);
    chmod(dir, 0);
    assert_int_equal(attach(false), TABLE_E_ABSENT);
    assert_int_equal(open_once(false), TABLE_OK);
}

static void test_bad_directories_are_refused(void **state)
{
    (void)state;
    char elsewhere[96];

    assert_int_equal(open_once(false), TABLE_OK);
    static const mode_t modes[] = {0750, 0707, 0701, 0777, 01777};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        chmod(dir, modes[i]);
        assert_int_equal(attach(false), TABLE_E_REFUSED);
        assert_int_equal(open_once(false), TABLE_E_REFUSED);
        assert_int_equal(table_replace(path, false), TABLE_E_REFUSED);
        assert_int_equal(attach(true), TABLE_OK); /* a directory that the user named is his */
    }
    chmod(dir, 0700);
    if (geteuid() == 0) {
        assert_int_equal(chown(dir, STRANGER, (gid_t)-1), 0);
        assert_int_equal(open_once(false), TABLE_E_REFUSED);
        assert_int_equal(chown(dir, 0, (gid_t)-1), 0);
    }
    assert_int_equal(open_once(false), TABLE_OK);
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", base);
    assert_int_equal(rename(dir, elsewhere), 0);
    assert_int_equal(symlink(elsewhere, dir), 0);
    assert_int_equal(open_once(false), TABLE_E_REFUSED);
    assert_int_equal(open_once(true), TABLE_OK);
    unlink(dir);
    assert_int_equal(rename(elsewhere, dir), 0);
}

static void make_file(mode_t mode, off_t size)
{
    unlink(path);
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
    assert_int_equal(ftruncate(fd, size), 0);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void assert_all_refuse(int expected)
{
    for (int named = 0; named < 2; named++) {
        assert_int_equal(attach(named), expected);
        assert_int_equal(open_once(named), expected);
        assert_int_equal(table_replace(path, named), expected);
    }
}

static void test_bad_files_are_refused(void **state)
{
    (void)state;
    char target[96];

    assert_int_equal(open_once(false), TABLE_OK);
    chmod(path, 0640);
    assert_int_equal(attach(false), TABLE_E_REFUSED);
    chmod(path, 0666);
    assert_all_refuse(TABLE_E_REFUSED);
    chmod(path, 0600);
    if (geteuid() == 0) {
        assert_int_equal(chown(path, STRANGER, (gid_t)-1), 0);
        assert_all_refuse(TABLE_E_REFUSED);
    }
    make_file(0600, TABLE_FILE_SIZE - 1);
    assert_all_refuse(TABLE_E_REFUSED);
    make_file(0600, TABLE_FILE_SIZE + 1);
    assert_all_refuse(TABLE_E_REFUSED);
    make_file(0600, 0);
    assert_all_refuse(TABLE_E_REFUSED);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_all_refuse(TABLE_E_REFUSED);
    unlink(path);
    snprintf(target, sizeof target, "%s/target", dir);
    assert_int_equal(symlink(target, path), 0); /* dangling, then not */
    assert_all_refuse(TABLE_E_REFUSED);
    struct table t;
    assert_int_equal(table_open(&t, target, false), TABLE_OK);
    table_close(&t);
    assert_all_refuse(TABLE_E_REFUSED);
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_all_refuse(TABLE_E_REFUSED);
}

static void test_other_formats_are_refused_and_replaced(void **state)
{
    (void)state;
    static const size_t places[] = {
        offsetof(struct table_header, magic), offsetof(struct table_header, layout),
        offsetof(struct table_header, capacity), offsetof(struct table_header, fingerprint)};

    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        assert_int_equal(open_once(false), TABLE_OK);
        int fd = open(path, O_WRONLY);
        assert_int_equal(pwrite(fd, "\xff", 1, (off_t)places[i]), 1);
        close(fd);
        assert_int_equal(attach(false), TABLE_E_FORMAT);
        assert_int_equal(open_once(false), TABLE_E_FORMAT);
        assert_int_equal(table_replace(path, false), TABLE_OK);
    }
    make_file(0600, TABLE_FILE_SIZE); /* all holes */
    assert_int_equal(open_once(false), TABLE_E_FORMAT);
}

static void test_holes_are_filled_at_attach(void **state)
{
    (void)state;
    char header[TABLE_HEADER_SIZE];
    struct stat st;

    assert_int_equal(open_once(false), TABLE_OK);
    int fd = open(path, O_RDONLY);
    assert_int_equal(read(fd, header, sizeof header), sizeof header);
    close(fd);
    make_file(0600, TABLE_FILE_SIZE);
    fd = open(path, O_WRONLY);
    assert_int_equal(write(fd, header, sizeof header), sizeof header);
    close(fd);
    assert_int_equal(attach(false), TABLE_OK);
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_blocks * 512 >= TABLE_FILE_SIZE);
}

static void test_replace(void **state)
{
    (void)state;
    struct table old, fresh;

    assert_int_equal(table_replace(path, false), TABLE_OK); /* makes one where none is */
    assert_int_equal(table_open(&old, path, false), TABLE_OK);
    struct slot *s = table_claim(&old, 77, SPAN_LIT("k"), true);
    errno = 4711;
    assert_int_equal(table_replace(path, false), TABLE_OK);
    assert_false(table_is_current(&old, path));
    assert_int_equal(errno, 4711);
    atomic_fetch_add(&s->opened, 1); /* the old mapping stays good */
    assert_int_equal(table_open(&fresh, path, false), TABLE_OK);
    assert_true(table_is_current(&fresh, path));
    assert_null(table_find(&fresh, 77));
    assert_int_equal(entries_of(dir), 3);
    unlink(path);
    assert_false(table_is_current(&fresh, path));
    assert_true(table_is_current(&fresh, "/dev/null/x")); /* ENOTDIR: nothing better to be had */
    table_close(&old);
    table_close(&fresh);
}

static void test_paths(void **state)
{
    (void)state;
    struct table t;
    char big[5000], buf[64];

    memset(big, 'x', sizeof big - 1);
    big[0] = '/';
    big[sizeof big - 1] = '\0';
    assert_int_equal(table_open(&t, big, true), TABLE_E_PATH);
    big[300] = '\0';
    assert_int_equal(table_open(&t, big, true), TABLE_E_PATH);
    assert_int_equal(table_open(&t, "", true), TABLE_E_PATH);
    assert_int_equal(table_open(&t, "/", true), TABLE_E_REFUSED);
    assert_int_equal(table_open(&t, "/tmp/", false), TABLE_E_PATH);
    assert_int_equal(table_open(&t, "/tmp/..", false), TABLE_E_PATH);
    snprintf(path, sizeof path, "%s/a/b/table", base);
    assert_int_equal(open_once(true), TABLE_E_PATH); /* only the last directory is made */
    snprintf(path, sizeof path, "/dev/null/table");
    assert_int_equal(open_once(true), TABLE_E_PATH);
    assert_int_equal(table_default_path(buf, sizeof buf), TABLE_OK);
    char expected[64];
    snprintf(expected, sizeof expected, "/dev/shm/breaker-%u/table.v1", (unsigned)geteuid());
    assert_string_equal(buf, expected);
    assert_int_equal(table_default_path(buf, strlen(expected)), TABLE_E_PATH);
    for (int error = -10; error <= 1; error++)
        assert_true(strlen(table_strerror(error)) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN(set_up, test_create_then_attach),
        IN(set_up_on_disk, test_create_then_attach),
        IN(set_up, test_any_umask),
        IN(set_up, test_bad_directories_are_refused),
        IN(set_up, test_bad_files_are_refused),
        IN(set_up, test_other_formats_are_refused_and_replaced),
        IN(set_up, test_holes_are_filled_at_attach),
        IN(set_up, test_replace),
        IN(set_up, test_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
