/*
 * curl_entries.c - what the dynamic linker sees: every curl hook once per version node.
 *
 * Generated from hooks.def times CURL_FLAVOURS. An entry lets libcurl's own inner calls pass (one
 * curl_easy_perform makes ten), finds out which libcurl any other belongs to, lets everything pass
 * while disabled, and else calls the logic in hook_<name>().
 */
#include "curl_hooks.h"
#include "easymap.h"
#include "guard.h"
#include "real_library.h"
#include "shim.h"
#include "tail.h"

#include <stdarg.h>
#include <string.h>

static inline real_t library_for(enum curl_flavour flavour, const void *handle, const void *caller)
{
    real_t real = handle ? easymap_owner(handle) : NULL;

    return real ? real : real_curl(flavour, caller);
}

/* Another libbreaker decides, or nothing is to be done. In a fence there is: what was put into a
 * handle for a call under way is taken out again at its end. */
static bool passes(real_t real)
{
    return real->is_breaker || (shim_disabled() && !shim_fenced());
}

/* What libcurl returns when its set-up failed. */
#define FAILURE(type)                                                                              \
    _Generic((type *)0, CURLcode *                                                                 \
             : CURLE_FAILED_INIT, CURLMcode *                                                      \
             : CURLM_INTERNAL_ERROR, default                                                       \
             : NULL)

#define WITH_REAL(...)            (real, ##__VA_ARGS__)
#define FIRST_OF(ignored, x, ...) x
#define FIRST(...)                FIRST_OF(0, ##__VA_ARGS__, NULL)

#define STRING_(x)     #x
#define STRING(x)      STRING_(x)
#define JOIN_(a, b, c) a##b##_##c
#define JOIN(a, b, c)  JOIN_(a, b, c)
#define ENTRY(name)    JOIN(entry_, name, FLAVOUR_ID)

/* The exported name. "@@" makes the first flavour the default, which unversioned callers get. */
#define VERSIONED(name)                                                                            \
    __asm__(".symver " STRING(ENTRY(name)) ",curl_" #name FLAVOUR_AT FLAVOUR_VERSION);

#define LIBRARY(arguments, caller) library_for(JOIN(FLAVOUR, , FLAVOUR_ID), FIRST arguments, caller)

/* What passes is a jump: the next libbreaker sees who called us (FIELD-NOTES 1.3). */
#define DEFINE_HOOK(type, name, parameters, arguments)                                             \
    EXPORTED type ENTRY(name) parameters;                                                          \
    TAIL_CODE type ENTRY(name) parameters                                                          \
    {                                                                                              \
        const void *caller = __builtin_return_address(0);                                          \
        real_t inner = library_known(caller), real = inner ? inner : LIBRARY(arguments, caller);   \
        if (!real || !real->name)                                                                  \
            return FAILURE(type);                                                                  \
        if (inner || passes(real))                                                                 \
            TAIL_RETURN(real->name arguments);                                                     \
        return hook_##name WITH_REAL arguments;                                                    \
    }                                                                                              \
    VERSIONED(name)

#define DEFINE_HOOK_VOID(name, parameters, arguments)                                              \
    EXPORTED void ENTRY(name) parameters;                                                          \
    TAIL_CODE void ENTRY(name) parameters                                                          \
    {                                                                                              \
        const void *caller = __builtin_return_address(0);                                          \
        real_t inner = library_known(caller), real = inner ? inner : LIBRARY(arguments, caller);   \
        if (!real || !real->name)                                                                  \
            return;                                                                                \
        if (inner || passes(real))                                                                 \
            TAIL_RETURN(real->name arguments);                                                     \
        hook_##name WITH_REAL arguments;                                                           \
    }                                                                                              \
    VERSIONED(name)

/* One argument behind the two fixed ones: long, pointer, curl_off_t and double * all pass as one
 * word on LP64 (FIELD-NOTES 1.8). */
#define DEFINE_HOOK_VARIADIC(type, name, first_type, second_type)                                  \
    EXPORTED type ENTRY(name)(first_type first, second_type second, ...);                          \
    type ENTRY(name)(first_type first, second_type second, ...)                                    \
    {                                                                                              \
        va_list ap;                                                                                \
        va_start(ap, second);                                                                      \
        void *value = va_arg(ap, void *);                                                          \
        va_end(ap);                                                                                \
        const void *caller = __builtin_return_address(0);                                          \
        real_t inner = library_known(caller), real = inner ? inner : LIBRARY((first), caller);     \
        if (!real)                                                                                 \
            return FAILURE(type);                                                                  \
        if (inner || passes(real))                                                                 \
            return real->name(first, second, value);                                               \
        return hook_##name(real, first, second, value);                                            \
    }                                                                                              \
    VERSIONED(name)

#define EXPORTED EXPORT /* but for the last flavour */

#define FLAVOUR_ID      openssl4
#define FLAVOUR_VERSION "CURL_OPENSSL_4"
#define FLAVOUR_AT      "@@"
#include "curl_entries.inc"

#define FLAVOUR_ID      gnutls3
#define FLAVOUR_VERSION "CURL_GNUTLS_3"
#define FLAVOUR_AT      "@"
#include "curl_entries.inc"

#define FLAVOUR_ID      nss3
#define FLAVOUR_VERSION "CURL_NSS_3"
#define FLAVOUR_AT      "@"
#include "curl_entries.inc"

#define FLAVOUR_ID      curl4
#define FLAVOUR_VERSION "CURL_4"
#define FLAVOUR_AT      "@"
#include "curl_entries.inc"

#define FLAVOUR_ID      multissl4
#define FLAVOUR_VERSION "CURL_MULTISSL_4"
#define FLAVOUR_AT      "@"
#include "curl_entries.inc"

#define FLAVOUR_ID      mbedtls4
#define FLAVOUR_VERSION "CURL_MBEDTLS_4"
#define FLAVOUR_AT      "@"
#include "curl_entries.inc"

#define FLAVOUR_ID      wolfssl4
#define FLAVOUR_VERSION "CURL_WOLFSSL_4"
#define FLAVOUR_AT      "@"
#include "curl_entries.inc"

#define FLAVOUR_ID      gnutls4
#define FLAVOUR_VERSION "CURL_GNUTLS_4"
#define FLAVOUR_AT      "@"
#include "curl_entries.inc"

#define FLAVOUR_ID      rustls4
#define FLAVOUR_VERSION "CURL_RUSTLS_4"
#define FLAVOUR_AT      "@"
#include "curl_entries.inc"

/* Given out by the dlsym hook only. */
#undef EXPORTED
#undef VERSIONED
#define EXPORTED static
#define VERSIONED(name)
#define FLAVOUR_ID plain
#include "curl_entries.inc"

/* --- by name, for the dlsym hook ----------------------------------------------------------------
 */

/* Code and no table, whose hundreds of addresses the loader would have to relocate in each process
 * that starts. */
#define ADDRESS(name, flavour)                                                                     \
    case FLAVOUR_##flavour:                                                                        \
        return (void *)entry_##name##_##flavour;
#define ADDRESSES(name_)                                                                           \
    if (strcmp(name, "curl_" #name_) == 0)                                                         \
        switch (flavour) {                                                                         \
            ADDRESS(name_, openssl4)                                                               \
            ADDRESS(name_, gnutls3)                                                                \
            ADDRESS(name_, nss3)                                                                   \
            ADDRESS(name_, curl4)                                                                  \
            ADDRESS(name_, multissl4)                                                              \
            ADDRESS(name_, mbedtls4)                                                               \
            ADDRESS(name_, wolfssl4)                                                               \
            ADDRESS(name_, gnutls4)                                                                \
            ADDRESS(name_, rustls4)                                                                \
            ADDRESS(name_, plain)                                                                  \
        case FLAVOUR_COUNT:                                                                        \
            return NULL;                                                                           \
        }

void *curl_entry(const char *name, enum curl_flavour flavour)
{
#define CURL_HOOK(type, name, parameters, arguments)            ADDRESSES(name)
#define CURL_HOOK_VARIADIC(type, name, first_type, second_type) ADDRESSES(name)
#include "hooks.def"
    return NULL;
}
