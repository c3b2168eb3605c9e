/* Everything that can be wrong with a configuration is told: file, line, key, expected and found.
 */
#include "config_fixture.h"

#include <errno.h>
#include <sys/stat.h>

#define TEN      "0123456789"
#define FIFTY    TEN TEN TEN TEN TEN
#define LONGEST  "log = /" FIFTY FIFTY FIFTY TEN TEN TEN TEN "xy" /* 199 bytes */
#define TOO_LONG LONGEST "z"
#define OF_129   FIFTY FIFTY TEN TEN "012345678"

struct expected {
    const char *text;
    unsigned line;
    const char *key;
    const char *message; /* a part of it */
};

static const struct expected bad_files[] = {
    {"[nonsense]\n", 1, "[nonsense]", "found an unknown section"},
    {"[]\n", 1, "[]", "unknown section"},
    {"[fallbacks]\n", 1, "[fallbacks]", "unknown section"},
    {"[Breaker]\n", 1, "[Breaker]", "[breaker], [target NAME] or [fallback NAME]"},
    {"[breaker\nmode = off\n", 1, "[breaker", "found no ']'"},
    {"[breaker] x\n", 1, "[breaker] x", "more behind the ']'"},
    {"[target [::1]:80]\n", 1, "[target [::1]:80]",
     "found an IPv6 address, which goes into match =, below a [target NAME] without brackets"},
    {"[target [::1]]\n", 1, "[target [::1]]", "an IPv6 address, which goes into match ="},
    {"[target [::1]/m] ; remark\n", 1, "[target [::1]/m] ; remark", "an IPv6 address, which"},
    {"[breaker]\n[target a]\n[breaker]\n", 3, "[breaker]", "each section once"},
    {"[target a]\n[breaker]\n[target a]\n", 3, "[target a]", "each target once"},
    {"[target]\n", 1, "[target]", "no name"},
    {"[target ]\n", 1, "[target ]", "no name"},
    {"[target a b]\n", 1, "[target a b]", "match = with one, found neither"},
    {"[target /m]\n", 1, "[target /m]", "neither"},
    {"[target a/]\n", 1, "[target a/]", "neither"},
    {"[target https://api.openai.com]\n", 1, "[target https://api.openai.com]",
     "without a scheme, found \"https://api.openai.com\""},
    {"[target x]\nmatch = http://h:80/m\n", 2, "match",
     "without a scheme, found \"http://h:80/m\""},
    {"[target h:http]\n", 1, "[target h:http]", "a port from 1 to 65535"},
    {"[target h:]\n", 1, "[target h:]", "a port from 1 to 65535"},
    {"[target h:0/m]\n", 1, "[target h:0/m]", "a port from 1 to 65535"},
    {"[target h:080]\n", 1, "[target h:080]", "a port from 1 to 65535"},
    {"[target *.h:65536]\n", 1, "[target *.h:65536]", "a port from 1 to 65535"},
    {"[target x]\nmatch = [::1]:8x\n", 2, "match", "a port from 1 to 65535"},
    {"[target x]\nmatch =\n", 2, "match", "HOST[:PORT][/MODEL], with * and ? for any, found \"\""},
    {"[target x]\nmatch = a b\n", 2, "match", "found \"a b\""},
    {"[target x]\nmatch = a\nmatch = b\n", 3, "match", "each key once"},
    {"[target " FIFTY "]\n", 1, "[target " TEN TEN TEN "01", "at most 49 bytes (a short name, and"},
    {"mode = off\n", 1, "mode", "above the first key"},
    {"[breaker]\n\n; remark\nopen_secs = 3\n", 4, "open_secs", "a key such as open_seconds"},
    {"[breaker]\nthreshold_failure = 3\n", 2, "threshold_failure",
     "expected a key that `breaker config` shows, found an unknown key"},
    {"[breaker]\nfoo = 1\n", 2, "foo", "expected a key that `breaker config` shows, found an"},
    {"[breaker]\nbogus = 1\n", 2, "bogus", "expected a key that `breaker config` shows, found"},
    {"[breaker]\nlogs = 1\n", 2, "logs", "a key such as log,"},
    {"[breaker]\nx" FIFTY FIFTY " = 3\n", 2, "x" FIFTY "012345678", "unknown key"},
    {"[breaker]\nmode\n", 2, "line", "[section], key = value, or a comment"},
    {"[breaker]\nmode ; = off", 2, "line", "[section], key = value, or a comment"},
    {"[breaker]\n= off\n", 2, "line", "found no key"},
    {"= off\n", 1, "line", "above the first key"},
    {"[breaker]\nopen_max = 300\n\fopen_min = 1\n", 3, "open_min", "an unknown key"},
    {"[breaker]\nfailure_status = 500\n\v501\n", 3, "line", "[section], key = value"},
    {"[breaker]\nmode = off\nmode = off\n", 3, "mode", "each key once"},
    {"[target a]\ntable = /x\n", 2, "table", "one for [breaker] only"},
    {"[breaker]\nmode = of\n", 2, "mode", "expected enforce, observe or off, found \"of\""},
    {"[breaker]\nmode =\n", 2, "mode", "found \"\""},
    {"[breaker]\nscope = key\n", 2, "scope", "expected model or host, found \"key\""},
    {"[target a]\nscope = host\n[target b/m*]\nscope = model\n", 4, "scope",
     "expected it in [breaker] or a target without a model, found one for b/m*"},
    {"[target x]\nscope = host\nmatch = a/m\n", 2, "scope", "found one for a/m"},
    {"[breaker]\ntable = x/y\n", 2, "table", "an absolute path, found \"x/y\""},
    {"[breaker]\nprobe_lease = cal\n", 2, "probe_lease",
     "expected call, or a number of seconds from 0.1 to 86400, found \"cal\""},
    {"[target a]\nprobe_lease = 0\n", 2, "probe_lease", "found \"0\""},
    {"[breaker]\nerror_code = a\"b\n", 2, "error_code",
     "expected 1 to 64 printable ASCII characters without quotes and backslashes, found \"a\"b\""},
    {"[target a]\n\nerror_code =\n", 3, "error_code", "found \"\""},
    {"[breaker]\nshould_retry = maybe\n", 2, "should_retry", "true or false"},
    {"[breaker]\nfailure_threshold = 501\n", 2, "failure_threshold",
     "expected a whole number from 0 to 500, found \"501\""},
    {"[breaker]\nfailure_threshold = 1.5\n", 2, "failure_threshold", "\"1.5\""},
    {"[breaker]\nfailure_rate = 1.1\n", 2, "failure_rate", "from 0 to 1"},
    {"[breaker]\nfailure_rate = 50%\n", 2, "failure_rate", "\"50%\""},
    {"[breaker]\nwindow = 0.9\n", 2, "window", "from 1 to 86400"},
    {"[breaker]\nwindow = 86401\n", 2, "window", "\"86401\""},
    {"[breaker]\nmin_calls = 0\n", 2, "min_calls", "from 1 to 8000"},
    {"[breaker]\nmin_calls = 8001\n", 2, "min_calls", "\"8001\""},
    {"[breaker]\nrate_limit = ignore, count\n", 2, "rate_limit",
     "expected cooldown, count, both with a comma between, or ignore, found \"ignore, count\""},
    {"[breaker]\nrate_limit =\n", 2, "rate_limit", "\"\""},
    {"[breaker]\nrate_limit = cooldown, off\n", 2, "rate_limit", "\"cooldown, off\""},
    {"[breaker]\ncooldown_max = 1.9\n", 2, "cooldown_max", "from 2 to 86400"},
    {"[breaker]\ncooldown_on = 600\n", 2, "cooldown_on", "\"600\""},
    {"[breaker]\ncooldown_on = 500, connects\n", 2, "cooldown_on",
     "expected a list of HTTP statuses, ranges and the word connect, found \"500, connects\""},
    {"[breaker]\nfailure_status = 500, connect\n", 2, "failure_status", "\"500, connect\""},
    {"[breaker]\nneutral_status = 99\n", 2, "neutral_status", "\"99\""},
    {"[breaker]\nneutral_body = a,, b\n", 2, "neutral_body",
     "expected texts of 1 to 128 bytes with commas between, at most 16 of them and 511 bytes in "
     "all, found \"a,, b\""},
    {"[breaker]\nneutral_body = a\nneutral_body = \tb\tc\n", 3, "neutral_body", "\"b\tc\""},
    {"[target a]\nneutral_body = " OF_129 "\n", 2, "neutral_body", "1 to 128 bytes"},
    {"[breaker]\nneutral_body = a,b,c,d,e,f,g,h,i\nneutral_body = j,k,l,m,n,o,p,q\n", 3,
     "neutral_body", "at most 16 of them"},
    {"[breaker]\nfailure_threshold = -1\n", 2, "failure_threshold", "\"-1\""},
    {"[breaker]\nfailure_threshold = 99999999999999999999999\n", 2, "failure_threshold", "99999"},
    {"[breaker]\nopen_seconds = 0.09\n", 2, "open_seconds",
     "expected a number of seconds from 0.1 to 86400, found \"0.09\""},
    {"[breaker]\nopen_seconds = 1,5\n", 2, "open_seconds", "\"1,5\""},
    {"[breaker]\nopen_seconds = 1e3\n", 2, "open_seconds", "\"1e3\""},
    {"[breaker]\nopen_seconds = nan\n", 2, "open_seconds", "\"nan\""},
    {"[breaker]\njitter = 1.000001\n", 2, "jitter", "a number from 0 to 1"},
    {"[breaker]\nbackoff = ${X}\n", 2, "backoff", "found \"${X}\""},
    {"[breaker]\nfailure_status = 600\n", 2, "failure_status", "a list of HTTP statuses"},
    {"[breaker]\nfailure_status = 504-500\n", 2, "failure_status", "\"504-500\""},
    {"[breaker]\nfailure_status = 500\nfailure_status = x\n", 3, "failure_status", "\"x\""},
    {"[breaker]\n" TOO_LONG "\n", 2, "line", "at most 199 bytes in a line"},
    {"[breaker]\n  " TOO_LONG "\r\n", 2, "line", "found 200"},
};

static void every_bad_file_is_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_files / sizeof *bad_files; i++) {
        const struct expected *bad = &bad_files[i];
        struct config *config = load_text(bad->text);
        assert_told(bad->text, bad->line, bad->key, bad->message);
        assert_null(config);
        /* And without anybody to tell. */
        struct config_source source = {.path = fixture_path};
        assert_null(config_load(&source, NULL, NULL));
    }
}

static void good_files_that_look_odd(void **state)
{
    (void)state;
    static const char *const good[] = {
        "",
        "\n\n",
        "[breaker]",
        "\xef\xbb\xbf[breaker]\r\nopen_seconds = 30\r\n",
        "\xef\xbb\xbf\r\n",
        "[breaker] ; remark\nopen_seconds=3 ; remark\n  # remark\n\t; remark\n",
        "  [breaker]\n  mode = off\n     failure_threshold : 3\n",
        "; " TOO_LONG TOO_LONG "\n[breaker]; " TOO_LONG "\n",
        "[breaker]\n" LONGEST "\n",
        "[breaker]\n" LONGEST,
        "[breaker]\nfailure_status = \n",
        "[breaker]\nfailure_status = 500 501\t502,\n",
        "[target a.example]\n[target b.example]\n",
        "[target a:80*]\n[target a:*]\n[target *:8?]\n[target *]\n[target *:65535/m:x]\n",
        "[target x]\nmatch = [::1]\n[target y]\nmatch = [fe80::a*\n[target z]\nmatch = [::1]:1\n",
        "[target h/v1/chat/completions]\n[target https://h]\nmatch = h\n",
        "[target 0123456789012345678901234567890123456789xy]\n", /* 49 bytes */
    };

    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        config_free(load_good(good[i]));
    struct config *config = load_good("[breaker]\nlog = /a;b ; c\n");
    assert_string_equal(config_log_path(config), "/a;b");
    config_free(config);
    config = load_good("[breaker]\n" LONGEST);
    assert_int_equal(strlen(config_log_path(config)), 193);
    config_free(config);
}

static void all_problems_are_told_in_order(void **state)
{
    (void)state;
    static const char *const environment[] = {"BREAKER_JITTER=2", NULL};
    static const char text[] = "[breaker]\nmode\nx = 1\n[y]\nz = 1\n[target h]\nbackoff = 0\n";
    struct config_source source = {
        .path = fixture_path, .set = "backoff=x\nnothing\nopne_max=3", .environ = environment};

    write_bytes(text, sizeof text - 1);
    assert_null(load_source(&source));
    assert_int_equal(problem_count, 8);
    static const unsigned lines[] = {2, 3, 4, 7};
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(problems[i].line, lines[i]);
    assert_string_equal(problems[4].file, "BREAKER_JITTER");
    assert_string_equal(problems[4].key, "jitter");
    for (unsigned i = 5; i < 8; i++)
        assert_string_equal(problems[i].file, "BREAKER_SET");
    assert_string_equal(problems[5].key, "backoff");
    assert_string_equal(problems[6].key, "nothing");
    assert_non_null(strstr(problems[7].text, "open_max"));
}

static void nul_bytes_are_told(void **state)
{
    (void)state;
    static const char text[] = "[breaker]\nmode = off\0\nopen_seconds = 3\n\0";

    assert_null(load_bytes(text, sizeof text - 1));
    assert_int_equal(problem_count, 2);
    assert_int_equal(problems[0].line, 2);
    assert_int_equal(problems[1].line, 4);
    assert_non_null(strstr(problems[0].text, "a NUL byte"));
}

/* A file of something else: told a hundred times, not a million. */
static void hostile_files_are_bounded(void **state)
{
    (void)state;
    size_t size = 1 << 20;
    char *bytes = malloc(size + 1);

    assert_non_null(bytes);
    memset(bytes, 'x', size);
    assert_null(load_bytes(bytes, size));
    assert_int_equal(problem_count, 1);
    memset(bytes, 0, size);
    assert_null(load_bytes(bytes, size));
    assert_int_equal(problem_count, 1);
    for (size_t i = 0; i < size; i++)
        bytes[i] = "a=\n"[i % 3];
    memcpy(bytes, "[breaker]\n\n\n", 12);
    assert_null(load_bytes(bytes, size));
    assert_int_equal(problem_count, 100);
    memset(bytes, '[', size);
    assert_null(load_bytes(bytes, size));
    memset(bytes, ';', size);
    config_free(load_bytes(bytes, size));
    assert_int_equal(problem_count, 0);
    assert_null(load_bytes(bytes, size + 1));
    assert_non_null(strstr(problems[0].text, "found a larger file"));
    uint32_t random = 1;
    for (unsigned round = 0; round < 200; round++) {
        for (size_t i = 0; i < 2000; i++) {
            random = random * 1664525 + 1013904223;
            bytes[i] = "[]=;:\n\r \t\0target breaker mode off*?/.x#\xef\xbb\xbf"[random >> 16 & 31];
        }
        config_free(load_bytes(bytes, 2000));
    }
    free(bytes);
}

static void targets_are_bounded(void **state)
{
    (void)state;
    char text[257 * 16] = "";
    size_t len = 0;

    for (unsigned i = 0; i < 256; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "[target h%u]\n", i);
    struct config *config = load_good(text);
    assert_true(config_lists_host(config, SPAN_LIT("h255")));
    config_free(config);
    snprintf(text + len, sizeof text - len, "[target x]\n");
    assert_null(load_text(text));
    assert_int_equal(problem_count, 1);
    assert_int_equal(problems[0].line, 257);
}

static void assert_refused(const char *path, const char *found)
{
    struct config_source source = {.path = path};

    assert_null(load_source(&source));
    assert_int_equal(problem_count, 1);
    assert_int_equal(problems[0].line, 0);
    if (!strstr(problems[0].text, found))
        fail_msg("%s: %s", path, problems[0].text);
}

static void files_that_may_not_be_trusted(void **state)
{
    (void)state;
    char other[128];

    assert_refused("/nowhere/breaker.ini", "found no such file");
    assert_refused(fixture_dir, "a directory or a device");
    assert_refused("/dev/null", "a directory or a device");
    memset(other, 'x', sizeof other);
    config_free(load_good("[breaker]\n"));
    static const mode_t bad_modes[] = {0620, 0602, 0666};
    for (size_t i = 0; i < sizeof bad_modes / sizeof *bad_modes; i++) {
        assert_int_equal(chmod(fixture_path, bad_modes[i]), 0);
        char found[64];
        snprintf(found, sizeof found, "group or others may write (mode %04o): chmod go-w",
                 (unsigned)bad_modes[i]);
        assert_refused(fixture_path, found);
    }
    assert_int_equal(chmod(fixture_path, 0644), 0);
    snprintf(other, sizeof other, "%s/link", fixture_dir);
    assert_int_equal(symlink(fixture_path, other), 0);
    struct config_source source = {.path = other};
    config_free(load_source(&source)); /* dot files often are links */
    assert_int_equal(problem_count, 0);
    assert_int_equal(unlink(other), 0);
    assert_int_equal(mkfifo(other, 0600), 0);
    assert_refused(other, "a directory or a device"); /* at once: nobody waits for a writer */
    assert_int_equal(unlink(other), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(fixture_path, 12345, 0), 0);
        assert_refused(fixture_path, "a file of another owner");
        assert_int_equal(chown(fixture_path, 0, 0), 0);
    }
}

static void relative_paths_are_refused(void **state)
{
    (void)state;
    assert_refused("breaker.ini", "expected an absolute path, found \"breaker.ini\"");
    assert_string_equal(problems[0].file, "BREAKER_CONFIG");
    assert_refused("./x", "an absolute path");
}

static void paths_that_are_too_long(void **state)
{
    (void)state;
    char path[600];

    memset(path, '/', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    assert_refused(path, "at most 255 bytes, found one of 599");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bad_file_is_told),
        cmocka_unit_test(good_files_that_look_odd),
        cmocka_unit_test(all_problems_are_told_in_order),
        cmocka_unit_test(nul_bytes_are_told),
        cmocka_unit_test(hostile_files_are_bounded),
        cmocka_unit_test(targets_are_bounded),
        cmocka_unit_test(files_that_may_not_be_trusted),
        cmocka_unit_test(relative_paths_are_refused),
        cmocka_unit_test(paths_that_are_too_long),
    };

    return cmocka_run_group_tests_name("config_bad", tests, fixture_make, fixture_remove);
}
