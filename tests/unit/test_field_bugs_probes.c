/* The breaker bugs of others that had to do with probes, one test each: that name says which bug it
 * is of (FIELD-NOTES 7), the remark above it where it was met. The rest: test_field_bugs_*.c and
 * tests/preload/test_field_bugs.py. */
#include "detour_fixture.h"

#include <signal.h>

#define KEY HOST "/m"

static struct shim_call probe, other, old;

/* The model "m" is open, and its next call a probe. */
static void make_due(void)
{
    trip("m");
    advance(31);
}

static void take_probe(void)
{
    CHECK(chat(&probe, "m") == SHIM_ADMITTED && shim_is_probe(&probe));
}

/* OmniRoute#13836: half-open for six days, since the probe's process was gone. */
static void body_bug_01_a_lost_probe_wedges_half_open(void)
{
    int status = -1;

    make_due();
    pid_t pid = fork();
    if (pid == 0) {
        take_probe();
        kill(getpid(), SIGKILL);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
    CHECK(phase_of(KEY) == BREAKER_HALF_OPEN);
    CHECK(call_status("m", 200) == SHIM_REFUSED);
    advance(31); /* the lease is over */
    CHECK(call_status("m", 200) == SHIM_ADMITTED);
    CHECK(phase_of(KEY) == BREAKER_CLOSED);
}

/* resilience4j#544, opossum#388: a probe that says nothing kept its place. */
static void body_bug_02_a_neutral_probe_keeps_its_slot(void)
{
    make_due();
    take_probe();
    end_status(&probe, 400);
    take_probe();
    end_status(&probe, 429);
    take_probe();
    end_kind(&probe, END_ABORTED, PHASE_WAITING, 1);
    take_probe();
    shim_drop(&probe);
    take_probe();
    end_status(&probe, 200);
    CHECK(phase_of(KEY) == BREAKER_CLOSED);
}

/* interlock#194: the probe that failed on this side was counted against the other. */
static void body_bug_03_a_probe_that_failed_locally_is_counted(void)
{
    static const enum call_end_kind kinds[] = {END_LOCAL, END_UNSENT};
    unsigned opened;

    make_due();
    opened = (unsigned)slot_of(KEY)->opened;
    for (unsigned i = 0; i < 2; i++) {
        take_probe();
        end_kind(&probe, kinds[i], PHASE_CONNECTING, 0.001);
        CHECK(phase_of(KEY) == BREAKER_HALF_OPEN && slot_of(KEY)->opened == opened);
        CHECK(totals_of(KEY).failure == 5 && totals_of(HOST).failure == 0);
    }
    take_probe(); /* its slot was handed back */
    end_status(&probe, 200);
    CHECK(phase_of(KEY) == BREAKER_CLOSED);
}

/* opossum#381, Polly#223, OmniRoute#13849: what began before the trip closed the breaker, opened it
 * again, or gave the probe's place away. */
static void body_bug_04_late_results_move_the_breaker(void)
{
    static struct shim_call late[6];
    static const unsigned status[6] = {200, 500, 200, 500, 400, 500};

    for (unsigned i = 0; i < 6; i++)
        CHECK(chat(&late[i], "m") == SHIM_ADMITTED);
    trip("m");
    uint64_t word = slot_word(slot_of(KEY));
    end_status(&late[0], status[0]);
    end_status(&late[1], status[1]);
    CHECK(slot_word(slot_of(KEY)) == word); /* neither closed nor open for longer */
    advance(31);
    take_probe();
    word = slot_word(slot_of(KEY));
    for (unsigned i = 2; i < 5; i++) {
        end_status(&late[i], status[i]);
        CHECK(slot_word(slot_of(KEY)) == word);
        CHECK(call_status("m", 200) == SHIM_REFUSED);
    }
    end_status(&probe, 200);
    word = slot_word(slot_of(KEY));
    end_status(&late[5], status[5]);
    CHECK(breaker_decode(word).phase == BREAKER_CLOSED && slot_word(slot_of(KEY)) == word);
}

/* Hystrix#1853: the end of a call that was no probe put half-open back to open, for ever. */
static void body_bug_05_an_unrelated_cancel_ends_half_open(void)
{
    CHECK(chat(&old, "m") == SHIM_ADMITTED);
    CHECK(chat(&other, "m") == SHIM_ADMITTED);
    make_due();
    take_probe();
    end_kind(&old, END_ABORTED, PHASE_WAITING, 1);
    shim_drop(&other);
    CHECK(phase_of(KEY) == BREAKER_HALF_OPEN);
    end_status(&probe, 200);
    CHECK(phase_of(KEY) == BREAKER_CLOSED);
}

/* Polly v8: a cancelled probe closed the circuit. */
static void body_bug_06_a_cancelled_probe_closes(void)
{
    static const enum call_phase phases[] = {PHASE_CONNECTING, PHASE_HANDSHAKE, PHASE_WAITING,
                                             PHASE_BODY};

    make_due();
    for (unsigned i = 0; i < 4; i++) {
        take_probe();
        end_kind(&probe, END_ABORTED, phases[i], 0.1);
        CHECK(phase_of(KEY) == BREAKER_HALF_OPEN);
    }
    take_probe();
    CHECK(call_status("m", 200) == SHIM_REFUSED);
}

/* OmniRoute#9207, #930: an open target left the pool, so it was never probed again; one way of
 * ending a call was not counted. */
static void body_bug_07_an_open_target_with_fallbacks_is_never_probed(void)
{
    configure(TARGET(""));
    open_model(URL, "m");
    reroute("m", "one", &good_end);
    advance(31);
    CHECK(ask("m") == SHIM_ADMITTED && shim_is_probe(&call));
    shim_settle(&call, &good_end);
    CHECK(phase_of(KEY) == BREAKER_CLOSED);
    clean_up();
}

static void body_bug_07_one_way_of_ending_is_not_counted(void)
{
    configure(TARGET(""));
    open_model(URL, "m");
    for (unsigned i = 0; i < 3; i++)
        reroute("m", "one", &bad_end);
    end_call("https://one.example/v1/chat/completions", "x/m", &bad_end);
    CHECK(breaker_decode(slot_word(slot_of("one.example/x/m"))).streak == 4);
    reroute("m", "one", &bad_end); /* the fifth, as its own calls or as somebody's fallback */
    CHECK(phase_of("one.example/x/m") == BREAKER_OPEN);
    CHECK(ask_at("https://one.example/v1/chat/completions", "x/m") == SHIM_REFUSED);
    clean_up();
}

/* safe-client-gateway#3442, semian#247: 17 times the calls, until the first failure was in. */
static void body_bug_21_half_open_lets_everyone_in(void)
{
    static struct shim_call crowd[64];
    unsigned admitted = 0;

    make_due();
    for (unsigned i = 0; i < 64; i++)
        admitted += chat(&crowd[i], "m") == SHIM_ADMITTED;
    CHECK(admitted == 1);
}

/* Polly#481: without traffic "open" was shown for ever. */
static void body_bug_also_open_is_shown_for_ever(void)
{
    static const struct breaker_policy policy = {.failure_threshold = 5, .open_ticks = 1000};
    uint64_t word;

    trip("m");
    word = slot_word(slot_of(KEY));
    CHECK(breaker_effective(word, breaker_tick(boot), &policy).wait_ticks > 0);
    advance(31); /* nobody calls */
    struct breaker_effective shown = breaker_effective(word, breaker_tick(boot), &policy);
    CHECK(shown.state == BREAKER_SHOW_OPEN && shown.wait_ticks == 0);
}

IN_CHILD(bug_01_a_lost_probe_wedges_half_open, "")
IN_CHILD(bug_02_a_neutral_probe_keeps_its_slot, "")
IN_CHILD(bug_03_a_probe_that_failed_locally_is_counted, "")
IN_CHILD(bug_04_late_results_move_the_breaker, "")
IN_CHILD(bug_05_an_unrelated_cancel_ends_half_open, "")
IN_CHILD(bug_06_a_cancelled_probe_closes, "")
IN_CHILD(bug_07_an_open_target_with_fallbacks_is_never_probed, "")
IN_CHILD(bug_07_one_way_of_ending_is_not_counted, "")
IN_CHILD(bug_21_half_open_lets_everyone_in, "")
IN_CHILD(bug_also_open_is_shown_for_ever, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bug_01_a_lost_probe_wedges_half_open),
        cmocka_unit_test(test_bug_02_a_neutral_probe_keeps_its_slot),
        cmocka_unit_test(test_bug_03_a_probe_that_failed_locally_is_counted),
        cmocka_unit_test(test_bug_04_late_results_move_the_breaker),
        cmocka_unit_test(test_bug_05_an_unrelated_cancel_ends_half_open),
        cmocka_unit_test(test_bug_06_a_cancelled_probe_closes),
        cmocka_unit_test(test_bug_07_an_open_target_with_fallbacks_is_never_probed),
        cmocka_unit_test(test_bug_07_one_way_of_ending_is_not_counted),
        cmocka_unit_test(test_bug_21_half_open_lets_everyone_in),
        cmocka_unit_test(test_bug_also_open_is_shown_for_ever),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
