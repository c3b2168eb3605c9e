/* libFuzzer: a breaker.ini, read as programs read it. The same bytes give the same configuration
 * and the same problems, each with its line; a remark before them moves lines and
 * nothing else; and what is in force, set by --set instead, is in force again.
 *
 * The input: the file. */
#include "cut.h"

#include "config/config.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TOLD_MAX = 320 };

static int file = -1;
static char path[64];

/* What a load told. */
struct told {
    unsigned count, bad;
    struct config_problem problem[TOLD_MAX];
};

static void take_down(const struct config_problem *problem, void *data)
{
    struct told *told = data;

    MUST(told->count < TOLD_MAX);
    MUST(memchr(problem->file, '\0', sizeof problem->file) && problem->file[0]);
    MUST(memchr(problem->key, '\0', sizeof problem->key) && problem->key[0]);
    MUST(memchr(problem->text, '\0', sizeof problem->text));
    MUST(strncmp(problem->text, "expected ", 9) == 0 && strstr(problem->text, ", found "));
    MUST(!(problem->skipped && problem->warning) && !problem->passing);
    told->bad += !problem->skipped && !problem->warning;
    told->problem[told->count++] = *problem;
}

static void write_file(struct span front, struct span bytes)
{
    if (file < 0) {
        file = memfd_create("breaker.ini", MFD_CLOEXEC);
        MUST(file >= 0 && fchmod(file, 0600) == 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    MUST(ftruncate(file, 0) == 0);
    MUST(pwrite(file, front.ptr, front.len, 0) == (ssize_t)front.len);
    MUST(pwrite(file, bytes.ptr, bytes.len, (off_t)front.len) == (ssize_t)bytes.len);
}

static const char *no_variable(const char *name)
{
    return strcmp(name, "SET") == 0 ? "value" : NULL;
}

static struct config *load(struct told *told)
{
    static const char *const none[] = {NULL};
    struct config_source source = {.path = path, .environ = none, .variable = no_variable};

    memset(told, 0, sizeof *told);
    struct config *config = config_load(&source, take_down, told);
    MUST(config ? told->bad == 0 : told->bad > 0);
    if (config)
        config_advise(config, take_down, told);
    MUST(!config || told->bad == 0);
    return config;
}

/* --- what is in force, as text ---------------------------------------------------------------- */

/* A place to look from: a host and a model, both maybe SPAN_NONE. */
struct view {
    struct span host, model;
};

static void write_policy(FILE *out, const struct config *config, struct view view)
{
    struct policy policy;
    struct config_value value;
    struct span name;

    for (int i = 0; i < OPTION_COUNT; i++) {
        MUST(config_explain(config, (enum config_option)i, view.host, view.model, &value));
        fprintf(out, "%s=%s\n", config_option_info((enum config_option)i)->key, value.text);
    }
    if (view.host.ptr) {
        bool listed = config_policy(config, view.host, view.model, &policy);
        MUST(!listed || config_lists_host(config, view.host));
        MUST(strlen(policy.error_code) >= 1 && strlen(policy.error_code) <= CONFIG_CODE_MAX);
        MUST(policy.breaker.half_open_probes >= 1 && policy.breaker.success_threshold >= 1);
        MUST(policy.breaker.backoff_q8 >= 256 && policy.cooldown.rate_limit != 0);
        fprintf(out, "listed %d, threshold %u, fallback %s, base %s\n", listed,
                policy.breaker.failure_threshold, policy.fallback, policy.base);
    }
    for (unsigned i = 0; config_left_out(config, view.host, view.model, i, &name); i++)
        fprintf(out, "left out %.*s\n", (int)name.len, name.ptr);
}

static void write_fallback(FILE *out, const struct config_fallback *fallback, unsigned shift)
{
    fprintf(out, "fallback %s, line %u, %u, %u: %s %.*s %.*s %u %.*s %d %s\n", fallback->name,
            fallback->line - shift, fallback->base_line - shift,
            fallback->models_line ? fallback->models_line - shift : 0, fallback->base,
            (int)fallback->scheme.len, fallback->scheme.ptr, (int)fallback->host.len,
            fallback->host.ptr, fallback->port, (int)fallback->path.len, fallback->path.ptr,
            fallback->loopback, fallback->models);
    for (unsigned i = 0; i < fallback->header_count; i++)
        fprintf(out, "  %u: %s\n", fallback->header_lines[i] - shift, fallback->headers[i]);
}

/* All of it, with lines counted behind the remark. malloc'ed. */
static char *write_config(const struct config *config, unsigned shift)
{
    static const struct view views[] = {
        {SPAN_NONE, SPAN_NONE},
        {SPAN_LIT("api.openai.com"), SPAN_NONE},
        {SPAN_LIT("api.openai.com"), SPAN_LIT("gpt-4o")},
        {SPAN_LIT("localhost:8080"), SPAN_LIT("-")},
    };
    struct config_target_info target;
    const struct config_fallback *fallback;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    MUST(out);
    fprintf(out, "%d %d %s %s\n", config_match(config), config_deepbind(config),
            config_table_path(config), config_log_path(config));
    for (size_t i = 0; i < sizeof views / sizeof *views; i++)
        write_policy(out, config, views[i]);
    for (unsigned i = 0; config_target(config, i, &target); i++)
        fprintf(out, "target %s %s %u\n", target.name, target.pattern, target.line - shift);
    for (unsigned i = 0; (fallback = config_fallback_at(config, i)); i++) {
        MUST(config_fallback(config, span_str(fallback->name)) == fallback);
        write_fallback(out, fallback, shift);
    }
    MUST(fclose(out) == 0);
    return text;
}

/* --- the properties ----------------------------------------------------------------------------
 */

/* The n-th one, from 1; SPAN_NONE: there are not so many. */
static struct span line_of(struct span bytes, unsigned line)
{
    while (--line > 0) {
        if (!memchr(bytes.ptr, '\n', bytes.len))
            return SPAN_NONE;
        span_take(&bytes, '\n');
    }
    return span_until(bytes, '\n');
}

/* Is the key of the problem in the line that it names? */
static void check_lines(const struct told *told, struct span bytes)
{
    for (unsigned i = 0; i < told->count; i++) {
        const struct config_problem *problem = &told->problem[i];
        MUST(strcmp(problem->file, path) == 0);
        if (problem->line == 0) {
            MUST(strcmp(problem->key, "file") == 0);
            continue;
        }
        struct span line = line_of(bytes, problem->line);
        /* A section's head is told in the spelling without its blanks. */
        size_t len = problem->key[0] == '[' ? 1 : strnlen(problem->key, 40);
        MUST(line.ptr &&
             (strcmp(problem->key, "line") == 0 || memmem(line.ptr, line.len, problem->key, len)));
    }
}

static void check_same(const struct config *first, const struct config *second, unsigned shift)
{
    MUST(!first == !second);
    if (!first)
        return;
    char *a = write_config(first, 0), *b = write_config(second, shift);
    MUST(strcmp(a, b) == 0);
    free(a);
    free(b);
}

/* Behind `shift` more lines the same was told, of lines so much further down. */
static void check_same_told(const struct told *first, const struct told *second, unsigned shift)
{
    MUST(first->count == second->count);
    for (unsigned i = 0; i < first->count; i++) {
        const struct config_problem *a = &first->problem[i], *b = &second->problem[i];
        MUST(b->line == (a->line ? a->line + shift : 0));
        MUST(a->skipped == b->skipped && a->warning == b->warning);
        MUST(strcmp(a->file, b->file) == 0 && strcmp(a->key, b->key) == 0);
        MUST(strcmp(a->text, b->text) == 0);
    }
}

/* What is in force for all calls, set by --set: in force again, and in the same words. Names of
 * fallbacks are left out: there is no section that they could name. */
static void check_set(const struct config *config)
{
    static struct told told;
    char set[OPTION_COUNT * (sizeof((struct config_value *)0)->text + 64)];
    struct config_value before, after;
    size_t len = 0;

    for (int i = 0; i < OPTION_COUNT; i++) {
        MUST(config_explain(config, (enum config_option)i, SPAN_NONE, SPAN_NONE, &before));
        if (i != OPTION_fallback && strcmp(before.origin, "default") != 0)
            len += (size_t)sprintf(set + len, "%s=%s\n",
                                   config_option_info((enum config_option)i)->key, before.text);
    }
    set[len] = '\0';
    static const char *const none[] = {NULL};
    struct config_source source = {.set = set, .environ = none};
    memset(&told, 0, sizeof told);
    struct config *again = config_load(&source, take_down, &told);
    MUST(again);
    for (int i = 0; i < OPTION_COUNT; i++) {
        MUST(config_explain(config, (enum config_option)i, SPAN_NONE, SPAN_NONE, &before));
        MUST(config_explain(again, (enum config_option)i, SPAN_NONE, SPAN_NONE, &after));
        MUST(i == OPTION_fallback || strcmp(before.text, after.text) == 0);
    }
    config_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct told first_told, second_told;
    struct span bytes = span_of((const char *)data, size);

    write_file(SPAN_LIT(""), bytes);
    struct config *first = load(&first_told);
    check_lines(&first_told, bytes);
    struct config *second = load(&second_told);
    check_same(first, second, 0);
    check_same_told(&first_told, &second_told, 0);
    config_free(second);
    if (first)
        check_set(first);
    /* A byte order mark is one in the first line alone; inih takes one behind blanks, too. */
    struct span line = span_until(bytes, '\n');
    if (line.len == 0 || !memmem(line.ptr, line.len, "\xef\xbb\xbf", 3)) {
        write_file(SPAN_LIT("# a remark\n\n"), bytes);
        second = load(&second_told);
        check_same(first, second, 2);
        check_same_told(&first_told, &second_told, 2);
        config_free(second);
    }
    config_free(first);
    return 0;
}
