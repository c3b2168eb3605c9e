/*
 * cli_table.c - why a table may not be used, by the rules of table_attach.c: which of them it
 * breaks, and what mends it.
 */
#include "cli/cli.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OWNER_SIZE 128

void cli_path_directory(const char *path, char buf[PATH_MAX])
{
    snprintf(buf, PATH_MAX, "%s", path);
    char *slash = strrchr(buf, '/');
    if (slash)
        slash[slash == buf] = '\0';
}

/* What is wrong, written into `buf`; returns it. */
#define SAY(...) (snprintf(buf, CLI_WHY_SIZE, __VA_ARGS__), buf)

static const char *owner_text(uid_t uid, char buf[OWNER_SIZE])
{
    const struct passwd *user = getpwuid(uid);

    snprintf(buf, OWNER_SIZE, "uid %u%s%s", uid, user ? ", " : "", user ? user->pw_name : "");
    return buf;
}

/* "belongs to uid 1000, alice, not to you (uid 0, root)" */
static const char *say_owner(const char *what, uid_t uid, char buf[CLI_WHY_SIZE])
{
    char theirs[OWNER_SIZE], ours[OWNER_SIZE];

    return SAY("refused: %s belongs to %s, not to you (%s)", what, owner_text(uid, theirs),
               owner_text(geteuid(), ours));
}

static const char *say_mode(const char *what, mode_t found, unsigned needed, char buf[CLI_WHY_SIZE])
{
    return SAY("refused: %smode %04o, where %04o is needed (chmod %o)", what, found & 07777u,
               needed, needed);
}

/* Of one that root owns, and that was named: it may be a group's. NULL: nothing of these. */
static const char *judge_of_group(const char *path, const struct stat *st, char buf[CLI_WHY_SIZE])
{
    const struct group *group = getgrgid(st->st_gid);
    const char *name = group ? group->gr_name : "";
    unsigned mode = st->st_mode & 07777;

    if (mode & S_IWOTH)
        return SAY("refused: it is root's, with mode %04o, and others may write it (chmod o-w)",
                   mode);
    if (geteuid() != 0 && !group_member(st->st_gid))
        return SAY("refused: it is root's, for the group %u%s%s, and you are not in it", st->st_gid,
                   group ? ", " : "", name);
    if (eaccess(path, R_OK | W_OK) != 0)
        return SAY("refused: it is root's, with mode %04o, by which its group may not read and "
                   "write it (chmod 660)",
                   mode);
    return NULL;
}

static const char *judge_file(const char *path, bool named, const struct stat *st,
                              char buf[CLI_WHY_SIZE])
{
    const char *why = NULL;

    if (!S_ISREG(st->st_mode))
        return SAY("refused: %s", S_ISLNK(st->st_mode)   ? "a symlink"
                                  : S_ISDIR(st->st_mode) ? "a directory"
                                                         : "no regular file");
    if (named && st->st_uid == 0)
        why = judge_of_group(path, st, buf);
    else if (st->st_uid != geteuid())
        why = say_owner("it", st->st_uid, buf);
    else if ((st->st_mode & 07777) != 0600)
        why = say_mode("", st->st_mode, 0600, buf);
    if (!why && st->st_size != TABLE_FILE_SIZE)
        why = SAY("refused: %lld bytes, where a table has %lld", (long long)st->st_size,
                  (long long)TABLE_FILE_SIZE);
    /* Then it may be used; it was to be replaced. */
    if (!why && st->st_uid != geteuid())
        why = "it is root's, and only root puts a fresh one in its place";
    return why;
}

/* The default one's. NULL: nothing is wrong with it, or it cannot be seen. */
static const char *judge_directory(const char *path, char buf[CLI_WHY_SIZE])
{
    char directory[PATH_MAX];
    struct stat st;

    cli_path_directory(path, directory);
    if (lstat(directory, &st) != 0)
        return NULL;
    if (!S_ISDIR(st.st_mode))
        return SAY("refused: its directory is none");
    if (st.st_uid != geteuid())
        return say_owner("its directory", st.st_uid, buf);
    return (st.st_mode & 077) != 0 ? say_mode("its directory has ", st.st_mode, 0700, buf) : NULL;
}

/* Of a path that ends before the file is seen. NULL: not for a reason of these. */
static const char *judge_path(const char *path, int cause, char buf[CLI_WHY_SIZE])
{
    char above[PATH_MAX];

    if (cause == ENOTDIR)
        return "a part of the path is no directory";
    if (cause == ENAMETOOLONG)
        return "a part of the path has more than 255 bytes";
    if (cause == ELOOP)
        return "refused: a loop of symlinks on the path";
    for (size_t i = 1; cause == EACCES && path[i] && i < sizeof above; i++) {
        if (path[i] != '/')
            continue;
        snprintf(above, sizeof above, "%.*s", (int)i, path);
        if (eaccess(above, X_OK) != 0)
            return SAY("refused: you may not enter %s", above);
    }
    return NULL;
}

const char *cli_table_why(int error, const char *path, bool named, char buf[CLI_WHY_SIZE])
{
    const char *why = NULL;
    struct stat st;

    if (error == TABLE_E_FORMAT)
        return SAY("%s; `breaker reset --all` puts a fresh one in its place",
                   table_strerror(error));
    if (error != TABLE_E_REFUSED && error != TABLE_E_PATH)
        return table_strerror(error);
    if (!named)
        why = judge_directory(path, buf);
    if (!why)
        why = lstat(path, &st) != 0 ? judge_path(path, errno, buf)
                                    : judge_file(path, named, &st, buf);
    return why ? why : table_strerror(error);
}
