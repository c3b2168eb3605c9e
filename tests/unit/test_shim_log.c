/* What the log is told of calls; see shim_fixture.h. */
#include "shim_fixture.h"

#include <sys/stat.h>

/* The log's n-th line (from 0) into `line`; false: there are fewer. */
static bool read_log(unsigned n, char *line, int size)
{
    FILE *file = fopen(getenv("BREAKER_LOG"), "r");
    bool found = file != NULL;

    for (unsigned i = 0; found && i <= n; i++)
        found = fgets(line, size, file) != NULL;
    if (file)
        fclose(file);
    return found;
}

static void log_beside_the_table(void)
{
    static char path[128];

    snprintf(path, sizeof path, "%.*s/log", (int)strlen(getenv("BREAKER_TABLE")) - 6,
             getenv("BREAKER_TABLE"));
    setenv("BREAKER_LOG", path, 1);
}

static void body_the_log_tells_of_states_as_shown(void)
{
    char line[2048];

    log_beside_the_table();
    trip("m");
    CHECK(read_log(0, line, sizeof line));
    CHECK(strstr(line, "\"from\":\"closed\",\"to\":\"degraded\""));
    CHECK(read_log(1, line, sizeof line));
    CHECK(strstr(line, "\"from\":\"degraded\",\"to\":\"open\",\"cause\":\"status 500\""));
    unlink(getenv("BREAKER_LOG"));
}

static void body_a_trip_from_closed_is_told_so(void)
{
    char line[2048];

    log_beside_the_table();
    trip("m");
    CHECK(read_log(0, line, sizeof line));
    CHECK(strstr(line, "\"from\":\"closed\",\"to\":\"open\""));
    unlink(getenv("BREAKER_LOG"));
}

/* The cause is the last failure; that it was not the last of a row is said beside it. */
static void body_a_trip_by_the_share_is_told_so(void)
{
    char line[2048];

    log_beside_the_table();
    for (int i = 0; i < 6; i++)
        CHECK(call_status("m", i % 2 ? 500 : 200) == SHIM_ADMITTED);
    CHECK(call_status("m", 200) == SHIM_REFUSED);
    CHECK(read_log(0, line, sizeof line));
    CHECK(strstr(line, "\"from\":\"closed\",\"to\":\"open\",\"cause\":\"status 500\""));
    CHECK(strstr(line, "\"detail\":\"3 of 6 calls failed\""));
    unlink(getenv("BREAKER_LOG"));
}

/* A success trips nothing, and so has no share to tell of. */
static void body_other_changes_tell_of_no_share(void)
{
    char line[2048];

    log_beside_the_table();
    for (int i = 0; i < 3; i++)
        CHECK(call_status("m", 500) == SHIM_ADMITTED);
    CHECK(call_status("m", 200) == SHIM_ADMITTED); /* 3 of 4 */
    CHECK(read_log(1, line, sizeof line) &&
          strstr(line, "\"from\":\"degraded\",\"to\":\"closed\""));
    CHECK(!strstr(line, "detail"));
    unlink(getenv("BREAKER_LOG"));
}

/* By a streak that showed as degraded, with a share that is too small. */
static void body_a_trip_by_the_streak_tells_of_no_share(void)
{
    char line[2048];

    log_beside_the_table();
    for (int i = 0; i < 6; i++)
        CHECK(call_status("m", 200) == SHIM_ADMITTED);
    trip("m");
    CHECK(read_log(1, line, sizeof line));
    CHECK(strstr(line, "\"from\":\"degraded\",\"to\":\"open\",\"cause\":\"status 500\""));
    CHECK(!strstr(line, "detail"));
    unlink(getenv("BREAKER_LOG"));
}

/* The first refusal, then one line in ten seconds, each with the total so far. */
static void body_refusals_are_told_by_their_total(void)
{
    char line[2048];

    log_beside_the_table();
    trip("m");
    for (int i = 0; i < 7; i++)
        CHECK(call_status("m", 200) == SHIM_REFUSED);
    CHECK(read_log(2, line, sizeof line) && strstr(line, "\"refused_total\":1,"));
    CHECK(!read_log(3, line, sizeof line));
    advance(10);
    CHECK(call_status("m", 200) == SHIM_REFUSED);
    CHECK(read_log(3, line, sizeof line) && strstr(line, "\"refused_total\":9,"));
    unlink(getenv("BREAKER_LOG"));
}

/* Calls that were opened first may be refused last: one line in ten seconds all the same. */
static void body_refusals_in_disorder_are_one_line(void)
{
    static struct shim_call first, second;
    char line[512];

    log_beside_the_table();
    trip("m");
    CHECK(read_log(2, line, sizeof line) && !read_log(3, line, sizeof line));
    advance(11);
    for (int round = 0; round < 5; round++) {
        struct shim_call *calls[] = {&first, &second};
        for (int i = 0; i < 2; i++) {
            CHECK(open_path(calls[i], "/v1/chat/completions") == SHIM_NEEDS_BODY);
            CHECK(shim_body(calls[i], SPAN_LIT("{\"model\":\"m\"}"), true));
            advance(0.001);
        }
        CHECK(shim_admit(&second) == SHIM_REFUSED);
        shim_obeyed(&second);
        CHECK(shim_admit(&first) == SHIM_REFUSED);
        shim_obeyed(&first);
    }
    CHECK(read_log(3, line, sizeof line) && !read_log(4, line, sizeof line));
}

static void write_ini(const char *text)
{
    static char path[128];

    snprintf(path, sizeof path, "%s/breaker.ini", getenv("HOME"));
    setenv("BREAKER_CONFIG", path, 1);
    FILE *file = fopen(path, "w");
    CHECK(file && fchmod(fileno(file), 0600) == 0 && fputs(text, file) >= 0);
    CHECK(fclose(file) == 0);
}

/* A fallback that is left out costs nothing else: told once per load, in the log of the file. */
static void body_what_is_left_out_is_told(void)
{
    char line[2048], text[1024];
    size_t len;

    log_beside_the_table();
    len = (size_t)snprintf(text, sizeof text,
                           "[breaker]\nfailure_threshold = 2\nlog = %s\n"
                           "fallback_address = [::1]:443\nfallback =",
                           getenv("BREAKER_LOG"));
    unsetenv("BREAKER_LOG");
    for (unsigned i = 0; i < 9; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, " f%u", i);
    snprintf(text + len, sizeof text - len, "\n[fallback x]\nauth = A: canary\n");
    write_ini(text);
    CHECK(call_status("m", 500) == SHIM_ADMITTED && call_status("m", 500) == SHIM_ADMITTED);
    CHECK(call_status("m", 500) == SHIM_REFUSED); /* after two: the rest is in force */
    unlink(getenv("BREAKER_CONFIG"));
    setenv("BREAKER_LOG", strstr(text, "log = ") + 6, 1);
    *strchr(getenv("BREAKER_LOG"), '\n') = '\0';
    CHECK(read_log(0, line, sizeof line) && strstr(line, "\"event\":\"config\""));
    CHECK(strstr(line, "breaker.ini:4: fallback_address: expected a name") &&
          strstr(line, "\"cause\":\"of little use\""));
    CHECK(read_log(1, line, sizeof line) && strstr(line, "breaker.ini:6: [fallback x]: expected"));
    CHECK(strstr(line, "\"cause\":\"left out, the rest is in force\"") && !strstr(line, "canary"));
    CHECK(read_log(7, line, sizeof line) && strstr(line, "found \\\"f5\\\""));
    CHECK(read_log(8, line, sizeof line) && !strstr(line, "config")); /* eight are enough */
    unlink(getenv("BREAKER_LOG"));
}

/* The one that matters is told, not the one before. */
static void body_a_bad_file_is_told_by_what_makes_it_bad(void)
{
    static struct shim_call call;
    char line[2048];

    log_beside_the_table();
    write_ini("[fallback x]\n\n[breaker]\nfallback_address = y\nnonsense = 1\n");
    CHECK(open_path(&call, "/v1/chat/completions") == SHIM_UNCOVERED);
    unlink(getenv("BREAKER_CONFIG"));
    CHECK(read_log(0, line, sizeof line) && strstr(line, "breaker.ini:5: nonsense: expected"));
    CHECK(!read_log(1, line, sizeof line));
    unlink(getenv("BREAKER_LOG"));
}

IN_CHILD(the_log_tells_of_states_as_shown, "")
IN_CHILD(a_trip_from_closed_is_told_so, "degrade_threshold=5")
IN_CHILD(a_trip_by_the_share_is_told_so, "failure_rate=0.5\nmin_calls=6")
IN_CHILD(other_changes_tell_of_no_share, "failure_rate=0.5\nmin_calls=4")
IN_CHILD(a_trip_by_the_streak_tells_of_no_share, "failure_rate=0.5\nmin_calls=6")
IN_CHILD(refusals_are_told_by_their_total, "")
IN_CHILD(refusals_in_disorder_are_one_line, "")
IN_CHILD(what_is_left_out_is_told, "")
IN_CHILD(a_bad_file_is_told_by_what_makes_it_bad, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_log_tells_of_states_as_shown),
        cmocka_unit_test(test_a_trip_from_closed_is_told_so),
        cmocka_unit_test(test_a_trip_by_the_share_is_told_so),
        cmocka_unit_test(test_other_changes_tell_of_no_share),
        cmocka_unit_test(test_a_trip_by_the_streak_tells_of_no_share),
        cmocka_unit_test(test_refusals_are_told_by_their_total),
        cmocka_unit_test(test_refusals_in_disorder_are_one_line),
        cmocka_unit_test(test_what_is_left_out_is_told),
        cmocka_unit_test(test_a_bad_file_is_told_by_what_makes_it_bad),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
