#include "cli/cmd_explain.h"

#include <stdlib.h>

enum { KEY_JSON = 'j', KEY_METHOD = 'X', KEY_MODEL = 'm', KEY_BODY = 'b' };

struct explain {
    struct cli_settings settings;
    struct explain_question question;
    bool json;
};

/* Could it stand in a request line? */
static bool is_method(const char *text)
{
    if (!*text)
        return false;
    for (; *text; text++)
        if ((unsigned char)*text <= 0x20 || (unsigned char)*text >= 0x7f)
            return false;
    return true;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct explain *explain = state->input;
    struct explain_question *question = &explain->question;

    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &explain->settings;
        return 0;
    case KEY_JSON:
        explain->json = true;
        return 0;
    case KEY_METHOD:
        if (!is_method(arg))
            argp_error(state, "--method: expected a method such as POST, found '%s'", arg);
        question->method = arg;
        return 0;
    case KEY_MODEL:
        question->model = arg;
        return 0;
    case KEY_BODY:
        question->body = arg;
        return 0;
    case ARGP_KEY_ARG:
        if (question->url)
            argp_error(state, "expected one URL, found '%s' as well", arg);
        question->url = arg;
        return 0;
    case ARGP_KEY_END:
        if (!question->url)
            argp_error(state, "expected a URL");
        if (question->model && question->body)
            argp_error(state, "expected --model or --body, found both");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"method", KEY_METHOD, "METHOD", 0,
     "the request's; without it POST for the path of an LLM call or with a model or a body, else "
     "GET",
     0},
    {"model", KEY_MODEL, "MODEL", 0, "the model that the body names", 0},
    {"body", KEY_BODY, "FILE", 0, "read the model from this body, JSON or multipart; -: stdin", 0},
    {"json", KEY_JSON, NULL, 0, "print one JSON object", 0},
    {0},
};
static const struct argp_child children[] = {{&cli_settings_argp, 0, NULL, 0}, {0}};
static const struct argp explain_argp = {
    .options = options,
    .parser = parse,
    .args_doc = "URL",
    .doc = "Say whether a call to URL is covered, by which breakers and settings, what state they "
           "are in, and where the call would go now: to its host, or to which fallback. Sends "
           "nothing, changes nothing."
           "\vExit code 1: the configuration is bad, or the table or FILE cannot be read.",
    .children = children,
};

/* The library goes on without a table, and so does this; but it is trouble. */
static int show(struct cli_context *context, const struct explain *explain, const char *own)
{
    static struct explanation explanation; /* too large for a stack */
    int code = explain_facts(context, &explain->question, &explanation);

    if (code != CLI_OK)
        return code;
    explanation.table_error = cli_context_attach(context, false);
    if (explanation.table_error != TABLE_OK && explanation.table_error != TABLE_E_ABSENT)
        code = CLI_WRONG;
    explain_judge(context, &explanation);
    if (explain->json)
        explain_print_json(context, own, &explanation);
    else
        explain_print_text(context, own, &explanation);
    return code;
}

int cmd_explain(int argc, char **argv)
{
    struct explain explain = {0};
    struct cli_context context;

    if (argp_parse(&explain_argp, argc, argv, 0, NULL, &explain) != 0)
        return CLI_USAGE;
    char *own = explain.settings.set ? strdup(explain.settings.set) : NULL;
    int code = cli_settings_apply(&explain.settings);
    if (code == CLI_OK && (code = cli_context_open_good(&context)) == CLI_OK) {
        code = show(&context, &explain, own);
        cli_context_close(&context);
    }
    free(own);
    return code;
}
