/*
 * fallbacks.c - [fallback NAME]. A fallback with anything wrong in it is left out as a whole: a
 * call must not go there without its credentials, or with another model than was meant.
 */
#include "config/load.h"
#include "config/place.h"
#include "config/variable.h"
#include "http/url.h"

#include <stdio.h>

static const char known_keys[] = "base, model, auth or header";

/* The text may hold a secret: what is found is told without it. */
static void refuse(struct load *load, struct span key, const char *expected, const char *found)
{
    load->fallback->left_out = true;
    load_skip_here(load, key, expected, found);
}

/* NUL-terminated, in the configuration's memory; NULL: none, and told. */
static char *keep(struct load *load, struct span key, struct span text)
{
    char *copy = arena_alloc(&load->config->memory, text.len + 1);

    if (copy)
        memcpy(copy, text.ptr, text.len);
    else
        load_no_memory(load, load->config->file, load->reader.line, key);
    return copy;
}

/* --- sections ----------------------------------------------------------------------------------
 */

struct fallback *fallbacks_find(const struct config *config, struct span name)
{
    for (unsigned i = 0; i < config->fallback_count; i++)
        if (span_eq(span_str(config->fallbacks[i]->name), name))
            return config->fallbacks[i];
    return NULL;
}

static bool is_good_name(struct span name)
{
    for (size_t i = 0; i < name.len; i++)
        if (strchr(", \t", name.ptr[i]))
            return false;
    return name.len > 0 && !span_has_control(name);
}

static struct fallback *add(struct load *load, struct span name)
{
    struct config *config = load->config;

    if (!config->fallbacks)
        config->fallbacks =
            arena_alloc(&config->memory, CONFIG_FALLBACKS_MAX * sizeof(*config->fallbacks));
    struct fallback *fallback =
        config->fallbacks ? arena_alloc(&config->memory, sizeof *fallback) : NULL;
    if (!fallback)
        return NULL;
    memcpy(fallback->name, name.ptr, name.len);
    fallback->seen =
        (struct config_fallback){.name = fallback->name, .line = load->reader.line, .models = ""};
    config->fallbacks[config->fallback_count++] = fallback;
    return fallback;
}

void fallbacks_begin(struct load *load, struct span key, struct span name)
{
    if (!is_good_name(name))
        load_skip_here(load, key, "[fallback NAME]",
                       name.len ? "a name with a comma or a blank" : "no name");
    else if (fallbacks_find(load->config, name))
        load_skip_here(load, key, "each fallback once", "it again");
    else if (load->config->fallback_count == CONFIG_FALLBACKS_MAX)
        load_skip_here(load, key, "at most 64 fallbacks", "one more");
    else if (!(load->fallback = add(load, name)))
        load_no_memory(load, load->config->file, load->reader.line, key);
}

/* --- keys --------------------------------------------------------------------------------------
 */

static void set_base(struct load *load, struct span key, struct span text)
{
    struct config_fallback *seen = &load->fallback->seen;
    struct place_base base;
    char found[120], *copy, *host_key;

    if (seen->base) {
        refuse(load, key, "each key once", "it again");
        return;
    }
    seen->base_line = load->reader.line;
    seen->base = ""; /* not to be told that there is none */
    if (place_base_parse(text, &base)) {
        place_base_describe(text, found, sizeof found);
        refuse(load, key, options[OPTION_base].expected, found);
        return;
    }
    if (!(copy = keep(load, key, base.text)) || !(host_key = keep(load, key, text)))
        return;
    place_base_parse(span_of(copy, base.text.len), &base);
    seen->base = copy;
    seen->scheme = base.scheme;
    seen->host = base.host;
    seen->port = base.port;
    seen->path = base.path;
    seen->loopback = place_is_loopback(base.host);
    /* "http://HOST" is longer than "HOST:80". */
    load->fallback->key = span_of(host_key, url_host_key(base.host, base.port, host_key, text.len));
}

/* What an item of `model` is, if it is none; NULL: it is GLOB:NAME. */
static const char *fault_of_item(struct span item)
{
    struct span name = item, glob = span_take(&name, ':');

    if (glob.len == item.len)
        return "no ':'";
    if (glob.len == 0)
        return "no GLOB before the ':'";
    if (name.len == 0)
        return "no NAME behind the ':'";
    if (span_has_control(item))
        return "a control character";
    for (struct span rest = name; rest.len > 0;) {
        size_t model = span_starts(rest, SPAN_LIT("{model}")) ? sizeof "{model}" - 1 : 0;
        if (model == 0 && (rest.ptr[0] == '{' || rest.ptr[0] == '}'))
            return "a brace that is not of {model}";
        rest = span_skip(rest, model ? model : 1);
    }
    return NULL;
}

static void set_model(struct load *load, struct span key, struct span text)
{
    struct fallback *fallback = load->fallback;
    struct span item;
    char found[120];

    if (!fallback->models)
        fallback->models = arena_alloc(&load->config->memory, CONFIG_MODELS_MAX);
    if (!fallback->models) {
        load_no_memory(load, load->config->file, load->reader.line, key);
        return;
    }
    fallback->seen.models = fallback->models;
    if (!fallback->seen.models_line)
        fallback->seen.models_line = load->reader.line;
    if (text.len == 0)
        refuse(load, key, "GLOB:NAME, ...", "nothing");
    while (config_next_name(&text, &item)) {
        const char *fault = fault_of_item(item);
        if (!fault && value_add_item(fallback->models, CONFIG_MODELS_MAX, item))
            continue;
        snprintf(found, sizeof found, "\"%.*s\"%s%s", (int)(item.len < 70 ? item.len : 70),
                 item.ptr, fault ? ", which has " : "", fault ? fault : "");
        refuse(load, key, fault ? "GLOB:NAME, ..." : "less than 4096 bytes of models", found);
        return;
    }
}

/* RFC 9110's token. */
static bool is_token(struct span name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = span_lower(name.ptr[i]);
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
              (c && strchr("!#$%&'*+-.^_`|~", c))))
            return false;
    }
    return name.len > 0;
}

/* How a request ends and what its connection is for is libcurl's: another word would cut it, or
 * leave it open. */
static bool is_of_connection(struct span name)
{
    static const struct span names[] = {
        SPAN_LIT("Content-Length"), SPAN_LIT("Transfer-Encoding"), SPAN_LIT("Host"),
        SPAN_LIT("Connection"),     SPAN_LIT("Upgrade"),           SPAN_LIT("TE"),
        SPAN_LIT("Trailer"),        SPAN_LIT("Keep-Alive"),        SPAN_LIT("Proxy-Connection"),
        SPAN_LIT("Expect"),
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (span_ieq(name, names[i]))
            return true;
    return false;
}

/* NULL: all of it is as it should be. */
static const char *fault_of_header(struct span name, struct span value, bool colon)
{
    struct span variable;

    if (!colon)
        return "no ':'";
    if (!is_token(name))
        return "a name that no header can have";
    if (is_of_connection(name))
        return "one of the connection or of the body's length";
    if (value.len == 0)
        return "no value";
    if (span_has_control(value))
        return "a control character";
    while (variable_next(&value, &variable))
        ;
    return value.len > 0 ? "a '$' that begins no ${VAR} ($$ stands for one)" : NULL;
}

/* At headers[place], or told why not. */
static void set_header(struct load *load, struct span key, struct span text, unsigned place)
{
    struct span name = span_until(text, ':');
    struct span value = span_trim(span_skip(text, name.len + 1));
    const char *fault = fault_of_header(name, value, name.len < text.len);
    char *copy;

    if (fault) {
        refuse(load, key, "Name: value", fault);
        return;
    }
    size_t size = name.len + 2 + value.len + 1;
    if (!(copy = arena_alloc(&load->config->memory, size))) {
        load_no_memory(load, load->config->file, load->reader.line, key);
        return;
    }
    memcpy(copy, name.ptr, name.len);
    memcpy(copy + name.len, ": ", 2);
    memcpy(copy + name.len + 2, value.ptr, value.len);
    load->fallback->headers[place] = copy;
    load->fallback->header_lines[place] = load->reader.line;
}

static void set_auth(struct load *load, struct span text)
{
    if (load->fallback->headers[0])
        refuse(load, SPAN_LIT("auth"), "each key once (header = may repeat)", "it again");
    else
        set_header(load, SPAN_LIT("auth"), text, 0);
}

static void add_header(struct load *load, struct span text)
{
    unsigned place = load->fallback->seen.header_count + 1;

    if (place > CONFIG_HEADERS_MAX) {
        refuse(load, SPAN_LIT("header"), "at most 32 headers", "one more");
        return;
    }
    set_header(load, SPAN_LIT("header"), text, place);
    load->fallback->seen.header_count += load->fallback->headers[place] != NULL;
}

void fallbacks_set(struct load *load, struct span key, struct span text)
{
    size_t word = 0;

    text = span_trim(text);
    if (span_eq(key, SPAN_LIT("base"))) {
        set_base(load, key, text);
    } else if (span_eq(key, SPAN_LIT("model"))) {
        set_model(load, key, text);
    } else if (span_eq(key, SPAN_LIT("auth"))) {
        set_auth(load, text);
    } else if (span_eq(key, SPAN_LIT("header"))) {
        add_header(load, text);
    } else {
        /* Where a '=' was forgotten a secret may stand behind the key. */
        while (word < key.len && key.ptr[word] != ' ' && key.ptr[word] != '\t')
            word++;
        refuse(load, span_of(key.ptr, word), known_keys,
               option_find(key) != OPTION_COUNT ? "a key of [breaker] and targets"
               : word < key.len                 ? "more than a key before the '='"
               : key.len                        ? "an unknown key"
                                                : "no key");
    }
}

/* --- the whole ---------------------------------------------------------------------------------
 */

/* Tells of the variables of a header that are not set; true: all are. */
static bool check_variables(struct load *load, const char *header, unsigned line, bool auth,
                            const char *(*look_up)(const char *name))
{
    struct span rest = span_of(header, strlen(header)), variable;
    char name[VARIABLE_NAME_MAX + 1], expected[180];
    bool good = true;

    rest = span_skip(rest, (size_t)(strchr(header, ':') - header));
    while (variable_next(&rest, &variable)) {
        snprintf(name, sizeof name, "%.*s", (int)variable.len, variable.ptr);
        const char *value = look_up(name);
        if (variable_is_usable(value))
            continue;
        snprintf(expected, sizeof expected, "a value of ${%.60s} in the environment, for %.*s",
                 name, (int)strcspn(header, ":"), header);
        load_skip(load, load->config->file, line, auth ? SPAN_LIT("auth") : SPAN_LIT("header"),
                  expected,
                  !value   ? "none"
                  : *value ? "one of several lines"
                           : "an empty one");
        good = false;
    }
    return good;
}

static void check(struct load *load, struct fallback *fallback,
                  const char *(*look_up)(const char *name))
{
    char shown[CONFIG_NAME_MAX + 12];

    if (!fallback->seen.base) {
        snprintf(shown, sizeof shown, "[fallback %s]", fallback->name);
        load_skip(load, load->config->file, fallback->seen.line, span_str(shown),
                  "base = http://HOST[:PORT][/PATH] or https://...", "none");
        fallback->left_out = true;
    }
    for (unsigned i = 0; look_up && i <= fallback->seen.header_count; i++)
        if (fallback->headers[i] && !check_variables(load, fallback->headers[i],
                                                     fallback->header_lines[i], i == 0, look_up))
            fallback->left_out = true;
    bool auth = fallback->headers[0] != NULL;
    fallback->seen.headers = fallback->headers + !auth;
    fallback->seen.header_lines = fallback->header_lines + !auth;
    fallback->seen.has_auth = auth;
    fallback->seen.header_count += auth;
}

void fallbacks_check(struct load *load, const struct config_source *source)
{
    for (unsigned i = 0; i < load->config->fallback_count; i++)
        check(load, load->config->fallbacks[i], source->variable);
}

/* --- public ------------------------------------------------------------------------------------
 */

const struct config_fallback *config_fallback(const struct config *config, struct span name)
{
    const struct fallback *fallback = fallbacks_find(config, name);

    return fallback && !fallback->left_out ? &fallback->seen : NULL;
}

const struct config_fallback *config_fallback_at(const struct config *config, unsigned index)
{
    for (unsigned i = 0; i < config->fallback_count; i++)
        if (!config->fallbacks[i]->left_out && index-- == 0)
            return &config->fallbacks[i]->seen;
    return NULL;
}
