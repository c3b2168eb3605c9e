/*
 * curl_detour.h - the way of one transfer to a fallback: the handle's URL, body and headers are
 * overridden for it, everything that speaks of who the application is is taken away where the
 * fallback is another (scheme, host, port), and all is put back afterwards.
 */
#ifndef BREAKER_PRELOAD_CURL_DETOUR_H
#define BREAKER_PRELOAD_CURL_DETOUR_H

#include "curl_call.h"

/* Of one transfer; in easy->detour from the first look for a fallback to the end. Owns all that it
 * points to, but for `part`. */
struct detour {
    struct shim_detour way;
    bool refused; /* the application's call was refused; else its connect failed */
    bool going;   /* the transfer under way is the fallback's */
    char *url;    /* the application's; `way` points into it, and into the next two */
    char *method;
    char *fields; /* of COPYPOSTFIELDS, which may be set anew meanwhile */
    bool follows; /* a transfer of this call ran before it: it has what is left of the time */
    struct curl_slist *headers, *connect_to;
    /* The body, where it is not the application's own any more. */
    char *pulled; /* what its callback gave, whole; NULL: it was not asked */
    size_t pulled_len;
    char *body; /* with another model */
    size_t body_len;
    struct span replay;  /* of the two, what our callback gives */
    size_t replayed;     /* so much of it is given */
    bool told_length;    /* by a line of the application's head, which does not go along */
    curl_mimepart *part; /* a form's field that holds another model; the application's */
};

/* --- curl_detour.c ------------------------------------------------------------------------------
 */

/* After a refusal, by the target or by a fallback on the way to it: prepares the handle for the
 * next candidate. False: there is none (any more), the handle is as the application set it. */
bool curl_detour_next(struct easy *easy);

/* Is the transfer under way a fallback's? */
static inline bool curl_detour_is_going(const struct easy *easy)
{
    return easy->detour && easy->detour->going;
}

/* The transfer under way ended before a byte of its request went out, by a connect that failed or,
 * on its way to a fallback, by whatever else: settles it, and prepares the handle for the next
 * candidate, or, at the end of a refused call's chain, for what comes of it. False: it did not end
 * so, or nobody takes it, or no time is left; the result is the application's. */
bool curl_detour_fail_over(struct easy *easy, CURLcode result);
/* Is that to be asked at all? */
bool curl_detour_may_fail_over(const struct easy *easy);

/* A transfer that follows another one of its call has what is left of its caller's time for all of
 * it. For its connect it has as long as the caller allows for one: that is no part of it. */
void curl_detour_override_time(struct easy *easy);

/* Puts back what is no option, and keeps what libcurl forgets when options are set. Before those
 * are put back. Harmless when nobody is on the way. */
void curl_detour_leave(struct easy *easy);
/* Frees it. The call of it is to be settled before, or is dropped. Harmless when there is none. */
void curl_detour_end(struct easy *easy);

/* --- curl_detour_request.c ----------------------------------------------------------------------
 */

/* Can the candidate have the request? NULL, or why not (static storage). Takes memory, overrides
 * nothing. */
const char *curl_detour_plan_request(struct easy *easy);
/* Overrides body, headers and credentials as planned. */
void curl_detour_override_request(struct easy *easy);
/* A form's field gets the application's model again. */
void curl_detour_put_part_back(struct easy *easy);
/* Lets go of what was planned for a candidate. */
void curl_detour_drop_request(struct easy *easy);
/* Shows the way the body, so far as it is to be had beforehand. */
void curl_detour_show_body(struct easy *easy);

/* --- curl_replay.c ------------------------------------------------------------------------------
 */

/* Reads the whole body from the application's callback, which can be rewound; it stays in
 * detour->pulled. False: it said no, or there is no memory. */
bool curl_replay_pull(struct easy *easy);
/* Has libcurl read detour->replay. */
void curl_replay_install(struct easy *easy);

#endif
