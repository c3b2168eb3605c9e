/*
 * fault.c - makes one call of libbreaker.so fail: preloaded beside it.
 *
 * Each import of libbreaker.so that is listed here leads through a function of this file, by the
 * table of addresses that the loader filled in for it (LD_BIND_NOW=1); nobody else's calls come
 * here. So do libbreaker.so's calls of its own entries. What it calls by pointers of its own stands
 * in LOOKED_UP: it finds those here, as any preload behind it.
 *
 *   FAULT_FUNCTION=NAME  which
 *   FAULT_NTH=N          its N-th call, from 1 on
 *   FAULT_STICKY=1       and all later ones
 *   FAULT_REPORT=FILE    4096 bytes: who called what was made to fail first (8 bytes, an offset in
 *                        libbreaker.so; 0: nothing was), then each one's calls (8 bytes each)
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define JUMP_SLOT R_X86_64_JUMP_SLOT
#define GLOB_DAT  R_X86_64_GLOB_DAT
#else
#define JUMP_SLOT R_AARCH64_JUMP_SLOT
#define GLOB_DAT  R_AARCH64_GLOB_DAT
#endif

/* X(name, what it returns, errno): by failing as the kernel, the loader or the allocator can. */
#define FAULTS(X)                                                                                  \
    X(malloc, 0, ENOMEM)                                                                           \
    X(calloc, 0, ENOMEM)                                                                           \
    X(realloc, 0, ENOMEM)                                                                          \
    X(strdup, 0, ENOMEM)                                                                           \
    X(strndup, 0, ENOMEM)                                                                          \
    X(asprintf, -1, ENOMEM)                                                                        \
    X(mmap, -1, ENOMEM)                                                                            \
    X(munmap, -1, ENOMEM)                                                                          \
    X(open, -1, EMFILE)                                                                            \
    X(openat, -1, EMFILE)                                                                          \
    X(fopen64, 0, EMFILE)                                                                          \
    X(fstat, -1, EOVERFLOW)                                                                        \
    X(fstatfs, -1, ENOSYS)                                                                         \
    X(fallocate, -1, ENOSPC)                                                                       \
    X(linkat, -1, EPERM)                                                                           \
    X(renameat, -1, EACCES)                                                                        \
    X(renameat2, -1, EINVAL)                                                                       \
    X(unlinkat, -1, EACCES)                                                                        \
    X(getdents64, -1, EIO)                                                                         \
    X(mkdir, -1, EACCES)                                                                           \
    X(chmod, -1, EPERM)                                                                            \
    X(fchmod, -1, EPERM)                                                                           \
    X(fchown, -1, EPERM)                                                                           \
    X(flock, -1, ENOLCK)                                                                           \
    X(read, -1, EIO)                                                                               \
    X(pread, -1, EIO)                                                                              \
    X(pwrite, -1, ENOSPC)                                                                          \
    X(write, -1, ENOSPC)                                                                           \
    X(lseek, -1, ESPIPE)                                                                           \
    X(fgets, 0, EIO)                                                                               \
    X(fseeko, -1, ESPIPE)                                                                          \
    X(ftello, -1, ESPIPE)                                                                          \
    X(socketpair, -1, EMFILE)                                                                      \
    X(fcntl, -1, EMFILE)                                                                           \
    X(ioctl, -1, ENOTTY)                                                                           \
    X(send, -1, ENOBUFS)                                                                           \
    X(recv, -1, EAGAIN)                                                                            \
    X(getsockname, -1, ENOBUFS)                                                                    \
    X(getrandom, -1, EAGAIN)                                                                       \
    X(getrlimit, -1, EPERM)                                                                        \
    X(getgroups, -1, EPERM)                                                                        \
    X(nanosleep, -1, EINTR)                                                                        \
    X(pthread_mutex_trylock, EBUSY, 0)                                                             \
    X(pthread_sigmask, EINVAL, 0)                                                                  \
    X(__register_atfork, ENOMEM, 0)                                                                \
    X(sigpending, -1, EFAULT)                                                                      \
    X(sigtimedwait, -1, EAGAIN)                                                                    \
    X(dlvsym, 0, 0)                                                                                \
    X(dladdr1, 0, 0)                                                                               \
    X(dl_iterate_phdr, 0, 0)

/* The same of what libbreaker.so looks up for itself, and calls when the application did not. */
#define LOOKED_UP(X)                                                                               \
    X(getsockopt, -1, ENOBUFS)                                                                     \
    X(getpeername, -1, ENOTCONN)                                                                   \
    X(shutdown, -1, ENOTCONN)                                                                      \
    X(getaddrinfo, EAI_MEMORY, 0)                                                                  \
    X(syscall, -1, EACCES) /* kernel.h's looks at files; the others cannot fail */

#define EACH(X) FAULTS(X) LOOKED_UP(X)

typedef long any(long, long, long, long, long, long);

enum {
#define X(name, result, error) FAULT_##name,
    EACH(X)
#undef X
        COUNT
};
static const char *const names[COUNT] = {
#define X(name, result, error) #name,
    EACH(X)
#undef X
};
static any *real[COUNT];
static int chosen = -1;
static int64_t nth;
static bool sticky;
static struct {
    _Atomic int64_t caller, calls[COUNT];
} * report;
static uintptr_t library, library_end;

static bool is_due(int which, const void *caller)
{
    int64_t calls;

    if (!report || (uintptr_t)caller - library >= library_end - library)
        return false; /* left to the application by a jump */
    calls = atomic_fetch_add(&report->calls[which], 1) + 1;
    if (which != chosen || calls < nth || (calls > nth && !sticky))
        return false;
    if (report->caller == 0)
        report->caller = (int64_t)((uintptr_t)caller - library);
    return true;
}

/* Left by a jump, since the loader looks at return addresses. */
#define X(name, result, error)                                                                     \
    static long fault_##name(long a, long b, long c, long d, long e, long f)                       \
    {                                                                                              \
        if (!is_due(FAULT_##name, __builtin_return_address(0)))                                    \
            return real[FAULT_##name](a, b, c, d, e, f);                                           \
        if (error)                                                                                 \
            errno = error;                                                                         \
        return result;                                                                             \
    }
EACH(X)
#undef X

static any *const faults[COUNT] = {
#define X(name, result, error) fault_##name,
    EACH(X)
#undef X
};

#define X(name, result, error)                                                                     \
    long exported_##name(long a, long b, long c, long d, long e, long f) __asm__(#name);           \
    long exported_##name(long a, long b, long c, long d, long e, long f)                           \
    {                                                                                              \
        if (!real[FAULT_##name])                                                                   \
            real[FAULT_##name] = (any *)dlvsym(RTLD_NEXT, #name, "GLIBC_2.2.5");                   \
        if (!real[FAULT_##name])                                                                   \
            real[FAULT_##name] = (any *)dlvsym(RTLD_NEXT, #name, "GLIBC_2.17");                    \
        if (!real[FAULT_##name])                                                                   \
            real[FAULT_##name] = (any *)dlvsym(RTLD_NEXT, #name, "GLIBC_2.9");                     \
        if ((FAULT_##name == FAULT_getaddrinfo && b) /* with a service: the application's */       \
            || (FAULT_##name == FAULT_syscall && a != SYS_newfstatat))                             \
            return real[FAULT_##name](a, b, c, d, e, f);                                           \
        return fault_##name(a, b, c, d, e, f);                                                     \
    }
LOOKED_UP(X)
#undef X

static void divert(const char *name, uintptr_t *place)
{
    uintptr_t page = (uintptr_t)place & ~(uintptr_t)(getpagesize() - 1);

    for (int i = 0; i < FAULT_getsockopt; i++) /* the first of those that are looked up */
        if (strcmp(names[i], name) == 0 &&
            mprotect((void *)page, (size_t)getpagesize(), PROT_READ | PROT_WRITE) == 0) {
            real[i] = (any *)*place;
            *place = (uintptr_t)faults[i];
        }
}

static void divert_all(const ElfW(Rela) * from, size_t size, const ElfW(Sym) * symbols,
                       const char *strings)
{
    for (const ElfW(Rela) *rela = from; (const char *)rela < (const char *)from + size; rela++) {
        unsigned long type = ELF64_R_TYPE(rela->r_info);
        if (type == JUMP_SLOT || type == GLOB_DAT)
            divert(strings + symbols[ELF64_R_SYM(rela->r_info)].st_name,
                   (uintptr_t *)(library + rela->r_offset));
    }
}

static void enter(const ElfW(Dyn) * dynamic)
{
    uintptr_t of[DT_NUM] = {0};

    for (; dynamic->d_tag != DT_NULL; dynamic++)
        if (dynamic->d_tag < DT_NUM)
            of[dynamic->d_tag] = dynamic->d_un.d_ptr;
    divert_all((void *)of[DT_RELA], of[DT_RELASZ], (void *)of[DT_SYMTAB], (void *)of[DT_STRTAB]);
    divert_all((void *)of[DT_JMPREL], of[DT_PLTRELSZ], (void *)of[DT_SYMTAB],
               (void *)of[DT_STRTAB]);
}

static uintptr_t end_of(const ElfW(Ehdr) * file)
{
    const ElfW(Phdr) *part = (const void *)((const char *)file + file->e_phoff);
    uintptr_t end = 0;

    for (const ElfW(Phdr) *last = part + file->e_phnum; part < last; part++)
        if (part->p_type == PT_LOAD && part->p_vaddr + part->p_memsz > end)
            end = part->p_vaddr + part->p_memsz;
    return (uintptr_t)file + end;
}

/* Before that of libbreaker.so, which stands before us in LD_PRELOAD. */
static __attribute__((constructor)) void begin(void)
{
    const char *function = getenv("FAULT_FUNCTION"), *path = getenv("FAULT_REPORT");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;

    if (fd < 0)
        return;
    report = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (report == MAP_FAILED)
        abort();
    nth = atol(getenv("FAULT_NTH"));
    sticky = getenv("FAULT_STICKY") != NULL;
    for (int i = 0; i < COUNT; i++)
        if (strcmp(names[i], function) == 0)
            chosen = i;
    for (const struct link_map *map = _r_debug.r_map; map; map = map->l_next)
        if (strstr(map->l_name, "/libbreaker.so")) {
            library = map->l_addr;
            library_end = end_of((const void *)library);
            enter(map->l_ld);
        }
    if (!library)
        abort();
}

/* `fault_names`: what can be asked for, one a line, in the order of the report. */
void fault_names(void)
{
    for (int i = 0; i < COUNT; i++)
        puts(names[i]);
}
