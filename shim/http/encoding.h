/*
 * encoding.h - can a body be read as it stands? Pure.
 */
#ifndef BREAKER_HTTP_ENCODING_H
#define BREAKER_HTTP_ENCODING_H

#include "base/span.h"

/* By its Content-Encoding: none (SPAN_NONE, or empty), or "identity". */
static inline bool encoding_is_plain(struct span encoding)
{
    struct span name = span_trim(encoding);

    return name.len == 0 || span_ieq(name, SPAN_LIT("identity"));
}

#endif
