/*
 * guard.h - what every hook keeps: errno.
 *
 * A hook saves errno on entry and restores it around our own work, so that the application reads
 * what the real call left, on success too (FIELD-NOTES 1.12).
 */
#ifndef BREAKER_PRELOAD_GUARD_H
#define BREAKER_PRELOAD_GUARD_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

/* Runs `statement` (our own work) with errno put back afterwards. */
#define GUARD_ERRNO(statement)                                                                     \
    do {                                                                                           \
        int guard_saved_errno = errno;                                                             \
        statement;                                                                                 \
        errno = guard_saved_errno;                                                                 \
    } while (0)

/* Does the pointer lead where nothing can be mapped? The kernel says EFAULT, where we would end the
 * program: such a call passes unwatched. Other pointers into nothing are not told apart, it would
 * cost a system call. */
static inline bool guard_is_nowhere(const void *pointer)
{
    return (uintptr_t)pointer < 4096 || (intptr_t)pointer < 0;
}

#define EXPORT __attribute__((visibility("default")))

#endif
