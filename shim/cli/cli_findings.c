#include "cli/cli.h"

#include "base/distance.h"
#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define NAME_SIZE 64

const char *cli_disabled(void)
{
    const char *value = getenv("BREAKER_DISABLED");

    if (!shim_disabled())
        return NULL;
    return value && *value && strcmp(value, "0") != 0
               ? "BREAKER_DISABLED is set"
               : "there are more BREAKER_ variables than the library reads (64, of 16 KiB)";
}

static void tell(config_report *report, void *data, const char *place, const char *key,
                 const char *expected, const char *found)
{
    struct config_problem problem = {0};

    snprintf(problem.file, sizeof problem.file, "%s", place);
    snprintf(problem.key, sizeof problem.key, "%s", key);
    snprintf(problem.text, sizeof problem.text, "expected %.100s, found %.190s", expected, found);
    report(&problem, data);
}

/* --- variables -------------------------------------------------------------------------------- */

static const char *const other_names[] = {"CONFIG", "DISABLED", "LIB", "SET"};
#define OTHER_COUNT (sizeof other_names / sizeof *other_names)

static void upper(struct span text, char buf[NAME_SIZE])
{
    size_t len = text.len < NAME_SIZE ? text.len : NAME_SIZE - 1;

    for (size_t i = 0; i < len; i++)
        buf[i] = text.ptr[i] >= 'a' && text.ptr[i] <= 'z' ? (char)(text.ptr[i] - 'a' + 'A')
                                                          : text.ptr[i];
    buf[len] = '\0';
}

/* The n-th name that is read, without BREAKER_; false past the last. */
static bool known_name(size_t n, char buf[NAME_SIZE])
{
    const struct config_option_info *info;

    if (n < OTHER_COUNT) {
        strcpy(buf, other_names[n]);
        return true;
    }
    if (n - OTHER_COUNT >= OPTION_COUNT ||
        !(info = config_option_info((enum config_option)(n - OTHER_COUNT))))
        return false;
    upper(span_str(info->key), buf);
    return true;
}

/* Finds the known name that is nearest, in any case; "": none is near. True: it is that very name.
 */
static bool is_known(struct span name, char nearest[NAME_SIZE])
{
    unsigned best = DISTANCE_FAR;
    char known[NAME_SIZE], in_upper[NAME_SIZE];

    upper(name, in_upper);
    *nearest = '\0';
    for (size_t n = 0; known_name(n, known); n++) {
        unsigned distance = distance_if_near(span_str(in_upper), span_str(known));
        if (distance < best) {
            best = distance;
            strcpy(nearest, known);
        }
    }
    return *nearest && span_eq(name, span_str(nearest));
}

unsigned cli_find_unknown_variables(config_report *report, void *data)
{
    struct span prefix = SPAN_LIT("BREAKER_");
    char nearest[NAME_SIZE], place[NAME_SIZE + 8], expected[NAME_SIZE + 32];
    unsigned found = 0;

    for (char **entry = environ; entry && *entry; entry++) {
        struct span name = span_of(*entry, strcspn(*entry, "="));
        if (!span_starts(name, prefix) || is_known(span_skip(name, prefix.len), nearest))
            continue;
        snprintf(place, sizeof place, "%.*s", (int)name.len, name.ptr);
        snprintf(expected, sizeof expected, "%s%s",
                 *nearest ? "a variable such as BREAKER_"
                          : "BREAKER_ and a key that `breaker config` shows, in upper case",
                 nearest);
        tell(report, data, place, "", expected, "an unknown one, which has no effect");
        found++;
    }
    return found;
}

/* --- files ------------------------------------------------------------------------------------ */

/* Makes a file in this directory, and leaves none: one without a name, or, where the file system
 * has no such files, one that is gone at once. 0 or an errno. */
static int try_file(const char *directory)
{
    char path[PATH_MAX + sizeof "/.breaker-XXXXXX"];
    int fd = open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

    if (fd < 0) {
        snprintf(path, sizeof path, "%s/.breaker-XXXXXX", directory);
        if ((fd = mkostemp(path, O_CLOEXEC)) < 0)
            return errno;
        unlink(path);
    }
    close(fd);
    return 0;
}

/* Why no file can be made in this directory; NULL: one can. It is tried: root may write everywhere,
 * but a file system may have no room for files (/proc, /sys). */
static const char *why_not_into(const char *directory)
{
    struct stat st;

    if (stat(directory, &st) != 0)
        return errno == ENOENT ? "no such directory" : strerror(errno);
    if (!S_ISDIR(st.st_mode))
        return "a path through something that is no directory";
    int cause = try_file(directory);
    switch (cause) {
    case 0:
        return NULL;
    case EACCES:
    case EPERM:
        return "a directory that you may not write";
    case ENOENT:
        return "a directory that takes no files";
    default:
        return strerror(cause);
    }
}

static const char *why_no_log(const char *path)
{
    char directory[PATH_MAX];
    struct stat st;

    if (lstat(path, &st) != 0) {
        cli_path_directory(path, directory);
        return errno == ENOENT ? why_not_into(directory) : strerror(errno);
    }
    if (S_ISLNK(st.st_mode))
        return "a symlink";
    if (!S_ISREG(st.st_mode))
        return "no regular file";
    return eaccess(path, W_OK) == 0 ? NULL : "a file that you may not write";
}

/* Why no new table finds room in this directory; NULL: one does. */
static const char *why_no_room(const char *directory)
{
    const char *why = why_not_into(directory);
    struct statvfs space;
    struct rlimit limit;

    if (why)
        return why;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < TABLE_FILE_SIZE)
        return table_strerror(TABLE_E_NO_SPACE);
    /* One without blocks counts none: a tmpfs that has no limit. */
    if (statvfs(directory, &space) == 0 && space.f_blocks != 0 &&
        (uint64_t)space.f_bavail * space.f_frsize < TABLE_FILE_SIZE)
        return table_strerror(TABLE_E_NO_SPACE);
    return NULL;
}

/* As table_open() would fare: an existing table is judged by attaching it, and where there is none
 * the last directory may still have to be made. */
static const char *why_no_table(const char *path, bool named, char why[CLI_WHY_SIZE])
{
    char directory[PATH_MAX], above[PATH_MAX];
    struct table table = {0};
    struct stat st;

    int error = table_attach(&table, path, named);
    table_close(&table);
    if (error != TABLE_E_ABSENT)
        return error == TABLE_OK ? NULL : cli_table_why(error, path, named, why);
    cli_path_directory(path, directory);
    cli_path_directory(directory, above);
    return why_no_room(lstat(directory, &st) == 0 ? directory : above);
}

unsigned cli_find_unusable_files(const struct config *config, config_report *report, void *data)
{
    const char *log = config_log_path(config), *table = config_table_path(config);
    char path[PATH_MAX], buf[CLI_WHY_SIZE];
    bool named = *table != '\0';
    unsigned found = 0;

    const char *why = *log ? why_no_log(log) : NULL;
    if (why) {
        tell(report, data, log, "log", "a regular file that you may write, or room for one", why);
        found++;
    }
    if (!named && table_default_path(path, sizeof path) == TABLE_OK)
        table = path;
    why = *table ? why_no_table(table, named, buf) : NULL;
    if (why) {
        tell(report, data, table, "table", "a table of yours, or room for one", why);
        found++;
    }
    return found;
}
