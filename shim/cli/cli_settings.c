#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { KEY_CONFIG = 256, KEY_TABLE, KEY_LOG, KEY_SET };

static const struct argp_option options[] = {
    {"config", KEY_CONFIG, "FILE", 0, "read this breaker.ini", 0},
    {"table", KEY_TABLE, "FILE", 0, "use this shared table", 0},
    {"log", KEY_LOG, "FILE", 0, "append one JSON line per event to this regular file", 0},
    {"set", KEY_SET, "KEY=VALUE", 0,
     "set one key of breaker.ini; may be repeated, the last of a key counts", 0},
    {0},
};

static void add_set(struct cli_settings *settings, const char *assignment, struct argp_state *state)
{
    char *joined = NULL;

    if (strchr(assignment, '\n') || !strchr(assignment, '='))
        argp_error(state, "--set: expected KEY=VALUE on one line, found '%s'", assignment);
    if (asprintf(&joined, "%s%s\n", settings->set ? settings->set : "", assignment) < 0)
        argp_failure(state, CLI_WRONG, errno, "--set");
    free(settings->set);
    settings->set = joined;
}

static const char *path_of(const char *option, const char *arg, struct argp_state *state)
{
    if (!*arg)
        argp_error(state, "--%s: expected a file, found nothing", option);
    return arg;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct cli_settings *settings = state->input;

    switch (key) {
    case KEY_CONFIG:
        settings->config = path_of("config", arg, state);
        return 0;
    case KEY_TABLE:
        settings->table = path_of("table", arg, state);
        return 0;
    case KEY_LOG:
        settings->log = path_of("log", arg, state);
        return 0;
    case KEY_SET:
        add_set(settings, arg, state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp cli_settings_argp = {.options = options, .parser = parse};

bool cli_settings_set_path(const char *name, const char *path)
{
    char *absolute = NULL, *directory = NULL;
    bool done = false;

    if (!path || !*path)
        return true;
    if (*path == '/')
        return setenv(name, path, 1) == 0;
    if ((directory = getcwd(NULL, 0)) && asprintf(&absolute, "%s/%s", directory, path) >= 0)
        done = setenv(name, absolute, 1) == 0;
    free(absolute);
    free(directory);
    return done;
}

/* A value of the configuration: one that is too long would be warned of, and another file taken
 * than was asked for. */
static bool set_value_path(const char *name, const char *path)
{
    if (!cli_settings_set_path(name, path))
        return false;
    const char *value = getenv(name);
    if (!path || !value || strlen(value) < CONFIG_VALUE_MAX)
        return true;
    errno = ENAMETOOLONG;
    return false;
}

/* The first line of *text, without its end; moves *text past it. */
static struct span take_line(struct span *text)
{
    const char *end = memchr(text->ptr, '\n', text->len);
    struct span line = span_of(text->ptr, end ? (size_t)(end - text->ptr) : text->len);

    *text = span_skip(*text, line.len + 1);
    return line;
}

static struct span key_of(struct span line)
{
    const char *equals = memchr(line.ptr, '=', line.len);

    return span_trim(span_of(line.ptr, equals ? (size_t)(equals - line.ptr) : line.len));
}

/* Is `key` among these lines of KEY=VALUE (NULL: none)? */
static bool sets(const char *set, struct span key)
{
    struct span rest = span_str(set ? set : "");

    while (rest.len)
        if (span_eq(key_of(take_line(&rest)), key))
            return true;
    return false;
}

bool cli_settings_explain(const struct config *config, enum config_option option, struct span host,
                          struct span model, const char *own, struct config_value *out)
{
    const struct config_option_info *info = config_option_info(option);

    if (!info || !config_explain(config, option, host, model, out))
        return false;
    if (strcmp(out->origin, "BREAKER_SET") == 0 && sets(own, span_str(info->key)))
        strcpy(out->origin, "--set");
    return true;
}

/* Does the inner command say `key` itself? */
static bool overrides(const struct cli_settings *settings, struct span key)
{
    if ((settings->table && span_eq(key, SPAN_LIT("table"))) ||
        (settings->log && span_eq(key, SPAN_LIT("log"))))
        return true;
    return sets(settings->set, key);
}

/* What an outer `breaker run --set` left stays, but for the keys that are set anew here. */
static bool merge_set(const struct cli_settings *settings)
{
    struct span rest = span_str(getenv("BREAKER_SET"));
    char *merged = NULL;
    size_t size;
    FILE *out;

    if ((!settings->set && !rest.ptr) || !(out = open_memstream(&merged, &size)))
        return !settings->set && !rest.ptr;
    while (rest.len) {
        struct span line = take_line(&rest);
        if (line.len && !overrides(settings, key_of(line)))
            fprintf(out, "%.*s\n", (int)line.len, line.ptr);
    }
    if (settings->set)
        fputs(settings->set, out);
    bool done = fclose(out) == 0 && setenv("BREAKER_SET", merged, 1) == 0;
    free(merged);
    return done;
}

/* What is judged here alone came from the command line, whatever carries it later. Which fallbacks
 * there are is known where the file is read. */
static void problem_of_option(const struct config_problem *problem, void *data)
{
    struct config_problem shown = *problem;

    if (problem->skipped || problem->warning)
        return;
    snprintf(shown.file, sizeof shown.file, "--set");
    cli_text_problem(&shown, data);
}

/* --set is part of the command line: wrong there is wrong usage. */
static bool judge_set(const char *set)
{
    static const char *const no_environ[] = {NULL};
    struct config_source source = {.set = set, .environ = no_environ};
    char prefix[] = "breaker: ";

    if (!set)
        return true;
    struct config *config = config_load(&source, problem_of_option, prefix);
    config_free(config);
    return config != NULL;
}

int cli_settings_apply(struct cli_settings *settings)
{
    int code = CLI_OK;

    if (!judge_set(settings->set)) {
        code = CLI_USAGE;
    } else if (!merge_set(settings) || !cli_settings_set_path("BREAKER_CONFIG", settings->config) ||
               !set_value_path("BREAKER_TABLE", settings->table) ||
               !set_value_path("BREAKER_LOG", settings->log)) {
        cli_text_complain("cannot pass the settings on: %s", strerror(errno));
        code = CLI_WRONG;
    }
    free(settings->set);
    settings->set = NULL;
    return code;
}

const char *cli_settings_variable(const char *name)
{
    return getenv(name);
}

static struct config *load(char *path, const char *(*variable)(const char *name),
                           config_report *report, void *data)
{
    char buf[PATH_MAX];
    bool named;
    const char *set_by_user = getenv("BREAKER_CONFIG");
    const char *found = config_find(set_by_user && *set_by_user ? set_by_user : NULL,
                                    getenv("HOME"), buf, sizeof buf, &named);
    struct config_source source = {
        .path = found,
        .set = getenv("BREAKER_SET"),
        .environ = (const char *const *)environ,
        .variable = variable,
    };

    struct cli_sorted problems = {.report = report, .data = data};

    snprintf(path, PATH_MAX, "%s", found ? found : "");
    struct config *config = config_load(&source, cli_sorted_keep, &problems);
    cli_sorted_tell(&problems);
    return config;
}

const char *cli_settings_places(char buf[CLI_PLACES_SIZE])
{
    const char *home = getenv("HOME");

    if (home && *home == '/' && strlen(home) < PATH_MAX)
        snprintf(buf, CLI_PLACES_SIZE, "%s/.config/breaker/breaker.ini or /etc/breaker/breaker.ini",
                 home);
    else
        snprintf(buf, CLI_PLACES_SIZE, "/etc/breaker/breaker.ini, and HOME is no absolute path");
    return buf;
}

struct config *cli_settings_load(char *path, config_report *report, void *data)
{
    return load(path, NULL, report, data);
}

struct config *cli_settings_load_strictly(char *path, config_report *report, void *data)
{
    return load(path, cli_settings_variable, report, data);
}
