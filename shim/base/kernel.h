/*
 * kernel.h - whose files and processes are, by the kernel's own word.
 *
 * fakeroot, another preload, tells programs that they are root and that all files are root's: by it
 * a stranger's table would look like our own, and a user's programs would keep theirs where root's
 * belongs. The system calls have no entry that it stands before. Each behaves as its namesake of
 * libc; async-signal-safe.
 */
#ifndef BREAKER_BASE_KERNEL_H
#define BREAKER_BASE_KERNEL_H

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Where longs and pointers have 64 bits the kernel's structure is libc's. */
_Static_assert(sizeof(long) == 8, "newfstatat fills libc's struct stat");

static inline uid_t kernel_euid(void)
{
    return (uid_t)syscall(SYS_geteuid);
}

static inline gid_t kernel_egid(void)
{
    return (gid_t)syscall(SYS_getegid);
}

static inline int kernel_stat(const char *path, struct stat *st)
{
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, st, 0);
}

static inline int kernel_lstat(const char *path, struct stat *st)
{
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

static inline int kernel_lstatat(int dirfd, const char *name, struct stat *st)
{
    return (int)syscall(SYS_newfstatat, dirfd, name, st, AT_SYMLINK_NOFOLLOW);
}

static inline int kernel_fstat(int fd, struct stat *st)
{
    return (int)syscall(SYS_newfstatat, fd, "", st, AT_EMPTY_PATH);
}

#endif
