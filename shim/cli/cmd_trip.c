#include "cli/cli.h"

enum { KEY_CREATE = 'c' };

struct trip {
    struct cli_settings settings;
    const char *key;
    bool create;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct trip *trip = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &trip->settings;
        return 0;
    case KEY_CREATE:
        trip->create = true;
        return 0;
    case ARGP_KEY_ARG:
        if (trip->key)
            argp_error(state, "expected one KEY, found '%s' as well", arg);
        trip->key = arg;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "expected a KEY");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"create", KEY_CREATE, NULL, 0, "make the breaker if no call has been seen for KEY", 0},
    {0},
};
static const struct argp_child children[] = {{&cli_settings_argp, 0, NULL, 0}, {0}};
static const struct argp trip_argp = {
    .options = options,
    .parser = parse,
    .args_doc = "KEY",
    .doc = "Open the breaker KEY (HOST[:PORT] or HOST[:PORT]/MODEL) for its open time, as if its "
           "calls had failed; then a probe is let through."
           "\vExit code 1: KEY is unknown (the nearest ones are named).",
    .children = children,
};

int cmd_trip(int argc, char **argv)
{
    struct trip trip = {0};

    if (argp_parse(&trip_argp, argc, argv, 0, NULL, &trip) != 0)
        return CLI_USAGE;
    int code = cli_settings_apply(&trip.settings);
    return code == CLI_OK ? cli_operate(CLI_TRIP, trip.key, trip.create) : code;
}
