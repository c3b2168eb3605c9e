#include "cli/cli.h"

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
    .doc = "Say everything that is wrong in FILE, or in the breaker.ini and the BREAKER_ variables "
           "that programs would read."
           "\vOne line per problem on stderr, as FILE:LINE: KEY: what was expected, what was "
           "found; exit code 1 if there was any.",
    .children = children,
};

/* A file alone, as it would be judged wherever it is put: the environment has no say. */
static struct config *load_file(const char *file, char *path)
{
    static const char *const no_environ[] = {NULL};
    struct config_source source = {.path = file, .environ = no_environ};

    snprintf(path, PATH_MAX, "%s", file);
    return config_load(&source, cli_text_problem, NULL);
}

int cmd_check(int argc, char **argv)
{
    struct check check = {0};
    char path[PATH_MAX], safe[PATH_MAX];

    if (argp_parse(&check_argp, argc, argv, 0, NULL, &check) != 0)
        return CLI_USAGE;
    int code = cli_settings_apply(&check.settings);
    if (code != CLI_OK)
        return code;
    struct config *config =
        check.file ? load_file(check.file, path) : cli_settings_load(path, cli_text_problem, NULL);
    if (!config)
        return CLI_WRONG;
    config_free(config);
    cli_text_safe(span_str(path), safe, sizeof safe);
    if (*path)
        printf("%s: all is well\n", safe);
    else
        puts("no breaker.ini: the defaults are in force, all is well");
    return CLI_OK;
}
