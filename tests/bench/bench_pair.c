/*
 * bench_pair.c - shim_admit + shim_settle on a healthy breaker, over one uncontended CAS on the
 * same mapped table.
 *
 *   bench_pair ROUNDS        (BREAKER_TABLE names a table of its own)
 *
 * One line per round: "PAIR CAS WHOLE CLOCK", ns each. PAIR counts both breakers (host and model)
 * of a POST whose model is known: two hashes of keys, two finds, two admissions, two settles and
 * their statistics; the policy is cached and the clock injected, as the goal says. WHOLE adds
 * shim_open_again and shim_body of a small body and takes the real clock: what one call really
 * costs above the layer that saw it. CLOCK is one real CLOCK_BOOTTIME.
 */
#include "shim.h"
#include "table/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BATCH   8     /* calls open at once: they stay in the first-level cache */
#define BATCHES 20000 /* per round */
#define OPS     (BATCH * BATCHES)

static uint64_t fake_now = UINT64_C(1000) * CLOCK_NS_PER_S;

static uint64_t fake_ns(void)
{
    return fake_now;
}

static int64_t fake_ms(void)
{
    return 0;
}

static const struct clock_ops fake = {fake_ns, fake_ns, fake_ms};
static const struct call_end good = {.kind = END_COMPLETE,
                                     .phase = PHASE_BODY,
                                     .status = 200,
                                     .byte_received = true,
                                     .age_ns = CLOCK_NS_PER_MS};
static struct shim_call calls[BATCH];

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static bool open_call(struct shim_call *call)
{
    static const struct shim_request request = {
        .method = {"POST", 4},
        .scheme = {"https", 5},
        .host = {"api.openai.com", 14},
        .port = 443,
        .path = {"/v1/chat/completions", 20},
    };

    enum shim_need need;

    if (!shim_open_again(call, &need))
        need = shim_open(call, &request);
    return need == SHIM_NEEDS_BODY &&
           shim_body(call, SPAN_LIT("{\"model\":\"gpt-4o-mini\",\"messages\":[]}"), true);
}

/* The time of taking the time, twice per batch: it is not part of the pair. */
static double timer_cost(void)
{
    double total = 0;

    for (int i = 0; i < BATCHES; i++) {
        double begun = now_ns();
        __asm__ volatile("" ::: "memory");
        total += now_ns() - begun;
    }
    return total / BATCHES;
}

static double time_pairs(double timer)
{
    double total = 0;

    for (int b = 0; b < BATCHES; b++) {
        for (int i = 0; i < BATCH; i++)
            if (!open_call(&calls[i]))
                exit(1);
        double begun = now_ns();
        for (int i = 0; i < BATCH; i++) {
            if (shim_admit(&calls[i]) != SHIM_ADMITTED)
                exit(1);
            shim_settle(&calls[i], &good);
        }
        total += now_ns() - begun - timer;
    }
    return total / OPS;
}

static double time_whole(void)
{
    double begun = now_ns();

    for (int n = 0; n < OPS; n++) {
        if (!open_call(&calls[0]) || shim_admit(&calls[0]) != SHIM_ADMITTED)
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

int main(int argc, char **argv)
{
    unsigned long rounds = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;
    const char *path = getenv("BREAKER_TABLE");
    struct table table;

    if (rounds == 0 || rounds > 1000 || !path) {
        fprintf(stderr, "usage: BREAKER_TABLE=FILE bench_pair ROUNDS\n");
        return 2;
    }
    shim_set_clock(&fake);
    double timer = timer_cost();
    time_pairs(timer); /* warms up: loads the configuration, creates the table, claims the keys */
    if (table_attach(&table, path, true) != TABLE_OK || table_used(&table) != 2) {
        fprintf(stderr, "bench_pair: no shared table with the two keys\n");
        return 1;
    }
    _Atomic uint64_t *word = spare_word(&table);
    if (!word)
        return 1;
    for (unsigned long r = 0; r < rounds; r++) {
        double pair = time_pairs(timer), cas = time_cas(word), clock = time_clock();
        shim_set_clock(NULL);
        double whole = time_whole();
        shim_set_clock(&fake);
        printf("%.2f %.2f %.2f %.2f\n", pair, cas, whole, clock);
    }
    table_close(&table);
    return 0;
}
