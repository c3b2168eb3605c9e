/*
 * dl_sym.c - dlsym: programs that fetch libcurl's functions by name (ctypes, ethon, Julia) get our
 * entry of the same flavour, and of libssl's (.NET) ours that leads there. Every other name, and
 * the pseudo-handles above all, is a tail jump: RTLD_NEXT means "behind my caller"
 * (FIELD-NOTES 1.5).
 */
#include "guard.h"
#include "real.h"
#include "shim.h"
#include "tail.h"
#include "tls_real.h"

#include <dlfcn.h>

static bool is_curl_name(const char *name)
{
    return name[0] == 'c' && name[1] == 'u' && name[2] == 'r' && name[3] == 'l' && name[4] == '_';
}

static __attribute__((noinline)) void *find_curl(void *handle, const char *name)
{
    void *real = real_dlsym()(handle, name);
    void *entry = NULL;

    if (real && !shim_disabled())
        GUARD_ERRNO(entry = real_entry_for(handle, name, real));
    return entry ? entry : real;
}

static bool is_tls_name(const char *name)
{
    return name[0] == 'S' && name[1] == 'S' && name[2] == 'L' && name[3] == '_';
}

static __attribute__((noinline)) void *find_tls(void *handle, const char *name)
{
    void *real = real_dlsym()(handle, name);
    void *entry = NULL;

    if (real && !shim_disabled())
        GUARD_ERRNO(entry = tls_entry(name));
    return entry && tls_real_serves(real) ? entry : real;
}

TAIL_FUNCTION void *dlsym(void *restrict handle, const char *restrict name)
{
    if (handle != RTLD_NEXT && handle != RTLD_DEFAULT && is_curl_name(name))
        TAIL_RETURN(find_curl(handle, name));
    if (handle != RTLD_NEXT && handle != RTLD_DEFAULT && is_tls_name(name))
        TAIL_RETURN(find_tls(handle, name));
    TAIL_RETURN(real_dlsym()(handle, name));
}
