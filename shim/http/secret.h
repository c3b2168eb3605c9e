/*
 * secret.h - which parts of a request are credentials: what must not go along when the request goes
 * to another (scheme, host, port) than its program meant (issue 4).
 *
 * By name, since a key looks like anything: the names of the providers' credentials (FIELD-NOTES 4,
 * 6), of AWS signatures, of cookies, and every name with a word for a secret in it. Too much is
 * dropped rather than too little; Idempotency-Key is no secret, though, and stays. Pure.
 */
#ifndef BREAKER_HTTP_SECRET_H
#define BREAKER_HTTP_SECRET_H

#include "base/span.h"

/* Is this line of a head ("Name: value", or libcurl's "Name;" and "Name:") a credential, by its
 * name or because its value begins with the scheme of one (Bearer, Basic, ...) or as providers'
 * keys do (sk-, AIza, ...)? A line that would be several in the head (a CR, LF or NUL inside)
 * counts as one. */
bool secret_is_header(struct span line);

/* Is this the name of a credential in a query? Judged decoded. One of more than 256 bytes is. */
bool secret_is_parameter(struct span name);

/* Copies the query (what stands behind the '?', SPAN_NONE too) without its credentials, by name or
 * by value; the other parameters stay byte for byte and in order. What stands between two '&' goes
 * as a whole, also where a ';' in it begins a credential. Returns the length, at most query.len;
 * `buf` holds query.len bytes. */
size_t secret_strip_query(struct span query, char *buf);

#endif
