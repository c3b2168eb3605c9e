/*
 * table_file.h - what attaching and creating the table's file share. Private to table/.
 *
 * Nothing here keeps errno: the doors in table.h do.
 */
#ifndef BREAKER_TABLE_TABLE_FILE_H
#define BREAKER_TABLE_TABLE_FILE_H

#include "table/table.h"

#include <limits.h>
#include <sys/stat.h>

/* Beside enum table_error: the file is whole, but its times are of another boot's clock. */
#define TABLE_STALE 1

/* A path taken apart. Threads may have 16 KB of stack: a function that holds one is a
 * TABLE_PLACE_HOLDER, so that no two of them are on it at a time because the compiler joined them.
 */
struct table_place {
    char dir[PATH_MAX];
    const char *base; /* points into the path given */
};
#define TABLE_PLACE_HOLDER __attribute__((noinline)) static

int table_place_of(struct table_place *place, const char *path);

/* May the table live in this directory? One that the user named may be anything; the default one
 * must be ours alone. TABLE_E_ABSENT: it is ours, but the umask of its maker left us without a bit
 * that we need, or its maker is about to mend that. */
int table_directory_judge(const struct stat *st, bool named);

/* table_attach, or TABLE_STALE with *out untouched. */
int table_attach_any(struct table *out, const char *path, bool named);

/* Takes the blocks of the whole file now, so that a full file system says so here and not by a
 * SIGBUS at a store. 0 or an errno; EOPNOTSUPP where the file system cannot. */
int table_reserve(int fd);

/*
 * table_temporary.c: files under names that nobody looks for, ".breaker-PID-<16 hex>.tmp", on their
 * way to the table's name.
 */
#define TABLE_TEMPORARY_SIZE 64

/* Makes an empty one and its name. Its descriptor, which is to stay open as long as the name is
 * there: by the lock on it others see that its maker lives. Negative: an errno. */
int table_temporary_make(int dirfd, uint64_t random, char name[TABLE_TEMPORARY_SIZE]);

/* Removes those of this user whose makers were killed. It lists the directory: for who makes one
 * there anyhow, never on the way of who finds a table. */
void table_temporary_sweep(int dirfd);

/* The kernel's boot id; "" when it cannot be read. */
void table_boot_id(char id[sizeof((struct table_header *)0)->boot_id]);

#endif
