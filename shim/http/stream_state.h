/*
 * stream_state.h - what the body of a good answer says of its call (stream.h).
 */
#ifndef BREAKER_HTTP_STREAM_STATE_H
#define BREAKER_HTTP_STREAM_STATE_H

enum stream_state {
    STREAM_BLIND,   /* nothing is to be seen in it, or nothing more: the transport's end tells */
    STREAM_RUNNING, /* neither an error so far nor the end */
    STREAM_OVER,    /* its clean end was there; whatever follows says nothing */
    /* An error; the first one stays. */
    STREAM_FAILURE, /* the provider's trouble, or not known to be anything else */
    STREAM_CALLER,  /* the request's own fault: neutral */
    STREAM_RATE,    /* a rate limit: as a 429 */
    STREAM_QUOTA,   /* a spent quota: as a 429 that tells of one */
};

#endif
