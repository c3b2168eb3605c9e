/*
 * config.c - finding, reading and keeping a configuration.
 */
#include "base/kernel.h"
#include "config/load.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdio.h>
#include <unistd.h>

#define CONFIG_FILE_MAX (1 << 20)

/* --- what the reader and inih tell
 * --------------------------------------------------------------- */

static void line_refused(struct reader *reader, struct span key, const char *expected,
                         const char *found)
{
    load_problem_here(reader->data, key, expected, found);
}

static void section_begun(struct reader *reader, struct span name)
{
    sections_begin(reader->data, name);
}

/* inih's idea of the section is not needed: the reader announced it. */
static int handle(void *data, const char *section, const char *name, const char *value)
{
    struct load *load = data;

    (void)section;
    load->reader.waiting = false;
    sections_set(load, span_str(name), span_str(value ? value : ""));
    return 1;
}

/* --- the file ----------------------------------------------------------------------------------
 */

/* NULL: it is not. */
static const char *why_refused(const struct stat *st, char *buf, size_t size)
{
    if (!S_ISREG(st->st_mode))
        return "a directory or a device";
    if (st->st_uid != 0 && st->st_uid != kernel_euid())
        return "a file of another owner";
    if (st->st_mode & 0022) {
        snprintf(buf, size, "one that group or others may write (mode %04o): chmod go-w",
                 (unsigned)st->st_mode & 07777);
        return buf;
    }
    if (st->st_size > CONFIG_FILE_MAX)
        return "a larger file";
    return NULL;
}

/* Fills `text`; false: the file could not be read to its end. A file that shrank meanwhile is
 * being written: its end may stand for something else. */
static bool read_all(int fd, char *text, size_t size)
{
    size_t at = 0;

    while (at < size) {
        ssize_t n = read(fd, text + at, size - at);
        if (n > 0)
            at += (size_t)n;
        else if (n == 0 || errno != EINTR)
            return false;
    }
    return true;
}

/* The whole file in `memory`, or NULL with the problem told. Symlinks are followed (dot
 * files often are some); what they lead to is judged. */
static char *read_file(struct load *load, struct arena *memory, size_t *len)
{
    static const char expected[] = "a readable regular file of root or of yours, not writable by "
                                   "group or others, of at most 1 MiB";
    struct stat st;
    char why[80], *text = NULL;
    const char *found = NULL;
    int fd = open(load->config->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0 || kernel_fstat(fd, &st) != 0) {
        load->passing = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == EINTR;
        found = errno == ENOENT ? "no such file" : "one that cannot be opened";
    } else if (!(found = why_refused(&st, why, sizeof why))) {
        *len = (size_t)st.st_size;
        text = arena_alloc(memory, *len + 1);
        load->passing = !text;
        if (!text)
            found = "no memory";
        else if (!read_all(fd, text, *len))
            found = "one that cannot be read to its end";
    }
    if (fd >= 0)
        close(fd);
    if (found) {
        load_problem(load, load->config->file, 0, SPAN_LIT("file"), expected, found);
        load->passing = false;
        return NULL;
    }
    return text;
}

static void load_file(struct load *load, const char *path)
{
    char *file = load->config->file;
    size_t room = sizeof load->config->file, len = 0;

    if (*path != '/') {
        /* It would be another file, or none, after each chdir(); and a cloned repository would
         * bring its own. */
        char found[100];
        snprintf(found, sizeof found, "\"%.90s\"", path);
        load_problem(load, "BREAKER_CONFIG", 0, SPAN_LIT("file"), "an absolute path", found);
        return;
    }
    if (snprintf(file, room, "%s", path) >= (int)room) {
        char found[40];
        snprintf(found, sizeof found, "one of %zu", strlen(path));
        load_problem(load, path, 0, SPAN_LIT("file"), "a path of at most 255 bytes", found);
        return;
    }
    struct arena memory = {NULL};
    char *text = read_file(load, &memory, &len);
    if (text) {
        load->reader = (struct reader){.text = span_of(text, len),
                                       .refused = line_refused,
                                       .section = section_begun,
                                       .data = load};
        /* Its line is on the stack, unless a distribution decided otherwise (INI_USE_STACK). */
        int error = ini_parse_stream(reader_next, &load->reader, handle, load);
        load->passing = error < 0; /* inih's own: no memory */
        /* The reader tells of lines; this is memory, or a new inih. */
        if (error && load->problems == 0)
            load_problem(load, file, error > 0 ? (unsigned)error : 0, SPAN_LIT("file"),
                         "one that inih can read", "something else");
        load->passing = false;
        sections_check(load);
    }
    arena_free(&memory);
    load->reader = (struct reader){0};
}

/* --- public ------------------------------------------------------------------------------------
 */

void config_free(struct config *config)
{
    if (config)
        arena_free(&config->memory);
}

/* An empty one, the first piece of its own memory. */
static struct config *begin_config(void)
{
    struct arena memory = {NULL};
    struct config *config = arena_alloc(&memory, sizeof *config);

    if (config)
        config->memory = memory;
    return config;
}

struct config *config_load(const struct config_source *source, config_report *report, void *data)
{
    int saved = errno;
    struct load load = {.report = report, .data = data};

    load.config = begin_config();
    if (load.config && source->path)
        load_file(&load, source->path);
    if (load.config)
        overrides_load(&load, source);
    if (load.config && !load.cut) {
        fallbacks_check(&load, source);
        names_check(&load);
    }
    if (load.config && load.problems == 0 && config_settle(load.config)) {
        advice_give(&load);
        errno = saved;
        return load.config;
    }
    config_free(load.config);
    errno = saved;
    return NULL;
}

static bool exists(const char *path)
{
    struct stat st;

    return kernel_stat(path, &st) == 0;
}

const char *config_find(const char *named_path, const char *home, char *buf, size_t size,
                        bool *named)
{
    int saved = errno;
    const char *found = NULL;

    *named = named_path && *named_path;
    if (*named)
        return named_path;
    if ((home && home[0] == '/' &&
         snprintf(buf, size, "%s/.config/breaker/breaker.ini", home) < (int)size && exists(buf)) ||
        (snprintf(buf, size, "/etc/breaker/breaker.ini") < (int)size && exists(buf)))
        found = buf;
    errno = saved;
    return found;
}
