/*
 * real_raw.h - the socket layer's functions as plain system calls, for the time before our
 * constructor: no loader, no allocation, no cancellation point.
 */
#ifndef BREAKER_PRELOAD_REAL_RAW_H
#define BREAKER_PRELOAD_REAL_RAW_H

#include "real.h"

#define X(type, name, parameters) type raw_##name parameters;
REAL_SOCK(X)
#undef X

#endif
