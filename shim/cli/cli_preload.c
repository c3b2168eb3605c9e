#include "cli/cli.h"

#include <link.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

#define LIBRARY "libbreaker.so"

/* The directory of this program, without a slash at its end. */
static bool own_directory(char *buf)
{
    ssize_t len = readlink("/proc/self/exe", buf, PATH_MAX - 1);

    if (len > 0) {
        buf[len] = '\0';
    } else {
        /* No /proc: the kernel's word on what was executed. */
        const char *executed = (const char *)getauxval(AT_EXECFN);
        if (!executed || !realpath(executed, buf))
            return false;
    }
    char *slash = strrchr(buf, '/');
    if (!slash)
        return false;
    *slash = '\0';
    return true;
}

/* What the loader puts for $LIB ("lib/x86_64-linux-gnu", "lib64"), told by where libc was found. */
static int note_libc_directory(struct dl_phdr_info *info, size_t size, void *data)
{
    struct span name = span_str(info->dlpi_name), *directory = data;
    struct span usr = SPAN_LIT("/usr/"), libc = SPAN_LIT("/libc.so.6");

    (void)size;
    if (name.len <= libc.len || name.ptr[0] != '/' || !span_ends(name, libc))
        return 0;
    name.len -= libc.len;
    *directory = span_skip(name, span_starts(name, usr) ? usr.len : 1);
    return 1;
}

static bool readable(const char *path)
{
    return access(path, R_OK) == 0;
}

static bool fits(int printed)
{
    return printed >= 0 && printed < PATH_MAX;
}

/*
 * PREFIX/bin/breaker: the library is at PREFIX/$LIB/breaker. The literal $LIB is passed on where
 * the loader reads it as that very directory: programs of the other word size then look in their
 * own instead of complaining of ours.
 */
static bool find_installed(const char *prefix, char *buf)
{
    static const char *const plain[] = {"lib64", "lib"};
    struct span lib = SPAN_NONE;

    dl_iterate_phdr(note_libc_directory, &lib);
    if (lib.ptr &&
        fits(snprintf(buf, PATH_MAX, "%s/%.*s/breaker/" LIBRARY, prefix, (int)lib.len, lib.ptr)) &&
        readable(buf))
        return fits(snprintf(buf, PATH_MAX, "%s/$LIB/breaker/" LIBRARY, prefix));
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (fits(snprintf(buf, PATH_MAX, "%s/%s/breaker/" LIBRARY, prefix, plain[i])) &&
            readable(buf))
            return true;
    return false;
}

static bool find_by_own_place(char *buf)
{
    char directory[PATH_MAX];

    if (!own_directory(directory))
        return false;
    if (fits(snprintf(buf, PATH_MAX, "%s/" LIBRARY, directory)) && readable(buf))
        return true;
    char *base = strrchr(directory, '/');
    if (!base || strcmp(base, "/bin") != 0)
        return false;
    *base = '\0';
    return find_installed(directory, buf);
}

bool cli_preload_library(char *buf, size_t size)
{
    char path[PATH_MAX];
    const char *given = getenv("BREAKER_LIB");

    if (given && *given) {
        if (!realpath(given, path)) {
            cli_text_complain("no library at BREAKER_LIB=%s", given);
            return false;
        }
    } else if (!find_by_own_place(path)) {
        cli_text_complain("cannot find " LIBRARY " beside this program or below its prefix");
        return false;
    }
    if (strpbrk(path, " :")) {
        cli_text_complain("%s cannot be preloaded: the loader takes no path with a space or a "
                          "colon; install it elsewhere",
                          path);
        return false;
    }
    return (size_t)snprintf(buf, size, "%s", path) < size;
}

/* Ours, whatever its directory: two copies would judge every call twice. */
static bool is_ours(struct span entry)
{
    return span_eq(entry, SPAN_LIT(LIBRARY)) || span_ends(entry, SPAN_LIT("/" LIBRARY));
}

/* gcc's AddressSanitizer ends a program in which anything was loaded before its runtime. */
static bool wants_to_be_first(struct span entry)
{
    const char *slash = entry.len ? memrchr(entry.ptr, '/', entry.len) : NULL;
    struct span base = slash ? span_skip(entry, (size_t)(slash + 1 - entry.ptr)) : entry;

    return span_starts(base, SPAN_LIT("libasan.so"));
}

/* Those of the entries that stand before ours, or after; each with its colon. */
static void write_entries(FILE *out, const char *old, bool before)
{
    for (const char *at = old ? old : ""; *at;) {
        struct span entry = span_of(at, strcspn(at, " :"));
        if (entry.len && !is_ours(entry) && wants_to_be_first(entry) == before)
            fprintf(out, "%s%.*s%s", before ? "" : ":", (int)entry.len, entry.ptr,
                    before ? ":" : "");
        at += entry.len + (at[entry.len] != '\0');
    }
}

char *cli_preload_value(const char *library, const char *old)
{
    char *value = NULL;
    size_t size;
    FILE *out = open_memstream(&value, &size);

    if (!out)
        return NULL;
    write_entries(out, old, true);
    fputs(library, out);
    write_entries(out, old, false);
    if (fclose(out) != 0) {
        free(value);
        return NULL;
    }
    return value;
}
