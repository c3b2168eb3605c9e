/* What a maker of a table that is killed leaves beside it, and who takes that away: only what is
 * ours by name, kind and owner, of a maker that is dead; and only where a table is made. */
#include "table_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#define LEFT ".breaker-4242-0123456789abcdef.tmp"

enum { NOT_ALLOWED = 99, OLD_S = 600, STRANGER = 65534 };

static const char *at(const char *name)
{
    static char buf[400];

    snprintf(buf, sizeof buf, "%s/%s", dir, name);
    return buf;
}

static bool is_there(const char *name)
{
    struct stat st;

    return lstat(at(name), &st) == 0;
}

static void set_time(const char *name, time_t when)
{
    struct timespec times[2] = {{.tv_sec = when}, {.tv_sec = when}};

    assert_int_equal(utimensat(AT_FDCWD, at(name), times, AT_SYMLINK_NOFOLLOW), 0);
}

static void age(const char *name, time_t seconds)
{
    set_time(name, time(NULL) - seconds);
}

static void leave(const char *name, off_t size, time_t seconds)
{
    int fd = open(at(name), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    assert_true(fd >= 0 && ftruncate(fd, size) == 0);
    close(fd);
    age(name, seconds);
}

static void leave_of(const char *name, time_t when)
{
    leave(name, 100, 0);
    set_time(name, when);
}

static void skip_without(bool allowed, const char *what)
{
    if (allowed)
        return;
    print_message("skipped: %s is not allowed here\n", what);
    skip();
}

static void replace(void)
{
    assert_int_equal(table_replace(path, true), TABLE_OK);
}

static void make_table(void)
{
    assert_int_equal(open_once(true), TABLE_OK);
}

/* --- the dead's --------------------------------------------------------------------------------
 */

static void stop_here(int signal)
{
    (void)signal;
    raise(SIGSTOP);
}

/* What becomes of the system call: SECCOMP_RET_TRAP, a SIGSYS. */
static void forbid(long call, unsigned action)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(NOT_ALLOWED);
}

/* A maker that is stopped where it would give its file the table's name. */
static pid_t start_maker(void)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        signal(SIGSYS, stop_here);
        forbid(SYS_renameat, SECCOMP_RET_TRAP);
        _exit(table_replace(path, true) != TABLE_OK);
    }
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    skip_without(WIFSTOPPED(status) || WEXITSTATUS(status) != NOT_ALLOWED, "seccomp");
    assert_true(WIFSTOPPED(status));
    return pid;
}

/* The name of what a maker left, or NULL. */
static const char *left_by(pid_t pid)
{
    static char found[80];
    char start[32];
    DIR *listing = opendir(dir);
    struct dirent *entry;

    snprintf(start, sizeof start, ".breaker-%ld-", (long)pid);
    *found = '\0';
    while (listing && (entry = readdir(listing)))
        if (strncmp(entry->d_name, start, strlen(start)) == 0)
            snprintf(found, sizeof found, "%.79s", entry->d_name);
    if (listing)
        closedir(listing);
    return *found ? found : NULL;
}

static void what_a_killed_maker_leaves_is_removed_by_the_next(void **state)
{
    (void)state;
    struct stat st;
    int status;

    make_table();
    pid_t pid = start_maker();
    const char *left = left_by(pid);
    assert_non_null(left);
    assert_true(stat(at(left), &st) == 0 && st.st_size == TABLE_FILE_SIZE);
    age(left, OLD_S); /* it lives, however long it takes */
    replace();
    assert_true(is_there(left));
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    replace();
    assert_false(is_there(left));
    assert_int_equal(entries_of(dir), 3);
    assert_int_equal(attach(true), TABLE_OK);
}

static int replace_without_rename(void)
{
    forbid(SYS_renameat, SECCOMP_RET_ERRNO | EPERM);
    return table_replace(path, true);
}

static void a_maker_that_fails_leaves_nothing(void **state)
{
    (void)state;
    make_table();
    int result = in_child(replace_without_rename);
    skip_without(result != NOT_ALLOWED, "seccomp");
    assert_int_equal(result, TABLE_E_PATH);
    assert_int_equal(entries_of(dir), 3);
}

static void a_maker_without_a_lock_has_its_time(void **state)
{
    (void)state;
    make_table();
    leave(LEFT, TABLE_FILE_SIZE, 30);
    leave(".breaker-1-0000000000000000.tmp", 0, -OLD_S); /* a clock that was put back */
    replace();
    assert_true(is_there(LEFT) && is_there(".breaker-1-0000000000000000.tmp"));
    age(LEFT, 61);
    replace();
    assert_false(is_there(LEFT));
}

/* Set back, set ahead, or by whoever wrote such a time: beyond what fits in ms, too. */
static void what_is_of_another_time(void **state)
{
    const time_t future[] = {time(NULL) + OLD_S, INT64_MAX / 1000 + 1, INT64_MAX};
    const time_t past[] = {0, -1, INT64_MIN / 1000 - 1, INT64_MIN};

    (void)state;
    make_table();
    for (size_t i = 0; i < sizeof future / sizeof *future; i++) {
        leave_of(LEFT, future[i]);
        replace();
        assert_true(is_there(LEFT));
        assert_int_equal(unlink(at(LEFT)), 0);
    }
    for (size_t i = 0; i < sizeof past / sizeof *past; i++) {
        leave_of(LEFT, past[i]);
        replace();
        assert_false(is_there(LEFT));
    }
}

static void one_that_became_the_table_loses_its_other_name(void **state)
{
    (void)state;
    struct stat st;

    make_table();
    assert_int_equal(link(path, at(LEFT)), 0);
    age(LEFT, OLD_S);
    replace(); /* of the old one this was the last name */
    assert_false(is_there(LEFT));
    assert_true(stat(path, &st) == 0 && st.st_nlink == 1);
    assert_int_equal(attach(true), TABLE_OK);
}

static int open_without_proc(void)
{
    struct table t;

    if (chroot(base) != 0)
        return NOT_ALLOWED;
    int error = table_open(&t, "/dir/table", true);
    return error == TABLE_OK && access("/dir/" LEFT, F_OK) == 0 ? 98 : error;
}

static void who_makes_one_by_name_removes_them_too(void **state)
{
    (void)state;
    assert_int_equal(mkdir(dir, 0700), 0);
    leave(LEFT, 4096, OLD_S);
    int result = in_child(open_without_proc);
    skip_without(result != NOT_ALLOWED, "chroot");
    assert_int_equal(result, TABLE_OK);
}

/* --- what stays --------------------------------------------------------------------------------
 */

static void other_names_stay(void **state)
{
    (void)state;
    static const char *const names[] = {
        ".breaker-4242-0123456789abcde.tmp",
        ".breaker-4242-0123456789abcdef0.tmp",
        ".breaker-4242-0123456789ABCDEF.tmp",
        ".breaker-4242-0123456789abcdeg.tmp",
        ".breaker--0123456789abcdef.tmp",
        ".breaker-04242-0123456789abcdef.tmp",
        ".breaker--42-0123456789abcdef.tmp",
        ".breaker-42x-0123456789abcdef.tmp",
        ".breaker-42424242424-0123456789abcdef.tmp",
        "breaker-4242-0123456789abcdef.tmp",
        ".breaker-4242-0123456789abcdef.tmp~",
        ".breaker-4242-0123456789abcdef.tm",
        ".breaker-4242-0123456789abcdef",
        "..breaker-4242-0123456789abcdef.tmp",
        ".breaker-4242 0123456789abcdef.tmp",
        "notes",
        ".breaker-",
    };
    size_t count = sizeof names / sizeof *names;

    make_table();
    for (size_t i = 0; i < count; i++)
        leave(names[i], 0, OLD_S);
    replace();
    for (size_t i = 0; i < count; i++)
        if (!is_there(names[i]))
            fail_msg("%s was removed", names[i]);
}

static void other_kinds_stay_and_nothing_is_followed(void **state)
{
    (void)state;
    make_table();
    leave("victim", 10, OLD_S);
    assert_int_equal(symlink("victim", at(".breaker-1-0123456789abcdef.tmp")), 0);
    assert_int_equal(symlink("nowhere", at(".breaker-2-0123456789abcdef.tmp")), 0);
    assert_int_equal(mkfifo(at(".breaker-3-0123456789abcdef.tmp"), 0600), 0);
    assert_int_equal(mkdir(at(".breaker-4-0123456789abcdef.tmp"), 0700), 0);
    leave(".breaker-5-0123456789abcdef.tmp", TABLE_FILE_SIZE + 1, OLD_S);
    for (char n = '1'; n <= '4'; n++) {
        char name[] = ".breaker-0-0123456789abcdef.tmp";
        name[sizeof ".breaker-" - 1] = n;
        age(name, OLD_S);
    }
    replace();
    assert_int_equal(entries_of(dir), 2 + 1 + 6);
    assert_true(is_there("victim"));
}

static void a_strangers_file_stays(void **state)
{
    (void)state;
    skip_without(geteuid() == 0, "chown");
    make_table();
    leave(LEFT, TABLE_FILE_SIZE, OLD_S);
    assert_int_equal(lchown(at(LEFT), STRANGER, STRANGER), 0);
    replace();
    assert_true(is_there(LEFT));
}

/* As nobody, where we are root, who may open anything. */
static int replace_beside_a_closed_one(void)
{
    if (geteuid() == 0 && setuid(STRANGER) != 0)
        return NOT_ALLOWED;
    make_table();
    leave(LEFT, 0, OLD_S);
    assert_int_equal(chmod(at(LEFT), 0), 0);
    replace();
    return !is_there(LEFT);
}

static void one_that_may_not_be_opened_stays(void **state)
{
    (void)state;
    skip_without(geteuid() != 0 || chown(base, STRANGER, STRANGER) == 0, "chown");
    int result = in_child(replace_beside_a_closed_one);
    skip_without(result != NOT_ALLOWED, "setuid");
    assert_int_equal(result, 0);
}

/* --- who does not look -------------------------------------------------------------------------
 */

static int open_without_listing(void)
{
    forbid(SYS_getdents64, SECCOMP_RET_TRAP); /* ends us: a signal fails the test */
    return open_once(true) == TABLE_OK && open_once(true) == TABLE_OK ? attach(true) : 1;
}

static int list(void)
{
    signal(SIGSYS, _exit);
    forbid(SYS_getdents64, SECCOMP_RET_TRAP);
    return (int)entries_of(dir);
}

static void who_finds_a_table_or_makes_one_without_a_name_lists_nothing(void **state)
{
    (void)state;
    assert_int_equal(mkdir(dir, 0700), 0);
    leave(LEFT, 0, OLD_S);
    int result = in_child(list);
    skip_without(result != NOT_ALLOWED, "seccomp");
    assert_int_equal(result, SIGSYS); /* it would be seen */
    assert_int_equal(in_child(open_without_listing), TABLE_OK);
    assert_true(is_there(LEFT));
}

/* A directory of the user's own may hold anything: it is not read to its end, wherever that is. */
static void a_large_directory_is_read_in_part(void **state)
{
    (void)state;
    static const char last[] = ".breaker-2-0123456789abcdef.tmp";
    char name[80];

    make_table();
    leave(LEFT, 0, OLD_S);
    for (unsigned i = 0; i < 4000; i++) {
        snprintf(name, sizeof name, "%060u", i);
        leave(name, 0, 0);
    }
    leave(last, 0, OLD_S);
    replace();
    assert_true(is_there(LEFT) || is_there(last));
    assert_int_equal(attach(true), TABLE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN(set_up, what_a_killed_maker_leaves_is_removed_by_the_next),
        IN(set_up_on_disk, what_a_killed_maker_leaves_is_removed_by_the_next),
        IN(set_up, a_maker_that_fails_leaves_nothing),
        IN(set_up, a_maker_without_a_lock_has_its_time),
        IN(set_up, what_is_of_another_time),
        IN(set_up, one_that_became_the_table_loses_its_other_name),
        IN(set_up, who_makes_one_by_name_removes_them_too),
        IN(set_up, other_names_stay),
        IN(set_up, other_kinds_stay_and_nothing_is_followed),
        IN(set_up, a_strangers_file_stays),
        IN(set_up, one_that_may_not_be_opened_stays),
        IN(set_up, who_finds_a_table_or_makes_one_without_a_name_lists_nothing),
        IN(set_up, a_large_directory_is_read_in_part),
    };

    return cmocka_run_group_tests_name("table_temporary", tests, NULL, NULL);
}
