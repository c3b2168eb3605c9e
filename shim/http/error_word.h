/*
 * error_word.h - the type, code or status of a provider's error, inside a body or a stream: whose
 * trouble is it? Pure.
 *
 * The rules are those for statuses (DESIGN, Outcomes; FIELD-NOTES 5), since inside a stream an
 * error is told in words where else a status would be.
 */
#ifndef BREAKER_HTTP_ERROR_WORD_H
#define BREAKER_HTTP_ERROR_WORD_H

#include "base/span.h"

enum error_kind {
    ERROR_UNKNOWN, /* the word says nothing */
    ERROR_FAILURE, /* the provider's trouble */
    ERROR_CALLER,  /* the request's own fault: another one may go well */
    ERROR_RATE,    /* a rate limit */
    ERROR_QUOTA,   /* a quota that is spent: waiting a little does not help (quota.h) */
};

/* A word (case is ignored) or an HTTP status in digits. */
enum error_kind error_word_kind(struct span word);

/* What an error is whose words were of these kinds, bit 1 << kind for each: a spent quota
 * is most precise, then a rate limit ("invalid_request_error" with the code "rate_limit_exceeded"),
 * then the caller's fault; what no word tells is the provider's. Never ERROR_UNKNOWN. */
enum error_kind error_word_of_kinds(unsigned kinds);

#endif
