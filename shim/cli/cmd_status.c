#include "cli/cli.h"

#include "base/clock.h"

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

struct row {
    char key[TABLE_KEY_TEXT_SIZE];
    struct cli_row of;
};

static void read_row(const struct cli_context *context, const struct slot *slot, uint64_t now,
                     struct row *row)
{
    struct policy policy;

    cli_context_policy(context, span_of(row->key, table_key_read(slot, row->key, sizeof row->key)),
                       &policy);
    cli_row_read(slot, &policy, now, &row->of);
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

static void print_json_row(const struct cli_context *context, const struct row *row)
{
    putchar('{');
    cli_row_json_key(span_str(row->key));
    putchar(',');
    cli_row_json_state(&context->table, &row->of);
    putchar('}');
}

static void print_json(const struct cli_context *context, const struct row *rows, size_t count)
{
    fputs("{\"version\":\"" BREAKER_VERSION "\",\"table\":{\"path\":", stdout);
    cli_text_json(stdout, span_str(context->path));
    printf(",\"layout\":%d,\"capacity\":%d,\"used\":%zu,\"full\":%" PRIu64 "},\n \"breakers\":[",
           TABLE_LAYOUT, TABLE_CAPACITY, count, table_full_count(context));
    for (size_t i = 0; i < count; i++) {
        fputs(i ? ",\n  " : "\n  ", stdout);
        print_json_row(context, &rows[i]);
    }
    puts(count ? "\n]}" : "]}");
}

/* --- for people --------------------------------------------------------------------------------
 */

enum { COLUMNS = 11, RATE = 9, CELL_SIZE = 4 * TABLE_KEY_TEXT_SIZE };
struct line {
    char cell[COLUMNS][CELL_SIZE];
};

/* RATE where any key has a failure_rate. And, where any call was rerouted, REROUTED-TO. */
static const char *const titles[COLUMNS] = {
    "KEY",     "STATE",   "STREAK",   "RETRY-IN", "OK",           "FAIL",
    "NEUTRAL", "REFUSED", "REROUTED", "RATE",     "LAST-FAILURE",
};

static bool is_number(int column)
{
    return column >= 2 && column <= 8;
}

static void write_count(char *cell, uint64_t count)
{
    snprintf(cell, CELL_SIZE, "%" PRIu64, count);
}

/* "closed, 2 cooling down (17s)" */
static void write_state(const struct cli_row *row, char *cell)
{
    char parked[64] = "", longest[32], who[16];

    if (row->parked)
        snprintf(parked, sizeof parked, ", %s cooling down (%s)",
                 cli_row_parked(row, who, sizeof who),
                 cli_text_duration(row->parked_ms, longest, sizeof longest));
    snprintf(cell, CELL_SIZE, "%s%s%s%s", breaker_state_name(row->effective.state),
             cli_row_is_due(row) ? ", probe due" : "", row->observed ? ", observed" : "", parked);
}

static void write_line(struct line *line, const struct row *row)
{
    const struct cli_row *of = &row->of;
    bool due = cli_row_is_due(of);

    cli_text_safe(span_str(row->key), line->cell[0], CELL_SIZE);
    write_state(of, line->cell[1]);
    write_count(line->cell[2], of->effective.streak);
    if (of->retry_in_ms)
        cli_text_duration(of->retry_in_ms, line->cell[3], CELL_SIZE);
    else
        strcpy(line->cell[3], due ? "now" : "-");
    write_count(line->cell[4], of->totals.success);
    write_count(line->cell[5], of->totals.failure);
    write_count(line->cell[6], of->totals.neutral);
    write_count(line->cell[7], of->totals.refused);
    write_count(line->cell[8], of->totals.rerouted);
    if (of->rated)
        cli_row_rate(of, line->cell[RATE], CELL_SIZE);
    else
        strcpy(line->cell[RATE], "-");
    cli_row_failure(of, line->cell[10], CELL_SIZE);
}

/* `last` NULL: there is no column more. A column of no width is left out. */
static void print_line(const struct line *line, const size_t *widths, const char *last)
{
    for (int i = 0; i < COLUMNS; i++) {
        if (widths[i] == 0)
            continue;
        int pad = (int)(widths[i] - cli_text_width(line->cell[i]));
        bool ends = !last && i == COLUMNS - 1;
        if (is_number(i))
            printf("%*s%s", pad, "", line->cell[i]);
        else
            printf("%s%*s", line->cell[i], ends ? 0 : pad, "");
        fputs(ends ? "\n" : "  ", stdout);
    }
    if (last)
        puts(last);
}

static bool goes_elsewhere(const struct cli_row *row)
{
    bool any = row->elsewhere > 0;

    for (unsigned i = 0; i < TABLE_STAT_SHARDS; i++)
        any |= row->to[i].identity != 0;
    return any;
}

/* "KEY 12, KEY 3, elsewhere 1", or "-". Returns `buf`. */
static const char *write_destinations(const struct cli_context *context, const struct cli_row *row,
                                      char *buf, size_t size)
{
    char key[TABLE_KEY_TEXT_SIZE], safe[CELL_SIZE];
    const char *comma = "";
    size_t used = (size_t)snprintf(buf, size, "%s", goes_elsewhere(row) ? "" : "-");

    for (unsigned i = 0; i < TABLE_STAT_SHARDS; i++) {
        if (row->to[i].identity == 0)
            continue;
        cli_text_safe(span_str(cli_row_destination(&context->table, &row->to[i], key)), safe,
                      sizeof safe);
        used += (size_t)snprintf(buf + used, size - used, "%s%s %" PRIu64, comma, safe,
                                 row->to[i].count);
        comma = ", ";
    }
    if (row->elsewhere)
        snprintf(buf + used, size - used, "%selsewhere %" PRIu64, comma, row->elsewhere);
    return buf;
}

/* False: no memory. */
static bool print_text(const struct cli_context *context, const struct row *rows, size_t count)
{
    struct line *lines = calloc(count + 1, sizeof *lines);
    size_t widths[COLUMNS] = {0};
    char to[(TABLE_STAT_SHARDS + 1) * (CELL_SIZE + 32)];
    bool any = false, rated = false;

    if (!lines)
        return false;
    for (int i = 0; i < COLUMNS; i++)
        strcpy(lines[0].cell[i], titles[i]);
    for (size_t i = 0; i < count; i++) {
        write_line(&lines[i + 1], &rows[i]);
        any |= goes_elsewhere(&rows[i].of);
        rated |= rows[i].of.rated;
    }
    for (size_t i = 0; i <= count; i++)
        for (int j = 0; j < COLUMNS; j++)
            if (cli_text_width(lines[i].cell[j]) > widths[j])
                widths[j] = cli_text_width(lines[i].cell[j]);
    if (!rated)
        widths[RATE] = 0;
    print_line(&lines[0], widths, any ? "REROUTED-TO" : NULL);
    for (size_t i = 0; i < count; i++)
        print_line(&lines[i + 1], widths,
                   any ? write_destinations(context, &rows[i].of, to, sizeof to) : NULL);
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
