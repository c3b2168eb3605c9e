/*
 * killed_place.h - a directory with a table in it, and what is in it at one moment: all that is
 * left of a process that is killed then.
 */
#ifndef BREAKER_TESTS_KILLED_PLACE_H
#define BREAKER_TESTS_KILLED_PLACE_H

#include "table/layout.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLACE_TABLE "table"

struct place {
    char base[64], dir[72], path[80]; /* base is there; dir is the table's own, and may be not */
};

struct left {
    mode_t directory; /* 0: there is none */
    mode_t table;     /* 0: there is none */
    off_t size;       /* of the table */
    ino_t inode;
    unsigned temporaries, strangers; /* other files, ours by their names and not */
    unsigned char bytes[TABLE_FILE_SIZE];
};

/* What stops a test at once: nothing can be told any more. */
static inline void place_must(bool holds, const char *what)
{
    if (holds)
        return;
    perror(what);
    exit(2);
}

static inline void place_make(struct place *place, const char *where)
{
    snprintf(place->base, sizeof place->base, "%s/breaker-step-XXXXXX", where);
    place_must(mkdtemp(place->base) != NULL, "mkdtemp");
    snprintf(place->dir, sizeof place->dir, "%s/dir", place->base);
    snprintf(place->path, sizeof place->path, "%s/" PLACE_TABLE, place->dir);
}

static inline bool place_is_temporary(const char *name)
{
    size_t len = strlen(name);

    return strncmp(name, ".breaker-", 9) == 0 && len > 4 && strcmp(name + len - 4, ".tmp") == 0;
}

/* Calls back for each name in the directory but the table's. */
static inline void place_each_other(const struct place *place,
                                    void (*found)(int dirfd, const char *name, void *data),
                                    void *data)
{
    DIR *listing = opendir(place->dir);
    struct dirent *entry;

    if (!listing)
        return;
    while ((entry = readdir(listing)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            strcmp(entry->d_name, PLACE_TABLE) != 0)
            found(dirfd(listing), entry->d_name, data);
    closedir(listing);
}

static inline void place_count(int dirfd, const char *name, void *data)
{
    struct left *left = data;

    (void)dirfd;
    if (place_is_temporary(name))
        left->temporaries++;
    else
        left->strangers++;
}

static inline void place_unlink(int dirfd, const char *name, void *data)
{
    (void)data;
    unlinkat(dirfd, name, 0);
}

static inline void place_look(const struct place *place, struct left *left)
{
    struct stat st;

    memset(left, 0, sizeof *left);
    if (stat(place->dir, &st) != 0)
        return;
    left->directory = st.st_mode;
    place_each_other(place, place_count, left);
    int fd = open(place->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    place_must(fstat(fd, &st) == 0 && read(fd, left->bytes, sizeof left->bytes) >= 0, "read");
    left->table = st.st_mode;
    left->size = st.st_size;
    left->inode = st.st_ino;
    close(fd);
}

static inline void place_clear(const struct place *place)
{
    place_each_other(place, place_unlink, NULL);
    unlink(place->path);
    rmdir(place->dir);
}

static inline void place_remove(const struct place *place)
{
    place_clear(place);
    place_must(rmdir(place->base) == 0, "rmdir");
}

/* Puts there what was left somewhere. */
static inline void place_put(const struct place *place, const struct left *left)
{
    char name[sizeof place->dir + 48];

    place_clear(place);
    if (left->directory == 0)
        return;
    place_must(mkdir(place->dir, 0700) == 0, "mkdir");
    for (unsigned i = 0; i < left->temporaries; i++) {
        snprintf(name, sizeof name, "%s/.breaker-1-%016x.tmp", place->dir, i);
        close(open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    }
    if (left->table) {
        int fd = open(place->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        place_must(fd >= 0 && write(fd, left->bytes, (size_t)left->size) == left->size &&
                       fchmod(fd, left->table & 07777) == 0,
                   "write");
        close(fd);
    }
    place_must(chmod(place->dir, left->directory & 07777) == 0, "chmod");
}

#endif
