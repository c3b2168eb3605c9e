/* The event log: valid JSON whatever the bytes, whole lines, and no harm when it cannot be written.
 */
#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/breaker-log-XXXXXX";
static char path[64];

static int make_dir(void **state)
{
    (void)state;
    if (!mkdtemp(dir))
        return -1;
    snprintf(path, sizeof path, "%s/events.log", dir);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(dir);
}

static int clear(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

static const struct log_event EVENT = {.event = "transition",
                                       .key = {"h/m", 3},
                                       .from = "closed",
                                       .to = "open",
                                       .cause = "status 503"};

static void assert_rendered(const struct log_event *event, int64_t wall_ms, const char *expected)
{
    char line[LOG_LINE_MAX + 1];
    size_t len = log_render(event, wall_ms, 42, "curl", line, LOG_LINE_MAX);

    line[len] = '\0';
    assert_string_equal(line, expected);
}

static void test_render(void **state)
{
    (void)state;
    struct log_event burst = {.event = "refused", .key = {"h", 1}, .refused_total = 35};

    assert_rendered(
        &EVENT, INT64_C(1793166605007),
        "{\"time\":\"2026-10-28T05:50:05.007Z\",\"event\":\"transition\",\"key\":\"h/m\","
        "\"from\":\"closed\",\"to\":\"open\",\"cause\":\"status 503\",\"pid\":42,"
        "\"program\":\"curl\"}\n");
    assert_rendered(&burst, 0,
                    "{\"time\":\"1970-01-01T00:00:00.000Z\",\"event\":\"refused\",\"key\":\"h\","
                    "\"refused_total\":35,\"pid\":42,\"program\":\"curl\"}\n");
}

static void test_dates(void **state)
{
    (void)state;
    static const struct {
        int64_t ms;
        const char *text;
    } dates[] = {
        {INT64_C(951782399999), "2000-02-28T23:59:59.999Z"},
        {INT64_C(951782400000), "2000-02-29T00:00:00.000Z"},
        {INT64_C(1709251199000), "2024-02-29T23:59:59.000Z"},
        {INT64_C(1709251200000), "2024-03-01T00:00:00.000Z"},
        {INT64_C(1798761599000), "2026-12-31T23:59:59.000Z"},
        {INT64_C(1798761600000), "2027-01-01T00:00:00.000Z"},
        {INT64_C(4107542400000), "2100-03-01T00:00:00.000Z"},
        {-5, "1970-01-01T00:00:00.000Z"},
    };
    char line[LOG_LINE_MAX + 1];

    for (size_t i = 0; i < sizeof dates / sizeof *dates; i++) {
        line[log_render(&EVENT, dates[i].ms, 1, "x", line, LOG_LINE_MAX)] = '\0';
        line[9 + 24] = '\0';
        assert_string_equal(line + 9, dates[i].text);
    }
}

static void assert_escaped(const char *bytes, size_t len, const char *expected)
{
    char out[256];
    size_t got = log_json_escape(span_of(bytes, len), out, sizeof out);

    assert_int_equal(got, strlen(expected));
    assert_memory_equal(out, expected, got);
}

static void test_escape(void **state)
{
    (void)state;
    assert_escaped("a\"b\\c", 5, "a\\\"b\\\\c");
    assert_escaped("\0\n\x1f\x7f", 4, "\\u0000\\u000a\\u001f\\u007f");
    assert_escaped("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9,
                   "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    assert_escaped("\x80", 1, "\\ufffd");
    assert_escaped("\xc0\xaf", 2, "\\ufffd\\ufffd"); /* overlong */
    assert_escaped("\xe0\xa0\x80", 3, "\xe0\xa0\x80");
    assert_escaped("\xe0\x9f\xbf", 3, "\\ufffd\\ufffd\\ufffd"); /* overlong */
    assert_escaped("\xed\xa0\x80", 3, "\\ufffd\\ufffd\\ufffd"); /* surrogate */
    assert_escaped("\xf4\x90\x80\x80", 4, "\\ufffd\\ufffd\\ufffd\\ufffd");
    assert_escaped("\xe2\x82", 2, "\\ufffd\\ufffd"); /* cut */
    char out[5];
    assert_int_equal(log_json_escape(SPAN_LIT("abc\n"), out, 5), 3); /* never half an escape */
    assert_int_equal(log_json_escape(SPAN_LIT("abcd\xc3\xa9"), out, 5), 4);
    assert_int_equal(log_json_escape(SPAN_NONE, out, 5), 0);
}

static void test_long_values_keep_the_line_whole(void **state)
{
    (void)state;
    char big[4000], line[LOG_LINE_MAX];

    for (int fill = 1; fill < 256; fill += 63) {
        memset(big, fill, sizeof big - 1);
        big[sizeof big - 1] = '\0';
        struct log_event event = {.event = big,
                                  .key = {big, sizeof big - 1},
                                  .from = big,
                                  .to = big,
                                  .cause = big,
                                  .detail = big,
                                  .refused_total = UINT64_MAX};
        size_t len = log_render(&event, INT64_MAX, INT32_MAX, big, line, sizeof line);
        assert_true(len > 1000 && len <= LOG_LINE_MAX);
        assert_memory_equal(line + len - 3, "\"}\n", 3);
        assert_non_null(memmem(line, len, "\"pid\":2147483647,\"program\":\"", 28));
        for (size_t size = 0; size < sizeof line; size++) {
            len = log_render(&event, 0, 1, big, line, size);
            assert_true(len <= size);
            if (len > 0)
                assert_memory_equal(line + len - 2, "}\n", 2);
        }
    }
}

static long size_of(const char *name)
{
    struct stat st;
    return stat(name, &st) == 0 ? (long)st.st_size : -1;
}

static void test_write_appends_and_keeps_errno(void **state)
{
    (void)state;
    char line[LOG_LINE_MAX];
    size_t len = log_render(&EVENT, 5, getpid(), program_invocation_short_name, line, sizeof line);
    struct stat st;

    errno = 4711;
    log_write(path, &EVENT, 5);
    log_write(path, &EVENT, 5);
    assert_int_equal(errno, 4711);
    assert_int_equal(size_of(path), 2 * len);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
}

static void test_odd_umask(void **state)
{
    (void)state;
    struct stat st;
    mode_t before = umask(0777);

    log_write(path, &EVENT, 5);
    umask(before);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
}

static void test_only_regular_files(void **state)
{
    (void)state;
    char target[80];

    errno = 4711;
    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    errno = 4711;
    log_write(path, &EVENT, 5);
    char byte;
    assert_int_equal(errno, 4711);
    assert_int_equal(read(reader, &byte, 1), 0);
    close(reader);
    unlink(path);
    snprintf(target, sizeof target, "%s/target", dir);
    assert_int_equal(symlink(target, path), 0);
    log_write(path, &EVENT, 5);
    assert_int_equal(size_of(target), -1);
    log_write(dir, &EVENT, 5);
    log_write("", &EVENT, 5);
    log_write("/nowhere/at/all", &EVENT, 5);
    log_write("/dev/full", &EVENT, 5);
}

/* SIGXFSZ would kill the child. */
static int run_limited(rlim_t limit, int lines)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        struct rlimit rl = {limit, limit};
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        if (setrlimit(RLIMIT_FSIZE, &rl) != 0)
            _exit(3);
        for (int i = 0; i < lines; i++)
            log_write(path, &EVENT, 5);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    return status;
}

/* What a configuration refused must not become a file in the directory of the moment. */
static void test_only_absolute_paths(void **state)
{
    (void)state;
    char before[4096];

    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(dir), 0);
    log_write("events.log", &EVENT, 0);
    log_write("./events.log", &EVENT, 0);
    log_write("", &EVENT, 0);
    assert_int_equal(chdir(before), 0);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void test_file_size_limit_kills_nobody(void **state)
{
    (void)state;
    assert_int_equal(run_limited(0, 3), 0);
    assert_int_equal(size_of(path), 0);
    assert_int_equal(run_limited(1000, 50), 0);
    long size = size_of(path);
    assert_true(size > 700 && size <= 1000);
    /* Two at once: the look at the size and the write are not one step. */
    unlink(path);
    pid_t pid = fork();
    if (pid == 0)
        _exit(run_limited(20000, 2000) != 0);
    assert_int_equal(run_limited(20000, 2000), 0);
    int status;
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_render),
        cmocka_unit_test(test_dates),
        cmocka_unit_test(test_escape),
        cmocka_unit_test(test_long_values_keep_the_line_whole),
        cmocka_unit_test_teardown(test_write_appends_and_keeps_errno, clear),
        cmocka_unit_test_teardown(test_odd_umask, clear),
        cmocka_unit_test_teardown(test_only_regular_files, clear),
        cmocka_unit_test_teardown(test_only_absolute_paths, clear),
        cmocka_unit_test_teardown(test_file_size_limit_kills_nobody, clear),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
