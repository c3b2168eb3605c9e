/*
 * killed_calls.h - what a scene of killed_scenes.h is, and the parts of those in which calls are
 * made: to two keys, H and M.
 */
#ifndef BREAKER_TESTS_KILLED_CALLS_H
#define BREAKER_TESTS_KILLED_CALLS_H

#include "../unit/shim_fixture.h"

#include "killed_place.h"

#define SCENE_H "api.openai.com"
#define SCENE_M SCENE_H "/m"

#define SCENE_SETTINGS "failure_threshold=3\nopen_seconds=30\nprobe_lease=30\nbackoff=1\n"
/* No refusal of SCENE_SETTINGS, and no lease, is longer, a tick rounded up. */
#define SCENE_WAIT_SECONDS 30.05

enum scene_kind {
    SCENE_CREATES = 1,  /* begins without a table */
    SCENE_REPLACES = 2, /* a fresh table takes the place of the old one */
    SCENE_DISK = 4,     /* where a table outlives its boot */
    SCENE_DEFAULT = 8,  /* the path is the default one's kind, which nobody named */
    SCENE_COMMAND = 16, /* begins where the command turns to the table */
    SCENE_NAMED = 32,   /* a file has a name of its own before it has the table's */
};

struct scene {
    const char *name;
    void (*before)(void), (*ready)(void), (*act)(void);
    unsigned kind;
    double at;            /* seconds after `before` began */
    const char *settings; /* behind SCENE_SETTINGS */
};

static const struct scene *scene_now;
static const struct place *scene_place; /* of the table in hand */

/* CLOCK_BOOTTIME of each scene's beginning, always the same. */
enum { SCENE_BEGINS_SECONDS = 1000 };

/* Into a process of the scene, `seconds` after it began. */
static inline void scene_enter(const struct place *place, double seconds, const char *settings)
{
    char all[256];

    snprintf(all, sizeof all, SCENE_SETTINGS "%s", settings ? settings : "");
    scene_place = place;
    setenv("BREAKER_TABLE", place->path, 1);
    setenv("BREAKER_CONFIG", "", 1);
    setenv("BREAKER_JITTER", "0", 1);
    setenv("BREAKER_SET", all, 1);
    setenv("HOME", place->base, 1);
    shim_set_clock(&fake);
    boot = SCENE_BEGINS_SECONDS * CLOCK_NS_PER_S;
    advance(seconds);
}

static inline bool scene_is_named(void)
{
    return !(scene_now->kind & SCENE_DEFAULT);
}

static inline void scene_open_table(struct table *t)
{
    CHECK(table_open(t, scene_place->path, scene_is_named()) == TABLE_OK);
}

/* --- calls ----------------------------------------------------------------------------------- */

static struct shim_call scene_call;

static inline void ready_call(void)
{
    CHECK(open_path(&scene_call, "/v1/chat/completions") == SHIM_NEEDS_BODY);
    shim_credential(&scene_call, SPAN_LIT("a key"));
    CHECK(shim_body(&scene_call, SPAN_LIT("{\"model\":\"m\"}"), true));
}

static inline void ready_admitted(void)
{
    ready_call();
    CHECK(shim_admit(&scene_call) == SHIM_ADMITTED);
}

static inline void ready_probe(void)
{
    ready_admitted();
    CHECK(shim_is_probe(&scene_call));
}

static inline void act_admit(void)
{
    CHECK(shim_admit(&scene_call) == SHIM_ADMITTED);
}

static inline void act_succeed(void)
{
    end_status(&scene_call, 200);
}

static inline void act_fail(void)
{
    end_status(&scene_call, 500);
}

static inline void before_table(void)
{
    struct table t;

    scene_open_table(&t);
}

static inline void before_claimed(void)
{
    CHECK(call_status("m", 200) == SHIM_ADMITTED);
}

static inline void before_failures(int count)
{
    before_claimed();
    for (int i = 0; i < count; i++)
        CHECK(call_status("m", 500) == SHIM_ADMITTED);
}

static inline void before_streak(void)
{
    before_failures(1);
}

static inline void before_trip(void)
{
    before_failures(2);
}

static inline void before_open(void)
{
    before_failures(3);
}

/* Opened as if it had failed at `seconds`. */
static inline void open_by_hand(const char *key, double seconds)
{
    static const struct breaker_policy thirty = {.open_ticks = 895, .open_max_ticks = 895};
    struct slot *slot = slot_of(key);
    uint32_t when = breaker_tick(boot + (uint64_t)(seconds * 1e9));

    slot->word = breaker_trip(slot->word, when, &thirty, 0);
}

static inline void before_both_open(void)
{
    before_claimed();
    open_by_hand(SCENE_H, 0);
    open_by_hand(SCENE_M, 0);
}

static inline void act_healthy(void)
{
    act_admit();
    act_succeed();
}

static inline void ready_attached(void)
{
    CHECK(call_status("m", 200) == SHIM_ADMITTED);
    ready_call();
}

static inline void ready_attached_open(void)
{
    CHECK(call_status("m", 200) == SHIM_REFUSED);
    ready_call();
}

static inline void act_refused(void)
{
    static char answer[SHIM_RESPONSE_MAX];

    CHECK(shim_admit(&scene_call) == SHIM_REFUSED);
    shim_obeyed(&scene_call);
    CHECK(shim_response(&scene_call, answer, sizeof answer, false) > 0);
}

static inline void act_drop(void)
{
    shim_drop(&scene_call);
}

static inline void act_head(void)
{
    CHECK(shim_head(&scene_call, 200, SPAN_LIT("text/event-stream"), SPAN_NONE, 0));
}

static inline void ready_headed(void)
{
    ready_probe();
    act_head();
}

static inline void act_break(void)
{
    const struct call_end end = {
        .kind = END_BROKEN, .phase = PHASE_BODY, .status = 200, .byte_received = true};

    shim_settle(&scene_call, &end);
}

static inline void act_refused_connect(void)
{
    end_kind(&scene_call, END_CONNECT, PHASE_CONNECTING, 0.1);
}

static inline void before_connects_refused(void)
{
    before_claimed();
    for (int i = 0; i < 2; i++) {
        CHECK(chat(&scene_call, "m") == SHIM_ADMITTED);
        act_refused_connect();
    }
}

/* Its probe's process died. */
static inline void before_lost_probe(void)
{
    before_open();
    advance(31);
    ready_probe();
}

/* H's probe is admitted before the model is known. */
static inline void before_model_opens_later(void)
{
    before_claimed();
    open_by_hand(SCENE_H, 0);
    open_by_hand(SCENE_M, 20);
}

static inline void ready_without_model(void)
{
    CHECK(open_path(&scene_call, "/v1/chat/completions") == SHIM_NEEDS_BODY);
    CHECK(shim_admit(&scene_call) == SHIM_ADMITTED && shim_is_probe(&scene_call));
    CHECK(shim_body(&scene_call, SPAN_LIT("{\"model\":\"m\"}"), true));
}

static inline void act_refuse_model(void)
{
    CHECK(shim_admit_model(&scene_call) == SHIM_REFUSED);
}

static inline void act_rate_limited(void)
{
    const struct call_end end = {.kind = END_COMPLETE,
                                 .phase = PHASE_BODY,
                                 .status = 429,
                                 .byte_received = true,
                                 .retry_after_ms = 20000};

    shim_settle(&scene_call, &end);
}

#endif
