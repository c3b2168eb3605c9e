/*
 * Kill at every instruction: each scene of killed_scenes.h is stepped through, an instruction at a
 * time, and at each another process must find a table that it can use (killed_laws.h).
 *
 *   stress_step [SCENE...]     STEP_EVERY=1: by a SIGKILL at every one
 *
 * What a kill leaves is what is in the table's directory: memory of the process, its descriptors
 * and locks go with it. So one victim is stepped through and after each step the directory is
 * looked at; where it is another than before, another process is put in front of a copy. That this
 * is what a kill leaves is tested by kills: around each system call, around each store to the
 * table, and some between; a process killed there must have left the same, and the laws must hold
 * in its place.
 */
#include "killed_laws.h"
#include "killed_trace.h"

#include "crowd.h"

#include <linux/magic.h>
#include <sys/vfs.h>
#include <time.h>

/* Kills between the others: every so manieth of a scene. */
enum { KILLS_BETWEEN = 4 };
/* So often the whole table is looked at, else where the scenes' keys have their places. */
enum { WHOLE_LOOK = 64, PLACES = 4 };

struct step {
    struct trace_point point;
    bool kills; /* is to be tried by a kill */
};

/* What was left in front of which step: the n-th of `views` from step first[n] on. */
struct seen {
    struct left **views;
    unsigned long *first;
    unsigned count, room;
    struct step *path;
    unsigned long steps;
};

static struct place live, copy;
static struct trace trace;
static unsigned long points, kills, views_seen, failed_scenes;
static bool every;

/* --- looking on ------------------------------------------------------------------------------ */

static void see(struct seen *seen, struct left *left)
{
    if (seen->count == seen->room) {
        seen->room = seen->room ? 2 * seen->room : 16;
        seen->views = realloc(seen->views, seen->room * sizeof *seen->views);
        seen->first = realloc(seen->first, seen->room * sizeof *seen->first);
        place_must(seen->views && seen->first, "realloc");
    }
    seen->first[seen->count] = seen->steps;
    seen->views[seen->count++] = left;
}

/* The live table as it is mapped here; NULL: there is none. Mapped anew when it is another. */
static const void *mapped(const struct left *left)
{
    static const void *map;
    static ino_t inode;

    if (map && (!left->table || left->inode != inode)) {
        munmap((void *)(uintptr_t)map, TABLE_FILE_SIZE);
        map = NULL;
    }
    if (!map && left->table && left->size == TABLE_FILE_SIZE) {
        int fd = open(live.path, O_RDONLY | O_CLOEXEC);
        map = mmap(NULL, TABLE_FILE_SIZE, PROT_READ, MAP_SHARED, fd, 0);
        place_must(map != MAP_FAILED, "mmap");
        close(fd);
        inode = left->inode;
    }
    return map;
}

static bool is_as_seen(const struct seen *seen, const struct left *last)
{
    static const char *const keys[] = {SCENE_H, SCENE_M};
    const unsigned char *map = mapped(last);

    if (!map || seen->steps % WHOLE_LOOK == 0)
        return !map || memcmp(map, last->bytes, TABLE_FILE_SIZE) == 0;
    if (memcmp(map, last->bytes, TABLE_HEADER_SIZE) != 0)
        return false;
    for (unsigned i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct table t = {.seed = header_of(last)->hash_seed};
        uint64_t identity = table_identity(&t, span_str(keys[i]));
        for (unsigned n = 0; n < PLACES; n++) {
            uint64_t at = (identity + n * (identity >> 32 | 1)) & (TABLE_CAPACITY - 1);
            size_t offset = TABLE_HEADER_SIZE + at * TABLE_SLOT_SIZE;
            if (memcmp(map + offset, last->bytes + offset, TABLE_SLOT_SIZE) != 0)
                return false;
        }
    }
    return true;
}

static void look_again(struct seen *seen, bool after_system_call)
{
    struct left *last = seen->count > 0 ? seen->views[seen->count - 1] : NULL;

    if (last && !after_system_call && is_as_seen(seen, last))
        return;
    struct left *now = malloc(sizeof *now);
    place_must(now != NULL, "malloc");
    place_look(&live, now);
    if (last && memcmp(now, last, sizeof *now) == 0)
        free(now);
    else
        see(seen, now);
}

static void begin_scene(const struct left *before)
{
    place_put(&live, before);
    trace_start(&trace);
}

/* One victim, to its end. Kills are to be tried around each system call and after each store that
 * is seen. */
static void step_through(struct seen *seen, const struct left *before)
{
    struct step here = {.kills = true};

    begin_scene(before);
    look_again(seen, true);
    while (trace.mark->at == TRACE_WITHIN) {
        unsigned count = seen->count;
        bool system_call = trace_at_system_call(&trace);
        place_must(seen->steps < TRACE_MOST_STEPS, "a scene that ends");
        trace_step(&trace);
        struct step *step = &seen->path[seen->steps++];
        look_again(seen, system_call);
        *step = here;
        step->kills |= system_call;
        here.point.calls += system_call;
        here.point.behind = system_call ? 0 : here.point.behind + 1;
        here.kills = system_call || seen->count > count;
    }
    trace_kill(&trace);
}

/* --- judging --------------------------------------------------------------------------------- */

/* Random, and the same in nothing that matters. */
static void forget_seed(struct left *left)
{
    if (scene_now->kind & (SCENE_CREATES | SCENE_REPLACES))
        memset(left->bytes + offsetof(struct table_header, hash_seed), 0, sizeof(uint64_t));
}

static bool is_same(const struct left *one, const struct left *two)
{
    static struct left a, b;

    a = *one;
    b = *two;
    a.inode = b.inode = 0;
    forget_seed(&a);
    forget_seed(&b);
    return memcmp(&a, &b, sizeof a) == 0;
}

static bool judge_views(const struct seen *seen)
{
    for (unsigned i = 0; i < seen->count; i++) {
        laws_step = seen->first[i];
        place_put(&copy, seen->views[i]);
        if (!laws_hold(&copy, seen->views[i], seen->views[0], seen->views[seen->count - 1]))
            return false;
    }
    return true;
}

/* Kills a process in front of the step, and compares. `judges`: also asks another process, as of
 * the same bytes it was asked already. */
static bool kill_at(const struct seen *seen, unsigned view, const struct left *before,
                    unsigned long step, bool judges)
{
    static struct left left;

    begin_scene(before);
    trace_go(&trace, seen->path[step].point);
    trace_kill(&trace);
    kills++;
    place_look(&live, &left);
    laws_step = step;
    if (!is_same(&left, seen->views[view])) {
        fprintf(stderr, "law broken: a kill leaves what was seen (%s, instruction %lu)\n",
                scene_now->name, step);
        return false;
    }
    return !judges || laws_hold(&live, &left, seen->views[0], seen->views[seen->count - 1]);
}

static bool judge_kills(const struct seen *seen, const struct left *before)
{
    unsigned long between = seen->steps / KILLS_BETWEEN + 1;
    unsigned view = 0;

    for (unsigned long step = 0; step < seen->steps; step++) {
        while (view + 1 < seen->count && seen->first[view + 1] <= step)
            view++;
        bool judges = seen->path[step].kills || step % between == 0;
        if ((every || judges) && !kill_at(seen, view, before, step, judges))
            return false;
    }
    return true;
}

/* --- scenes ---------------------------------------------------------------------------------- */

static void prepare_before(void)
{
    scene_enter(&live, 0, scene_now->settings);
    if (scene_now->before)
        scene_now->before();
}

static void begin_command(void)
{
    trace_begin(&trace);
}

static void enter_as_victim(void)
{
    scene_enter(&live, scene_now->at, scene_now->settings);
    if (trace.begins_later)
        scene_command_begins = begin_command;
    if (scene_now->ready)
        scene_now->ready();
}

static void leave_before(struct left *before)
{
    place_clear(&live);
    if (!(scene_now->kind & SCENE_CREATES))
        place_must(mkdir(live.dir, 0700) == 0 && child_ends_well(prepare_before), scene_now->name);
    place_look(&live, before);
}

static void play(void)
{
    static struct left before;
    struct seen seen = {.path = calloc(TRACE_MOST_STEPS, sizeof *seen.path)};
    unsigned long killed = kills;

    place_must(seen.path != NULL, "calloc");
    leave_before(&before);
    trace.ready = enter_as_victim;
    trace.act = scene_now->act;
    trace.begins_later = scene_now->kind & SCENE_COMMAND;
    step_through(&seen, &before);
    bool good = judge_views(&seen) && judge_kills(&seen, &before);
    printf("   %-24s %6lu instructions, %3u states, %5lu kills%s\n", scene_now->name, seen.steps,
           seen.count, kills - killed, good ? "" : ": FAILED");
    fflush(stdout);
    points += seen.steps;
    views_seen += seen.count;
    failed_scenes += !good;
    for (unsigned i = 0; i < seen.count; i++)
        free(seen.views[i]);
    free(seen.views);
    free(seen.first);
    free(seen.path);
}

static bool is_tmpfs(const char *path)
{
    struct statfs fs;

    return statfs(path, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

static void play_at(const struct scene *scene)
{
    bool disk = scene->kind & SCENE_DISK;
    const char *where = disk ? "/var/tmp" : access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";

    if (disk && is_tmpfs(where)) {
        printf("   %-24s SKIPPED: no table outlives its boot on a tmpfs, which %s is\n",
               scene->name, where);
        return;
    }
    scene_now = scene;
    place_make(&live, where);
    place_make(&copy, where);
    play();
    place_remove(&live);
    place_remove(&copy);
}

static bool is_wanted(const struct scene *scene, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], scene->name) == 0)
            return true;
    return argc == 1;
}

int main(int argc, char **argv)
{
    const char *knob = getenv("STEP_EVERY");
    uint64_t began = __real_clock_system.mono_ns();

    if (!trace_is_allowed()) {
        puts("   SKIPPED: no process may trace its child here");
        return 0;
    }
    every = knob && strcmp(knob, "1") == 0;
    trace.mark = crowd_shared(sizeof *trace.mark);
    place_must(trace.mark != NULL, "mmap");
    for (unsigned i = 0; i < sizeof scenes / sizeof *scenes; i++)
        if (is_wanted(&scenes[i], argc, argv))
            play_at(&scenes[i]);
    printf("   %lu instructions, %lu states, %lu kills in %.1f s\n", points, views_seen, kills,
           (double)(__real_clock_system.mono_ns() - began) / 1e9);
    return failed_scenes > 0 || points == 0;
}
