/*
 * flow_model.h - what test_flow_model.c is made of: chance by a seed, and a plain reckoning of what
 * is to be counted of each key; on shim_fixture.h.
 */
#ifndef BREAKER_TESTS_FLOW_MODEL_H
#define BREAKER_TESTS_FLOW_MODEL_H

#include "shim_fixture.h"

#include "shim_flow.h"
#include "table/slot.h"

#define ROUNDS      150
#define STEPS       600
#define CONNECTIONS 3
#define REQUESTS    10
#define MODELS      4
#define THRESHOLD   5
#define TEXT_MAX    40000

static uint64_t seed, state;

static inline unsigned upto(unsigned bound) /* 0..bound-1 */
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (unsigned)((state >> 20) % bound);
}

static inline bool one_in(unsigned n)
{
    return upto(n) == 0;
}

/* --- what is to be counted -----------------------------------------------------------------------
 */

#define KEYS 64
struct reckoned {
    char key[96];
    unsigned success, failure, neutral, refused;
    unsigned streak;
    uint64_t streak_began;
    bool open;
};
static struct reckoned reckoned[KEYS];

static inline struct reckoned *of_key(const char *key)
{
    unsigned i = 0;

    for (; i < KEYS && reckoned[i].key[0]; i++)
        if (strcmp(reckoned[i].key, key) == 0)
            return &reckoned[i];
    CHECK(i < KEYS && strlen(key) < sizeof reckoned[i].key);
    strcpy(reckoned[i].key, key);
    return &reckoned[i];
}

enum said { SUCCESS, FAILURE, NEUTRAL };

static inline enum said of_status(unsigned status)
{
    return status == 500 ? FAILURE : status == 400 ? NEUTRAL : SUCCESS;
}

/* What began before a row of failures does not end it. */
static inline void count(struct reckoned *at, enum said said, uint64_t admitted)
{
    if (said == SUCCESS) {
        at->success++;
        if (admitted >= at->streak_began)
            at->streak = 0;
    } else if (said == FAILURE) {
        at->failure++;
        if (at->streak == 0)
            at->streak_began = boot;
        at->open |= ++at->streak == THRESHOLD;
    } else {
        at->neutral++;
    }
}

static inline void compare(void)
{
    static struct table table;
    static const struct slot_totals none;
    static bool open;

    open = open || table_open(&table, getenv("BREAKER_TABLE"), true) == TABLE_OK;
    for (unsigned i = 0; i < KEYS && reckoned[i].key[0] && open; i++) {
        struct reckoned *at = &reckoned[i];
        struct slot *slot = table_find(&table, table_identity(&table, span_str(at->key)));
        struct slot_totals found = slot ? slot_totals(slot) : none;
        if (found.success == at->success && found.failure == at->failure &&
            found.neutral == at->neutral && found.refused == at->refused)
            continue;
        fprintf(stderr, "%s: %u %u %u %u reckoned, counted %u %u %u %u\n", at->key, at->success,
                at->failure, at->neutral, at->refused, (unsigned)found.success,
                (unsigned)found.failure, (unsigned)found.neutral, (unsigned)found.refused);
        CHECK(!"the same");
    }
}

#endif
