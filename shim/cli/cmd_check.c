#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

struct check {
    struct cli_settings settings;
    const char *file;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct check *check = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &check->settings;
        return 0;
    case ARGP_KEY_ARG:
        if (check->file)
            argp_error(state, "expected one FILE, found '%s' as well", arg);
        check->file = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child children[] = {{&cli_settings_argp, 0, NULL, 0}, {0}};
static const struct argp check_argp = {
    .parser = parse,
    .args_doc = "[FILE]",
    .doc =
        "Say everything that is wrong in FILE; without it, in the breaker.ini and the BREAKER_ "
        "variables that programs would read, and with the log and the table that these name."
        "\vOne line per problem on stderr, as FILE:LINE: KEY: what was expected, what was "
        "found; exit code 1 if there was any. A ${VAR} of a fallback that is not set here is one, "
        "and so is a setting that has no effect beside another.",
    .children = children,
};

/* A file that is judged alone, what it was called, and what was found in it. */
struct named_file {
    const char *typed;
    char path[PATH_MAX];
    unsigned problems;
    struct cli_sorted found;
};

/* Under the name that was typed. */
static void keep_of_file(const struct config_problem *problem, void *data)
{
    struct named_file *file = data;
    struct config_problem shown = *problem;

    file->problems++;
    if (strncmp(problem->file, file->path, sizeof shown.file - 1) == 0)
        snprintf(shown.file, sizeof shown.file, "%s", file->typed);
    cli_sorted_keep(&shown, &file->found);
}

/* A file alone, as it would be judged wherever it is put: the environment has no say, but for the
 * ${VAR} of fallbacks. */
static int check_file(const char *typed)
{
    static const char *const no_environ[] = {NULL};
    struct named_file file = {.typed = typed, .found.report = cli_text_problem};
    struct config_source source = {
        .path = file.path, .environ = no_environ, .variable = cli_settings_variable};
    char safe[PATH_MAX], *directory = getcwd(NULL, 0);

    int len = snprintf(file.path, sizeof file.path, "%s%s%s",
                       *typed == '/' || !directory ? "" : directory,
                       *typed == '/' || !directory ? "" : "/", typed);
    free(directory);
    if (len < 0 || (size_t)len >= sizeof file.path) {
        cli_text_complain("%s: %s", typed, strerror(ENAMETOOLONG));
        return CLI_WRONG;
    }
    struct config *config = config_load(&source, keep_of_file, &file);
    if (config)
        config_advise(config, keep_of_file, &file);
    cli_sorted_tell(&file.found);
    config_free(config);
    if (!config || file.problems > 0)
        return CLI_WRONG;
    cli_text_safe(span_str(typed), safe, sizeof safe);
    printf("%s: all is well\n", safe);
    return CLI_OK;
}

static bool all_defaults(const struct config *config)
{
    struct config_value value;

    for (int i = 0; i < OPTION_COUNT; i++)
        if (config_explain(config, (enum config_option)i, SPAN_NONE, SPAN_NONE, &value) &&
            strcmp(value.origin, "default") != 0)
            return false;
    return true;
}

struct here {
    unsigned problems;
    struct cli_sorted found;
};

static void keep_of_here(const struct config_problem *problem, void *data)
{
    struct here *here = data;

    here->problems++;
    cli_sorted_keep(problem, &here->found);
}

/* What programs that start here and now would find. */
static int check_here(void)
{
    char path[PATH_MAX], places[CLI_PLACES_SIZE], safe[4 * CLI_PLACES_SIZE];
    struct here here = {.found.report = cli_text_problem};
    struct config *config = cli_settings_load_strictly(path, keep_of_here, &here);

    if (config)
        config_advise(config, keep_of_here, &here);
    cli_sorted_tell(&here.found);
    unsigned found = here.problems + cli_find_unknown_variables(cli_text_problem, NULL);
    if (config)
        found += cli_find_unusable_files(config, cli_text_problem, NULL);
    if (!config || found) {
        config_free(config);
        return CLI_WRONG;
    }
    cli_text_safe(span_str(*path ? path : cli_settings_places(places)), safe, sizeof safe);
    if (*path)
        printf("%s: all is well\n", safe);
    else
        printf("no breaker.ini at %s: the defaults%s are in force, all is well\n", safe,
               all_defaults(config) ? "" : ", and what variables and options set,");
    if (cli_disabled())
        printf("but %s: nothing is covered\n", cli_disabled());
    config_free(config);
    return CLI_OK;
}

int cmd_check(int argc, char **argv)
{
    struct check check = {0};

    if (argp_parse(&check_argp, argc, argv, 0, NULL, &check) != 0)
        return CLI_USAGE;
    int code = cli_settings_apply(&check.settings);
    if (code != CLI_OK)
        return code;
    return check.file ? check_file(check.file) : check_here();
}
