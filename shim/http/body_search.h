/*
 * body_search.h - is one of a few texts in the first 4 KiB of a body? Resumable at any byte, no
 * allocation. Pure.
 *
 * For neutral_body (FIELD-NOTES 5, mecatl#207; DESIGN, Outcomes) and for quota.h. Bytes are
 * compared as they stand: case counts, and a quote inside a JSON string is \" there.
 */
#ifndef BREAKER_HTTP_BODY_SEARCH_H
#define BREAKER_HTTP_BODY_SEARCH_H

#include "base/span.h"

#include <stdint.h>

#define BODY_SEARCH_LIMIT                                                                          \
    4096 /* bytes of the body; what begins before it and ends after it is not found */
#define BODY_SEARCH_TEXT_MAX 128 /* a longer text is never found, an empty one neither */

/* Private; plain bytes, copied by assignment. All-zero is ready for a body. */
struct body_search {
    uint16_t seen; /* bytes of the body */
    bool found;
    uint8_t tail_len;
    char tail[BODY_SEARCH_TEXT_MAX - 1]; /* the last of them: a text may go on in the next */
};

/* The same texts each time. Was one of them there so far? */
bool body_search_feed(struct body_search *search, struct span bytes, const struct span *texts,
                      size_t count);

/* Nothing that follows changes the answer. */
static inline bool body_search_over(const struct body_search *search)
{
    return search->found || search->seen == BODY_SEARCH_LIMIT;
}

#endif
