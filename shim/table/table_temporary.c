/*
 * table_temporary.c - files on their way to the table's name, and what is left of them when their
 * maker is killed: 516 KiB that nobody looks for.
 *
 * A maker holds a lock on its file until the name is gone. The kernel lets go of it when the maker
 * is dead, whatever pid it had in whatever namespace, and not while it is merely stopped: whoever
 * gets the lock may take the name away. One that has been there for a moment only may be about to
 * be locked, or of an earlier version, which locks nothing: it has its time.
 */
#include "table/table_file.h"

#include "base/clock.h"
#include "base/kernel.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#define GRACE_S 60

/* A directory that the user named may be full of other things: some 800 names are enough. */
#define LIST_READS 64
#define LIST_SIZE  1024

#define NAME_START  ".breaker-"
#define NAME_END    ".tmp"
#define PID_DIGITS  10 /* at most */
#define WORD_DIGITS 16

int table_temporary_make(int dirfd, uint64_t random, char name[TABLE_TEMPORARY_SIZE])
{
    snprintf(name, TABLE_TEMPORARY_SIZE, NAME_START "%ld-%016llx" NAME_END, (long)getpid(),
             (unsigned long long)random);
    int fd = openat(dirfd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    /* Where there are no locks nobody else gets one either. */
    (void)flock(fd, LOCK_EX | LOCK_NB);
    return fd;
}

/* Just as they are made. */
static bool is_name_of_ours(const char *name)
{
    size_t digits;

    if (strncmp(name, NAME_START, sizeof NAME_START - 1) != 0)
        return false;
    name += sizeof NAME_START - 1;
    digits = strspn(name, "0123456789");
    if (digits == 0 || digits > PID_DIGITS || name[0] == '0' || name[digits] != '-')
        return false;
    name += digits + 1;
    return strspn(name, "0123456789abcdef") == WORD_DIGITS &&
           strcmp(name + WORD_DIGITS, NAME_END) == 0;
}

/* Is it one of this user's, that is not being made just now? */
static bool is_file_of_ours(const struct stat *st)
{
    return S_ISREG(st->st_mode) && st->st_uid == kernel_euid() && st->st_size <= TABLE_FILE_SIZE &&
           st->st_mtim.tv_sec < clock_system.wall_ms() / 1000 - GRACE_S;
}

/* Looked at before it is opened: a FIFO or a device might do something then. Of a name that is put
 * there meanwhile no more than the name can go, in a directory of who puts it there. */
static void remove_left(int dirfd, const char *name)
{
    struct stat st, open_st;

    if (kernel_lstatat(dirfd, name, &st) != 0 || !is_file_of_ours(&st))
        return;
    int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (kernel_fstat(fd, &open_st) == 0 && open_st.st_dev == st.st_dev &&
        open_st.st_ino == st.st_ino && flock(fd, LOCK_EX | LOCK_NB) == 0)
        unlinkat(dirfd, name, 0);
    close(fd);
}

void table_temporary_sweep(int dirfd)
{
    _Alignas(struct dirent64) char list[LIST_SIZE];
    int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ssize_t got = 0;

    for (int i = 0; fd >= 0 && i < LIST_READS && (got = getdents64(fd, list, sizeof list)) > 0; i++)
        for (ssize_t at = 0; at < got;) {
            const struct dirent64 *entry = (const void *)(list + at);
            if (is_name_of_ours(entry->d_name))
                remove_left(dirfd, entry->d_name);
            at += entry->d_reclen;
        }
    if (fd >= 0)
        close(fd);
}
