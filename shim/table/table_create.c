#include "table/table_file.h"

#include "base/clock.h"
#include "base/kernel.h"
#include "core/breaker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* Rounds of "attach, else create": each lost round means that another process won one. */
#define OPEN_ROUNDS 16

/* How long a replacement waits for another process's one, in steps. */
#define REPLACE_WAIT_STEPS 50
#define REPLACE_WAIT_NS    2000000

/* Names how slot_at() of table.c walks: two builds that walk otherwise must not share a table. */
#define WALK_RULE 2

uint64_t table_fingerprint(void)
{
    static const uint64_t facts[] = {
        TABLE_LAYOUT,
        WALK_RULE,
        TABLE_CAPACITY,
        TABLE_PROBES,
        TABLE_HEADER_SIZE,
        TABLE_KEY_MAX,
        TABLE_STAT_SHARDS,
        BREAKER_TICK_SHIFT,
        BREAKER_TIME_BITS,
        BREAKER_HORIZON_TICKS,
        sizeof(struct table_header),
        offsetof(struct table_header, hash_seed),
        offsetof(struct table_header, boot_id),
        offsetof(struct table_header, table_full),
        offsetof(struct table_header, used),
        sizeof(struct slot),
        offsetof(struct slot, identity),
        offsetof(struct slot, word),
        offsetof(struct slot, opened),
        offsetof(struct slot, last_failure_ns),
        offsetof(struct slot, last_failure),
        offsetof(struct slot, cooldown),
        offsetof(struct slot, refusal_logged_ns),
        offsetof(struct slot, stats),
        sizeof(struct slot_stats),
        offsetof(struct slot, rate),
        offsetof(struct slot, key_checksum),
        offsetof(struct slot, key_len),
        offsetof(struct slot, key_text),
    };
    uint64_t mix = UINT64_C(0xcbf29ce484222325); /* FNV-1a, a word at a time */

    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        mix = (mix ^ facts[i]) * UINT64_C(0x100000001b3);
    return mix;
}

/* Unpredictable where the kernel can say so without waiting; else at least not the same twice. */
static uint64_t random_word(void)
{
    uint64_t word;

    if (getrandom(&word, sizeof word, GRND_NONBLOCK) == (ssize_t)sizeof word)
        return word;
    word = clock_system.boot_ns() ^ (uint64_t)clock_system.wall_ms() << 20;
    word ^= (uint64_t)getpid() << 40 ^ (uint64_t)(uintptr_t)&word;
    word = (word ^ word >> 31) * UINT64_C(0x9e3779b97f4a7c15);
    return word ^ word >> 29;
}

static int error_of_create(int cause)
{
    switch (cause) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM:
        return TABLE_E_NO_SPACE;
    case EACCES:
    case EPERM:
    case EROFS:
    case ENOENT:
    case ENOTDIR:
    case ENAMETOOLONG:
    case ELOOP:
        return TABLE_E_PATH;
    default:
        return TABLE_E_SYSTEM;
    }
}

/* --- a complete file ------------------------------------------------------------------------- */

static struct table_header fresh_header(void)
{
    struct table_header header = {
        .magic = TABLE_MAGIC,
        .layout = TABLE_LAYOUT,
        .capacity = TABLE_CAPACITY,
        .fingerprint = table_fingerprint(),
        .hash_seed = random_word(),
    };

    table_boot_id(header.boot_id);
    return header;
}

/* Where blocks cannot be reserved, writing takes them. 0 or an errno. */
static int write_zeros(int fd)
{
    static const char zeros[TABLE_HEADER_SIZE];

    for (off_t at = 0; at < TABLE_FILE_SIZE; at += (off_t)sizeof zeros)
        if (pwrite(fd, zeros, sizeof zeros, at) != (ssize_t)sizeof zeros)
            return errno ? errno : ENOSPC;
    return 0;
}

/* Makes a new, still nameless or oddly named file a table. `like`: whose group and mode it takes
 * over; NULL: ours alone. 0 or an errno. */
static int fill_file(int fd, const struct stat *like)
{
    struct table_header header = fresh_header();
    int cause = table_reserve(fd);

    if (cause == EOPNOTSUPP || cause == ENOSYS)
        cause = write_zeros(fd);
    if (cause != 0)
        return cause;
    if (pwrite(fd, &header, sizeof header, 0) != (ssize_t)sizeof header)
        return errno ? errno : ENOSPC;
    if (like && fchown(fd, (uid_t)-1, like->st_gid) != 0)
        return errno;
    /* Whatever the umask left. */
    return fchmod(fd, like ? like->st_mode & 0660 : 0600) == 0 ? 0 : errno;
}

/* A complete file under a name that nobody looks for, and what the dead left of such goes. Its
 * descriptor, to be closed when the name is gone; negative: an errno. */
static int create_temporary(int dirfd, const struct stat *like, char name[TABLE_TEMPORARY_SIZE])
{
    table_temporary_sweep(dirfd);
    int fd = table_temporary_make(dirfd, random_word(), name);
    int cause = fd >= 0 ? fill_file(fd, like) : 0;

    if (cause == 0)
        return fd;
    unlinkat(dirfd, name, 0);
    close(fd);
    return -cause;
}

/* --- giving it its name ---------------------------------------------------------------------- */

/* EEXIST of both ways means: another process was first. */

static int create_nameless(int dirfd, const char *base)
{
    char self[32];
    int fd = openat(dirfd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd < 0)
        return errno;
    int cause = fill_file(fd, NULL);
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    if (cause == 0 && linkat(AT_FDCWD, self, dirfd, base, AT_SYMLINK_FOLLOW) != 0)
        cause = errno;
    close(fd);
    return cause;
}

/* The second way, where there is no O_TMPFILE or no /proc to link from; a file system without hard
 * links gets a rename that never replaces. */
static int create_named(int dirfd, const char *base)
{
    char name[TABLE_TEMPORARY_SIZE];
    int cause = 0, fd = create_temporary(dirfd, NULL, name);

    if (fd < 0)
        return -fd;
    if (linkat(dirfd, name, dirfd, base, 0) != 0)
        cause = errno;
    if (cause == EPERM || cause == EOPNOTSUPP || cause == ENOSYS)
        cause = renameat2(dirfd, name, dirfd, base, RENAME_NOREPLACE) == 0 ? 0 : errno;
    unlinkat(dirfd, name, 0);
    close(fd);
    return cause;
}

static int create_at(int dirfd, const char *base)
{
    int cause = create_nameless(dirfd, base);

    if (cause != 0 && cause != EEXIST && error_of_create(cause) != TABLE_E_NO_SPACE)
        cause = create_named(dirfd, base);
    return cause == 0 || cause == EEXIST ? TABLE_OK : error_of_create(cause);
}

/* --- its directory --------------------------------------------------------------------------- */

/* Makes the last directory when it is missing, and gives ours the bits that a umask took. */
static int prepare_directory(const char *dir, bool named)
{
    struct stat st;

    if (mkdir(dir, 0700) == 0)
        return chmod(dir, 0700) == 0 ? TABLE_OK : TABLE_E_PATH;
    if (errno != EEXIST)
        return error_of_create(errno);
    if (named)
        return TABLE_OK;
    if (kernel_lstat(dir, &st) != 0)
        return error_of_create(errno);
    int error = table_directory_judge(&st, false);
    if (error == TABLE_E_ABSENT)
        return chmod(dir, 0700) == 0 ? TABLE_OK : TABLE_E_PATH;
    return error;
}

/* A descriptor of the judged directory, or a table_error. */
static int open_directory(const struct table_place *place, bool named)
{
    int error = prepare_directory(place->dir, named);
    struct stat st;

    if (error != TABLE_OK)
        return error;
    int fd = open(place->dir, O_PATH | O_DIRECTORY | O_CLOEXEC | (named ? 0 : O_NOFOLLOW));
    if (fd < 0)
        return error_of_create(errno);
    error = kernel_fstat(fd, &st) == 0 ? table_directory_judge(&st, named) : TABLE_E_SYSTEM;
    if (error == TABLE_OK)
        return fd;
    close(fd);
    return error == TABLE_E_ABSENT ? TABLE_E_PATH : error;
}

TABLE_PLACE_HOLDER int create(const char *path, bool named)
{
    struct table_place place;
    int error = table_place_of(&place, path);
    int dirfd = error == TABLE_OK ? open_directory(&place, named) : error;

    if (dirfd < 0)
        return dirfd;
    error = create_at(dirfd, place.base);
    close(dirfd);
    return error;
}

/* --- replacing ------------------------------------------------------------------------------- */

TABLE_PLACE_HOLDER int rename_fresh(const char *path, bool named, const struct stat *like)
{
    struct table_place place;
    char name[TABLE_TEMPORARY_SIZE];
    int error = table_place_of(&place, path);
    int dirfd = error == TABLE_OK ? open_directory(&place, named) : error;

    if (dirfd < 0)
        return dirfd;
    int fd = create_temporary(dirfd, like, name), cause = fd < 0 ? -fd : 0;
    if (cause == 0 && renameat(dirfd, name, dirfd, place.base) != 0) {
        cause = errno;
        unlinkat(dirfd, name, 0);
    }
    if (fd >= 0)
        close(fd);
    close(dirfd);
    return cause == 0 ? TABLE_OK : error_of_create(cause);
}

/* Is it still the file at `path`, and still of another boot? */
static bool is_still_stale(int fd, const char *path, bool named, struct stat *mine)
{
    struct table unused;
    struct stat there;

    if (kernel_fstat(fd, mine) != 0 || kernel_lstat(path, &there) != 0 ||
        mine->st_dev != there.st_dev || mine->st_ino != there.st_ino)
        return false;
    int result = table_attach_any(&unused, path, named);
    if (result == TABLE_OK)
        table_close(&unused);
    return result == TABLE_STALE;
}

/* The table of another boot goes: one process does it under a lock on the old file while the others
 * wait a little, then look again. A holder that was stopped is not waited for: then two fresh ones
 * may follow each other, and whoever mapped the first finds out by table_is_current(). */
static int replace_stale(const char *path, bool named)
{
    const struct timespec pause = {0, REPLACE_WAIT_NS};
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    int error = TABLE_OK;
    struct stat old;

    if (fd < 0)
        return errno == ENOENT ? TABLE_OK : TABLE_E_REFUSED;
    for (int i = 0; i < REPLACE_WAIT_STEPS && flock(fd, LOCK_EX | LOCK_NB) != 0; i++)
        nanosleep(&pause, NULL);
    if (is_still_stale(fd, path, named, &old)) {
        if (old.st_uid != kernel_euid())
            error = TABLE_E_REFUSED; /* ours would lock the others of its group out */
        else
            error = rename_fresh(path, named, (old.st_mode & 07777) == 0600 ? NULL : &old);
    }
    close(fd);
    return error;
}

static int replace(const char *path, bool named)
{
    struct table old;
    struct stat st;
    bool shared;
    int error = table_attach_any(&old, path, named);

    if (error == TABLE_OK)
        table_close(&old);
    if (error == TABLE_E_ABSENT)
        return rename_fresh(path, named, NULL);
    /* A file of the right kind with wrong contents is what a reset is for; nothing else is ours to
     * throw away. */
    if (error != TABLE_OK && error != TABLE_STALE && error != TABLE_E_FORMAT)
        return error;
    if (kernel_lstat(path, &st) != 0)
        return error_of_create(errno);
    if (st.st_uid != kernel_euid())
        return TABLE_E_REFUSED;
    shared = (st.st_mode & 07777) != 0600;
    return rename_fresh(path, named, shared ? &st : NULL);
}

/* --- doors ----------------------------------------------------------------------------------- */

int table_open(struct table *out, const char *path, bool named)
{
    int saved = errno;
    int error = TABLE_E_SYSTEM;

    for (int round = 0; round < OPEN_ROUNDS; round++) {
        int result = table_attach_any(out, path, named);

        error = result;
        if (result == TABLE_E_ABSENT)
            result = create(path, named);
        else if (result == TABLE_STALE)
            result = replace_stale(path, named);
        else
            break;
        if (result != TABLE_OK) {
            error = result;
            break;
        }
    }
    errno = saved;
    return error == TABLE_STALE ? TABLE_E_ABSENT : error;
}

int table_replace(const char *path, bool named)
{
    int saved = errno;
    int error = replace(path, named);

    errno = saved;
    return error;
}

int table_open_private(struct table *out)
{
    int saved = errno;
    void *base =
        mmap(NULL, TABLE_FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int error = base == MAP_FAILED ? TABLE_E_SYSTEM : TABLE_OK;

    if (error == TABLE_OK) {
        struct table_header *header = base;
        *header = fresh_header();
        *out = (struct table){
            .header = header,
            .slots = (struct slot *)(void *)((char *)base + TABLE_HEADER_SIZE),
            .seed = header->hash_seed,
            .euid = kernel_euid(),
        };
    }
    errno = saved;
    return error;
}
