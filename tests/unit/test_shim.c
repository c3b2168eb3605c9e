/* The door: what is admitted, refused and settled; see shim_fixture.h. */
#include "shim_fixture.h"

#include <limits.h>

static void body_five_failures_open_one_model_only(void)
{
    trip("m");
    CHECK(call_status("other", 200) == SHIM_ADMITTED);
    advance(29);
    CHECK(call_status("m", 200) == SHIM_REFUSED);
    advance(2);
    CHECK(call_status("m", 200) == SHIM_ADMITTED);
    for (int i = 0; i < 4; i++)
        CHECK(call_status("m", 503) == SHIM_ADMITTED);
    CHECK(call_status("m", 200) == SHIM_ADMITTED); /* ends the streak */
    trip("m");
}

static void body_refused_port_stops_every_model(void)
{
    static struct shim_call call;

    for (int i = 0; i < 5; i++) {
        CHECK(chat(&call, i % 2 ? "a" : "b") == SHIM_ADMITTED);
        end_kind(&call, END_CONNECT, PHASE_CONNECTING, 0.001);
    }
    CHECK(chat(&call, "c") == SHIM_REFUSED);
    CHECK(open_path(&call, "/v1/files") == SHIM_READY);
    CHECK(shim_admit(&call) == SHIM_REFUSED);
    char text[SHIM_RESPONSE_MAX + 1];
    size_t len = shim_response(&call, text, SHIM_RESPONSE_MAX, false);
    text[len] = '\0';
    CHECK(strstr(text, "HTTP/1.1 503 ") == text);
    CHECK(strcasestr(text, "X-Breaker-Key: api.openai.com\r\n"));
    CHECK(strcasestr(text, "Retry-After: 3")); /* 30 or 31 s */
}

static void body_old_success_leaves_the_streak(void)
{
    static struct shim_call old;

    CHECK(chat(&old, "m") == SHIM_ADMITTED);
    advance(1);
    for (int i = 0; i < 4; i++)
        CHECK(call_status("m", 500) == SHIM_ADMITTED);
    end_status(&old, 200);
    CHECK(call_status("m", 500) == SHIM_ADMITTED);
    CHECK(call_status("m", 500) == SHIM_REFUSED);
}

static void body_slow_probe_closes_after_its_lease(void)
{
    static struct shim_call slow, second;

    trip("m");
    advance(31);
    CHECK(chat(&slow, "m") == SHIM_ADMITTED);
    CHECK(chat(&second, "m") == SHIM_REFUSED);
    advance(31); /* the lease is over, another probe goes out and hangs as well */
    CHECK(chat(&second, "m") == SHIM_ADMITTED);
    end_status(&slow, 200);
    CHECK(call_status("m", 200) == SHIM_ADMITTED);
    end_status(&second, 500); /* of an older generation: statistics only */
    CHECK(call_status("m", 200) == SHIM_ADMITTED);
}

static void body_neutral_probe_returns_its_grant(void)
{
    static struct shim_call probe;

    trip("m");
    advance(31);
    CHECK(chat(&probe, "m") == SHIM_ADMITTED);
    end_status(&probe, 400);
    CHECK(chat(&probe, "m") == SHIM_ADMITTED);
    shim_drop(&probe);
    CHECK(chat(&probe, "m") == SHIM_ADMITTED);
    end_status(&probe, 500);
    CHECK(call_status("m", 200) == SHIM_REFUSED);
}

/* M refuses after H granted its probe: H's grant goes back. */
static void body_lost_model_returns_the_hosts_grant(void)
{
    static struct shim_call call;

    trip("m");
    for (int i = 0; i < 5; i++) {
        CHECK(chat(&call, "n") == SHIM_ADMITTED);
        end_kind(&call, END_CONNECT, PHASE_CONNECTING, 0.001);
    }
    advance(31); /* both are due; M is tripped again by a late model decision below */
    CHECK(open_path(&call, "/v1/chat/completions") == SHIM_NEEDS_BODY);
    CHECK(shim_admit(&call) == SHIM_ADMITTED); /* H's probe; the model is pending */
    CHECK(shim_model_pending(&call));
    static struct shim_call other;
    CHECK(chat(&other, "n") == SHIM_REFUSED); /* the host's only grant is taken */
    shim_drop(&call);
    CHECK(chat(&other, "n") == SHIM_ADMITTED);
    end_status(&other, 200);
}

static void body_pending_model_is_refused_late(void)
{
    static struct shim_call call;

    trip("m");
    CHECK(open_path(&call, "/v1/chat/completions") == SHIM_NEEDS_BODY);
    CHECK(shim_admit(&call) == SHIM_ADMITTED);
    CHECK(!shim_body(&call, SPAN_LIT("{\"mod"), false));
    CHECK(shim_body(&call, SPAN_LIT("el\":\"m\""), false));
    CHECK(shim_admit_model(&call) == SHIM_REFUSED);
    CHECK(!shim_admitted(&call));
}

static void body_suspend_is_neutral(void)
{
    static struct shim_call call;

    for (int i = 0; i < 8; i++) {
        CHECK(chat(&call, "m") == SHIM_ADMITTED);
        advance(40);
        slept += UINT64_C(20) * CLOCK_NS_PER_S;
        end_kind(&call, END_TIMEOUT, PHASE_WAITING, 20);
    }
    for (int i = 0; i < 5; i++) {
        CHECK(chat(&call, "m") == SHIM_ADMITTED);
        advance(20);
        end_kind(&call, END_TIMEOUT, PHASE_WAITING, 20);
    }
    CHECK(chat(&call, "m") == SHIM_REFUSED);
}

static void body_fork_settles_in_the_parent_only(void)
{
    static struct shim_call call;
    int status = -1;

    for (int i = 0; i < 4; i++)
        CHECK(call_status("m", 500) == SHIM_ADMITTED);
    CHECK(chat(&call, "m") == SHIM_ADMITTED);
    pid_t pid = fork();
    if (pid == 0) {
        end_status(&call, 500);
        _exit(call_status("m", 400) == SHIM_ADMITTED ? 0 : 1);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    end_status(&call, 500);
    CHECK(call_status("m", 500) == SHIM_REFUSED);
}

static void body_pass_lets_through_uncounted(void)
{
    for (int i = 0; i < 8; i++)
        CHECK(call_status("m", 500) == SHIM_ADMITTED);
    struct table table;
    CHECK(table_attach(&table, getenv("BREAKER_TABLE"), true) == TABLE_OK);
    struct slot *slot = table_lookup_text(&table, SPAN_LIT("api.openai.com/m"));
    CHECK(slot && slot_totals(slot).failure == 8 && slot_totals(slot).refused == 0);
    CHECK(breaker_decode(slot_word(slot)).phase == BREAKER_OPEN);
    CHECK(call_status("m", 200) == SHIM_ADMITTED);
    CHECK(breaker_decode(slot_word(slot)).phase == BREAKER_OPEN);
}

static void body_replaced_table_is_found(void)
{
    trip("m");
    advance(2);
    CHECK(table_replace(getenv("BREAKER_TABLE"), true) == TABLE_OK);
    CHECK(call_status("m", 200) == SHIM_ADMITTED);
}

/* By a program that meets no trouble, too: its next call may be forbidden in the new one by hand.
 */
static void body_replaced_table_is_found_by_who_is_well(void)
{
    CHECK(call_status("m", 200) == SHIM_ADMITTED);
    CHECK(table_replace(getenv("BREAKER_TABLE"), true) == TABLE_OK);
    advance(2);
    CHECK(call_status("m", 200) == SHIM_ADMITTED && totals_of("api.openai.com/m").success == 1);
    CHECK(unlink(getenv("BREAKER_TABLE")) == 0);
    advance(2);
    CHECK(call_status("m", 200) == SHIM_ADMITTED && access(getenv("BREAKER_TABLE"), F_OK) == 0);
}

/* Who asks about calls that are not covered makes none, however long it goes on. */
static void body_no_table_before_it_is_needed(void)
{
    static const struct shim_request other = {.method = SPAN_LIT("GET"),
                                              .scheme = SPAN_LIT("http"),
                                              .host = SPAN_LIT("example.org"),
                                              .port = 80,
                                              .path = SPAN_LIT("/")};
    static struct shim_call call;

    for (unsigned i = 0; i < 3; i++) {
        CHECK(shim_open(&call, &other) == SHIM_UNCOVERED);
        CHECK(access(getenv("BREAKER_TABLE"), F_OK) != 0);
        advance(2);
    }
    CHECK(call_status("m", 200) == SHIM_ADMITTED && access(getenv("BREAKER_TABLE"), F_OK) == 0);
}

/* A server that starts as root: what root's table says is not said to whom it becomes. */
static void body_another_user_has_another_table(void)
{
    trip("m");
    CHECK(seteuid(65534) == 0);
    advance(2);
    call_status("m", 500); /* finds it out, at the latest for the next one */
    CHECK(call_status("m", 500) == SHIM_ADMITTED);
    CHECK(seteuid(0) == 0);
    advance(2);
    CHECK(call_status("m", 500) == SHIM_REFUSED && totals_of("api.openai.com/m").failure == 5);
}

/* Of tables: of all that is mapped here they alone are shared. */
static unsigned mappings(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[PATH_MAX + 128];
    unsigned count = 0;

    while (maps && fgets(line, sizeof line, maps))
        count += strstr(line, " rw-s ") != NULL;
    if (maps)
        fclose(maps);
    return count;
}

/* The kernel gives a process 65530 of them. */
static void change_users(void)
{
    unsigned first = 0;

    for (unsigned i = 0; i < 12; i++) {
        CHECK(call_status("m", 200) == SHIM_ADMITTED);
        if (i == 1)
            first = mappings();
        CHECK(seteuid(i % 2 ? 0 : 65534) == 0);
        advance(2);
    }
    CHECK(first > 0 && mappings() == first);
}

static void body_who_changes_users_comes_back_to_its_table(void)
{
    change_users();
    CHECK(totals_of("api.openai.com/m").success == 6);
}

static void body_who_changes_users_comes_back_to_its_own_count(void)
{
    setenv("BREAKER_TABLE", "/dev/null/table", 1);
    change_users();
    trip("m");
    CHECK(seteuid(65534) == 0);
    advance(2);
    CHECK(call_status("m", 200) == SHIM_ADMITTED);
    CHECK(seteuid(0) == 0);
    advance(2);
    CHECK(call_status("m", 200) == SHIM_REFUSED);
}

static void test_who_changes_users(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("skipped: becomes another user\n");
        skip();
    }
    in_child(body_who_changes_users_comes_back_to_its_table, "");
    in_child(body_who_changes_users_comes_back_to_its_own_count, "");
}

static void test_another_user_has_another_table(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("skipped: becomes another user\n");
        skip();
    }
    in_child(body_another_user_has_another_table, "");
}

static void body_forced_open_promises_no_time(void)
{
    static struct shim_call call;
    struct table table;
    char text[SHIM_RESPONSE_MAX + 1];

    CHECK(call_status("m", 200) == SHIM_ADMITTED);
    CHECK(table_attach(&table, getenv("BREAKER_TABLE"), true) == TABLE_OK);
    struct slot *slot = table_lookup_text(&table, SPAN_LIT("api.openai.com/m"));
    CHECK(slot);
    atomic_store(&slot->word, breaker_force_open(slot_word(slot)));
    CHECK(chat(&call, "m") == SHIM_REFUSED);
    text[shim_response(&call, text, SHIM_RESPONSE_MAX, false)] = '\0';
    CHECK(strstr(text, "held open by hand") && !strstr(text, "Retry in"));
    CHECK(strcasestr(text, "\nRetry-After: "));
}

static void body_the_503_has_the_users_code(void)
{
    static struct shim_call call;
    char text[SHIM_RESPONSE_MAX + 1];

    trip("m");
    CHECK(chat(&call, "m") == SHIM_REFUSED);
    text[shim_response(&call, text, SHIM_RESPONSE_MAX, false)] = '\0';
    CHECK(strstr(text, "\"code\":\"no-go\"}}") && !strstr(text, "circuit_open"));
}

IN_CHILD(five_failures_open_one_model_only, "")
IN_CHILD(refused_port_stops_every_model, "")
IN_CHILD(old_success_leaves_the_streak, "")
IN_CHILD(slow_probe_closes_after_its_lease, "")
IN_CHILD(neutral_probe_returns_its_grant, "")
IN_CHILD(lost_model_returns_the_hosts_grant, "")
IN_CHILD(pending_model_is_refused_late, "")
IN_CHILD(suspend_is_neutral, "")
IN_CHILD(fork_settles_in_the_parent_only, "")
IN_CHILD(pass_lets_through_uncounted, "when_exhausted=pass")
IN_CHILD(replaced_table_is_found, "")
IN_CHILD(replaced_table_is_found_by_who_is_well, "")
IN_CHILD(no_table_before_it_is_needed, "")
IN_CHILD(forced_open_promises_no_time, "")
IN_CHILD(the_503_has_the_users_code, "error_code=no-go")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_five_failures_open_one_model_only),
        cmocka_unit_test(test_refused_port_stops_every_model),
        cmocka_unit_test(test_old_success_leaves_the_streak),
        cmocka_unit_test(test_slow_probe_closes_after_its_lease),
        cmocka_unit_test(test_neutral_probe_returns_its_grant),
        cmocka_unit_test(test_lost_model_returns_the_hosts_grant),
        cmocka_unit_test(test_pending_model_is_refused_late),
        cmocka_unit_test(test_suspend_is_neutral),
        cmocka_unit_test(test_fork_settles_in_the_parent_only),
        cmocka_unit_test(test_pass_lets_through_uncounted),
        cmocka_unit_test(test_replaced_table_is_found),
        cmocka_unit_test(test_replaced_table_is_found_by_who_is_well),
        cmocka_unit_test(test_no_table_before_it_is_needed),
        cmocka_unit_test(test_another_user_has_another_table),
        cmocka_unit_test(test_who_changes_users),
        cmocka_unit_test(test_forced_open_promises_no_time),
        cmocka_unit_test(test_the_503_has_the_users_code),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
