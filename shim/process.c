#include "process_load.h"

#include "base/kernel.h"
#include "base/span.h"
#include "environment.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

const struct clock_ops *process_clock = &clock_system;

/* What the file at the configuration's path looked like when it was last read. */
struct file_stamp {
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec mtime, ctime;
};

/* Guards loading: everything down to `load_anew`, and what process_load.h shows. Never held
 * across a call of the application. */
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static struct file_stamp stamp; /* all-zero: no file */
static bool load_anew;          /* the last load met passing trouble: not the file's own */
static pthread_once_t atfork_once = PTHREAD_ONCE_INIT;

/*
 * Published objects: written under `loading` with release, read by anybody with acquire. Once
 * non-NULL they never become NULL again, and what they point to never changes.
 */
static _Atomic(const struct config *) config_now;
static atomic_bool config_tried; /* the first load was made; release after config_now */

/* Times of the last looks, CLOCK_BOOTTIME ns. One thread wins each look by CAS; relaxed. */
static _Atomic uint64_t config_looked;
static _Atomic uint64_t suspended_known;
static _Atomic unsigned epoch;
static unsigned first_epoch; /* of this process; written in the child of a fork alone */

void process_begin_epoch(void)
{
    atomic_fetch_add_explicit(&epoch, 1, memory_order_relaxed);
}

bool process_had_epoch(unsigned of)
{
    return of - first_epoch <= process_epoch() - first_epoch;
}

static void child_after_fork(void)
{
    /* The thread that held it does not exist here; what it guards is published whole or not. */
    pthread_mutex_init(&loading, NULL);
    process_begin_epoch();
    first_epoch = process_epoch();
}

char process_path_buf[PROCESS_PATH_SIZE];

/* Before anybody can hold the lock: a fork in between would copy it locked, with nobody to make it
 * new in the child. */
static void register_atfork(void)
{
    pthread_atfork(NULL, NULL, child_after_fork);
}

/* Is this thread loading? Then a signal handler of its own asks in the middle of it, and would wait
 * for itself. */
static __thread bool at_it __attribute__((tls_model("initial-exec")));

static bool begin_loading(int *state)
{
    if (at_it || process_fenced())
        return false;
    pthread_once(&atfork_once, register_atfork);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, state);
    at_it = true;
    atomic_signal_fence(memory_order_seq_cst);
    return true;
}

static void end_loading(int state)
{
    atomic_signal_fence(memory_order_seq_cst);
    at_it = false;
    pthread_setcancelstate(state, NULL);
}

void process_leave_loading(int state)
{
    pthread_mutex_unlock(&loading);
    end_loading(state);
}

bool process_enter_loading(int *state)
{
    if (!begin_loading(state))
        return false;
    pthread_mutex_lock(&loading);
    return true;
}

bool process_try_loading(int *state)
{
    if (!begin_loading(state))
        return false;
    if (pthread_mutex_trylock(&loading) == 0)
        return true;
    end_loading(*state);
    return false;
}

void process_capture_environment(void)
{
    environment_get();
    pthread_once(&atfork_once, register_atfork);
}

bool process_disabled(void)
{
    return environment_get()->disabled;
}

unsigned process_epoch(void)
{
    return atomic_load_explicit(&epoch, memory_order_relaxed);
}

uint64_t process_suspended_known(void)
{
    return atomic_load_explicit(&suspended_known, memory_order_relaxed);
}

uint64_t process_suspended_now(void)
{
    uint64_t mono = process_clock->mono_ns(); /* first: a preemption in between only adds */
    uint64_t boot = process_clock->boot_ns();
    return boot > mono ? boot - mono : 0;
}

void process_log(const struct config *config, const struct log_event *event)
{
    const char *path = config ? config_log_path(config) : "";

    if (*path && !process_fenced())
        log_write(path, event, process_clock->wall_ms());
}

/* --- configuration ------------------------------------------------------------------------- */

static struct file_stamp stamp_of(const char *path)
{
    struct stat st;

    if (!path || kernel_stat(path, &st) != 0)
        return (struct file_stamp){0};
    return (struct file_stamp){.dev = st.st_dev,
                               .ino = st.st_ino,
                               .size = st.st_size,
                               .mtime = st.st_mtim,
                               .ctime = st.st_ctim};
}

static bool same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool same_stamp(const struct file_stamp *a, const struct file_stamp *b)
{
    return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
           same_time(a->mtime, b->mtime) && same_time(a->ctime, b->ctime);
}

#define MILD_LOGGED_MAX 8 /* of the problems that leave the configuration good */

/* The first problem of a load that leaves none good, for the log, and whether any is one that
 * stays. */
struct load_trouble {
    char text[PROCESS_TROUBLE_SIZE];
    bool lasting;
    unsigned mild;
};

/* Under the lock. Which log they are for is known when all is read; not on the stack, as paths. */
static struct {
    char text[PROCESS_TROUBLE_SIZE];
    bool warning;
} mild[MILD_LOGGED_MAX];

static void write_problem(const struct config_problem *problem, char text[PROCESS_TROUBLE_SIZE])
{
    char line[16] = "";

    if (problem->line)
        snprintf(line, sizeof line, ":%u", problem->line);
    snprintf(text, PROCESS_TROUBLE_SIZE, "%.130s%s: %.40s: %.120s", problem->file, line,
             problem->key, problem->text);
}

static void note_problem(const struct config_problem *problem, void *data)
{
    struct load_trouble *found = data;

    if (!problem->skipped && !problem->warning) {
        found->lasting |= !problem->passing;
        if (!*found->text)
            write_problem(problem, found->text);
    } else if (found->mild < MILD_LOGGED_MAX) {
        mild[found->mild].warning = problem->warning;
        write_problem(problem, mild[found->mild++].text);
    }
}

/*
 * Where trouble with the configuration is told when no configuration is good: the log that the
 * environment names, if it does.
 */
static const char *log_of_environment(void)
{
    for (const char *const *entry = environment_get()->all; *entry; entry++)
        if (span_starts(span_str(*entry), SPAN_LIT("BREAKER_LOG=")))
            return *entry + sizeof "BREAKER_LOG=" - 1;
    return "";
}

static void log_config_trouble(const char *text)
{
    const struct config *good = atomic_load_explicit(&config_now, memory_order_acquire);
    const char *path = good ? config_log_path(good) : log_of_environment();
    struct log_event event = {
        .event = "config",
        .cause = good ? "bad at reload: the last stays" : "bad at first load: every call passes",
        .detail = text,
    };

    if (*path)
        log_write(path, &event, process_clock->wall_ms());
}

static void log_mild_trouble(const struct config *config, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct log_event event = {
            .event = "config",
            .cause = mild[i].warning ? "of little use" : "left out, the rest is in force",
            .detail = mild[i].text,
        };
        process_log(config, &event);
    }
}

static const char *config_path(char *buf, size_t size)
{
    const struct environment *env = environment_get();
    bool named;

    return config_find(env->config, env->home, buf, size, &named);
}

/* Under `loading`. */
static void load_config(void)
{
    struct load_trouble found = {.lasting = false};
    const char *path = config_path(process_path_buf, sizeof process_path_buf);
    struct config_source source = {
        .path = path, .set = environment_get()->set, .environ = environment_get()->all};

    stamp = stamp_of(path); /* before reading: an edit in between shows at the next look */
    struct config *config = config_load(&source, note_problem, &found);
    load_anew = !config && !found.lasting;
    if (!config) {
        log_config_trouble(found.text);
        return;
    }
    atomic_store_explicit(&config_now, config, memory_order_release);
    log_mild_trouble(config, found.mild);
}

/* One thread a second looks at the file, and at the table's; the others go on with what is there.
 */
static void look_at_config(uint64_t now)
{
    uint64_t last = atomic_load_explicit(&config_looked, memory_order_relaxed);
    int state;

    if (now - last < CLOCK_NS_PER_S ||
        !atomic_compare_exchange_strong_explicit(&config_looked, &last, now, memory_order_relaxed,
                                                 memory_order_relaxed))
        return;
    atomic_store_explicit(&suspended_known, process_suspended_now(), memory_order_relaxed);
    if (!process_try_loading(&state))
        return;
    struct file_stamp found = stamp_of(config_path(process_path_buf, sizeof process_path_buf));
    if (load_anew || !same_stamp(&found, &stamp))
        load_config();
    process_leave_loading(state);
    /* Who is well asks nothing of the table that would tell that it is another one by now. */
    const struct config *config = atomic_load_explicit(&config_now, memory_order_acquire);
    if (config)
        process_look_at_table(config, now);
}

static void first_load(uint64_t now)
{
    int state;

    if (!process_enter_loading(&state))
        return;
    if (!atomic_load_explicit(&config_tried, memory_order_relaxed)) {
        atomic_store_explicit(&suspended_known, process_suspended_now(), memory_order_relaxed);
        load_config();
        atomic_store_explicit(&config_looked, now, memory_order_relaxed);
        atomic_store_explicit(&config_tried, true, memory_order_release);
    }
    process_leave_loading(state);
}

const struct config *process_config(uint64_t now)
{
    int saved = errno;

    if (!atomic_load_explicit(&config_tried, memory_order_acquire))
        first_load(now);
    else
        look_at_config(now);
    errno = saved;
    return atomic_load_explicit(&config_now, memory_order_acquire);
}

/* Reads the one option without attaching anything: dlopen runs long before the first call. */
bool process_mask_deepbind(void)
{
    if (process_disabled())
        return false;
    const struct config *config = process_config(process_clock->boot_ns());
    return !config || config_deepbind(config) == DEEPBIND_MASK;
}
