/* Every interleaving of a few callers over a few ticks, breadth first: each state once, all laws in
 * each. A caller makes as many calls as it likes, and calls last as long as they like. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#define WORLD_CALLERS 3
#include "moves.h"

struct setting {
    const char *name;
    struct breaker_policy policy;
    unsigned callers, ticks;
    unsigned lag;       /* ticks by which a caller's clock may be behind when it reads the word */
    unsigned operators; /* orders that they give */
    bool keeps_found;   /* of a caller that was overtaken, the very word that it had found */
    uint32_t states;    /* at least so many are reached */
};

/* --- the set of states ----------------------------------------------------------------------- */

enum { SEEN_MAX = 1 << 21, PLACES = SEEN_MAX * 2 };

static struct {
    struct world *worlds; /* in the order of their discovery: the queue, too */
    uint32_t *parents;
    uint32_t *places; /* hash table of 1 + index; 0: free */
    uint32_t count;
} seen;

static uint64_t hash_of(const struct world *w)
{
    uint64_t parts[sizeof *w / 8], hash = 0;

    memcpy(parts, w, sizeof *w);
    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++) {
        hash = (hash ^ parts[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return hash;
}

static void seen_add(const struct world *w, uint32_t parent)
{
    uint32_t place = (uint32_t)(hash_of(w) >> 20) % PLACES;

    while (seen.places[place] != 0) {
        if (memcmp(&seen.worlds[seen.places[place] - 1], w, sizeof *w) == 0)
            return;
        place = (place + 1) % PLACES;
    }
    assert_true(seen.count < SEEN_MAX);
    seen.worlds[seen.count] = *w;
    seen.parents[seen.count] = parent;
    seen.places[place] = ++seen.count;
}

/* --- states that are the same ---------------------------------------------------------------- */

/* Numbers are told by their distance from the word's, as if those were the last before they wrap.
 * Old is old: what comes next could be told apart by a whole turn only. */
static unsigned told_from(unsigned newest, unsigned number, unsigned last)
{
    return number == newest ? last : last - 1;
}

static uint64_t word_from(const struct breaker_view *newest, uint64_t found)
{
    struct breaker_view view = breaker_decode(found);

    view.generation = told_from(newest->generation, view.generation, BREAKER_GENERATION_MAX) &
                      BREAKER_GENERATION_MAX;
    view.lease = told_from(newest->lease, view.lease, BREAKER_LEASE_MAX) & BREAKER_LEASE_MAX;
    return breaker_encode(&view);
}

/* A ticket of an older generation, or one not counted, may change nothing whatever else it says: it
 * says what would do most harm. */
static void ticket_from(const struct breaker_view *newest, struct caller *c, unsigned now)
{
    c->generation = told_from(newest->generation, c->generation, BREAKER_GENERATION_MAX) &
                    BREAKER_GENERATION_MAX;
    c->lease = told_from(newest->lease, c->lease, BREAKER_LEASE_MAX) & BREAKER_LEASE_MAX;
    if (!c->this_era || !c->counted) {
        c->lease = BREAKER_LEASE_MAX;
        c->admitted = now & WORLD_TICKS_MAX;
    }
}

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct caller));
}

/* Callers are interchangeable, too. */
static void world_normalise(struct world *w, const struct setting *setting)
{
    const struct breaker_view newest = breaker_decode(w->word);

    for (unsigned i = 0; i < WORLD_CALLERS; i++) {
        struct caller *c = &w->callers[i];
        if (c->at == CALLER_ADMITTING || c->at == CALLER_SETTLING) {
            if (!setting->keeps_found && c->found != w->word)
                c->overtaken = 1;
            c->found = c->overtaken ? 0 : word_from(&newest, c->found);
        }
        if (c->at >= CALLER_CALLING)
            ticket_from(&newest, c, w->now);
    }
    w->word = word_from(&newest, w->word);
    qsort(w->callers, WORLD_CALLERS, sizeof *w->callers, by_bytes);
}

/* --- the walk -------------------------------------------------------------------------------- */

enum { WAY_MAX = 60 };

static void print_way_to(uint32_t index)
{
    uint32_t way[WAY_MAX];
    unsigned length = 0;

    do {
        way[length++] = index;
        index = seen.parents[index];
    } while (length < WAY_MAX && way[length - 1] != 0);
    while (length-- > 0)
        world_print(&seen.worlds[way[length]]);
}

/* The move was made: is it lawful, and where does it lead? */
static void arrive(struct world *w, uint32_t from, const struct setting *setting)
{
    if (broken) {
        fprintf(stderr, "law broken: %s\n", broken);
        print_way_to(from);
        world_print(w);
        fail();
    }
    world_normalise(w, setting);
    seen_add(w, from);
}

static void leave(uint32_t index, const struct setting *setting)
{
    const struct world from = seen.worlds[index];
    struct world w = from;

    if (from.now < setting->ticks) {
        w.now++;
        arrive(&w, index, setting);
    }
    for (unsigned order = 0; order < 4 && from.operators > 0; order++) {
        w = from;
        step_operator(&w, order);
        check_world(&w);
        arrive(&w, index, setting);
    }
    for (unsigned i = WORLD_CALLERS - setting->callers; i < WORLD_CALLERS; i++) {
        if (i + 1 < WORLD_CALLERS &&
            memcmp(&from.callers[i], &from.callers[i + 1], sizeof *from.callers) == 0)
            continue; /* its twin does the same */
        for (unsigned move = 0; move < MOVES; move++)
            for (unsigned lag = 0; lag <= setting->lag; lag++) {
                w = from;
                if (world_move(&w, &w.callers[i], (enum move)move, lag))
                    arrive(&w, index, setting);
            }
    }
}

/* Of a program that is watched while it runs, which takes its time, less is asked. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { WATCHED = 1 };
#else
enum { WATCHED = 0 };
#endif

static void explore(struct setting setting)
{
    struct world start = {.operators = (uint8_t)setting.operators};

    assert_null(broken); /* by an earlier setting */
    setting.ticks -= WATCHED;
    policy = setting.policy;
    memset(seen.places, 0, PLACES * sizeof *seen.places);
    seen.count = 0;
    world_normalise(&start, &setting);
    seen_add(&start, 0);
    for (uint32_t index = 0; index < seen.count; index++)
        leave(index, &setting);
    printf("%s: %u callers, %u ticks: %u states\n", setting.name, setting.callers, setting.ticks,
           seen.count);
    fflush(stdout);
    assert_true(WATCHED || seen.count >= setting.states);
}

static const struct breaker_policy ONE_PROBE = {
    .failure_threshold = 2,
    .degrade_threshold = 1,
    .half_open_probes = 1,
    .success_threshold = 1,
    .backoff_q8 = 256,
    .open_ticks = 1,
    .open_max_ticks = 1,
    .lease_ticks = 2,
};

static void test_overtaken_callers(void **state)
{
    (void)state;
    explore((struct setting){"overtaken callers", ONE_PROBE, .callers = 2, .ticks = 4,
                             .keeps_found = true, .states = 64000});
}

static void test_operators(void **state)
{
    (void)state;
    explore((struct setting){"operators", ONE_PROBE, .callers = 2, .ticks = 3, .operators = 2,
                             .states = 49000});
}

static void test_streaks(void **state)
{
    (void)state;
    struct breaker_policy streak = ONE_PROBE;

    streak.failure_threshold = 1;
    explore((struct setting){"streaks of one", streak, .callers = 3, .ticks = 2, .states = 3800});
    streak.failure_threshold = 3;
    streak.degrade_threshold = 2;
    explore(
        (struct setting){"streaks of three", streak, .callers = 3, .ticks = 2, .states = 67000});
}

static void test_several_probes(void **state)
{
    (void)state;
    struct breaker_policy several = ONE_PROBE;

    several.half_open_probes = several.success_threshold = 2;
    several.lease_ticks = 1;
    explore((struct setting){"two probes, two successes", several, .callers = 3, .ticks = 2,
                             .states = 210000});
    explore((struct setting){"two probes, two successes", several, .callers = 2, .ticks = 5,
                             .states = 320000});
    several.success_threshold = 1;
    explore((struct setting){"two probes, one success", several, .callers = 3, .ticks = 3,
                             .states = 870000});
}

static void test_back_off(void **state)
{
    (void)state;
    struct breaker_policy longer = ONE_PROBE;

    longer.backoff_q8 = 512;
    longer.open_max_ticks = 3;
    longer.lease_ticks = 1;
    explore((struct setting){"back-off", longer, .callers = 2, .ticks = 7, .states = 277000});
}

static void test_slow_clocks(void **state)
{
    (void)state;
    explore((struct setting){"slow clocks", ONE_PROBE, .callers = 2, .ticks = 3, .lag = 1,
                             .states = 360000});
}

static void test_three_callers(void **state)
{
    (void)state;
    explore(
        (struct setting){"three callers", ONE_PROBE, .callers = 3, .ticks = 4, .states = 950000});
}

static void test_all_was_met(void **state)
{
    (void)state;
    assert_true(world_met_all());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_overtaken_callers), cmocka_unit_test(test_operators),
        cmocka_unit_test(test_streaks),           cmocka_unit_test(test_several_probes),
        cmocka_unit_test(test_back_off),          cmocka_unit_test(test_slow_clocks),
        cmocka_unit_test(test_three_callers),     cmocka_unit_test(test_all_was_met),
    };
    seen.worlds = calloc(SEEN_MAX, sizeof *seen.worlds);
    seen.parents = calloc(SEEN_MAX, sizeof *seen.parents);
    seen.places = calloc(PLACES, sizeof *seen.places);
    if (!seen.worlds || !seen.parents || !seen.places)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(seen.worlds);
    free(seen.parents);
    free(seen.places);
    return failed;
}
