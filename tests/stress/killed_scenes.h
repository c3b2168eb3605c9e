/*
 * killed_scenes.h - what a process is killed in the middle of.
 *
 * Each scene is a real way through libshim.a or the command's objects: `before` runs in a process
 * of its own and leaves a table, `ready` in the victim, unwatched, and `act` is what is stepped
 * through.
 */
#ifndef BREAKER_TESTS_KILLED_SCENES_H
#define BREAKER_TESTS_KILLED_SCENES_H

#include "killed_calls.h"

#include "cli/cli.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

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
