/* A healthy call on a mapped table beside one uncontended CAS on the same mapping, interleaved; ns
 * each and the ratio (goal: at most 20 with hashing). No clock is read inside. */
#include "lib/by_value.h"
#include "base/clock.h"
#include "table/slot.h"
#include "table/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROUNDS = 21, CALLS = 200000 };

static const struct breaker_policy POLICY = {.failure_threshold = 5,
                                             .degrade_threshold = 3,
                                             .half_open_probes = 1,
                                             .success_threshold = 1,
                                             .backoff_q8 = 256,
                                             .open_ticks = 1000,
                                             .open_max_ticks = 1000,
                                             .lease_ticks = 1000};
static const struct breaker_extra NOTHING;

static struct table table;
static struct slot *host, *model;
static volatile unsigned sink; /* keeps the work from being optimised away */

static void one_cas(uint32_t i)
{
    uint64_t word = i;
    atomic_compare_exchange_strong_explicit(&host->refusal_logged_ns, &word, i + 1,
                                            memory_order_acq_rel, memory_order_acquire);
}

static void pass(struct slot *s, uint32_t now)
{
    struct breaker_admission admission = slot_admit(s, now, &POLICY, NULL);
    sink = slot_settle(s, &admission.ticket, BREAKER_SUCCESS, now, &POLICY, &NOTHING);
}

static void pair_cached(uint32_t now)
{
    pass(host, now);
    pass(model, now);
}

static void pair_counted(uint32_t now)
{
    pair_cached(now);
    slot_count(host, BREAKER_SUCCESS, 0);
    slot_count(model, BREAKER_SUCCESS, 0);
}

static void pair_hashed(uint32_t now)
{
    pass(table_find(&table, table_identity(&table, SPAN_LIT("api.openai.com"))), now);
    pass(table_find(&table, table_identity(&table, SPAN_LIT("api.openai.com/gpt-4o-mini"))), now);
}

static double time_of(void (*work)(uint32_t))
{
    uint64_t begin = clock_system.mono_ns();

    for (uint32_t i = 0; i < CALLS; i++)
        work(i);
    return (double)(clock_system.mono_ns() - begin) / CALLS;
}

int main(void)
{
    static const struct {
        const char *name;
        void (*work)(uint32_t);
    } jobs[] = {
        {"one uncontended CAS", one_cas},
        {"H+M admit+settle, slots cached", pair_cached},
        {"the same, with statistics", pair_counted},
        {"the same without them, two hashes and look-ups", pair_hashed},
    };
    enum { JOBS = sizeof jobs / sizeof *jobs };
    char dir[] = "/dev/shm/breaker-bench-XXXXXX", path[64];
    double times[JOBS][ROUNDS];

    if (!mkdtemp(dir))
        return 1;
    snprintf(path, sizeof path, "%s/table", dir);
    if (table_open(&table, path, false) != TABLE_OK)
        return 1;
    host = table_claim(&table, table_identity(&table, SPAN_LIT("api.openai.com")),
                       SPAN_LIT("api.openai.com"), true);
    model = table_claim(&table, table_identity(&table, SPAN_LIT("api.openai.com/gpt-4o-mini")),
                        SPAN_LIT("api.openai.com/gpt-4o-mini"), true);
    for (int round = 0; round < ROUNDS; round++)
        for (int job = 0; job < JOBS; job++)
            times[job][round] = time_of(jobs[job].work);
    unlink(path);
    rmdir(dir);
    for (int job = 0; job < JOBS; job++) {
        qsort(times[job], ROUNDS, sizeof *times[job], by_value);
        printf("slot: %s: %.1f ns, %.1f x\n", jobs[job].name, times[job][ROUNDS / 2],
               times[job][ROUNDS / 2] / times[0][ROUNDS / 2]);
    }
    return 0;
}
