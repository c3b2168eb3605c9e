#include "cli/cli.h"

#include <stdlib.h>

/* The environment's word on one option, as config_load wants it; NULL: none, or no room. */
static const char *environment_entry(const char *name, char *buf, size_t size)
{
    const char *value = getenv(name);

    if (!value || (size_t)snprintf(buf, size, "%s=%s", name, value) >= size)
        return NULL;
    return buf;
}

/*
 * The configuration is bad, but an operator must still see and act: the defaults, with the table
 * and the log that the environment names, if those are good.
 */
static struct config *load_stand_in(void)
{
    char table[PATH_MAX + 16], log[PATH_MAX + 16];
    const char *entries[3] = {NULL};
    struct config_source source = {.set = getenv("BREAKER_SET"), .environ = entries};
    size_t count = 0;

    if ((entries[count] = environment_entry("BREAKER_TABLE", table, sizeof table)))
        count++;
    entries[count] = environment_entry("BREAKER_LOG", log, sizeof log);
    struct config *config = config_load(&source, NULL, NULL);
    if (config)
        return config;
    source.set = NULL;
    entries[0] = NULL;
    return config_load(&source, NULL, NULL);
}

/* CLI_OK, or the exit code after a complaint; closes the context then. */
static int find_table(struct cli_context *context)
{
    const char *path = config_table_path(context->config);
    int error = TABLE_OK;

    context->named = *path != '\0';
    context->table_sure = context->config_good || context->named;
    if (!context->named)
        error = table_default_path(context->path, sizeof context->path);
    else if ((size_t)snprintf(context->path, sizeof context->path, "%s", path) >= PATH_MAX)
        error = TABLE_E_PATH;
    if (error == TABLE_OK)
        return CLI_OK;
    cli_text_complain("table: %s", table_strerror(error));
    cli_context_close(context);
    return CLI_WRONG;
}

static void load(struct cli_context *context, char *prefix)
{
    memset(context, 0, sizeof *context);
    context->config = cli_settings_load(context->ini, cli_text_problem_or_warning, prefix);
    context->config_good = context->config != NULL;
}

int cli_context_open(struct cli_context *context)
{
    char prefix[] = "breaker: warning: ";

    load(context, prefix);
    if (!context->config)
        context->config = load_stand_in();
    if (!context->config) {
        cli_text_complain("out of memory");
        return CLI_WRONG;
    }
    return find_table(context);
}

int cli_context_open_good(struct cli_context *context)
{
    load(context, NULL);
    return context->config ? find_table(context) : CLI_WRONG;
}

void cli_context_close(struct cli_context *context)
{
    table_close(&context->table);
    config_free(context->config);
    memset(context, 0, sizeof *context);
}

int cli_context_attach(struct cli_context *context, bool create)
{
    int error = create ? table_open(&context->table, context->path, context->named)
                       : table_attach(&context->table, context->path, context->named);
    char why[CLI_WHY_SIZE];

    if (error != TABLE_OK && error != TABLE_E_ABSENT)
        cli_text_complain("table %s: %s", context->path,
                          cli_table_why(error, context->path, context->named, why));
    return error;
}

void cli_context_policy(const struct cli_context *context, struct span key, struct policy *out)
{
    struct span host, model;

    cli_key_split(key, &host, &model);
    config_policy(context->config, host, model, out);
}
