#include "cli/cli.h"

#include "http/url.h"
#include "route/route.h"

#include <stdlib.h>

struct view {
    struct cli_settings settings;
    const char *key;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct view *view = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &view->settings;
        return 0;
    case ARGP_KEY_ARG:
        if (view->key)
            argp_error(state, "expected one KEY, found '%s' as well", arg);
        view->key = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child children[] = {{&cli_settings_argp, 0, NULL, 0}, {0}};
static const struct argp config_argp = {
    .parser = parse,
    .args_doc = "[HOST[:PORT][/MODEL]]",
    .doc = "Show every setting in force, its value, and where it came from; for a host or a model, "
           "as its target has it."
           "\vLines that begin with # are remarks. Exit code 1: the configuration is bad (see "
           "`breaker check`), so that none is in force.",
    .children = children,
};

/* Why calls to this host are covered, before anything is known of their path. */
static const char *coverage(const struct config *config, struct span host, struct span model)
{
    static const char *const texts[] = {
        [ROUTE_MATCH_ALL] = "covered: match = all",
        [ROUTE_LISTED] = "covered: a target names the host",
        [ROUTE_KNOWN_HOST] = "covered: a known provider",
        [ROUTE_NOT_LISTED] = "not covered: no target names the host, match = listed",
        [ROUTE_NO_LLM_CALL] = "only POSTs that look like an LLM call are covered",
    };
    struct policy of_host, of_model;
    struct span port = url_port_part(host);
    struct route_key key;

    config_policy(config, host, SPAN_NONE, &of_host);
    config_policy(config, host, of_host.scope == SCOPE_HOST ? SPAN_NONE : model, &of_model);
    if (of_host.mode == MODE_OFF || of_model.mode == MODE_OFF)
        return "not covered: mode = off";
    key = (struct route_key){.len = host.len, .name_len = host.len - port.len};
    memcpy(key.text, host.ptr, host.len);
    return texts[route_cover(config, &key)];
}

/* Then no target of a model has a say. */
static bool counts_for_host(const struct config *config, struct span host)
{
    struct policy policy;

    config_policy(config, host, SPAN_NONE, &policy);
    return policy.scope == SCOPE_HOST;
}

/* `own`: the --set of this very command. False: the configuration cannot tell of one of its own
 * options. */
static bool print_all(const struct config *config, struct span host, struct span model,
                      const char *own)
{
    struct config_value value;

    for (int i = 0; i < OPTION_COUNT; i++) {
        const struct config_option_info *info = config_option_info((enum config_option)i);
        if (!info || !cli_settings_explain(config, (enum config_option)i, host, model, own, &value))
            return false;
        /* What holds for the whole process is not repeated for a host. */
        if (!host.ptr || !info->global)
            cli_text_setting("", info->key, &value);
    }
    return true;
}

static int show(const char *key, const char *own)
{
    char path[PATH_MAX], safe[PATH_MAX], prefix[] = "breaker: ";
    struct span host = SPAN_NONE, model = SPAN_NONE;
    struct config *config = cli_settings_load(path, cli_text_problem, prefix);

    if (!config)
        return CLI_WRONG;
    cli_text_safe(span_str(path), safe, sizeof safe);
    printf("# %s\n", *path ? safe : "no breaker.ini");
    if (cli_disabled())
        printf("# %s: nothing is covered\n", cli_disabled());
    if (key) {
        cli_key_split(span_str(key), &host, &model);
        cli_text_safe(span_str(key), safe, sizeof safe);
        printf("# %s: %s\n", safe, coverage(config, host, model));
    }
    if (model.ptr && counts_for_host(config, host)) {
        model = SPAN_NONE;
        puts("# scope = host: what follows is the host's");
    }
    bool complete = print_all(config, host, model, own);
    config_free(config);
    return complete ? CLI_OK : CLI_WRONG;
}

int cmd_config(int argc, char **argv)
{
    struct view view = {0};
    char key[CLI_KEY_SIZE];

    if (argp_parse(&config_argp, argc, argv, 0, NULL, &view) != 0)
        return CLI_USAGE;
    if (view.key && !cli_key_normalise(span_str(view.key), key, sizeof key)) {
        cli_text_complain("expected HOST[:PORT] or HOST[:PORT]/MODEL, found '%s'", view.key);
        return CLI_USAGE;
    }
    char *own = view.settings.set ? strdup(view.settings.set) : NULL;
    int code = cli_settings_apply(&view.settings);
    if (code == CLI_OK)
        code = show(view.key ? key : NULL, own);
    free(own);
    return code;
}
