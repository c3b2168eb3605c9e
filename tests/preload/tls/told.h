/*
 * told.h - for programs that print the statuses of their calls.
 */
#ifndef BREAKER_TESTS_TOLD_H
#define BREAKER_TESTS_TOLD_H

#include "tls.h"

static inline void told(int status)
{
    printf("%d\n", status);
    MUST(ERR_peek_error() == 0);
}

#endif
