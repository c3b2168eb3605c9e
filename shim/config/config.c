#include "config/config.h"

#include "config/reader.h"
#include "config/load.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CONFIG_FILE_MAX (1 << 20)

/* --- problems ----------------------------------------------------------------------------------
 */

void load_problem(struct load *load, const char *file, unsigned line, struct span key,
                  const char *expected, const char *found)
{
    struct config_problem p = {.line = line};

    load->problems++;
    if (!load->report)
        return;
    snprintf(p.file, sizeof p.file, "%s", file);
    snprintf(p.key, sizeof p.key, "%.*s", (int)(key.len < 60 ? key.len : 60), key.ptr);
    snprintf(p.text, sizeof p.text, "expected %.180s, found %.120s", expected, found);
    load->report(&p, load->data);
}

static void problem_here(struct load *load, struct span key, const char *expected,
                         const char *found)
{
    load_problem(load, load->config->file, load->reader.line, key, expected, found);
}

static void line_refused(struct reader *reader, const char *expected, const char *found)
{
    problem_here(reader->data, SPAN_LIT("line"), expected, found);
}

/* What was expected of an option, with its bounds. */
static const char *expectation(const struct option *option, char *buf, size_t size)
{
    if (option->min != option->max && option->type != VALUE_STATUS)
        snprintf(buf, size, "%s from %g to %g", option->expected, option->min, option->max);
    else
        snprintf(buf, size, "%s", option->expected);
    return buf;
}

/* --- values ------------------------------------------------------------------------------------
 */

void load_value(struct load *load, struct layer *layer, const char *file, unsigned line,
                struct span key, struct span text)
{
    char expected[200], found[120];
    enum config_option option = option_find(key);

    snprintf(found, sizeof found, "\"%.*s\"", (int)(text.len < 100 ? text.len : 100), text.ptr);
    if (option == OPTION_COUNT) {
        snprintf(expected, sizeof expected, "a key such as %s", option_nearest(key));
        load_problem(load, file, line, key, expected, "an unknown key");
        return;
    }
    const struct option *info = &options[option];
    if (load->target && layer == load->layer && info->global) {
        load_problem(load, file, line, key, "a key that a target may set",
                     "one for [breaker] only");
        return;
    }
    if (layer_has(layer, option)) {
        if (info->type != VALUE_STATUS)
            load_problem(load, file, line, key, "each key once",
                         "it was set before in this section");
        else if (!value_append(info, text, &layer->value[option]))
            load_problem(load, file, line, key, expectation(info, expected, sizeof expected),
                         found);
        return;
    }
    if (!value_parse(info, text, &layer->value[option])) {
        load_problem(load, file, line, key, expectation(info, expected, sizeof expected), found);
        return;
    }
    layer->set[option / 32] |= UINT32_C(1) << (option % 32);
    layer->line[option] = line;
}

/* --- targets -----------------------------------------------------------------------------------
 */

static bool set_pattern(struct target *target, struct span text)
{
    const char *slash = text.len ? memchr(text.ptr, '/', text.len) : NULL;
    size_t host_len = slash ? (size_t)(slash - text.ptr) : text.len;
    struct span model = span_skip(text, host_len);

    if (host_len == 0 || text.len >= CONFIG_PATTERN_MAX || model.len == 1)
        return false;
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] <= 0x20)
            return false;
    for (size_t i = 0; i < host_len; i++)
        target->pattern[i] = span_lower(text.ptr[i]);
    if (host_len > 4 && memcmp(target->pattern + host_len - 4, ":443", 4) == 0)
        host_len -= 4;
    memcpy(target->pattern + host_len, model.ptr, model.len);
    target->pattern[host_len + model.len] = '\0';
    target->host_len = host_len;
    return true;
}

static struct target *add_target(struct load *load, struct span name)
{
    struct config *config = load->config;

    if (config->target_count == config->target_room) {
        unsigned room = config->target_room ? config->target_room * 2 : 8;
        struct target **more = realloc(config->targets, room * sizeof *more);
        if (!more)
            return NULL;
        config->targets = more;
        config->target_room = room;
    }
    struct target *target = calloc(1, sizeof *target);
    if (!target)
        return NULL;
    memcpy(target->name, name.ptr, name.len);
    target->line = load->reader.line;
    target->order = config->target_count;
    config->targets[config->target_count++] = target;
    return target;
}

static struct target *find_target(const struct config *config, struct span name)
{
    for (unsigned i = 0; i < config->target_count; i++)
        if (span_eq(span_str(config->targets[i]->name), name))
            return config->targets[i];
    return NULL;
}

/* --- sections ----------------------------------------------------------------------------------
 */

static void begin_target(struct load *load, struct span name)
{
    struct span key = span_str(load->section);

    if (name.len == 0 || name.len > CONFIG_NAME_MAX - 7) {
        problem_here(load, key,
                     "a target name of at most 41 bytes (a longer pattern goes into match =)",
                     name.len ? "a longer one" : "none");
    } else if (find_target(load->config, name)) {
        problem_here(load, key, "each target once", "it stands above already");
    } else if (load->config->target_count == CONFIG_TARGETS_MAX) {
        problem_here(load, key, "at most 256 targets", "one more");
    } else if (!(load->target = add_target(load, name))) {
        problem_here(load, key, "memory", "none");
    } else {
        load->layer = &load->target->layer;
        if (!set_pattern(load->target, name))
            load->target->pattern[0] = '\0'; /* told at the end, unless match = gives one */
    }
}

static void begin_section(struct load *load, const char *section)
{
    struct span name = span_of(section, strlen(section));

    load->layer = NULL;
    load->target = NULL;
    load->in_section = true;
    snprintf(load->section, sizeof load->section, "[%.*s]", CONFIG_NAME_MAX, name.ptr);
    if (span_eq(name, SPAN_LIT("breaker"))) {
        load->layer = &load->config->breaker;
    } else if (span_starts(name, SPAN_LIT("target "))) {
        name = span_skip(name, 7);
        while (name.len > 0 && name.ptr[0] == ' ')
            name = span_skip(name, 1);
        begin_target(load, name);
    } else {
        problem_here(load, span_str(load->section), "[breaker] or [target NAME]",
                     "an unknown section");
    }
}

static void set_in_section(struct load *load, struct span key, struct span value)
{
    if (!load->layer)
        return; /* its section was told */
    if (load->target && span_eq(key, SPAN_LIT("match"))) {
        if (load->target->pattern_given)
            problem_here(load, key, "each key once", "it was set before in this section");
        load->target->pattern_given = true;
        if (!set_pattern(load->target, value)) {
            problem_here(load, key, "HOST[/MODEL], with * and ?",
                         value.len ? value.ptr : "nothing");
            load->target->pattern[0] = '*'; /* told once */
        }
        return;
    }
    load_value(load, load->layer, load->config->file, load->reader.line, key, value);
}

/* inih calls it per key; a section without keys is not told, and does nothing. */
static int handle(void *data, const char *section, const char *name, const char *value)
{
    struct load *load = data;
    char shown[CONFIG_NAME_MAX + 16];

    snprintf(shown, sizeof shown, "[%.*s]", CONFIG_NAME_MAX, section);
    if (!load->in_section || strcmp(shown, load->section) != 0)
        begin_section(load, section);
    set_in_section(load, span_str(name), span_str(value ? value : ""));
    return 1;
}

static void check_patterns(struct load *load)
{
    for (unsigned i = 0; i < load->config->target_count; i++) {
        const struct target *target = load->config->targets[i];
        if (target->pattern[0] == '\0')
            load_problem(load, load->config->file, target->line, span_str(target->name),
                         "HOST[/MODEL] as the target's name, or match =", "neither");
    }
}

/* --- the file ----------------------------------------------------------------------------------
 */

static const char *why_refused(const struct stat *st)
{
    if (!S_ISREG(st->st_mode))
        return "something else";
    if (st->st_uid != 0 && st->st_uid != geteuid())
        return "a file of another owner";
    if (st->st_mode & 0022)
        return "a file that others may write";
    if (st->st_size > CONFIG_FILE_MAX)
        return "a larger file";
    return NULL;
}

/* The whole file in memory of its own, or NULL with the problem told. */
static char *read_file(struct load *load, size_t *len)
{
    static const char expected[] =
        "a readable regular file of root or of yours, writable by nobody else, of at most 1 MiB";
    struct stat st;
    char *text = NULL;
    const char *found = NULL;
    int fd = open(load->config->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0 || fstat(fd, &st) != 0)
        found = errno == ENOENT ? "no such file" : "one that cannot be opened";
    else
        found = why_refused(&st);
    if (!found && !(text = malloc((size_t)st.st_size + 1)))
        found = "no memory";
    if (!found) {
        size_t at = 0;
        ssize_t n;
        while (at < (size_t)st.st_size && (n = read(fd, text + at, (size_t)st.st_size - at)) > 0)
            at += (size_t)n;
        *len = at;
    }
    if (fd >= 0)
        close(fd);
    if (found)
        load_problem(load, load->config->file, 0, SPAN_LIT("file"), expected, found);
    return text;
}

static void load_file(struct load *load, const char *path)
{
    size_t len = 0;

    if (snprintf(load->config->file, sizeof load->config->file, "%s", path) >=
        (int)sizeof load->config->file) {
        load_problem(load, path, 0, SPAN_LIT("file"), "a path of at most 255 bytes",
                     "a longer one");
        return;
    }
    char *text = read_file(load, &len);
    if (!text)
        return;
    load->reader =
        (struct reader){.text = span_of(text, len), .refused = line_refused, .data = load};
    unsigned told = load->problems;
    int error = ini_parse_stream(reader_next, &load->reader, handle, load);
    if (error > 0 && load->problems == told)
        load_problem(load, load->config->file, (unsigned)error, SPAN_LIT("line"),
                     "[section], key = value, or a comment", "something else");
    else if (error < 0)
        load_problem(load, load->config->file, 0, SPAN_LIT("file"), "memory", "none");
    check_patterns(load);
    free(text);
}

/* --- public ------------------------------------------------------------------------------------
 */

void config_free(struct config *config)
{
    if (!config)
        return;
    for (unsigned i = 0; i < config->target_count; i++)
        free(config->targets[i]);
    free(config->targets);
    free(config->ranked);
    free(config);
}

struct config *config_load(const struct config_source *source, config_report *report, void *data)
{
    int saved = errno;
    struct load load = {.report = report, .data = data};

    load.config = calloc(1, sizeof *load.config);
    if (load.config && source->path)
        load_file(&load, source->path);
    if (load.config) {
        load_overrides(&load, source);
        load.config->ranked = calloc(load.config->target_count + 1, sizeof *load.config->ranked);
    }
    if (!load.config || !load.config->ranked || load.problems) {
        config_free(load.config);
        load.config = NULL;
    } else {
        config_rank(load.config);
        config_base(load.config);
    }
    errno = saved;
    return load.config;
}

static bool exists(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0;
}

const char *config_find(const char *named_path, const char *home, char *buf, size_t size,
                        bool *named)
{
    int saved = errno;
    const char *found = NULL;

    *named = named_path && *named_path;
    if (*named)
        return named_path;
    if (home && home[0] == '/' &&
        snprintf(buf, size, "%s/.config/breaker/breaker.ini", home) < (int)size && exists(buf))
        found = buf;
    else if (snprintf(buf, size, "/etc/breaker/breaker.ini") < (int)size && exists(buf))
        found = buf;
    errno = saved;
    return found;
}
