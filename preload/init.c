/*
 * init.c - the constructor. Hooks may be called before it (C++ statics, other constructors): each
 * prepares what it needs by itself. Nothing is torn down at exit: hooks are called after
 * destructors too. Only what an attempt to connect came to is told, if it went no further.
 */
#include "easymap.h"
#include "real.h"
#include "real_fork.h"
#include "shim.h"
#include "sock_attempt.h"
#include "sock_conn.h"
#include "sock_resolve.h"

static __attribute__((constructor)) void init(void)
{
    shim_capture_environment();
    real_prepare();
    easymap_prepare();
    real_fork_prepare();
    real_sock_prepare();
    sock_resolve_prepare();
    sock_conn_prepare();
}

/* Hooks are called after this as well. */
static __attribute__((destructor)) void fini(void)
{
    sock_attempt_finish();
}
