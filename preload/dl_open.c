/*
 * dl_open.c - dlopen: RTLD_DEEPBIND is dropped for objects that need libcurl or libssl.
 *
 * Debian's PHP loads curl.so deep-bound: its calls then reach libcurl past every preload, ours and
 * others' (proxychains-ng#10, php-src#10670). Elsewhere deep binding is somebody's intention and
 * stays. The option `deepbind = keep` switches this off.
 */
#include "guard.h"
#include "real.h"
#include "shim.h"
#include "tail.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#define SEGMENTS_MAX 64
#define DYNAMIC_MAX  512

/* An ELF file of our own class, read piece by piece: it may be truncated while we look. */
struct object {
    int fd;
    unsigned segment_count;
    ElfW(Phdr) segments[SEGMENTS_MAX];
};

static bool read_at(int fd, void *buf, size_t len, uint64_t offset)
{
    return pread(fd, buf, len, (off_t)offset) == (ssize_t)len;
}

static bool read_segments(struct object *object)
{
    ElfW(Ehdr) head;

    if (!read_at(object->fd, &head, sizeof head, 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
        head.e_phentsize != sizeof(ElfW(Phdr)) || head.e_phnum > SEGMENTS_MAX)
        return false;
    object->segment_count = head.e_phnum;
    return read_at(object->fd, object->segments, head.e_phnum * sizeof(ElfW(Phdr)), head.e_phoff);
}

/* Where the file has what the memory will have at `address`; 0 when nowhere. */
static uint64_t offset_of(const struct object *object, uint64_t address)
{
    for (unsigned i = 0; i < object->segment_count; i++) {
        const ElfW(Phdr) *segment = &object->segments[i];
        if (segment->p_type == PT_LOAD && address >= segment->p_vaddr &&
            address - segment->p_vaddr < segment->p_filesz)
            return segment->p_offset + (address - segment->p_vaddr);
    }
    return 0;
}

static bool is_wanted(const struct object *object, uint64_t name_offset)
{
    char name[8];

    return read_at(object->fd, name, sizeof name, name_offset) &&
           (memcmp(name, "libcurl", 7) == 0 || memcmp(name, "libssl.", 7) == 0 ||
            memcmp(name, "libssl-", 7) == 0); /* libssl3.so is not OpenSSL's but NSS's */
}

static bool dynamic_needs(const struct object *object, const ElfW(Phdr) * dynamic)
{
    static const size_t size = sizeof(ElfW(Dyn));
    uint64_t names[32], strings = 0;
    unsigned count = 0;

    for (unsigned i = 0; i < DYNAMIC_MAX && (i + 1) * size <= dynamic->p_filesz; i++) {
        ElfW(Dyn) entry;
        if (!read_at(object->fd, &entry, size, dynamic->p_offset + i * size) ||
            entry.d_tag == DT_NULL)
            break;
        if (entry.d_tag == DT_STRTAB)
            strings = offset_of(object, entry.d_un.d_ptr);
        else if (entry.d_tag == DT_NEEDED && count < 32)
            names[count++] = entry.d_un.d_val;
    }
    for (unsigned i = 0; strings && i < count; i++)
        if (is_wanted(object, strings + names[i]))
            return true;
    return false;
}

static bool needs_curl_or_ssl(const char *file)
{
    struct object object = {.fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
    bool needs = false;

    if (object.fd < 0)
        return false;
    if (read_segments(&object))
        for (unsigned i = 0; i < object.segment_count && !needs; i++)
            if (object.segments[i].p_type == PT_DYNAMIC)
                needs = dynamic_needs(&object, &object.segments[i]);
    close(object.fd);
    return needs;
}

/* Only names with a slash are looked at, as dlopen would from the working directory: a bare one is
 * searched for along the caller's RUNPATH, which is not ours to know, and so are $ORIGIN and the
 * like. Needs of needs are not followed. All these keep their flag. */
static __attribute__((noinline)) int mode_for(const char *file, int mode)
{
    GUARD_ERRNO({
        if (file && strchr(file, '/') && !shim_disabled() && needs_curl_or_ssl(file) &&
            shim_mask_deepbind())
            mode &= ~RTLD_DEEPBIND;
    });
    return mode;
}

TAIL_FUNCTION void *dlopen(const char *file, int mode)
{
    if (mode & RTLD_DEEPBIND)
        mode = mode_for(file, mode);
    TAIL_RETURN(real_dlopen()(file, mode));
}
