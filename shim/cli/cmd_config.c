#include "cli/cli.h"

#include "http/url.h"
#include "route/fallback.h"
#include "route/route.h"

#include <stdlib.h>

enum { KEY_JSON = 'j' };

struct view {
    struct cli_settings settings;
    const char *key;
    bool json;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct view *view = state->input;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &view->settings;
        return 0;
    case KEY_JSON:
        view->json = true;
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

static const struct argp_option config_options[] = {
    {"json", KEY_JSON, NULL, 0, "print one JSON object", 0},
    {0},
};
static const struct argp_child children[] = {{&cli_settings_argp, 0, NULL, 0}, {0}};
static const struct argp config_argp = {
    .options = config_options,
    .parser = parse,
    .args_doc = "[HOST[:PORT][/MODEL]]",
    .doc = "Show every setting in force, its value, and where it came from; for a host or a model, "
           "as its target has it, with the fallbacks that it names; without one, with all of them. "
           "Of their headers only the names are shown."
           "\vLines that begin with # are remarks. Exit code 1: the configuration is bad (see "
           "`breaker check`), so that none is in force.",
    .children = children,
};

/* What is to be shown, of which host and model. */
struct shown {
    struct config *config;
    const char *own; /* the --set of this very command, or NULL */
    const char *path;
    const char *key; /* as a printable key; NULL: what holds everywhere */
    struct span host, model;
    bool host_is_off; /* mode = off for the host */
    bool host_alone;  /* scope = host: what is asked of the model is the host's */
    struct policy policy;
};

#define COVERAGE_SIZE 160

/* Whether calls to this host are covered and why, before anything is known of their path. Returns
 * `buf`. */
static const char *coverage(const struct shown *shown, char buf[COVERAGE_SIZE])
{
    struct span host = shown->host, port = url_port_part(host);
    struct route_key key = {.len = host.len, .name_len = host.len - port.len};
    bool off = shown->host_is_off || shown->policy.mode == MODE_OFF;

    memcpy(key.text, host.ptr, host.len);
    enum route_cover cover = route_cover(shown->config, &key);
    if (!off && cover == ROUTE_NO_LLM_CALL)
        return strcpy(buf, "only POSTs that look like an LLM call are covered");
    snprintf(buf, COVERAGE_SIZE, "%scovered: %s", off || !route_is_covered(cover) ? "not " : "",
             off ? "mode = off" : cli_text_cover(cover));
    return buf;
}

/* The n-th option, if it is to be shown: what holds for the whole process is not repeated for a
 * host. */
static bool take_option(const struct shown *shown, int n, const struct config_option_info **info,
                        struct config_value *value)
{
    enum config_option option = (enum config_option)n;

    *info = config_option_info(option);
    return *info && (!shown->host.ptr || !(*info)->global) &&
           cli_settings_explain(shown->config, option, shown->host,
                                shown->host_alone ? SPAN_NONE : shown->model, shown->own, value);
}

/* Takes the next [fallback NAME] that is to be shown: those that the key's list names, in its
 * order, or all. `n` counts them, `names` is the rest of the list. */
static const struct config_fallback *take_fallback(const struct shown *shown, unsigned n,
                                                   struct span *names)
{
    struct span name;

    if (!shown->key)
        return config_fallback_at(shown->config, n);
    return config_next_name(names, &name) ? config_fallback(shown->config, name) : NULL;
}

/* Where a line of a [fallback NAME] stands, as the origins of options are told; 0: nowhere. */
static const char *origin_of(const struct shown *shown, unsigned line, char origin[PATH_MAX + 16])
{
    snprintf(origin, PATH_MAX + 16, "%s:%u", shown->path, line);
    return line ? origin : "default";
}

/* Its value may be a secret. */
static struct span name_of(const char *header)
{
    return span_of(header, strcspn(header, ":"));
}

/* --- for people --------------------------------------------------------------------------------
 */

/* `text` may be longer than an option's value. */
static void print_member(const char *key, struct span text, const char *mask, const char *origin)
{
    size_t size = 4 * (text.len + strlen(origin)) + 2;
    char *safe = malloc(size);

    if (!safe)
        return;
    size_t len = cli_text_safe(text, safe, size);
    cli_text_safe(span_str(origin), safe + len + 1, size - len - 1);
    printf("%-18s = %s%-*s # %s\n", key, safe, len < 32 ? 32 - (int)len : 0, mask, safe + len + 1);
    free(safe);
}

static void print_fallback(const struct shown *shown, const struct config_fallback *fallback)
{
    char safe[256], origin[PATH_MAX + 16], path[4 * PATH_MAX];

    cli_text_safe(span_str(fallback->name), safe, sizeof safe);
    printf("\n[fallback %s]", safe);
    cli_text_safe(span_str(origin_of(shown, fallback->line, origin)), path, sizeof path);
    printf(" # %s\n", path);
    print_member("base", span_str(fallback->base), "",
                 origin_of(shown, fallback->base_line, origin));
    print_member("model", span_str(fallback->models), "",
                 origin_of(shown, fallback->models_line, origin));
    for (unsigned i = 0; i < fallback->header_count; i++)
        print_member(i == 0 && fallback->has_auth ? "auth" : "header",
                     name_of(fallback->headers[i]), ": ***",
                     origin_of(shown, fallback->header_lines[i], origin));
}

static void print(const struct shown *shown)
{
    const struct config_option_info *info;
    const struct config_fallback *fallback;
    struct config_value value;
    char safe[4 * CLI_PLACES_SIZE], places[CLI_PLACES_SIZE], cover[COVERAGE_SIZE];

    cli_text_safe(span_str(shown->path), safe, sizeof safe);
    if (!*shown->path)
        cli_text_safe(span_str(cli_settings_places(places)), safe, sizeof safe);
    printf("# %s%s\n", *shown->path ? "" : "no breaker.ini at ", safe);
    if (cli_disabled())
        printf("# %s: nothing is covered\n", cli_disabled());
    if (shown->key) {
        cli_text_safe(span_str(shown->key), safe, sizeof safe);
        printf("# %s: %s\n", safe, coverage(shown, cover));
    }
    if (shown->host_alone)
        puts("# scope = host: what follows is the host's");
    for (int i = 0; i < OPTION_COUNT; i++)
        if (take_option(shown, i, &info, &value))
            cli_text_setting("", info->key, &value);
    struct span names = span_str(shown->policy.fallback);
    for (unsigned i = 0; (fallback = take_fallback(shown, i, &names)); i++)
        print_fallback(shown, fallback);
}

/* --- for programs ------------------------------------------------------------------------------
 */

static void put_settings(const struct shown *shown)
{
    const struct config_option_info *info;
    struct config_value value;
    bool first = true;

    fputs(" \"settings\":{", stdout);
    for (int i = 0; i < OPTION_COUNT; i++) {
        if (!take_option(shown, i, &info, &value))
            continue;
        fputs(first ? "\n  " : ",\n  ", stdout);
        cli_text_json_setting(info->key, &value);
        first = false;
    }
    putchar('}');
}

static void put_fallback(const struct shown *shown, const struct config_fallback *fallback)
{
    char origin[PATH_MAX + 16];

    cli_text_json_member("name", span_str(fallback->name));
    putchar(',');
    cli_text_json_member("origin", span_str(origin_of(shown, fallback->line, origin)));
    putchar(',');
    cli_text_json_member("base", span_str(fallback->base));
    putchar(',');
    cli_text_json_member("model", span_str(*fallback->models ? fallback->models : NULL));
    fputs(",\"headers\":[", stdout);
    for (unsigned i = 0; i < fallback->header_count; i++) {
        if (i)
            putchar(',');
        cli_text_json(stdout, name_of(fallback->headers[i]));
    }
    putchar(']');
}

static void put(const struct shown *shown)
{
    const struct config_fallback *fallback;
    char cover[COVERAGE_SIZE];

    fputs("{\"version\":\"" BREAKER_VERSION "\",", stdout);
    cli_text_json_member("config", span_str(*shown->path ? shown->path : NULL));
    putchar(',');
    cli_text_json_member("disabled", span_str(cli_disabled()));
    putchar(',');
    cli_text_json_member("key", span_str(shown->key));
    putchar(',');
    cli_text_json_member("coverage", span_str(shown->key ? coverage(shown, cover) : NULL));
    printf(",\"host_alone\":%s,\n", shown->host_alone ? "true" : "false");
    put_settings(shown);
    fputs(",\n \"fallbacks\":[", stdout);
    struct span names = span_str(shown->policy.fallback);
    for (unsigned i = 0; (fallback = take_fallback(shown, i, &names)); i++) {
        fputs(i ? ",\n  {" : "\n  {", stdout);
        put_fallback(shown, fallback);
        putchar('}');
    }
    puts("]}");
}

static int show(const char *key, const char *own, bool json)
{
    char path[PATH_MAX], prefix[] = "breaker: ";
    struct shown shown = {.key = key, .own = own, .path = path};

    shown.config = cli_settings_load(path, cli_text_problem_or_warning, prefix);
    if (!shown.config)
        return CLI_WRONG;
    if (key)
        cli_key_split(span_str(key), &shown.host, &shown.model);
    config_policy(shown.config, shown.host, SPAN_NONE, &shown.policy);
    shown.host_is_off = shown.policy.mode == MODE_OFF;
    /* Then no target of a model has a say. */
    shown.host_alone = shown.model.ptr && shown.policy.scope == SCOPE_HOST;
    if (shown.model.ptr && !shown.host_alone)
        config_policy(shown.config, shown.host, shown.model, &shown.policy);
    if (json)
        put(&shown);
    else
        print(&shown);
    config_free(shown.config);
    return CLI_OK;
}

int cmd_config(int argc, char **argv)
{
    struct view view = {0};
    char key[CLI_KEY_SIZE];

    if (argp_parse(&config_argp, argc, argv, 0, NULL, &view) != 0)
        return CLI_USAGE;
    if (view.key && !cli_key_normalise(span_str(view.key), key, sizeof key)) {
        cli_key_complain_form(span_str(view.key));
        return CLI_USAGE;
    }
    char *own = view.settings.set ? strdup(view.settings.set) : NULL;
    int code = cli_settings_apply(&view.settings);
    if (code == CLI_OK)
        code = show(view.key ? key : NULL, own, view.json);
    free(own);
    return code;
}
