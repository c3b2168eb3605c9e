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

/* The kernel's boot id; "" when it cannot be read. */
void table_boot_id(char id[sizeof((struct table_header *)0)->boot_id]);

#endif
