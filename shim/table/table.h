/*
 * table.h - create, attach and search the shared mapping.
 *
 * Rules of the file (DESIGN, The shared table): opened O_NOFOLLOW|O_NONBLOCK|O_CLOEXEC, then
 * fstat: regular, owner, modes and exact size as they must be, else refused. Created complete and
 * only then linked. Mapped, then closed: no descriptor of ours stays open. Never unlinked; only
 * what a maker that was killed left beside it is (table_file.h), by who makes one in the same way.
 * Attaching writes no state (pybreaker#26).
 */
#ifndef BREAKER_TABLE_TABLE_H
#define BREAKER_TABLE_TABLE_H

#include "base/span.h"
#include "table/layout.h"

#include <stdbool.h>
#include <sys/types.h>

/* Why there is no (shared) table; negative, table_strerror() tells. */
enum table_error {
    TABLE_OK = 0,
    TABLE_E_PATH = -1,     /* too long, or its directory cannot be made */
    TABLE_E_REFUSED = -2,  /* a stranger's file, wrong type, owner, mode or size */
    TABLE_E_FORMAT = -3,   /* magic, layout, fingerprint or capacity differ */
    TABLE_E_NO_SPACE = -4, /* ENOSPC, EDQUOT, or RLIMIT_FSIZE below the file's size */
    TABLE_E_SYSTEM = -5,   /* any other errno */
    TABLE_E_ABSENT = -6,   /* table_attach only: no such file */
};

/* What is not ours to use means that calls pass; where none can be had each process counts alone,
 * for its own good (DESIGN, The shared table). */
static inline bool table_is_refused(int error)
{
    return error == TABLE_E_REFUSED || error == TABLE_E_FORMAT;
}

/* One mapping. Immutable after it was opened, except through the mapping itself. */
struct table {
    struct table_header *header;
    struct slot *slots;
    uint64_t seed; /* copy of the header's, so that a hostile change cannot move it */
    dev_t dev;     /* of the mapped file; 0/0 for a private table */
    ino_t ino;
    uid_t euid;  /* effective uid at attach */
    bool shared; /* false: anonymous and private to this process */
};

/* /dev/shm/breaker-<euid>/table.v<layout>, NUL-terminated into `buf`. */
int table_default_path(char *buf, size_t size);

/* Maps the existing file at `path`; creates nothing. TABLE_OK or negative; *out untouched then.
 * `named`: the user named the path, so one that root owns for a group of ours is allowed. */
int table_attach(struct table *out, const char *path, bool named);

/* Maps the file at `path`, creating it (and its last directory) when absent. */
int table_open(struct table *out, const char *path, bool named);

/* Puts a fresh table in the place of the one at `path` by rename (`breaker reset --all`). */
int table_replace(const char *path, bool named);

/* An anonymous table for this process and its children: what is left when there is no shared one.
 */
int table_open_private(struct table *out);

void table_close(struct table *t); /* unmaps; accepts a zeroed struct */

/* Is the file at `path` still the one that is mapped? One stat(); true also when stat fails with
 * anything but ENOENT (nothing better could be mapped). */
bool table_is_current(const struct table *t, const char *path);

uint64_t table_identity(const struct table *t, struct span key); /* never 0 */

/* What stands for a credential in cool-downs (core/cooldown.h); of its hash (credential.h), 0: of
 * calls that have none. */
uint64_t table_credential(const struct table *t, uint64_t credential);

/* The slot of an identity, or NULL. No store, no system call; at most TABLE_PROBES loads. */
struct slot *table_find(const struct table *t, uint64_t identity);

/* The slot of an identity, claimed if need be; NULL when there is no room for it (counted in the
 * header). `failure`: past three quarters full only a failure may claim. Writes the printable key.
 */
struct slot *table_claim(const struct table *t, uint64_t identity, struct span key, bool failure);

/* Was it not written yet? Who claims a slot may be killed before it writes the key: whoever knows
 * it and finds it missing claims the slot again. */
static inline bool table_key_is_missing(const struct slot *s)
{
    return atomic_load_explicit(&s->key_checksum, memory_order_relaxed) == 0;
}

unsigned table_used(const struct table *t); /* counts; for display */

/* Copies the printable key into `buf` (NUL-terminated, JSON-safe is the caller's work): the text,
 * "text...#<16 hex>" when it had to be cut, or "#<16 hex>" when the checksum does not match.
 * Returns its length. `size` >= TABLE_KEY_TEXT_SIZE. */
#define TABLE_KEY_TEXT_SIZE (TABLE_KEY_MAX + 24)
size_t table_key_read(const struct slot *s, char *buf, size_t size);

/* Finds the slot that a printable key names, in any form that table_key_read() gives; NULL if
 * there is none. */
struct slot *table_lookup_text(const struct table *t, struct span text);

uint64_t table_fingerprint(void);
const char *table_strerror(int error); /* static storage */

#endif
