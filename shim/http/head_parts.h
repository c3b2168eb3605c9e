/*
 * head_parts.h - what the parts of the head parser share. Private to head*.c.
 */
#ifndef BREAKER_HTTP_HEAD_PARTS_H
#define BREAKER_HTTP_HEAD_PARTS_H

#include "http/head.h"

/* head->step: what the next byte belongs to */
enum head_step {
    STEP_START,    /* before the first byte of the head */
    STEP_START_LF, /* after the CR of an empty line before it */
    STEP_METHOD,
    STEP_TARGET, /* before the target's first byte */
    STEP_STAR,   /* after a target "*" */
    STEP_SCHEME,
    STEP_AUTHORITY,
    STEP_PATH,
    STEP_QUERY, /* a fragment too */
    STEP_VERSION,
    STEP_ANSWER, /* a response's version and the blank after it */
    STEP_STATUS,
    STEP_REASON,
    STEP_END,    /* after the version or status: CR or LF */
    STEP_END_LF, /* after its CR */
    STEP_LINES,  /* the header lines */
};

/* head->seen */
#define SEEN_HOST       1u
#define SEEN_CLOSE      2u
#define SEEN_KEEP_ALIVE 4u
#define SEEN_UPGRADE    8u  /* in Connection */
#define SEEN_PROTOCOL   16u /* the Upgrade header */
#define SEEN_LENGTHS    32u /* more than one value of Content-Length */

/* head->retry_source */
#define RETRY_NONE    0u
#define RETRY_SECONDS 1u /* or a date */
#define RETRY_AMZ     2u
#define RETRY_MS      3u

static inline void head_alien(struct http_head *head)
{
    head->state = HTTP_HEAD_ALIEN;
}

/* head_lines.c: takes at least one byte of `bytes`, which is not empty, up to the head's end. */
size_t head_lines(struct http_head *head, struct span bytes);

/* head_again.c: the head before this one, if it is the same but for its Content-Length: then it is
 * taken, and DONE; else 0. */
size_t head_same(struct http_head *head, struct span bytes);
/* Remembers the head that is DONE, which these bytes are, if it can be compared with. */
void head_keep(struct http_head *head, struct span bytes);

/* head_retry.c: a header that says when to come again. The best source counts, of equal ones the
 * first; a value that cannot be read is none. */
void head_retry(struct http_head *head, unsigned source, struct span value);

#endif
