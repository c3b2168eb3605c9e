/*
 * bench_pair.c - shim_admit + shim_settle on a healthy breaker, over one uncontended CAS on the
 * same mapped table.
 *
 *   bench_pair ROUNDS          (BREAKER_TABLE names a table of its own)
 *   bench_pair pairs COUNT
 *   bench_pair opens COUNT
 *   bench_pair failures COUNT
 *
 * ROUNDS: one line per round, "PAIR CAS WHOLE CLOCK", ns each. PAIR counts both breakers (host and
 * model) of a POST whose model is known: two hashes of keys, two finds, two admissions, two settles
 * and their statistics; the policy is cached and the clock injected, as the goal says. WHOLE adds
 * shim_open_again and shim_body of a small body and takes the real clock: what one call really
 * costs above the layer that saw it. CLOCK is one real CLOCK_BOOTTIME.
 *
 * pairs, opens and failures time nothing: for who counts instructions from outside. pairs and opens
 * open COUNT calls after the same warm-up; pairs admits and settles each besides. failures has
 * COUNT calls fail, each the first of a streak that the next call's success ends:
 * settle_first_failure() is called for nothing else.
 */
#include "lib/healthy_pair.h"
#include "table/table.h"

#include <stdio.h>

#define BATCHES   1000 /* per round: short ones, since a process may lose its core in any */
#define OPS       (BATCH * BATCHES)
#define COUNT_MAX 10000000

static double time_whole(void)
{
    double begun = now_ns();

    for (int n = 0; n < OPS; n++) {
        open_call(&calls[0], SPAN_LIT("{\"model\":\"gpt-4o-mini\",\"messages\":[]}"));
        if (shim_admit(&calls[0]) != SHIM_ADMITTED)
            exit(1);
        shim_settle(&calls[0], &good);
    }
    return (now_ns() - begun) / OPS;
}

/* Each finds what the last one left: always won, never shared. The word lies in the table's own
 * mapping, in a slot that no key of ours uses. */
static double time_cas(_Atomic uint64_t *word)
{
    uint64_t value = atomic_load(word);
    double begun = now_ns();

    for (int n = 0; n < OPS; n++) {
        if (!atomic_compare_exchange_strong_explicit(word, &value, value + 1, memory_order_acq_rel,
                                                     memory_order_acquire))
            exit(1);
        value++;
    }
    return (now_ns() - begun) / OPS;
}

static double time_clock(void)
{
    uint64_t sum = 0;
    double begun = now_ns();

    for (int n = 0; n < OPS; n++)
        sum += clock_system.boot_ns();
    double took = (now_ns() - begun) / OPS;
    return sum ? took : 0;
}

/* An identity-free slot's statistics word: a line that nobody else looks at. */
static _Atomic uint64_t *spare_word(const struct table *table)
{
    for (size_t i = 0; i < TABLE_CAPACITY; i++)
        if (atomic_load(&table->slots[i].identity) == 0)
            return &table->slots[i].stats[0].rerouted;
    return NULL;
}

static int times(unsigned long rounds, const char *path)
{
    struct table table;
    double timer = timer_cost();

    time_pairs(BATCHES, timer); /* warms up: the configuration, the table, the keys */
    if (table_attach(&table, path, true) != TABLE_OK || table_used(&table) != 2) {
        fprintf(stderr, "bench_pair: no shared table with the two keys\n");
        return 1;
    }
    _Atomic uint64_t *word = spare_word(&table);
    if (!word)
        return 1;
    for (unsigned long r = 0; r < rounds; r++) {
        double pair = time_pairs(BATCHES, timer), cas = time_cas(word), clock = time_clock();
        shim_set_clock(NULL);
        double whole = time_whole();
        shim_set_clock(&fake);
        printf("%.2f %.2f %.2f %.2f\n", pair, cas, whole, clock);
    }
    table_close(&table);
    return 0;
}

static int count(unsigned long ops, bool pairs)
{
    struct shim_call *call = &calls[0];

    time_pairs(1, 0);
    for (unsigned long n = 0; n < ops; n++) {
        open_call(call, SPAN_LIT("{\"model\":\"gpt-4o-mini\",\"messages\":[]}"));
        if (!pairs)
            continue;
        if (shim_admit(call) != SHIM_ADMITTED)
            return 1;
        shim_settle(call, &good);
    }
    return 0;
}

__attribute__((noinline)) static void settle_first_failure(struct shim_call *call)
{
    static const struct call_end bad = {.kind = END_COMPLETE,
                                        .phase = PHASE_BODY,
                                        .status = 503,
                                        .byte_received = true,
                                        .age_ns = CLOCK_NS_PER_MS};

    shim_settle(call, &bad);
}

static int fail_first(unsigned long ops)
{
    struct shim_call *call = &calls[0];

    time_pairs(1, 0);
    for (unsigned long n = 0; n < 2 * ops; n++) {
        open_call(call, SPAN_LIT("{\"model\":\"gpt-4o-mini\",\"messages\":[]}"));
        if (shim_admit(call) != SHIM_ADMITTED)
            return 1;
        if (n % 2 == 0)
            settle_first_failure(call);
        else
            shim_settle(call, &good);
    }
    return 0;
}

int main(int argc, char **argv)
{
    unsigned long number = argc > 1 ? strtoul(argv[argc - 1], NULL, 10) : 0;
    const char *path = getenv("BREAKER_TABLE");

    shim_set_clock(&fake);
    if (path && argc == 2 && number > 0 && number <= 1000)
        return times(number, path);
    if (path && argc == 3 && number > 0 && number <= COUNT_MAX && strcmp(argv[1], "pairs") == 0)
        return count(number, true);
    if (path && argc == 3 && number > 0 && number <= COUNT_MAX && strcmp(argv[1], "opens") == 0)
        return count(number, false);
    if (path && argc == 3 && number > 0 && number <= COUNT_MAX && strcmp(argv[1], "failures") == 0)
        return fail_first(number);
    fprintf(stderr,
            "usage: BREAKER_TABLE=FILE bench_pair ROUNDS | (pairs | opens | failures) COUNT\n");
    return 2;
}
