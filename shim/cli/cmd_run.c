#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct run {
    struct cli_settings settings;
    char **command; /* in argv, NULL-terminated */
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct run *run = state->input;

    (void)arg;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &run->settings;
        return 0;
    case ARGP_KEY_ARG:
        run->command = &state->argv[state->next - 1];
        state->next = state->argc; /* options from here on are the program's */
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "expected a command to run");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child children[] = {{&cli_settings_argp, 0, NULL, 0}, {0}};
static const struct argp run_argp = {
    .parser = parse,
    .args_doc = "[--] CMD [ARG...]",
    .doc =
        "Run CMD, and everything that it starts, with the breaker under it."
        "\vExits as CMD does: same code, same signal. 126: CMD cannot be executed, 127: there is "
        "no such command, 1: the library is missing, 2: wrong usage. A bad breaker.ini is told "
        "on stderr and CMD runs without a breaker; so is a log or a table that cannot be used.",
    .children = children,
};

/* A bad breaker.ini is no reason not to run: the library lets every call pass then. Nor is a log
 * or a table that cannot be used, of which the library may not print anything. */
static void warn_of_configuration(void)
{
    char path[PATH_MAX], prefix[] = "breaker: warning: ";

    struct config *config = cli_settings_load(path, cli_text_problem, prefix);
    if (config)
        cli_find_unusable_files(config, cli_text_problem, prefix);
    else
        fprintf(stderr,
                "%sthe configuration is bad: CMD runs without a breaker until it is right\n",
                prefix);
    config_free(config);
}

static bool set_preload(void)
{
    char library[PATH_MAX];

    if (!cli_preload_library(library, sizeof library))
        return false;
    char *value = cli_preload_value(library, getenv("LD_PRELOAD"));
    bool done = value && setenv("LD_PRELOAD", value, 1) == 0;
    if (!done)
        cli_text_complain("cannot set LD_PRELOAD: %s", strerror(errno));
    free(value);
    return done;
}

int cmd_run(int argc, char **argv)
{
    struct run run = {0};

    if (argp_parse(&run_argp, argc, argv, ARGP_IN_ORDER, NULL, &run) != 0 || !run.command)
        return CLI_USAGE;
    int code = cli_settings_apply(&run.settings);
    if (code != CLI_OK)
        return code;
    /* Named by hand, and relative, it would be lost at the first chdir(). */
    if (!cli_settings_set_path("BREAKER_CONFIG", getenv("BREAKER_CONFIG"))) {
        cli_text_complain("cannot pass BREAKER_CONFIG on: %s", strerror(errno));
        return CLI_WRONG;
    }
    warn_of_configuration();
    if (!set_preload())
        return CLI_WRONG;
    execvp(run.command[0], run.command);
    code = errno == ENOENT ? CLI_NOT_FOUND : CLI_CANNOT_EXECUTE;
    cli_text_complain("%s: %s", run.command[0],
                      code == CLI_NOT_FOUND ? "command not found" : strerror(errno));
    return code;
}
