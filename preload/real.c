/*
 * real.c - which libcurl an entry's call belongs to when no handle tells: the one that the loader
 * would have bound the caller to, had we not been there.
 */
#include "real.h"

#include "guard.h"
#include "real_fork.h"
#include "real_library.h"
#include "real_object.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>

static const struct {
    const char *version, *soname;
} flavours[FLAVOUR_COUNT] = {
#define X(id, version, soname) {version, soname},
    CURL_FLAVOURS(X)
#undef X
        [FLAVOUR_plain] = {NULL, "libcurl.so.4"},
};

/* The linker's: where our own file is mapped, and where what it maps ends. Hidden, or they would be
 * exported. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

bool real_is_ours(const void *address)
{
    uintptr_t base = (uintptr_t)&__ehdr_start;

    return (uintptr_t)address - base < (uintptr_t)_end - base;
}

/* --- the places to look ------------------------------------------------------------------------
 */

static void *probe_in(void *hold, const char *version)
{
    return version ? dlvsym(hold, LIBRARY_PROBE, version) : real_libc_dlsym()(hold, LIBRARY_PROBE);
}

/* The global scope behind us. The address comes back here, not to our caller: for the loader the
 * question is asked by libbreaker. */
static const struct curl_real *look_next(const char *version)
{
    return library_at(probe_in(RTLD_NEXT, version), version);
}

/* Releases the handle: a library that was found holds itself. */
static const struct curl_real *look_in(void *hold, const char *version)
{
    const struct curl_real *found = hold ? library_at(probe_in(hold, version), version) : NULL;

    object_release(hold);
    return found;
}

/* Any loaded libcurl, by soname, then by file name. */
static const struct curl_real *look_at_loaded(const char *soname, const char *version)
{
    const struct curl_real *found = look_in(object_hold_named(soname), version);
    struct object_names names;

    if (found)
        return found;
    object_libcurls(&names);
    for (unsigned i = 0; i < names.count && !found; i++)
        found = look_in(object_hold_named(names.name[i]), version);
    return found;
}

/* --- without regard to the caller --------------------------------------------------------------
 */

/* Set once per flavour, by success, and by exact version only: the dlsym hook gives an entry out on
 * the strength of it. Release on set, acquire on read. */
static _Atomic(const struct curl_real *) general[FLAVOUR_COUNT];

static const struct curl_real *settle_general(enum curl_flavour flavour,
                                              const struct curl_real *found)
{
    const struct curl_real *first = NULL;

    if (!found || atomic_compare_exchange_strong_explicit(
                      &general[flavour], &first, found, memory_order_acq_rel, memory_order_acquire))
        return found;
    return first;
}

static const struct curl_real *look_generally(enum curl_flavour flavour)
{
    const struct curl_real *found = atomic_load_explicit(&general[flavour], memory_order_acquire);
    const char *version = flavours[flavour].version;

    if (found || !version)
        return found;
    found = look_next(version);
    if (!found)
        found = look_at_loaded(flavours[flavour].soname, version);
    return settle_general(flavour, found);
}

/* --- with regard to it -------------------------------------------------------------------------
 */

/* FLAVOUR_COUNT: the function is exported under a version that we do not know. */
static enum curl_flavour flavour_of(void *handle, const char *name, const void *real)
{
    bool is_versioned = false;

    for (unsigned i = 0; i < FLAVOUR_plain; i++) {
        const void *found = dlvsym(handle, name, flavours[i].version);
        if (found == real)
            return (enum curl_flavour)i;
        is_versioned = is_versioned || found;
    }
    return is_versioned ? FLAVOUR_COUNT : FLAVOUR_plain;
}

/* An unversioned libcurl, and no other, where `hold` leads. Does not release it. */
static const struct curl_real *look_for_plain(void *hold)
{
    void *probe = hold ? probe_in(hold, NULL) : NULL;

    return probe && flavour_of(hold, LIBRARY_PROBE, probe) == FLAVOUR_plain
               ? library_at(probe, NULL)
               : NULL;
}

/* For a caller that is linked to a libcurl: what its object needs, but an unversioned libcurl in
 * the global scope comes before, since the loader takes that for any version. An entry that came by
 * dlsym to a caller that needs no libcurl, or another, is none of this. */
static const struct curl_real *look_behind(const void *caller, const char *version)
{
    void *hold = object_hold(caller);
    const struct curl_real *found = hold ? library_at(probe_in(hold, version), version) : NULL;

    if (found && found->is_breaker)
        found = NULL; /* in front of us: we would call each other for ever */
    if (!found)
        found = look_for_plain(hold);
    object_release(hold);
    const struct curl_real *global = found ? look_for_plain(RTLD_NEXT) : NULL;
    return global ? global : found;
}

static const struct curl_real *search(enum curl_flavour flavour, const void *caller)
{
    const char *version = flavours[flavour].version;
    const struct curl_real *found = library_inside(caller, version);

    if (!found && version)
        found = look_next(version);
    if (!found && version)
        found = look_behind(caller, version);
    if (!found)
        found = look_generally(flavour);
    if (!found)
        found = look_next(NULL);
    return found ? found : look_at_loaded(flavours[flavour].soname, NULL);
}

/*
 * What was found for a caller, while no object came or went: each word is the library's number (low
 * eight bits) and what is left of a hash of caller, flavour and epoch. One word, so that a reader
 * finds all of an answer or none of it; a lost one is only searched for again.
 */
#define REMEMBERED  64
#define NUMBER_MASK 0xffu
static _Atomic uint64_t remembered[REMEMBERED];

static uint64_t question(enum curl_flavour flavour, const void *caller)
{
    uint64_t mixed = (uint64_t)(uintptr_t)caller * 0x9e3779b97f4a7c15u;

    mixed ^= (object_epoch() * FLAVOUR_COUNT + flavour) * 0xc2b2ae3d27d4eb4fu;
    mixed = (mixed ^ mixed >> 32) * 0xd6e8feb86659fd93u;
    return mixed ^ mixed >> 32;
}

static const struct curl_real *recall_or_search(enum curl_flavour flavour, const void *caller)
{
    uint64_t asked = question(flavour, caller);
    _Atomic uint64_t *word = &remembered[asked >> 58];
    uint64_t known = atomic_load_explicit(word, memory_order_acquire); /* the store below */
    const struct curl_real *found = NULL;

    if (((known ^ asked) & ~(uint64_t)NUMBER_MASK) == 0)
        found = library_of_number(known & NUMBER_MASK);
    if (found)
        return found;
    real_fork_hold();
    found = search(flavour, caller);
    real_fork_release();
    unsigned number = library_number(found);
    if (number != 0 && number <= NUMBER_MASK)
        atomic_store_explicit(word, (asked & ~(uint64_t)NUMBER_MASK) | number,
                              memory_order_release); /* after the push of that library */
    dlerror();                                       /* our misses are not the application's */
    return found;
}

const struct curl_real *real_curl(enum curl_flavour flavour, const void *caller)
{
    const struct curl_real *found;

    GUARD_ERRNO(found = recall_or_search(flavour, caller));
    return found;
}

/* --- the other way round: from a function to our entry -------------------------------------------
 */

static void *entry_for(void *handle, const char *name, void *real)
{
    enum curl_flavour flavour = flavour_of(handle, name, real);

    if (flavour == FLAVOUR_COUNT)
        return NULL;
    const struct curl_real *library = library_inside(real, flavours[flavour].version);
    if (!library)
        return NULL;
    const struct curl_real *serves = look_generally(flavour);
    if (!serves) /* not to be found by name */
        serves = settle_general(flavour, library);
    return serves == library ? curl_entry(name, flavour) : NULL;
}

void *real_entry_for(void *handle, const char *name, void *real)
{
    void *entry = NULL;

    if (real_is_ours(real) || !curl_entry(name, FLAVOUR_plain))
        return NULL;
    real_fork_hold();
    GUARD_ERRNO(entry = entry_for(handle, name, real));
    real_fork_release();
    dlerror(); /* the application's dlsym went well: so must its dlerror() say */
    return entry;
}
