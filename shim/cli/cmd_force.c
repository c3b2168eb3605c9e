#include "cli/cli.h"

enum { KEY_CREATE = 'c' };

struct force {
    struct cli_settings settings;
    enum cli_operation operation;
    const char *key;
    bool create;
};

static const struct {
    const char *word;
    enum cli_operation operation;
} words[] = {{"open", CLI_FORCE_OPEN}, {"closed", CLI_FORCE_CLOSED}, {"none", CLI_RESET}};

static void take_argument(struct force *force, char *arg, struct argp_state *state)
{
    if (state->arg_num == 1) {
        force->key = arg;
        return;
    }
    if (state->arg_num > 1)
        argp_error(state, "expected one KEY, found '%s' as well", arg);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i].word, arg) == 0) {
            force->operation = words[i].operation;
            return;
        }
    argp_error(state, "expected open, closed or none, found '%s'", arg);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct force *force = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &force->settings;
        return 0;
    case KEY_CREATE:
        force->create = true;
        return 0;
    case ARGP_KEY_ARG:
        take_argument(force, arg, state);
        return 0;
    case ARGP_KEY_END:
        if (!force->key)
            argp_error(state, "expected open, closed or none, and a KEY");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"create", KEY_CREATE, NULL, 0,
     "open, closed: make the breaker if no call has been seen for KEY", 0},
    {0},
};
static const struct argp_child children[] = {{&cli_settings_argp, 0, NULL, 0}, {0}};
static const struct argp force_argp = {
    .options = options,
    .parser = parse,
    .args_doc = "open|closed|none KEY",
    .doc =
        "Hold the breaker KEY (HOST[:PORT] or HOST[:PORT]/MODEL) open (every call is refused) or "
        "closed (it never breaks), or let go of it (none: closed, nothing counted). A call needs "
        "the breaker of its host and that of its model: which others still refuse is told after "
        "closed and none."
        "\vExit code 1: KEY is unknown (the nearest ones are named).",
    .children = children,
};

int cmd_force(int argc, char **argv)
{
    struct force force = {0};

    if (argp_parse(&force_argp, argc, argv, 0, NULL, &force) != 0)
        return CLI_USAGE;
    int code = cli_settings_apply(&force.settings);
    if (code != CLI_OK)
        return code;
    /* Letting go of what is not there is no wish to make it. */
    return cli_operate(force.operation, force.key, force.create && force.operation != CLI_RESET);
}
