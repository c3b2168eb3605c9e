/*
 * dropped.c - programs that give up rights other than system calls, and go on.
 *
 *   dropped MODE early|late PORT
 *
 * "early": before the first connection. Prints the statuses of three calls of "m".
 */
#include "fence.h"

#include <grp.h>
#include <linux/landlock.h>
#include <sys/resource.h>

static void change_root(void)
{
    char place[] = "/tmp/dropped-XXXXXX";

    MUST(mkdtemp(place) && chroot(place) == 0 && chdir("/") == 0 && rmdir("/") != 0);
}

static void user(void)
{
    KEPT(setgroups(0, NULL));
    KEPT(setgid(65534));
    KEPT(setuid(65534));
}

static void root_and_user(void)
{
    change_root();
    user();
}

/* No file is opened, read or made any more. */
static void landlock(void)
{
    const struct landlock_ruleset_attr all = {
        .handled_access_fs = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE |
                             LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                             LANDLOCK_ACCESS_FS_MAKE_DIR};
    int rules = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof all, 0);

    if (rules < 0)
        _exit(77); /* this kernel has none */
    KEPT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    KEPT(syscall(SYS_landlock_restrict_self, rules, 0));
    KEPT(close(rules));
}

static void limit(int resource, rlim_t most)
{
    const struct rlimit none = {most, most};

    KEPT(setrlimit(resource, &none));
}

static void memory(void)
{
    limit(RLIMIT_AS, 0);
}

static void files(void)
{
    limit(RLIMIT_FSIZE, 0);
}

/* A whole call needs one: the lowest that is free is the last. */
static void descriptors(void)
{
    int lowest = KEPT(dup(0));

    KEPT(close(lowest));
    limit(RLIMIT_NOFILE, (rlim_t)lowest + 1);
}

int main(int count, char **argument)
{
    static const struct mode modes[] = {
        {"root", change_root},        {"user", user},     {"root-and-user", root_and_user},
        {"landlock", landlock},       {"memory", memory}, {"files", files},
        {"descriptors", descriptors},
    };
    bool late;
    int fd = -1;

    MUST(count == 4);
    unsigned port = (unsigned)atoi(argument[3]);
    late = strcmp(argument[2], "late") == 0;
    if (late)
        fd = connected(port);
    RUN_MODE(modes, argument[1]);
    for (int i = 0; i < 3; i++) {
        if (fd < 0)
            fd = connected(port);
        post(fd, port, "m");
        told(read_status(fd));
        if (i == 1) {
            KEPT(close(fd));
            fd = -1;
        }
    }
    _exit(0);
}
