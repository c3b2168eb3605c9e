/*
 * killed_scenes.h - what a process is killed in the middle of.
 *
 * Each scene is a real way through libshim.a or the command's objects: `before` runs in a process
 * of its own and leaves a table, `ready` in the victim, unwatched, and `act` is what is stepped
 * through. Calls go to two keys, H and M.
 */
#ifndef BREAKER_TESTS_KILLED_SCENES_H
#define BREAKER_TESTS_KILLED_SCENES_H

#include "../unit/shim_fixture.h"

#include "cli/cli.h"
#include "killed_place.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

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

/* --- the table's file ------------------------------------------------------------------------ */

static inline void act_open_table(void)
{
    static struct table t;

    scene_open_table(&t);
}

static inline void ready_umask(void)
{
    umask(0777);
}

/* A system call that does not work here, always or (`flags`) with its fifth argument. */
static inline void forbid_linkat(unsigned flags, unsigned error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_linkat, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[4])),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, flags, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};

    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static inline void ready_without_proc(void)
{
    forbid_linkat(AT_SYMLINK_FOLLOW, ENOENT);
}

static inline void ready_without_links(void)
{
    forbid_linkat(0, EPERM);
}

static inline void act_replace(void)
{
    CHECK(table_replace(scene_place->path, true) == TABLE_OK);
}

static inline void before_another_boot(void)
{
    struct table t;

    before_open();
    scene_open_table(&t);
    t.header->boot_id[0] ^= 1;
}

/* M's walk finds its first place taken. */
static inline void before_collision(void)
{
    struct table t;
    uint64_t wanted, taken;

    scene_open_table(&t);
    wanted = table_identity(&t, SPAN_LIT(SCENE_M));
    taken = wanted + TABLE_CAPACITY;
    CHECK(table_claim(&t, taken, SPAN_LIT("another"), true) ==
          &t.slots[wanted & (TABLE_CAPACITY - 1)]);
}

/* --- the command -------------------------------------------------------------------------------
 * Linked so that its clock is the fake one, and that it comes by here when it has read its
 * configuration (--wrap in the Makefile). */

extern const struct clock_ops __wrap_clock_system, __real_clock_system;
const struct clock_ops __wrap_clock_system = {fake_boot, fake_mono, fake_wall};

int __real_table_attach(struct table *out, const char *path, bool named);
int __wrap_table_attach(struct table *out, const char *path, bool named);
int __real_table_open(struct table *out, const char *path, bool named);
int __wrap_table_open(struct table *out, const char *path, bool named);

static void (*scene_command_begins)(void);

static inline void turn_to_table(void)
{
    void (*begins)(void) = scene_command_begins;

    scene_command_begins = NULL;
    if (begins)
        begins();
}

int __wrap_table_attach(struct table *out, const char *path, bool named)
{
    turn_to_table();
    return __real_table_attach(out, path, named);
}

int __wrap_table_open(struct table *out, const char *path, bool named)
{
    turn_to_table();
    return __real_table_open(out, path, named);
}

static inline void ready_command(void)
{
    CHECK(freopen("/dev/null", "w", stdout));
}

static inline void act_trip(void)
{
    CHECK(cli_operate(CLI_TRIP, SCENE_M, true) == CLI_OK);
}

static inline void act_force_open(void)
{
    CHECK(cli_operate(CLI_FORCE_OPEN, SCENE_M, false) == CLI_OK);
}

static inline void act_force_closed(void)
{
    CHECK(cli_operate(CLI_FORCE_CLOSED, SCENE_M, false) == CLI_OK);
}

static inline void before_cooled_down(void)
{
    before_claimed();
    ready_admitted();
    act_rate_limited();
}

static inline void act_reset(void)
{
    CHECK(cli_operate(CLI_RESET, SCENE_M, false) == CLI_OK);
}

static inline void act_reset_all(void)
{
    static char *arguments[] = {"breaker reset", "--all", NULL};

    CHECK(cmd_reset(2, arguments) == CLI_OK);
}

#define SCENE_RATE "failure_threshold=0\nfailure_rate=0.5\nmin_calls=4\n"

static const struct scene scenes[] = {
    {"first admission", NULL, ready_call, act_admit, SCENE_CREATES, 0, NULL},
    {"attach", before_claimed, ready_call, act_admit, 0, 0, NULL},
    {"create", NULL, ready_umask, act_open_table, SCENE_CREATES | SCENE_DEFAULT, 0, NULL},
    {"create without proc", NULL, ready_without_proc, act_open_table, SCENE_CREATES | SCENE_NAMED,
     0, NULL},
    {"create without links", NULL, ready_without_links, act_open_table, SCENE_CREATES | SCENE_NAMED,
     0, NULL},
    {"another boot", before_another_boot, NULL, act_open_table,
     SCENE_REPLACES | SCENE_DISK | SCENE_NAMED, 0, NULL},
    {"replace", before_open, NULL, act_replace, SCENE_REPLACES | SCENE_NAMED, 0, NULL},
    {"claim", before_table, ready_admitted, act_succeed, 0, 0, NULL},
    {"claim and fail", before_table, ready_admitted, act_fail, 0, 0, NULL},
    {"claim past another", before_collision, ready_admitted, act_fail, 0, 0, NULL},
    {"healthy", before_claimed, ready_attached, act_healthy, 0, 0, NULL},
    {"failure", before_claimed, ready_admitted, act_fail, 0, 1, NULL},
    {"streak", before_streak, ready_admitted, act_fail, 0, 1, NULL},
    {"streak ends", before_trip, ready_admitted, act_succeed, 0, 1, NULL},
    {"trip", before_trip, ready_admitted, act_fail, 0, 1, NULL},
    {"trip of the host", before_connects_refused, ready_admitted, act_refused_connect, 0, 1, NULL},
    {"trip by share", before_trip, ready_admitted, act_fail, 0, 1, SCENE_RATE},
    {"refusal", before_open, ready_attached_open, act_refused, 0, 1, NULL},
    {"grant", before_open, ready_call, act_admit, 0, 31, NULL},
    {"two grants", before_both_open, ready_call, act_admit, 0, 31, NULL},
    {"grant of a lost lease", before_lost_probe, ready_call, act_admit, 0, 62, NULL},
    {"probe succeeds", before_both_open, ready_probe, act_succeed, 0, 31, NULL},
    {"probe fails", before_open, ready_probe, act_fail, 0, 31, NULL},
    {"probe handed back", before_both_open, ready_probe, act_drop, 0, 31, NULL},
    {"model refused late", before_model_opens_later, ready_without_model, act_refuse_model, 0, 31,
     NULL},
    {"head closes", before_open, ready_probe, act_head, 0, 31, NULL},
    {"stream proves its head", before_open, ready_headed, act_succeed, 0, 31, NULL},
    {"stream breaks", before_open, ready_headed, act_break, 0, 31, NULL},
    {"cool-down", before_claimed, ready_admitted, act_rate_limited, 0, 1, NULL},
    {"breaker trip", before_table, ready_command, act_trip, SCENE_COMMAND, 0, NULL},
    {"breaker force open", before_claimed, ready_command, act_force_open, SCENE_COMMAND, 0, NULL},
    {"breaker force closed", before_open, ready_command, act_force_closed, SCENE_COMMAND, 0, NULL},
    {"breaker reset", before_cooled_down, ready_command, act_reset, SCENE_COMMAND, 0, NULL},
    {"breaker reset --all", before_open, ready_command, act_reset_all,
     SCENE_COMMAND | SCENE_REPLACES | SCENE_NAMED, 0, NULL},
};

#endif
