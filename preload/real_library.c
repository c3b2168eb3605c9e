#include "real_library.h"

#include "real_object.h"
#include "reserve.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

struct library {
    struct curl_real real; /* first: a curl_real of ours is its library */
    unsigned number;
    void *probe;
    void *hold;
};

_Atomic(const struct curl_real *) library_first;

static const struct library *library_of(const struct curl_real *real)
{
    return (const struct library *)real;
}

static struct object_range range_of(const struct library *library)
{
    return (struct object_range){library->real.begin, library->real.begin + library->real.size};
}

/* A function of the object itself: dlsym on a handle also looks into what the object needs. */
static void *own_symbol(void *hold, const struct object_range *range, const char *name,
                        const char *version)
{
    void *found = version ? dlvsym(hold, name, version) : NULL;

    if (!found)
        found = real_libc_dlsym()(hold, name);
    return found && object_holds(range, found) ? found : NULL;
}

/* Another copy of libbreaker: no libcurl is built for several TLS libraries' version nodes. */
static bool is_breaker(void *hold, const struct object_range *range)
{
    void *one = dlvsym(hold, LIBRARY_PROBE, "CURL_NSS_3");
    void *two = one ? dlvsym(hold, LIBRARY_PROBE, "CURL_RUSTLS_4") : NULL;

    return two && one != two && object_holds(range, one) && object_holds(range, two);
}

static void fill(struct library *library, const char *version)
{
    struct curl_real *real = &library->real;
    struct object_range range = range_of(library);

#define OWN(name)                                    own_symbol(library->hold, &range, "curl_" #name, version)
#define CURL_HOOK(type, name, parameters, arguments) real->name = (type(*) parameters)OWN(name);
#define CURL_HOOK_VARIADIC(type, name, first_type, second_type)                                    \
    real->name = (type(*)(first_type, second_type, ...))OWN(name);
#define CURL_REAL(type, name, parameters) real->name = (type(*) parameters)OWN(name);
#include "hooks.def"
#undef OWN
    curl_version_info_data *info = real->version_info ? real->version_info(CURLVERSION_NOW) : NULL;
    real->version = info ? info->version_num : 0;
    real->is_breaker = is_breaker(library->hold, &range);
}

static struct library kept[RESERVE_RECORDS];
static struct reserve reserve = RESERVE_OF(kept);

static void discard(struct library *library)
{
    if (!library)
        return;
    object_release(library->hold);
    reserve_give(&reserve, library);
}

/* Whichever library: the first connect of the program is the same. */
static void look_for_hiding(void)
{
    bool hidden = !real_is_ours(real_libc_dlsym()(RTLD_DEFAULT, "connect"));

    atomic_store_explicit(&library_hidden, hidden, memory_order_relaxed);
}

static struct library *make(void *probe, const char *version)
{
    struct library *library = reserve_take(&reserve);
    struct object_range range;

    if (!library)
        return NULL;
    library->probe = probe;
    library->hold = object_hold(probe);
    if (library->hold && object_range_of(probe, &range)) {
        library->real.begin = range.begin;
        library->real.size = (size_t)(range.end - range.begin);
        fill(library, version);
    }
    if (library->real.easy_init && library->real.easy_perform && library->real.easy_cleanup &&
        library->real.easy_setopt && library->real.easy_getinfo) {
        look_for_hiding();
        return library;
    }
    discard(library);
    return NULL;
}

/* Two threads may make the same library at once; the one pushed first serves. */
const struct curl_real *library_at(void *probe, const char *version)
{
    struct library *made = NULL;

    if (!probe || real_is_ours(probe))
        return NULL;
    for (;;) {
        const struct curl_real *head = atomic_load_explicit(&library_first, memory_order_acquire);
        for (const struct curl_real *known = head; known; known = known->next)
            if (library_of(known)->probe == probe) {
                discard(made);
                return known;
            }
        if (!made)
            made = make(probe, version);
        if (!made)
            return NULL;
        made->real.next = head;
        made->number = head ? library_of(head)->number + 1 : 1;
        if (atomic_compare_exchange_strong_explicit(&library_first, &head, &made->real,
                                                    memory_order_release, memory_order_relaxed))
            return &made->real;
    }
}

const struct curl_real *library_inside(const void *address, const char *version)
{
    const struct curl_real *found = library_known(address);
    struct object_range range;

    if (found || real_is_ours(address) || !object_range_of(address, &range))
        return found;
    void *hold = object_hold(address);
    if (hold && !is_breaker(hold, &range))
        found = library_at(own_symbol(hold, &range, LIBRARY_PROBE, version), version);
    object_release(hold);
    return found;
}

__thread bool library_entered __attribute__((tls_model("initial-exec")));
atomic_bool library_hidden;

unsigned library_number(const struct curl_real *real)
{
    return real ? library_of(real)->number : 0;
}

const struct curl_real *library_of_number(unsigned number)
{
    const struct curl_real *known = atomic_load_explicit(&library_first, memory_order_acquire);

    while (known && library_of(known)->number != number)
        known = known->next;
    return known;
}
