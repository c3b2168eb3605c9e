#include "real_object.h"

#include "real.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

struct range_search {
    const void *address;
    struct object_range found;
};

static int find_range(struct dl_phdr_info *info, size_t size, void *data)
{
    struct range_search *search = data;
    struct object_range range = {NULL, NULL};

    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD)
            continue;
        const char *low = (const char *)info->dlpi_addr + segment->p_vaddr;
        if (!range.begin || low < range.begin)
            range.begin = low;
        if (low + segment->p_memsz > range.end)
            range.end = low + segment->p_memsz;
    }
    if (!object_holds(&range, search->address))
        return 0;
    search->found = range;
    return 1;
}

bool object_range_of(const void *address, struct object_range *range)
{
    struct range_search search = {.address = address};

    if (!dl_iterate_phdr(find_range, &search))
        return false;
    *range = search.found;
    return true;
}

void *object_hold_named(const char *name)
{
    return real_libc_dlopen()(name, RTLD_LAZY | RTLD_NOLOAD);
}

void *object_hold(const void *address)
{
    struct link_map *map = NULL;
    Dl_info info;

    if (!dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
        return NULL;
    void *hold = object_hold_named(*map->l_name ? map->l_name : NULL); /* NULL: the program */
    if (hold == map)
        return hold;      /* glibc's handles are link maps */
    object_release(hold); /* the same file in another namespace */
    return NULL;
}

void object_release(void *hold)
{
    if (hold)
        dlclose(hold);
}

/* dlopen must not be called from here: only remembers. */
static int collect_name(struct dl_phdr_info *info, size_t size, void *data)
{
    struct object_names *names = data;
    const char *base = strrchr(info->dlpi_name, '/');
    size_t len = strlen(info->dlpi_name);

    (void)size;
    base = base ? base + 1 : info->dlpi_name;
    if (strncmp(base, "libcurl", 7) == 0 && len < sizeof names->name[0])
        memcpy(names->name[names->count++], info->dlpi_name, len + 1);
    return names->count == OBJECT_NAMES_MAX;
}

void object_libcurls(struct object_names *names)
{
    names->count = 0;
    dl_iterate_phdr(collect_name, names);
}

static int read_epoch(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    *(uint64_t *)data = info->dlpi_adds + info->dlpi_subs; /* both only grow */
    return 1;
}

uint64_t object_epoch(void)
{
    uint64_t epoch = 0;

    dl_iterate_phdr(read_epoch, &epoch);
    return epoch;
}
