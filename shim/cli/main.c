#include "base/clock.h"
#include "base/distance.h"
#include "cli/cli.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *text;
};

static const struct command commands[] = {
    {"run", cmd_run, "run a program, and all that it starts, with the breaker under it"},
    {"status", cmd_status, "show every breaker"},
    {"trip", cmd_trip, "open one by hand, as if it had failed"},
    {"reset", cmd_reset, "close one, or start all again with an empty table"},
    {"force", cmd_force, "hold one open or closed until it is reset"},
    {"check", cmd_check, "say everything that is wrong in breaker.ini"},
    {"config", cmd_config, "show every setting in force and where it came from"},
    {"explain", cmd_explain, "say what would happen to a call now, and why"},
};
#define COMMAND_COUNT (sizeof commands / sizeof *commands)

const char *argp_program_version = "breaker " BREAKER_VERSION;

/* What the first argument chose, and where it stood. */
struct choice {
    const struct command *command;
    int at;
};

static const struct command *command_named(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

/* Its name, or NULL: none is near. */
static const char *nearest_command(const char *name)
{
    unsigned best = DISTANCE_FAR;
    const char *nearest = NULL;

    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        unsigned distance = distance_if_near(span_str(name), span_str(commands[i].name));
        if (distance < best) {
            best = distance;
            nearest = commands[i].name;
        }
    }
    return nearest;
}

static void complain_of_command(const struct argp_state *state, const char *name)
{
    const char *nearest = nearest_command(name);

    if (nearest)
        argp_error(state, "there is no command '%s'; is it %s?", name, nearest);
    else
        argp_error(state, "there is no command '%s'", name);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct choice *choice = state->input;

    switch (key) {
    case ARGP_KEY_ARG:
        choice->command = command_named(arg);
        if (!choice->command)
            complain_of_command(state, arg);
        choice->at = state->next - 1;
        state->next = state->argc; /* the rest is the command's */
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_usage(state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* The list of commands, written from the table above. */
static char *filter_help(int key, const char *text, void *input)
{
    char *list = NULL;
    size_t size;

    (void)input;
    if (key != ARGP_KEY_HELP_POST_DOC)
        return (char *)(uintptr_t)text;
    FILE *out = open_memstream(&list, &size);
    if (!out)
        return NULL;
    fputs("Commands:\n", out);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].text);
    fputs("\n`breaker COMMAND --help` tells more.", out);
    fclose(out);
    return list;
}

static const struct argp main_argp = {
    .parser = parse,
    .args_doc = "COMMAND [ARG...]",
    .doc = "A circuit breaker under programs that call LLM providers.\v ",
    .help_filter = filter_help,
};

/* A result that could not be written is no result. */
static int close_output(int code)
{
    if ((fflush(stdout) != 0 || ferror(stdout)) && errno != EPIPE) {
        cli_text_complain("cannot write the output: %s", strerror(errno));
        return code == CLI_OK ? CLI_WRONG : code;
    }
    return code;
}

int main(int argc, char **argv)
{
    struct choice choice = {0};
    char name[32];

    clock_ask((clock_function *)dlvsym(RTLD_NEXT, "clock_gettime", CLOCK_GLIBC));
    argp_err_exit_status = CLI_USAGE;
    if (argp_parse(&main_argp, argc, argv, ARGP_IN_ORDER, NULL, &choice) != 0 || !choice.command)
        return CLI_USAGE;
    snprintf(name, sizeof name, "breaker %s", choice.command->name);
    argv[choice.at] = name;
    return close_output(choice.command->run(argc - choice.at, argv + choice.at));
}
