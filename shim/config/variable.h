/*
 * variable.h - ${VAR} in the headers of a fallback: the one way for a secret to get into a call
 * without standing in breaker.ini. Pure, but for the look-up that the caller brings.
 */
#ifndef BREAKER_CONFIG_VARIABLE_H
#define BREAKER_CONFIG_VARIABLE_H

#include "base/span.h"

#define VARIABLE_NAME_MAX 127

enum variable_result {
    VARIABLE_GOOD,
    VARIABLE_UNSET,    /* one is not set, or empty, or has a line's end in it */
    VARIABLE_TOO_LONG, /* for the buffer */
    VARIABLE_BROKEN,   /* a '$' that begins no ${NAME}; "$$" stands for '$' */
};

/* Puts the variables in; `look_up` is getenv() or the like. NUL-terminated, and empty where it is
 * not VARIABLE_GOOD. Where it is VARIABLE_UNSET *culprit (may be NULL) is the name, inside `text`.
 * What comes out is a secret: never log it. */
enum variable_result variable_expand(const char *text, const char *(*look_up)(const char *name),
                                     char *buf, size_t size, struct span *culprit);

/* Takes off *text what stands up to the next variable, and that; its name is *name. False: there is
 * none. Then *text is empty, or begins with a '$' that is broken. */
bool variable_next(struct span *text, struct span *name);

/* Can this name's value go into a header? NULL and "" are none. */
bool variable_is_usable(const char *value);

#endif
