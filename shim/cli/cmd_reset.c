#include "cli/cli.h"

#include "base/clock.h"
#include "base/log.h"

enum { KEY_ALL = 'a' };

struct reset {
    struct cli_settings settings;
    const char *key;
    bool all;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct reset *reset = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &reset->settings;
        return 0;
    case KEY_ALL:
        reset->all = true;
        return 0;
    case ARGP_KEY_ARG:
        if (reset->key)
            argp_error(state, "expected one KEY, found '%s' as well", arg);
        reset->key = arg;
        return 0;
    case ARGP_KEY_END:
        if (reset->all == (reset->key != NULL))
            argp_error(state, "expected either a KEY or --all");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"all", KEY_ALL, NULL, 0, "put a fresh table in the place of this one", 0},
    {0},
};
static const struct argp_child children[] = {{&cli_settings_argp, 0, NULL, 0}, {0}};
static const struct argp reset_argp = {
    .options = options,
    .parser = parse,
    .args_doc = "KEY\n--all",
    .doc = "Close the breaker KEY (HOST[:PORT] or HOST[:PORT]/MODEL) with no failures in a "
           "row and no cool-downs; the totals of its calls stay; which breakers of its host or its "
           "models still refuse is told. Or start again with an empty "
           "table."
           "\vRunning programs move to a fresh table by their first call of the next second. "
           "Exit code 1: KEY is unknown (the nearest ones are named).",
    .children = children,
};

/* Also the way out of a table that cannot be used any more (another layout, a wrong size): what
 * may be replaced at all is for table_replace() to say. */
static int replace(struct cli_context *context)
{
    struct log_event event = {.event = "table", .cause = "manual", .detail = "reset --all"};
    struct table probe = {0};
    char why[CLI_WHY_SIZE];

    int error = table_attach(&probe, context->path, context->named);
    table_close(&probe);
    if (error == TABLE_E_ABSENT) {
        puts("there is no table yet: nothing to reset");
        return CLI_OK;
    }
    error = table_replace(context->path, context->named);
    if (error != TABLE_OK) {
        cli_text_complain("table %s: %s", context->path,
                          cli_table_why(error, context->path, context->named, why));
        return CLI_WRONG;
    }
    puts("all breakers are reset");
    if (*config_log_path(context->config))
        log_write(config_log_path(context->config), &event, clock_system.wall_ms());
    return CLI_OK;
}

static int reset_all(void)
{
    struct cli_context context;
    int code = cli_context_open(&context);

    if (code != CLI_OK)
        return code;
    if (context.table_sure) {
        code = replace(&context);
    } else {
        cli_text_complain("a bad configuration may name another table: mend it or give --table");
        code = CLI_WRONG;
    }
    cli_context_close(&context);
    return code;
}

int cmd_reset(int argc, char **argv)
{
    struct reset reset = {0};

    if (argp_parse(&reset_argp, argc, argv, 0, NULL, &reset) != 0)
        return CLI_USAGE;
    int code = cli_settings_apply(&reset.settings);
    if (code != CLI_OK)
        return code;
    return reset.all ? reset_all() : cli_operate(CLI_RESET, reset.key, false);
}
