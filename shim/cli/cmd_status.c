#include "cli/cli.h"

#include "base/clock.h"
#include "http/outcome.h"
#include "table/slot.h"

#include <inttypes.h>
#include <stdlib.h>

enum { KEY_JSON = 'j' };

struct status {
    struct cli_settings settings;
    bool json;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct status *status = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &status->settings;
        return 0;
    case KEY_JSON:
        status->json = true;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "expected no argument, found '%s'", arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"json", KEY_JSON, NULL, 0, "print one JSON object", 0},
    {0},
};
static const struct argp_child children[] = {{&cli_settings_argp, 0, NULL, 0}, {0}};
static const struct argp status_argp = {
    .options = options,
    .parser = parse,
    .doc = "Show every breaker as all processes of this user see it. Changes nothing.",
    .children = children,
};

/* One breaker, read once, so that all of its line is of one moment. */
struct row {
    char key[TABLE_KEY_TEXT_SIZE];
    struct breaker_effective effective;
    uint64_t retry_in_ms;
    uint64_t opened;
    struct slot_totals totals;
    bool failed; /* last_failure and its age are known */
    unsigned cause, status;
    uint64_t age_ms;
};

static void read_row(const struct cli_context *context, const struct slot *slot, uint64_t now,
                     struct row *row)
{
    struct policy policy;

    cli_context_policy(context, span_of(row->key, table_key_read(slot, row->key, sizeof row->key)),
                       &policy);
    row->effective = breaker_effective(slot_word(slot), breaker_tick(now), &policy.breaker);
    row->retry_in_ms = breaker_tick_ns(row->effective.wait_ticks) / CLOCK_NS_PER_MS;
    row->opened = atomic_load_explicit(&slot->opened, memory_order_relaxed);
    row->totals = slot_totals(slot);
    uint64_t failed_at = atomic_load_explicit(&slot->last_failure_ns, memory_order_relaxed);
    uint32_t failure = atomic_load_explicit(&slot->last_failure, memory_order_relaxed);
    row->failed = failed_at != 0;
    row->cause = failure >> 16;
    row->status = failure & 0xffff;
    row->age_ms = now > failed_at ? (now - failed_at) / CLOCK_NS_PER_MS : 0;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct row *)a)->key, ((const struct row *)b)->key);
}

/* The rows of the table in the order of their keys; malloc'ed, NULL: no memory. */
static struct row *read_rows(const struct cli_context *context, size_t *count)
{
    const struct slot *slots = context->table.slots;
    struct row *rows = calloc(TABLE_CAPACITY, sizeof *rows);
    uint64_t now = clock_system.boot_ns();

    *count = 0;
    if (!rows || !slots)
        return rows;
    for (unsigned i = 0; i < TABLE_CAPACITY; i++)
        if (atomic_load_explicit(&slots[i].identity, memory_order_acquire) != 0)
            read_row(context, &slots[i], now, &rows[(*count)++]);
    qsort(rows, *count, sizeof *rows, by_key);
    return rows;
}

static uint64_t table_full_count(const struct cli_context *context)
{
    const struct table_header *header = context->table.header;

    return header ? atomic_load_explicit(&header->table_full, memory_order_relaxed) : 0;
}

/* --- JSON ------------------------------------------------------------------------------------ */

static void print_json_row(const struct row *row)
{
    struct span host, model;

    cli_key_split(span_str(row->key), &host, &model);
    fputs("{\"key\":", stdout);
    cli_text_json(stdout, span_str(row->key));
    printf(",\"level\":\"%s\",\"host\":", model.ptr ? "model" : "host");
    cli_text_json(stdout, host);
    fputs(",\"model\":", stdout);
    if (model.ptr)
        cli_text_json(stdout, model);
    else
        fputs("null", stdout);
    printf(",\"state\":\"%s\",\"streak\":%u,\"generation\":%u,\"retry_in_ms\":%" PRIu64
           ",\"opened\":%" PRIu64,
           breaker_state_name(row->effective.state), row->effective.streak,
           row->effective.generation, row->retry_in_ms, row->opened);
    printf(",\"calls\":{\"success\":%" PRIu64 ",\"failure\":%" PRIu64 ",\"neutral\":%" PRIu64
           ",\"refused\":%" PRIu64 ",\"rerouted\":%" PRIu64 "},\"last_failure\":",
           row->totals.success, row->totals.failure, row->totals.neutral, row->totals.refused,
           row->totals.rerouted);
    if (row->failed)
        printf("{\"class\":\"%s\",\"status\":%u,\"age_ms\":%" PRIu64 "}}",
               outcome_cause_name((enum outcome_cause)row->cause), row->status, row->age_ms);
    else
        fputs("null}", stdout);
}

static void print_json(const struct cli_context *context, const struct row *rows, size_t count)
{
    fputs("{\"version\":\"" BREAKER_VERSION "\",\"table\":{\"path\":", stdout);
    cli_text_json(stdout, span_str(context->path));
    printf(",\"layout\":%d,\"capacity\":%d,\"used\":%zu,\"full\":%" PRIu64 "},\n \"breakers\":[",
           TABLE_LAYOUT, TABLE_CAPACITY, count, table_full_count(context));
    for (size_t i = 0; i < count; i++) {
        fputs(i ? ",\n  " : "\n  ", stdout);
        print_json_row(&rows[i]);
    }
    puts(count ? "\n]}" : "]}");
}

/* --- for people --------------------------------------------------------------------------------
 */

enum { COLUMNS = 9, CELL_SIZE = 4 * TABLE_KEY_TEXT_SIZE };
struct line {
    char cell[COLUMNS][CELL_SIZE];
};

static const char *const titles[COLUMNS] = {"KEY",  "STATE",   "STREAK",  "RETRY-IN",    "OK",
                                            "FAIL", "NEUTRAL", "REFUSED", "LAST-FAILURE"};

static bool is_number(int column)
{
    return column >= 2 && column <= 7;
}

static void write_count(char *cell, uint64_t count)
{
    snprintf(cell, CELL_SIZE, "%" PRIu64, count);
}

static void write_failure(char *cell, const struct row *row)
{
    char age[32], status[16] = "";

    if (!row->failed) {
        strcpy(cell, "-");
        return;
    }
    if (row->status)
        snprintf(status, sizeof status, " %u", row->status);
    snprintf(cell, CELL_SIZE, "%s%s, %s ago", outcome_cause_name((enum outcome_cause)row->cause),
             status, cli_text_duration(row->age_ms, age, sizeof age));
}

static void write_line(struct line *line, const struct row *row)
{
    bool due = row->effective.state == BREAKER_SHOW_OPEN && row->effective.wait_ticks == 0;

    cli_text_safe(span_str(row->key), line->cell[0], CELL_SIZE);
    snprintf(line->cell[1], CELL_SIZE, "%s%s", breaker_state_name(row->effective.state),
             due ? ", probe due" : "");
    write_count(line->cell[2], row->effective.streak);
    if (row->retry_in_ms)
        cli_text_duration(row->retry_in_ms, line->cell[3], CELL_SIZE);
    else
        strcpy(line->cell[3], due ? "now" : "-");
    write_count(line->cell[4], row->totals.success);
    write_count(line->cell[5], row->totals.failure);
    write_count(line->cell[6], row->totals.neutral);
    write_count(line->cell[7], row->totals.refused);
    write_failure(line->cell[8], row);
}

static void print_line(const struct line *line, const size_t *widths)
{
    for (int i = 0; i < COLUMNS; i++) {
        int pad = (int)(widths[i] - cli_text_width(line->cell[i]));
        bool last = i == COLUMNS - 1;
        if (is_number(i))
            printf("%*s%s", pad, "", line->cell[i]);
        else
            printf("%s%*s", line->cell[i], last ? 0 : pad, "");
        fputs(last ? "\n" : "  ", stdout);
    }
}

/* False: no memory. */
static bool print_text(const struct cli_context *context, const struct row *rows, size_t count)
{
    struct line *lines = calloc(count + 1, sizeof *lines);
    size_t widths[COLUMNS] = {0};

    if (!lines)
        return false;
    for (int i = 0; i < COLUMNS; i++)
        strcpy(lines[0].cell[i], titles[i]);
    for (size_t i = 0; i < count; i++)
        write_line(&lines[i + 1], &rows[i]);
    for (size_t i = 0; i <= count; i++)
        for (int j = 0; j < COLUMNS; j++)
            if (cli_text_width(lines[i].cell[j]) > widths[j])
                widths[j] = cli_text_width(lines[i].cell[j]);
    for (size_t i = 0; i <= count; i++)
        print_line(&lines[i], widths);
    free(lines);
    uint64_t full = table_full_count(context);
    if (full)
        printf("%" PRIu64
               " times there was no room for a key, and its call passed uncounted; `breaker reset "
               "--all` makes a fresh table\n",
               full);
    return true;
}

static int show(struct cli_context *context, bool json)
{
    size_t count;
    int error = cli_context_attach(context, false);

    if (error != TABLE_OK && error != TABLE_E_ABSENT)
        return CLI_WRONG;
    if (error == TABLE_E_ABSENT)
        cli_text_complain("no table at %s yet", context->path);
    if (cli_disabled())
        cli_text_complain("%s: nothing that is started here is covered", cli_disabled());
    struct row *rows = read_rows(context, &count);
    bool done = rows != NULL;
    if (done && json)
        print_json(context, rows, count);
    else if (done)
        done = print_text(context, rows, count);
    if (!done)
        cli_text_complain("out of memory");
    free(rows);
    return done ? CLI_OK : CLI_WRONG;
}

int cmd_status(int argc, char **argv)
{
    struct status status = {0};
    struct cli_context context;

    if (argp_parse(&status_argp, argc, argv, 0, NULL, &status) != 0)
        return CLI_USAGE;
    int code = cli_settings_apply(&status.settings);
    if (code == CLI_OK)
        code = cli_context_open(&context);
    if (code != CLI_OK)
        return code;
    code = show(&context, status.json);
    cli_context_close(&context);
    return code;
}
