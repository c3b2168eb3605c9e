/*
 * process_table.c - the table that the process is attached to.
 */
#include "process_load.h"

#include "base/arena.h"
#include "base/kernel.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

/* Published: written under the loading lock with release, read by anybody with acquire. What it
 * points to never changes and is never freed. */
static _Atomic(const struct table *) table_now;
static atomic_bool table_tried; /* the first attach was made; release after table_now */
static _Atomic uint64_t
    table_looked; /* CLOCK_BOOTTIME ns; one thread wins each look by CAS; relaxed */

/* Under `loading`: memory for tables. The first ones take no mapping of their own. */
struct held {
    struct table table;
    struct held *next;
};
static struct held first_tables[4];
static unsigned first_taken;
static struct arena more_tables;
static struct held *unpublished; /* to be taken first */
static struct held *all_held;    /* that were in force once: mapped for good */

/* NULL: no memory. */
static struct held *take_table(void)
{
    struct held *held = unpublished;

    unpublished = NULL;
    if (held)
        return held;
    if (first_taken < sizeof first_tables / sizeof *first_tables)
        return &first_tables[first_taken++];
    return arena_alloc(&more_tables, sizeof *held);
}

/* One that nobody has seen, or NULL. */
static void give_back(struct held *held)
{
    if (held)
        unpublished = held;
}

/* Who goes from one user to another and back again, as often as it likes, comes back to the mapping
 * that it had. A file that is mapped keeps its number. */
static const struct table *hold(struct held *fresh)
{
    const struct table *t = &fresh->table;

    for (const struct held *held = all_held; held; held = held->next)
        if (held->table.dev == t->dev && held->table.ino == t->ino && held->table.euid == t->euid &&
            held->table.shared == t->shared) {
            table_close(&fresh->table);
            give_back(fresh);
            return &held->table;
        }
    fresh->next = all_held;
    all_held = fresh;
    return t;
}

/* Under `loading`. NULL: there is no path for it. */
static const char *table_path(const struct config *config, bool *named)
{
    const char *path = config_table_path(config);

    *named = *path != '\0';
    if (*named)
        return path;
    return table_default_path(process_path_buf, sizeof process_path_buf) == TABLE_OK
               ? process_path_buf
               : NULL;
}

/* Under `loading`. The table at `path`, in memory of its own; NULL: *error tells why. */
static const struct table *open_shared(const char *path, bool named, int *error)
{
    struct held *held = take_table();

    *error = !held ? TABLE_E_SYSTEM : path ? table_open(&held->table, path, named) : TABLE_E_PATH;
    if (*error == TABLE_OK)
        return hold(held);
    give_back(held);
    return NULL;
}

static void log_table_trouble(const struct config *config, const char *path, int error)
{
    char text[PROCESS_TROUBLE_SIZE];
    struct log_event event = {.event = "table",
                              .cause = table_is_refused(error)
                                           ? "the table was refused: every call passes"
                                           : "no shared table: this process counts alone",
                              .detail = text};

    snprintf(text, sizeof text, "table %.200s: %.100s", path ? path : "", table_strerror(error));
    process_log(config, &event);
}

/* Under `loading`. The shared table, else a private one, else NULL. */
static const struct table *attach(const struct config *config)
{
    bool named;
    int error;
    const char *path = table_path(config, &named);
    const struct table *shared = open_shared(path, named, &error);

    if (shared)
        return shared;
    log_table_trouble(config, path, error);
    struct held *held = table_is_refused(error) ? NULL : take_table();
    if (held && table_open_private(&held->table) == TABLE_OK)
        return hold(held);
    give_back(held);
    return NULL;
}

/* Keeps errno. Not inlined, nor is look(): who asks for a table that is there would save registers
 * for them. */
static __attribute__((noinline)) void attach_first(const struct config *config, uint64_t now)
{
    int saved = errno, state;

    if (!process_enter_loading(&state))
        return;
    if (!atomic_load_explicit(&table_tried, memory_order_relaxed)) {
        atomic_store_explicit(&table_now, attach(config), memory_order_release);
        atomic_store_explicit(&table_looked, now, memory_order_relaxed);
        atomic_store_explicit(&table_tried, true, memory_order_release);
    }
    process_leave_loading(state);
    errno = saved;
}

/* Under `loading`. Is it still the table that this process should use? */
static bool still_right(const struct table *table, const struct config *config)
{
    bool named;

    if (!table || !table->shared || table->euid != kernel_euid())
        return false;
    const char *path = table_path(config, &named);
    return !path || table_is_current(table, path);
}

/* Under `loading`. Is there another answer than `table`? *better, which may be NULL. */
static bool find_better(const struct table *table, const struct config *config,
                        const struct table **better)
{
    bool named;
    int error;

    if (still_right(table, config))
        return false;
    if (table &&
        table->euid != kernel_euid()) { /* not ours to use any more, whatever there is instead */
        *better = attach(config);
        return true;
    }
    const char *path = table_path(config, &named);
    *better = open_shared(path, named, &error);
    return *better != NULL;
}

/* This thread has won the look. Keeps errno. */
static __attribute__((noinline)) const struct table *look(const struct table *table,
                                                          const struct config *config)
{
    int saved = errno, state;

    if (process_try_loading(&state)) {
        if (find_better(table, config, &table))
            atomic_store_explicit(&table_now, table, memory_order_release);
        process_leave_loading(state);
    }
    errno = saved;
    return table;
}

/* One thread a second looks; `table`: what is in force. Returns what is then. */
static inline const struct table *look_at_table(const struct table *table,
                                                const struct config *config, uint64_t now)
{
    uint64_t last = atomic_load_explicit(&table_looked, memory_order_relaxed);

    if (now - last < CLOCK_NS_PER_S ||
        !atomic_compare_exchange_strong_explicit(&table_looked, &last, now, memory_order_relaxed,
                                                 memory_order_relaxed))
        return table;
    return look(table, config);
}

const struct table *process_table(const struct config *config, uint64_t now)
{
    if (!atomic_load_explicit(&table_tried, memory_order_acquire))
        attach_first(config, now);
    const struct table *table = atomic_load_explicit(&table_now, memory_order_acquire);
    /* What kept us from the shared one may have been of the moment: no descriptors, a full disk. */
    return table && table->shared ? table : look_at_table(table, config, now);
}

void process_look_at_table(const struct config *config, uint64_t now)
{
    if (atomic_load_explicit(&table_tried, memory_order_acquire))
        look_at_table(atomic_load_explicit(&table_now, memory_order_acquire), config, now);
}
