/*
 * distance.h - how far two short texts are apart, for messages that name what was perhaps meant.
 *
 * Levenshtein's distance of bytes. Texts longer than DISTANCE_MAX are cut: it is for keys and
 * option names. Pure; about 2 KiB of stack; time grows with the product of the lengths.
 */
#ifndef BREAKER_BASE_DISTANCE_H
#define BREAKER_BASE_DISTANCE_H

#include "base/span.h"

#include <stdint.h>

#define DISTANCE_MAX 520

unsigned distance_of(struct span a, struct span b);

/* The same, or DISTANCE_FAR where nobody meant the one by the other: more than a third differs. */
#define DISTANCE_FAR UINT32_MAX
unsigned distance_if_near(struct span a, struct span b);

#endif
