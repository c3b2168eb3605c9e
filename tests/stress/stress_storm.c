/*
 * Kill storm: processes make calls on one table while they are killed, stopped and continued at
 * random, for STORM_SECONDS (30). What holds whatever happens is looked at from outside all the
 * time, and at the end the table is as good as any. Meanwhile others are killed while they create
 * or replace a table.
 */
#include "storm_worker.h"

#include "base/clock.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { WORKERS = 8, PAUSE_NS = 500000, START_NS_MAX = 600000 };

static pid_t pids[WORKERS];
static bool stopped[WORKERS];
static struct table table;
static char base[64], other_path[112];
static uint64_t seed = 4711;
static unsigned long kills, stops, looks, starts, starts_killed;

static void remove_files(const char *prefix)
{
    char name[400];
    DIR *listing = opendir(base);
    struct dirent *entry;

    while (listing && (entry = readdir(listing))) {
        snprintf(name, sizeof name, "%s/%s", base, entry->d_name);
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0)
            unlink(name);
    }
    if (listing)
        closedir(listing);
}

static void clean_up(void)
{
    for (unsigned i = 0; i < WORKERS; i++)
        if (pids[i] > 0)
            kill(pids[i], SIGKILL);
    remove_files("");
    rmdir(base);
}

static void law(bool holds, const char *text)
{
    if (holds)
        return;
    fprintf(stderr, "law broken: %s (after %lu kills)\n", text, kills);
    clean_up();
    exit(1);
}

/* --- what is looked at ----------------------------------------------------------------------- */

static struct slot *slot_of_key(unsigned key)
{
    char name[16];

    storm_key(key, name);
    return table_find(&table, table_identity(&table, span_str(name)));
}

static void check_word(uint64_t word)
{
    struct breaker_view view = breaker_decode(word);
    /* Read after the word: never less than its writer's. */
    int32_t left = (int32_t)(view.time - atomic_load(&storm->now));

    law(breaker_encode(&view) == word, "what is written is what is read");
    law(view.phase <= BREAKER_HALF_OPEN, "nobody gave an order");
    law(view.streak < STORM_POLICY.failure_threshold, "failures in a row open at the threshold");
    law(view.granted <= STORM_PROBES, "no more grants of a lease than half_open_probes");
    law(view.phase != BREAKER_HALF_OPEN || view.successes < STORM_POLICY.success_threshold,
        "successes of probes close at their threshold");
    law(view.phase == BREAKER_CLOSED || left <= STORM_WAIT_TICKS,
        "no wait is longer than the settings allow");
}

static uint64_t counted(const struct slot *s)
{
    struct slot_totals totals = slot_totals(s);

    return totals.success + totals.failure + totals.neutral;
}

static void check_key(unsigned key)
{
    static uint64_t last[STORM_KEYS];
    struct storm_page *page = &storm->pages[key];
    uint64_t ended = atomic_load(&page->ended);
    const struct slot *s = slot_of_key(key);
    char text[TABLE_KEY_TEXT_SIZE], name[16];

    law(s || ended == 0, "a key that was called has its slot");
    if (!s)
        return;
    check_word(slot_word(s));
    uint64_t count = counted(s);
    law(count >= ended, "a call that was settled is counted");
    law(count <= atomic_load(&page->begun), "no call is counted that was not settled");
    law(count >= last[key], "totals only grow");
    last[key] = count;
    storm_key(key, name);
    law(table_key_read(s, text, sizeof text) > 0 && (text[0] == '#' || strcmp(text, name) == 0),
        "a key is shown whole or not at all");
}

static void look(void)
{
    looks++;
    for (unsigned key = 0; key < STORM_KEYS; key++)
        check_key(key);
    law(atomic_load(&storm->too_many) == 0, "no more grants of a lease than half_open_probes");
}

/* --- what is done to them -------------------------------------------------------------------- */

static void start_worker(unsigned i)
{
    crowd_start(&pids[i], 1, storm_worker);
    stopped[i] = false;
}

static void kill_worker(unsigned i)
{
    unsigned killed = 0;

    kill(pids[i], SIGKILL);
    law(crowd_wait(&pids[i], 1, &killed) == 0 && killed == 1, "nobody else's death ends a process");
    kills++;
    start_worker(i);
}

static void strike(void)
{
    unsigned i = crowd_random(&seed, WORKERS);

    if (stopped[i] && crowd_random(&seed, 2)) {
        kill(pids[i], SIGCONT);
        stopped[i] = false;
    } else if (!stopped[i] && crowd_random(&seed, 3) == 0) {
        kill(pids[i], SIGSTOP);
        stopped[i] = true;
        stops++;
    } else {
        kill_worker(i);
    }
}

/* One process creates a table where there is none, or replaces one, and may be killed at it. */
static int start_other(unsigned replaces)
{
    struct table t;

    return replaces ? table_replace(other_path, false) : table_open(&t, other_path, false);
}

/* A storm strikes at moments of its own: nothing of who is struck is waited for. */
static void pause_ns(uint64_t ns)
{
    const struct timespec pause = {0, (long)ns};

    nanosleep(&pause, NULL);
}

static void strike_at_start(void)
{
    bool replaces = crowd_random(&seed, 2);
    char temporary[32];
    unsigned killed = 0;
    struct table t;
    pid_t pid = fork();

    if (pid == 0)
        _exit(start_other(replaces) != TABLE_OK);
    pause_ns(crowd_random(&seed, START_NS_MAX));
    kill(pid, SIGKILL);
    law(crowd_wait(&pid, 1, &killed) == 0, "a table can be created, and replaced");
    starts++;
    starts_killed += killed;
    law(table_open(&t, other_path, false) == TABLE_OK && table_used(&t) == 0,
        "who is killed at it leaves a table or none");
    table_close(&t);
    if (!replaces || crowd_random(&seed, 2))
        unlink(other_path);
    snprintf(temporary, sizeof temporary, ".breaker-%ld-", (long)pid);
    remove_files(temporary); /* memory, where thousands are killed */
}

/* --- the end --------------------------------------------------------------------------------- */

/* As stopped as they are: the table is theirs no more than the dead's. */
static void end_workers(void)
{
    for (unsigned i = 0; i < WORKERS; i++)
        kill(pids[i], stopped[i] ? SIGKILL : SIGCONT);
    atomic_store(&storm->stop, 1);
    for (unsigned i = 0; i < WORKERS; i++) {
        unsigned killed = 0;
        law(crowd_wait(&pids[i], 1, &killed) == 0, "who is told to stop ends well");
        kills += killed;
        pids[i] = 0;
    }
}

static void check_places(void)
{
    unsigned used = 0;

    for (unsigned i = 0; i < TABLE_CAPACITY; i++) {
        struct slot *s = &table.slots[i];
        used += s->identity != 0;
        law(s->identity == 0 || table_find(&table, s->identity) == s,
            "no slot is lost, and no key stands in two");
    }
    law(used == STORM_KEYS, "each key has one slot");
}

/* It lets go, closes, and opens again. */
static void check_recovery(unsigned key)
{
    uint32_t now = atomic_load(&storm->now) + STORM_WAIT_TICKS;
    struct slot *s = slot_of_key(key);
    enum breaker_change change = BREAKER_NO_CHANGE;
    char text[TABLE_KEY_TEXT_SIZE], name[16];

    storm_key(key, name);
    law(table_key_read(s, text, sizeof text) > 0 && strcmp(text, name) == 0,
        "a key whose claimer died is written by who comes next");
    for (unsigned i = 0; i < STORM_POLICY.success_threshold; i++) {
        struct breaker_admission good = slot_admit(s, now, &STORM_POLICY, NULL);
        law(good.verdict != BREAKER_REFUSE, "nothing is refused beyond the open time or a lease");
        slot_settle(s, &good.ticket, BREAKER_SUCCESS, now, &STORM_POLICY, NULL);
    }
    law(breaker_decode(slot_word(s)).phase == BREAKER_CLOSED, "good probes close");
    for (unsigned i = 0; i < STORM_POLICY.failure_threshold; i++) {
        struct breaker_admission bad = slot_admit(s, now, &STORM_POLICY, NULL);
        change = slot_settle(s, &bad.ticket, BREAKER_FAILURE, now, &STORM_POLICY, NULL);
    }
    law(change == BREAKER_TRIPPED, "failures in a row open at the threshold");
}

static void check_totals(void)
{
    uint64_t begun = 0, ended = 0, count = 0;

    for (unsigned key = 0; key < STORM_KEYS; key++) {
        begun += storm->pages[key].begun;
        ended += storm->pages[key].ended;
        count += counted(slot_of_key(key));
    }
    law(begun - ended <= kills, "a kill costs one call's count at most");
    printf(
        "   %lu kills, %lu stops, %lu looks; %llu calls settled, %llu counted; %lu of %lu killed "
        "at a start\n",
        kills, stops, looks, (unsigned long long)begun, (unsigned long long)count, starts_killed,
        starts);
    law(kills > 0 && stops > 0 && starts_killed > 0 && starts_killed < starts && begun > 0,
        "there was a storm");
}

int main(void)
{
    const char *knob = getenv("STORM_SECONDS");
    uint64_t began = clock_system.mono_ns(), seconds = knob ? strtoul(knob, NULL, 10) : 30;

    snprintf(base, sizeof base, "%s/breaker-storm-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    storm = crowd_shared(sizeof *storm);
    if (!storm || !mkdtemp(base))
        return 2;
    snprintf(storm->path, sizeof storm->path, "%s/table", base);
    snprintf(other_path, sizeof other_path, "%s/other", base);
    for (unsigned i = 0; i < WORKERS; i++)
        start_worker(i);
    law(table_open(&table, storm->path, false) == TABLE_OK, "a table can be opened");
    while (!clock_has_passed(began, clock_system.mono_ns(), seconds * CLOCK_NS_PER_S)) {
        strike();
        look();
        if (crowd_random(&seed, 4) == 0)
            strike_at_start();
        pause_ns(PAUSE_NS);
    }
    end_workers();
    look();
    check_places();
    check_totals();
    for (unsigned key = 0; key < STORM_KEYS; key++)
        check_recovery(key);
    table_close(&table);
    clean_up();
    return 0;
}
