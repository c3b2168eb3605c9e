/* The breaker bugs of others that had to do with state which processes share, with clocks and
 * deadlines, and with too many keys; see test_field_bugs_probes.c. */
#include "detour_fixture.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>

#define KEY HOST "/m"

enum { CREDENTIAL = 4711 };

/* The whole table, as any process sees it. */
static unsigned char *table_bytes(void)
{
    unsigned char *bytes = malloc(TABLE_FILE_SIZE);
    FILE *file = fopen(getenv("BREAKER_TABLE"), "rb");

    CHECK(bytes && file && fread(bytes, 1, TABLE_FILE_SIZE, file) == TABLE_FILE_SIZE);
    fclose(file);
    return bytes;
}

/* litellm#40130: who was told to wait again waited for less. */
static void body_bug_15_a_second_deadline_shortens_the_first(void)
{
    uint32_t now = breaker_tick(boot);

    CHECK(call_status("m", 500) == SHIM_ADMITTED);
    slot_cooldown_set(slot_of(KEY), CREDENTIAL, 1000, now);
    slot_cooldown_set(slot_of(KEY), CREDENTIAL, 100, now);
    CHECK(slot_cooldown_left(slot_of(KEY), CREDENTIAL, now) == 1000);
    /* The open time of a breaker that is told to open once more. */
    static const struct breaker_policy policy = {.open_ticks = 1000};
    static const struct breaker_policy shorter = {.open_ticks = 100};
    uint64_t word = breaker_trip(breaker_trip(0, now, &policy, 0), now, &shorter, 0);
    CHECK(breaker_effective(word, now, &policy).wait_ticks == 1000);
}

static void trip_m(void)
{
    trip("m");
}

static void park(void)
{
    slot_cooldown_set(slot_of(KEY), CREDENTIAL, 1000, breaker_tick(boot));
}

/* litellm#34836: a view of the state that was ten seconds old. */
static void body_bug_16_admission_reads_a_cached_view(void)
{
    CHECK(call_status("m", 200) == SHIM_ADMITTED);
    CHECK(slot_cooldown_left(slot_of(KEY), CREDENTIAL, breaker_tick(boot)) == 0);
    CHECK(child_ends_well(trip_m));
    CHECK(child_ends_well(park));
    CHECK(call_status("m", 200) == SHIM_REFUSED); /* no time has gone by */
    CHECK(slot_cooldown_left(slot_of(KEY), CREDENTIAL, breaker_tick(boot)) == 1000);
}

static void attach_anew(void)
{
    struct table fresh;

    CHECK(table_open(&fresh, getenv("BREAKER_TABLE"), true) == TABLE_OK && fresh.shared);
    table_close(&fresh);
    CHECK(table_attach(&fresh, getenv("BREAKER_TABLE"), true) == TABLE_OK);
    table_close(&fresh);
}

static void fail_four_times(void)
{
    for (unsigned i = 0; i < 4; i++)
        CHECK(call_status("m", 500) == SHIM_ADMITTED);
}

/* pybreaker#26, #24: a process that began set the counters of all to zero. */
static void body_bug_17_a_new_process_resets_the_counters(void)
{
    CHECK(child_ends_well(fail_four_times));
    unsigned char *before = table_bytes();
    CHECK(child_ends_well(attach_anew));
    unsigned char *after = table_bytes();
    CHECK(memcmp(before, after, TABLE_FILE_SIZE) == 0);
    free(before);
    free(after);
    CHECK(call_status("m", 500) == SHIM_ADMITTED); /* this one's first, and the fifth */
    CHECK(call_status("m", 500) == SHIM_REFUSED);
}

/* pybreaker#44, gobreaker distributed: a lock of one process only, or one that was held while the
 * call ran. */
static void body_bug_18_the_lock_is_held_through_the_call(void)
{
    static struct shim_call probe;
    int status = -1;

    CHECK(child_ends_well(trip_m)); /* counted together, though by another process */
    CHECK(call_status("m", 200) == SHIM_REFUSED);
    advance(31);
    pid_t pid = fork();
    if (pid == 0) {
        CHECK(chat(&probe, "m") == SHIM_ADMITTED && shim_is_probe(&probe));
        raise(SIGSTOP); /* in the middle of its call */
        end_status(&probe, 200);
        _exit(0);
    }
    CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
    alarm(10); /* who waits for it ends here */
    CHECK(call_status("m", 200) == SHIM_REFUSED);
    CHECK(call_status("other", 200) == SHIM_ADMITTED);
    CHECK(kill(pid, SIGCONT) == 0 && waitpid(pid, &status, 0) == pid && status == 0);
    CHECK(call_status("m", 200) == SHIM_ADMITTED);
}

static void call_until_killed(_Atomic uint64_t *time_there)
{
    alarm(20); /* if whoever is to kill it is gone */
    for (unsigned i = 0;; i++) {
        call_status("m", i % 3 ? 500 : 200);
        advance(0.5);
        *time_there = boot;
    }
}

/* semian#54, #227, HAMi-core#260: a SIGKILL between two steps, and all others waited. */
static void body_bug_19_a_kill_between_steps_hangs_everybody(void)
{
    _Atomic uint64_t *time_there =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = -1;

    alarm(20);
    CHECK(time_there != MAP_FAILED);
    CHECK(call_status("m", 200) == SHIM_ADMITTED);
    for (unsigned i = 0; i < 60; i++) {
        uint64_t calls = totals_of(KEY).failure;
        pid_t pid = fork();
        if (pid == 0)
            call_until_killed(time_there);
        while (totals_of(KEY).failure < calls + 1 + i % 7) /* at work, wherever that is */
            sched_yield();
        kill(pid, SIGKILL);
        CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
        boot = *time_there > boot ? *time_there : boot; /* of one machine: no clock is behind */
        CHECK(call_status("other", 200) == SHIM_ADMITTED);
    }
    /* Whatever the last one left, even a probe: it ends. */
    advance(1000);
    CHECK(call_status("m", 200) == SHIM_ADMITTED && phase_of(KEY) == BREAKER_CLOSED);
    trip("m");
}

static int64_t wall;

static int64_t wall_that_jumps(void)
{
    return wall + (int64_t)(boot / CLOCK_NS_PER_MS);
}

/* gobreaker#109: the wall clock was set back, and the breaker stayed open. */
static void body_bug_20_a_wall_clock_jump_pins_it_open(void)
{
    static const struct clock_ops jumping = {fake_boot, fake_mono, wall_that_jumps};
    static const int64_t hour = 3600000;
    static const int64_t jumps[] = {-1, 1, -12, 100, -100000, 300000};

    shim_set_clock(&jumping);
    wall = 400000 * hour;
    for (unsigned i = 0; i < sizeof jumps / sizeof *jumps; i++) {
        trip("m");
        wall += jumps[i] * hour;
        advance(29);
        CHECK(call_status("m", 200) == SHIM_REFUSED);
        advance(2);
        CHECK(call_status("m", 200) == SHIM_ADMITTED && phase_of(KEY) == BREAKER_CLOSED);
    }
    /* A deadline that no clock of ours can have written: nobody waits for it. */
    struct breaker_view view = {.phase = BREAKER_OPEN, .time = BREAKER_HORIZON_TICKS + 5000};
    static const struct breaker_policy policy = {.failure_threshold = 5};
    CHECK(breaker_admit(breaker_encode(&view), 0, &policy).verdict == BREAKER_GRANT);
}

/* So many keys that callers made up; each call passes, room for its key or not. */
static void make_up(const char *prefix, unsigned status)
{
    char model[32];

    for (unsigned i = 0; i < 4 * TABLE_CAPACITY; i++) {
        snprintf(model, sizeof model, "%s-%u", prefix, i);
        CHECK(call_status(model, status) == SHIM_ADMITTED);
    }
}

/* There is room for who fails, if not for each: a key looks in few places, and one in a hundred
 * finds all of them taken. Returns how many of a hundred models are refused. */
static unsigned trip_many(char last[32])
{
    unsigned refused = 0;

    for (unsigned i = 0; i < 100; i++) {
        char model[32];

        snprintf(model, sizeof model, "fails-%u", i);
        for (unsigned k = 0; k < 5; k++)
            CHECK(call_status(model, 500) == SHIM_ADMITTED);
        if (call_status(model, 500) == SHIM_REFUSED) {
            refused++;
            memcpy(last, model, sizeof model);
        }
    }
    return refused;
}

/* semian#193: a key each for whatever callers made up, without an end. */
static void body_bug_23_keys_without_a_bound(void)
{
    struct table table;
    char last[32];

    trip("m");
    CHECK(table_attach(&table, getenv("BREAKER_TABLE"), true) == TABLE_OK);
    make_up("good", 200);
    CHECK(table_used(&table) <= TABLE_CAPACITY * 3 / 4);
    CHECK(trip_many(last) > 50);
    make_up("bad", 500);
    CHECK(table_used(&table) <= TABLE_CAPACITY && table.header->table_full > 0);
    free(table_bytes());                          /* as large as it was */
    CHECK(call_status("m", 200) == SHIM_REFUSED); /* nobody lost a breaker that is in use */
    CHECK(call_status(last, 200) == SHIM_REFUSED);
}

IN_CHILD(bug_15_a_second_deadline_shortens_the_first, "")
IN_CHILD(bug_16_admission_reads_a_cached_view, "")
IN_CHILD(bug_17_a_new_process_resets_the_counters, "")
IN_CHILD(bug_18_the_lock_is_held_through_the_call, "")
IN_CHILD(bug_19_a_kill_between_steps_hangs_everybody, "")
IN_CHILD(bug_20_a_wall_clock_jump_pins_it_open, "")
IN_CHILD(bug_23_keys_without_a_bound, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bug_15_a_second_deadline_shortens_the_first),
        cmocka_unit_test(test_bug_16_admission_reads_a_cached_view),
        cmocka_unit_test(test_bug_17_a_new_process_resets_the_counters),
        cmocka_unit_test(test_bug_18_the_lock_is_held_through_the_call),
        cmocka_unit_test(test_bug_19_a_kill_between_steps_hangs_everybody),
        cmocka_unit_test(test_bug_20_a_wall_clock_jump_pins_it_open),
        cmocka_unit_test(test_bug_23_keys_without_a_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
