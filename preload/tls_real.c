#include "tls_real.h"

#include "guard.h"
#include "real.h"
#include "real_fork.h"
#include "real_library.h"
#include "real_object.h"
#include "reserve.h"
#include "shim.h"
#include "tls_link.h"

#include <dlfcn.h>

/* A libssl is known by its SSL_read. */
#define PROBE "SSL_read"

/* Which word of an SSL its method is: the second, since 3.2 the fourth. */
#define METHOD_AT_MOST 3

static const char *const versions[] = {"OPENSSL_3.0.0", "OPENSSL_1_1_0", "OPENSSL_1_1_1"};

/* What each call asks comes first, on a line of the cache. */
struct library {
    struct tls_site here[2]; /* covered, passing */
    struct tls_real real;
    void *probe;
    void *hold;
    struct object_range range;
    struct library *next;
};

/* Push-only; one is complete before the release that pushes it, and constant afterwards. Each
 * acquire pairs with that push. */
static _Atomic(struct library *) first_library;

/* The one that dlsym gives our entries out for. Set once. */
static _Atomic(struct library *) general;

/* --- what the loader would have found ----------------------------------------------------------
 */

static void *behind_us(const char *name)
{
    void *found = real_libc_dlsym()(RTLD_NEXT, name);

    return found && !real_is_ours(found) ? found : NULL;
}

/* What a reference of the object is bound to: in the global scope, of the version that its own
 * dependencies have; else there. */
static void *bound(void *hold, const char *name)
{
    const void *plain = hold ? real_libc_dlsym()(hold, name) : NULL;
    const char *version = NULL;
    void *own = NULL;

    for (size_t i = 0; hold && i < sizeof versions / sizeof *versions && own != plain; i++) {
        void *found = dlvsym(hold, name, versions[i]);
        if (!found || real_is_ours(found) || (own && found != plain))
            continue;
        own = found;
        version = versions[i];
    }
    if (own) {
        void *global = dlvsym(RTLD_NEXT, name, version);
        return global && !real_is_ours(global) ? global : own;
    }
    /* Without versions, or the program's own scope, which is the global one. */
    return plain && real_is_ours(plain) ? behind_us(name) : (void *)plain;
}

/* --- libraries ---------------------------------------------------------------------------------
 */

static void *own_symbol(const struct library *library, const char *name)
{
    void *found = real_libc_dlsym()(library->hold, name);

    return found && object_holds(&library->range, found) ? found : NULL;
}

static void fill(struct library *library)
{
    struct tls_real *real = &library->real;

#define TLS_HOOK(type, name, parameters)                                                           \
    real->name = (type(*) parameters)own_symbol(library, "SSL_" #name);
#define TLS_REAL(type, name, parameters)                                                           \
    real->name = (type(*) parameters)own_symbol(library, "SSL_" #name);
#define TLS_CRYPTO(type, name, parameters)                                                         \
    real->name = (type(*) parameters)bound(library->hold, #name);
#include "hooks.def"
}

/* Whose numbers and structures we know: others that have the same names export no such version. */
static bool is_openssl(const struct library *library)
{
    return dlvsym(library->hold, PROBE, "OPENSSL_3.0.0") == library->probe ||
           dlvsym(library->hold, PROBE, "OPENSSL_1_1_0") == library->probe;
}

static bool is_whole(const struct tls_real *real)
{
    return real->read && real->write && real->peek && real->pending && real->get_error &&
           real->do_handshake && real->get_ex_data && real->set_ex_data && real->get_rbio &&
           real->get_rfd && real->get_wfd && real->is_server && real->is_dtls &&
           real->is_init_finished && real->get_servername && real->get_client_random &&
           real->get_shutdown && real->set_shutdown && real->CRYPTO_get_ex_new_index &&
           real->BIO_method_type && real->BIO_ctrl_pending && real->ERR_clear_error &&
           real->ERR_peek_last_error;
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

/* Where it is no whole libssl its calls pass: the functions that it has are all there is to know.
 */
static struct library *make(void *probe)
{
    struct library *library = reserve_take(&reserve);

    if (!library)
        return NULL;
    library->probe = probe;
    library->hold = object_hold(probe);
    if (!library->hold || !object_range_of(probe, &library->range)) {
        discard(library);
        return NULL;
    }
    fill(library);
    bool covered = !shim_disabled() && !real_sock_other_decides && is_openssl(library) &&
                   is_whole(&library->real) && tls_link_prepare(&library->real);
    library->here[0] = (struct tls_site){&library->real, !covered};
    library->here[1] = (struct tls_site){&library->real, true};
    return library;
}

/* Two threads may make the same library at once; the one pushed first serves. */
static struct library *library_of(void *probe)
{
    struct library *made = NULL;

    if (!probe || real_is_ours(probe))
        return NULL;
    for (;;) {
        struct library *head = atomic_load_explicit(&first_library, memory_order_acquire);
        for (struct library *known = head; known; known = known->next)
            if (known->probe == probe) {
                discard(made);
                return known;
            }
        if (!made)
            made = make(probe);
        if (!made)
            return NULL;
        made->next = head;
        if (atomic_compare_exchange_strong_explicit(&first_library, &head, made,
                                                    memory_order_release, memory_order_relaxed))
            return made;
    }
}

/* The libssl that the address lies in. */
static struct library *library_around(const void *address)
{
    void *hold = object_hold(address);
    struct library *library = hold ? library_of(real_libc_dlsym()(hold, PROBE)) : NULL;

    object_release(hold);
    return library && object_holds(&library->range, address) ? library : NULL;
}

/* Among its first words is its method: a table of the library that made it. */
static struct library *owner_of(const SSL *ssl)
{
    const void *const *words = (const void *const *)ssl;
    struct library *owner = NULL;

    for (int i = 1; i <= METHOD_AT_MOST && !owner && !guard_is_nowhere(ssl); i++)
        owner = library_around(words[i]);
    return owner;
}

static struct library *search(const void *caller, const SSL *ssl)
{
    void *hold = object_hold(caller);
    struct library *found = NULL;

    /* It sees who called us, and decides for itself. */
    if (real_sock_other_decides)
        found = library_of(behind_us(PROBE));
    if (!found)
        found = owner_of(ssl);
    if (!found)
        found = library_of(bound(hold, PROBE));
    if (found && !found->real.get_ex_data && !real_sock_other_decides)
        found = NULL; /* another preload's single functions, in front of us: we would call each
                         other for ever */
    if (!found)
        found = atomic_load_explicit(&general, memory_order_acquire);
    if (!found)
        found = library_of(behind_us(PROBE));
    object_release(hold);
    return found;
}

/* --- places that call --------------------------------------------------------------------------
 */

struct tls_place tls_places[TLS_PLACES];

static const struct tls_site *remembered(const void *caller)
{
    for (unsigned i = 0; i < TLS_PROBES; i++) {
        const struct tls_place *place = tls_place_at(caller, i);
        if (tls_place_is(place, caller))
            return atomic_load_explicit(&place->site, memory_order_relaxed);
    }
    return NULL;
}

/* Two threads may take a place each for the same caller: the first one serves. */
static void remember(const struct tls_site *site, const void *caller)
{
    for (unsigned i = 0; i < TLS_PROBES; i++) {
        struct tls_place *place = tls_place_at(caller, i);
        const struct tls_site *none = NULL;
        if (atomic_compare_exchange_strong_explicit(&place->site, &none, site, memory_order_relaxed,
                                                    memory_order_relaxed)) {
            atomic_store_explicit(&place->caller, caller, memory_order_release);
            return;
        }
    }
}

/* The library is held for good: what is told of it stays. NULL: there is none. */
static const struct tls_site *find_site(const void *caller, const SSL *ssl)
{
    struct library *library;

    GUARD_ERRNO({
        real_fork_hold();
        library = search(caller, ssl);
        real_fork_release();
        dlerror(); /* our misses are not the application's */
    });
    if (!library)
        return NULL;
    return &library->here[library_known(caller) || object_holds(&library->range, caller)];
}

const struct tls_site *tls_site_search(const void *caller, const SSL *ssl)
{
    static const struct tls_site nowhere = {.passes = true};
    const struct tls_site *site = remembered(caller);

    if (site)
        return site;
    site = find_site(caller, ssl);
    if (!site)
        return &nowhere;
    remember(site, caller);
    return site;
}

static bool serves(void *real)
{
    struct library *library = library_around(real), *none = NULL;

    if (!library)
        return false;
    return atomic_compare_exchange_strong_explicit(&general, &none, library, memory_order_acq_rel,
                                                   memory_order_acquire) ||
           none == library;
}

bool tls_real_serves(void *real)
{
    bool served;

    if (real_is_ours(real))
        return false;
    real_fork_hold();
    GUARD_ERRNO(served = serves(real));
    real_fork_release();
    dlerror(); /* the application's dlsym went well: so must its dlerror() say */
    return served;
}
