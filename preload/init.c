/*
 * init.c - the constructor. Hooks may be called before it (C++ statics, other constructors): each
 * prepares what it needs by itself. Nothing is torn down at exit: hooks are called after
 * destructors too.
 */
#include "easymap.h"
#include "real.h"
#include "real_fork.h"
#include "shim.h"
#include "sock_resolve.h"

static __attribute__((constructor)) void init(void)
{
    shim_capture_environment();
    real_prepare();
    easymap_prepare();
    real_fork_prepare();
    sock_resolve_prepare();
}
