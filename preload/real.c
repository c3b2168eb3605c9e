#include "real.h"

#include "guard.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *version, *soname;
} flavours[] = {
#define X(id, version, soname) {version, soname},
    CURL_FLAVOURS(X)
#undef X
};

/* A libcurl that was found. Pushed once, never removed: its handles may live as long as the
 * process, and `hold` keeps its code mapped. */
struct library {
    struct curl_real real;
    struct library *next;
    void *hold;
};

/* Push-only list and a shortcut per flavour; release on push, acquire on read. Two threads that
 * resolve the same library at once both make one; the first pushed serves, the other is unused. */
static _Atomic(struct library *) libraries;
static _Atomic(const struct curl_real *) by_flavour[FLAVOUR_COUNT];

/* --- one library -------------------------------------------------------------------------------
 */

struct range {
    const void *inside;
    const char *begin, *end;
};

/* dl_iterate_phdr: the bounds of the object that holds range->inside. */
static int find_range(struct dl_phdr_info *info, size_t size, void *data)
{
    struct range *range = data;
    const char *begin = NULL, *end = NULL;

    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD)
            continue;
        const char *low = (const char *)info->dlpi_addr + segment->p_vaddr;
        if (!begin || low < begin)
            begin = low;
        if (low + segment->p_memsz > end)
            end = low + segment->p_memsz;
    }
    if ((const char *)range->inside < begin || (const char *)range->inside >= end)
        return 0;
    range->begin = begin;
    range->end = end;
    return 1;
}

bool real_is_ours(const void *address)
{
    static _Atomic(const char *) own_begin,
        own_end; /* constant once set; any thread may set them */
    const char *end = atomic_load_explicit(&own_end, memory_order_acquire);

    if (!end) {
        struct range own = {.inside = (const void *)find_range};
        if (!dl_iterate_phdr(find_range, &own))
            return false;
        atomic_store_explicit(&own_begin, own.begin, memory_order_relaxed);
        atomic_store_explicit(&own_end, own.end, memory_order_release);
        end = own.end;
    }
    return (const char *)address >= atomic_load_explicit(&own_begin, memory_order_relaxed) &&
           (const char *)address < end;
}

/* A handle on the object that holds `address`, which also keeps it loaded. */
static void *hold_object(const void *address)
{
    struct link_map *map = NULL;
    Dl_info info;

    if (!dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) || !map)
        return NULL;
    void *hold = real_dlopen()(*map->l_name ? map->l_name : NULL, RTLD_LAZY | RTLD_NOLOAD);
    return hold ? hold : map; /* glibc's handles are link maps; this one is not counted */
}

/* A function of the library itself: dlsym on a handle also looks into what that object needs. */
static void *own_function(const struct library *library, const char *name)
{
    char full[64];

    snprintf(full, sizeof full, "curl_%s", name);
    void *found = real_dlsym()(library->hold, full);
    return found && real_is_inner(&library->real, found) ? found : NULL;
}

static void fill(struct library *library)
{
    struct curl_real *real = &library->real;

#define CURL_HOOK(type, name, parameters, arguments)                                               \
    real->name = (type(*) parameters)own_function(library, #name);
#define CURL_HOOK_VARIADIC(type, name, first_type, second_type)                                    \
    real->name = (type(*)(first_type, second_type, ...))own_function(library, #name);
#define CURL_REAL(type, name, parameters)                                                          \
    real->name = (type(*) parameters)own_function(library, #name);
#include "hooks.def"
    curl_version_info_data *info = real->version_info ? real->version_info(CURLVERSION_NOW) : NULL;
    real->version = info ? info->version_num : 0;
}

static const struct curl_real *known_library(const void *inside)
{
    for (struct library *l = atomic_load_explicit(&libraries, memory_order_acquire); l; l = l->next)
        if (real_is_inner(&l->real, inside))
            return &l->real;
    return NULL;
}

/* The library that holds curl_easy_init at `address`. */
static const struct curl_real *library_of(const void *address)
{
    const struct curl_real *known = known_library(address);
    struct range range = {.inside = address};

    if (known || !address || real_is_ours(address))
        return known;
    if (!dl_iterate_phdr(find_range, &range))
        return NULL;
    struct library *library = calloc(1, sizeof *library);
    if (!library)
        return NULL;
    library->real.begin = range.begin;
    library->real.end = range.end;
    library->hold = hold_object(address);
    if (library->hold)
        fill(library);
    if (!library->real.easy_perform || !library->real.easy_setopt || !library->real.easy_getinfo) {
        free(library);
        return NULL;
    }
    library->next = atomic_load(&libraries);
    while (!atomic_compare_exchange_weak(&libraries, &library->next, library))
        ;
    return &library->real;
}

/* --- the search --------------------------------------------------------------------------------
 */

#define PROBE "curl_easy_init"

/* Versioned where `version` is given, any where it is NULL. */
static const struct curl_real *look_in(void *handle, const char *version)
{
    if (!handle)
        return NULL;
    return library_of(version ? dlvsym(handle, PROBE, version) : real_dlsym()(handle, PROBE));
}

static const struct curl_real *look_next(const char *version)
{
    /* Called from here, so that RTLD_NEXT means "behind libbreaker". */
    return library_of(version ? dlvsym(RTLD_NEXT, PROBE, version) : real_dlsym()(RTLD_NEXT, PROBE));
}

/* The object that the call comes from, if it defines curl_easy_init itself. */
static const struct curl_real *look_in_caller(const void *caller)
{
    struct range range = {.inside = caller};

    if (real_is_ours(caller) || !dl_iterate_phdr(find_range, &range))
        return NULL;
    void *hold = hold_object(caller);
    void *found = hold ? real_dlsym()(hold, PROBE) : NULL;
    if ((const char *)found < range.begin || (const char *)found >= range.end)
        return NULL;
    return library_of(found);
}

#define NAMES_MAX 8

struct names {
    char name[NAMES_MAX][256];
    unsigned count;
};

/* dl_iterate_phdr: remembers loaded libcurls; dlopen must not be called from here. */
static int collect_names(struct dl_phdr_info *info, size_t size, void *data)
{
    struct names *names = data;
    const char *base = strrchr(info->dlpi_name, '/');

    (void)size;
    base = base ? base + 1 : info->dlpi_name;
    if (strncmp(base, "libcurl", 7) == 0 && strlen(info->dlpi_name) < sizeof names->name[0])
        strcpy(names->name[names->count++], info->dlpi_name);
    return names->count == NAMES_MAX;
}

static const struct curl_real *look_everywhere(enum curl_flavour flavour, const char *version)
{
    const struct curl_real *found = look_next(version);
    struct names names = {.count = 0};

    if (!found)
        found = look_in(real_dlopen()(flavours[flavour].soname, RTLD_LAZY | RTLD_NOLOAD), version);
    if (!found)
        dl_iterate_phdr(collect_names, &names);
    for (unsigned i = 0; i < names.count && !found; i++)
        found = look_in(real_dlopen()(names.name[i], RTLD_LAZY | RTLD_NOLOAD), version);
    return found;
}

static const struct curl_real *search(enum curl_flavour flavour, const void *caller)
{
    const struct curl_real *found = look_in_caller(caller);

    if (found)
        return found; /* of this caller only: not the flavour's */
    found = look_everywhere(flavour, flavours[flavour].version);
    if (!found)
        found = look_everywhere(flavour, NULL);
    if (found)
        atomic_store_explicit(&by_flavour[flavour], found, memory_order_release);
    return found;
}

const struct curl_real *real_curl(enum curl_flavour flavour, const void *caller)
{
    const struct curl_real *found = known_library(caller);

    if (!found)
        found = atomic_load_explicit(&by_flavour[flavour], memory_order_acquire);
    if (!found)
        GUARD_ERRNO(found = search(flavour, caller));
    return found;
}

void *real_entry_for(void *handle, const char *name, void *real)
{
    if (real_is_ours(real))
        return NULL;
    for (unsigned i = 0; i < FLAVOUR_COUNT; i++)
        if (dlvsym(handle, name, flavours[i].version) == real)
            return curl_entry(name, (enum curl_flavour)i);
    return curl_entry(name, FLAVOUR_openssl4);
}
