#include "table/table_file.h"

#include "base/arena.h"
#include "base/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

/* fallocate gives up when a signal is pending and undoes what it did; a profiler's timer must not
 * keep us here for ever. */
#define RESERVE_TRIES 100

const char *table_strerror(int error)
{
    switch (error) {
    case TABLE_OK:
        return "no error";
    case TABLE_E_PATH:
        return "the path is too long, or its directory cannot be made or written";
    case TABLE_E_REFUSED:
        return "refused: not a regular file of ours with the right mode and size";
    case TABLE_E_FORMAT:
        return "not a table of this layout";
    case TABLE_E_NO_SPACE:
        return "no space, quota or file size limit left for the table";
    case TABLE_E_ABSENT:
        return "no such table";
    default:
        return "system error";
    }
}

int table_place_of(struct table_place *place, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    size_t dir_len = slash ? (size_t)(slash - path) : 0;

    if (*base == '\0' || strcmp(base, ".") == 0 || strcmp(base, "..") == 0)
        return TABLE_E_PATH;
    if (dir_len >= sizeof place->dir || strlen(base) > NAME_MAX)
        return TABLE_E_PATH;
    if (dir_len > 0) {
        memcpy(place->dir, path, dir_len);
        place->dir[dir_len] = '\0';
    } else {
        strcpy(place->dir, slash ? "/" : ".");
    }
    place->base = base;
    return TABLE_OK;
}

int table_directory_judge(const struct stat *st, bool named)
{
    if (!S_ISDIR(st->st_mode))
        return TABLE_E_REFUSED;
    if (named)
        return TABLE_OK;
    if (st->st_uid != kernel_euid() || (st->st_mode & 077) != 0)
        return TABLE_E_REFUSED;
    return (st->st_mode & 0700) == 0700 ? TABLE_OK : TABLE_E_ABSENT;
}

static bool in_our_groups(gid_t gid)
{
    struct arena memory = {NULL};
    gid_t stack[64], *groups = stack;
    int count = getgroups(0, NULL);
    bool found = gid == kernel_egid() || kernel_euid() == 0;

    if (found || count <= 0)
        return found;
    if ((size_t)count > sizeof stack / sizeof *stack)
        groups = arena_alloc(&memory, (size_t)count * sizeof *groups);
    if (groups)
        count = getgroups(count, groups);
    for (int i = 0; groups && i < count; i++)
        found |= groups[i] == gid;
    arena_free(&memory);
    return found;
}

static int judge_file(const struct stat *st, bool named, uid_t euid)
{
    mode_t mode = st->st_mode & 07777;

    if (!S_ISREG(st->st_mode) || st->st_size != TABLE_FILE_SIZE)
        return TABLE_E_REFUSED;
    if (st->st_uid == euid && mode == 0600)
        return TABLE_OK;
    /* Shared on purpose by the administrator, and asked for by its path. */
    if (named && st->st_uid == 0 && (mode & S_IWOTH) == 0 && in_our_groups(st->st_gid))
        return TABLE_OK;
    return TABLE_E_REFUSED;
}

static int judge_header(const struct table_header *header)
{
    return header->magic == TABLE_MAGIC && header->layout == TABLE_LAYOUT &&
                   header->capacity == TABLE_CAPACITY && header->fingerprint == table_fingerprint()
               ? TABLE_OK
               : TABLE_E_FORMAT;
}

void table_boot_id(char id[sizeof((struct table_header *)0)->boot_id])
{
    size_t size = sizeof((struct table_header *)0)->boot_id;
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, id, size - 1) : 0;

    if (fd >= 0)
        close(fd);
    memset(id + (got > 0 ? got : 0), 0, size - (size_t)(got > 0 ? got : 0));
    id[strcspn(id, "\n")] = '\0';
}

/* A tmpfs does not outlive its boot. Elsewhere the deadlines may be of a clock that began anew;
 * where either id is unknown the 24 h horizon has to do. */
static bool is_stale(int fd, const struct table_header *header)
{
    struct statfs fs;
    char id[sizeof header->boot_id];

    if (fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC))
        return false;
    table_boot_id(id);
    return *id && *header->boot_id && strncmp(id, header->boot_id, sizeof id) != 0;
}

int table_reserve(int fd)
{
    struct rlimit limit;
    int result;

    /* Beyond it the kernel kills the application with SIGXFSZ. */
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < TABLE_FILE_SIZE)
        return EFBIG;
    for (int tries = 0; tries < RESERVE_TRIES; tries++) {
        result = fallocate(fd, 0, 0, TABLE_FILE_SIZE);
        if (result == 0 || errno != EINTR)
            break;
    }
    return result == 0 ? 0 : errno;
}

/* Everything that can be wrong with an open file, then its mapping. */
static int attach_fd(struct table *out, int fd, bool named)
{
    struct table_header header;
    struct stat st;
    uid_t euid = kernel_euid();
    int error = kernel_fstat(fd, &st) == 0 ? judge_file(&st, named, euid) : TABLE_E_SYSTEM;

    if (error != TABLE_OK)
        return error;
    if (pread(fd, &header, sizeof header, 0) != (ssize_t)sizeof header)
        return TABLE_E_FORMAT;
    if ((error = judge_header(&header)) != TABLE_OK)
        return error;
    /* A copy may have holes (cp --sparse), and a store into one may find no memory. */
    if ((off_t)st.st_blocks * 512 < TABLE_FILE_SIZE) {
        int cause = table_reserve(fd);
        if (cause != 0 && cause != EOPNOTSUPP)
            return TABLE_E_NO_SPACE;
    }
    if (is_stale(fd, &header))
        return TABLE_STALE;
    void *base = mmap(NULL, TABLE_FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        return TABLE_E_SYSTEM;
    *out = (struct table){
        .header = base,
        .slots = (struct slot *)(void *)((char *)base + TABLE_HEADER_SIZE),
        .seed = header.hash_seed,
        .dev = st.st_dev,
        .ino = st.st_ino,
        .euid = euid,
        .shared = true,
    };
    return TABLE_OK;
}

static int error_of_open(int cause)
{
    switch (cause) {
    case ENOENT:
        return TABLE_E_ABSENT;
    case ELOOP: /* a symlink */
    case EISDIR:
    case ENXIO:
    case EACCES:
    case EPERM:
        return TABLE_E_REFUSED;
    case ENAMETOOLONG:
    case ENOTDIR:
        return TABLE_E_PATH;
    default:
        return TABLE_E_SYSTEM;
    }
}

/* Only the default directory is looked at. By lstat: nobody but us and root can put another in its
 * place between this look and the open, since /dev/shm is sticky and what we accept is ours. */
TABLE_PLACE_HOLDER int check_directory(const char *path)
{
    struct table_place place;
    struct stat st;
    int error = table_place_of(&place, path);

    if (error != TABLE_OK)
        return error;
    if (kernel_lstat(place.dir, &st) != 0)
        return error_of_open(errno);
    return table_directory_judge(&st, false);
}

int table_attach_any(struct table *out, const char *path, bool named)
{
    int error = named ? TABLE_OK : check_directory(path);

    if (error != TABLE_OK)
        return error;
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return error_of_open(errno);
    error = attach_fd(out, fd, named);
    close(fd);
    return error;
}

int table_attach(struct table *out, const char *path, bool named)
{
    int saved = errno;
    int error = table_attach_any(out, path, named);

    errno = saved;
    return error == TABLE_STALE ? TABLE_E_ABSENT : error;
}
