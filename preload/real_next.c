#include "real_next.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

/* The tables of one object. */
struct tables {
    ElfW(Addr) base;
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *hash;
    const ElfW(Half) * versions;
};

/* False: not an object as the linker makes them today, or the vDSO, whose pointers are not
 * relocated. */
static bool read_tables(const struct dl_phdr_info *object, struct tables *tables)
{
    const ElfW(Dyn) *entry = NULL;

    *tables = (struct tables){.base = object->dlpi_addr};
    for (unsigned i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const void *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        const void *there = (const void *)entry->d_un.d_ptr;
        if (entry->d_tag == DT_SYMTAB)
            tables->symbols = there;
        else if (entry->d_tag == DT_STRTAB)
            tables->strings = there;
        else if (entry->d_tag == DT_GNU_HASH)
            tables->hash = there;
        else if (entry->d_tag == DT_VERSYM)
            tables->versions = there;
    }
    return tables->symbols && tables->strings && tables->hash &&
           (ElfW(Addr))tables->symbols > tables->base && (ElfW(Addr))tables->hash > tables->base;
}

static uint32_t gnu_hash(const char *name)
{
    uint32_t hash = 5381;

    for (const unsigned char *at = (const unsigned char *)name; *at; at++)
        hash = hash * 33 + *at;
    return hash;
}

/* A hidden version is no default; that is what a look-up without version takes. */
static bool serves(const struct tables *tables, uint32_t index, const char *name)
{
    const ElfW(Sym) *symbol = &tables->symbols[index];

    return symbol->st_shndx != SHN_UNDEF &&
           !(tables->versions && tables->versions[index] & 0x8000) &&
           strcmp(tables->strings + symbol->st_name, name) == 0;
}

/* header: buckets, first hashed symbol, words of the filter, shift; then filter, buckets, chains.
 */
static const ElfW(Sym) * find(const struct tables *tables, const char *name, uint32_t hash)
{
    enum { BITS = sizeof(ElfW(Addr)) * 8 };
    uint32_t buckets = tables->hash[0], first = tables->hash[1], words = tables->hash[2];
    const ElfW(Addr) *filter = (const void *)(tables->hash + 4);
    const uint32_t *bucket = (const void *)(filter + words), *chain = bucket + buckets;
    ElfW(Addr) word = filter[hash / BITS % words];
    uint32_t index = bucket[hash % buckets];

    if (!(word >> hash % BITS & 1) || !(word >> (hash >> tables->hash[3]) % BITS & 1) ||
        index < first)
        return NULL;
    for (;; index++) {
        uint32_t found = chain[index - first];
        if ((found | 1) == (hash | 1) && serves(tables, index, name))
            return &tables->symbols[index];
        if (found & 1)
            return NULL;
    }
}

/* The objects behind us, in the loader's order; read once. */
#define OBJECTS_MAX 64
static struct tables objects[OBJECTS_MAX];
static unsigned object_count; /* OBJECTS_MAX + 1: too many, or one that we cannot read */

static int read_object(struct dl_phdr_info *object, size_t size, void *data)
{
    bool *behind_us = data;

    (void)size;
    if (!*behind_us)
        *behind_us = object->dlpi_addr == (ElfW(Addr)) & __ehdr_start;
    else if (object_count >= OBJECTS_MAX || !read_tables(object, &objects[object_count++]))
        object_count = OBJECTS_MAX + 1;
    return object_count > OBJECTS_MAX;
}

static void read_objects(void)
{
    bool behind_us = false;

    dl_iterate_phdr(read_object, &behind_us);
}

void *real_next(const char *name)
{
    uint32_t hash = gnu_hash(name);

    if (object_count == 0)
        read_objects();
    for (unsigned i = 0; i < object_count && object_count <= OBJECTS_MAX; i++) {
        const ElfW(Sym) *symbol = find(&objects[i], name, hash);
        if (symbol)
            return ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_value != 0
                       ? (void *)(objects[i].base + symbol->st_value)
                       : NULL;
    }
    return NULL;
}

bool real_next_together(const char *one, const char *other)
{
    uint32_t hash = gnu_hash(one), other_hash = gnu_hash(other);

    for (unsigned i = 0; i < object_count && object_count <= OBJECTS_MAX; i++)
        if (find(&objects[i], one, hash) && find(&objects[i], other, other_hash))
            return true;
    return false;
}
