/* More callers and larger settings than can be explored: long random walks, under the same laws. A
 * seed as the only argument repeats another's walks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#define WORLD_CALLERS 16
#include "crowd.h"
#include "moves.h"

enum {
    RUNS = 80,
    MOVES_EACH = 25000,
    TICKS_EACH = 15000, /* a world's clock ends at 16383 */
    OLD_GRANTS = 100,   /* lease numbers come again after 128 of them, */
    OLD_MOVES = 2000,   /* generations after 2048 */
};

static uint64_t seed = 4711;

struct walk {
    struct world world;
    uint32_t weights[3]; /* of the ends: neutral, success, failure */
    struct {
        unsigned long grants, moves; /* that there had been when its call began */
    } born[WORLD_CALLERS];
};

static uint32_t rnd(uint32_t below)
{
    return crowd_random(&seed, below);
}

static void draw_policy(void)
{
    uint16_t threshold = (uint16_t)rnd(21);

    policy = (struct breaker_policy){
        .failure_threshold = threshold,
        .degrade_threshold = (uint16_t)(threshold > 0 ? rnd(threshold) : rnd(4)),
        .half_open_probes = (uint8_t)(1 + rnd(rnd(2) ? 15 : 2)),
        .success_threshold = (uint8_t)(1 + rnd(rnd(2) ? 8 : 2)),
        .backoff_q8 = (uint16_t)(256 + rnd(512)),
        .jitter_q16 = (uint16_t)rnd(65536),
        .open_ticks = 1 + rnd(10),
        .open_max_ticks = rnd(60),
        .lease_ticks = 1 + rnd(30),
    };
}

static enum move draw_move(struct walk *walk, const struct caller *c)
{
    uint32_t sum = walk->weights[0] + walk->weights[1] + walk->weights[2], dice;

    if (c->at == CALLER_IDLE)
        return MOVE_ADMIT;
    if (rnd(200) == 0)
        return MOVE_CRASH;
    if (c->at != CALLER_CALLING)
        return c->lost && rnd(4) == 0 ? MOVE_DROP : MOVE_SWAP;
    dice = rnd(sum);
    if (dice < walk->weights[0])
        return MOVE_END + END_NEUTRAL;
    if (dice >= walk->weights[0] + walk->weights[1])
        return MOVE_END + END_FAILURE;
    return MOVE_END + (c->probe && !c->headed && rnd(2) ? END_HEAD : END_SUCCESS);
}

/* So old that its numbers might come again: the breaker could take it for another's. */
static bool is_ancient(const struct walk *walk, unsigned i, unsigned long moves)
{
    return walk->world.callers[i].at >= CALLER_CALLING &&
           (tally.grants - walk->born[i].grants > OLD_GRANTS ||
            moves - walk->born[i].moves > OLD_MOVES);
}

static void move_caller(struct walk *walk, unsigned long moves)
{
    unsigned i = rnd(WORLD_CALLERS);
    struct world *w = &walk->world;
    struct caller *c = &w->callers[i];
    bool waited = c->at < CALLER_CALLING;
    enum move move = is_ancient(walk, i, moves) ? MOVE_CRASH : draw_move(walk, c);
    bool reads_clock = move == MOVE_ADMIT || move >= MOVE_END;

    extra_of_end =
        (struct breaker_extra){.random = (uint16_t)rnd(65536),
                               .retry_after_ticks = rnd(4) ? 0 : rnd(WORLD_RETRY_AFTER_MAX + 1)};
    world_move(w, c, move, reads_clock && w->now > 2 ? rnd(3) : 0);
    if (waited && c->at == CALLER_CALLING) {
        walk->born[i].grants = tally.grants;
        walk->born[i].moves = moves;
    }
}

static void move_world(struct walk *walk, unsigned long moves)
{
    struct world *w = &walk->world;
    uint32_t dice = rnd(1000);
    bool forced = breaker_decode(w->word).phase >= BREAKER_FORCED_OPEN;

    if (dice < 150 && w->now < TICKS_EACH) {
        w->now = (uint16_t)(w->now + 1 + rnd(3));
    } else if (dice < 152 || (forced && dice < 300)) {
        w->operators = 1;
        step_operator(w, forced ? 3 : rnd(4));
    } else {
        move_caller(walk, moves);
    }
    check_world(w);
}

static void test_random_walks(void **state)
{
    (void)state;
    unsigned long moves = 0;

    printf("seed %llu\n", (unsigned long long)seed);
    for (unsigned run = 0; run < RUNS; run++) {
        static struct walk walk;
        walk = (struct walk){.weights = {1 + rnd(4), 1 + rnd(8), 1 + rnd(30)}};
        draw_policy();
        for (unsigned i = 0; i < MOVES_EACH; i++) {
            struct world before = walk.world;
            move_world(&walk, ++moves);
            if (broken) {
                fprintf(stderr, "law broken: %s, run %u, move %u\n", broken, run, i);
                world_print(&before);
                world_print(&walk.world);
                fail();
            }
        }
    }
    printf("%lu moves of %u callers\n", moves, WORLD_CALLERS);
    assert_true(moves >= 1000000);
    assert_true(world_met_all());
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_walks)};

    if (argc == 2)
        seed = strtoull(argv[1], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
