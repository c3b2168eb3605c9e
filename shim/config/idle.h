/*
 * idle.h - settings that what stands beside them leaves without effect. Private to config/. Pure.
 */
#ifndef BREAKER_CONFIG_IDLE_H
#define BREAKER_CONFIG_IDLE_H

#include "config/settings.h"

#define IDLE_DEFAULT (-1) /* a setter: nobody, it is the default */

/* What is in force for some calls: those that no target is for, or those of a target's pattern. */
struct idle_view {
    const struct config *config;
    const struct value *value[OPTION_COUNT]; /* of each option, never NULL */
    const struct value *wider[OPTION_COUNT]; /* what it would be, were it not said there */
    int setter[OPTION_COUNT];                /* who says it: an index of idle.c, or IDLE_DEFAULT */
    uint64_t unsure; /* options that a target sets which is for some of these calls only */
};

struct idle_reason {
    uint64_t beside; /* the options that leave it without effect, one bit each */
    bool contrary;   /* two values against each other; else a thing that is switched off: then it
                        is nobody's mistake that its other keys stand there with their defaults */
    char text[256];  /* what was expected, what was found */
};

/* Has the option no effect on these calls, whatever its value says? Then *reason says why. */
bool idle_rules_ask(const struct idle_view *view, enum config_option option,
                    struct idle_reason *reason);

#endif
