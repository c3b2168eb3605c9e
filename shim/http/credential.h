/*
 * credential.h - where a request says whose quota it draws on, to be hashed and never kept. Pure.
 */
#ifndef BREAKER_HTTP_CREDENTIAL_H
#define BREAKER_HTTP_CREDENTIAL_H

#include "base/span.h"

#include <stdint.h>

/* What is kept of it: 0, or the same of a part before it, and then this part. Never 0. */
uint64_t credential_hash(uint64_t before, struct span part);

/* Is this line of a head ("Name: value") the one with the key of an application: Authorization,
 * x-api-key, api-key or x-goog-api-key? *key is its value, without blanks around it and without the
 * word "Bearer"; of an AWS signature the id of the key that signed. A line without a value is none,
 * as libcurl's "Name:" and "Name;" are not sent. */
bool credential_in_header(struct span line, struct span *key);

/* Does its name end as those of credentials do that are not the providers': of gateways
 * (Ocp-Apim-Subscription-Key, X-Auth-Token), or a cookie? Where none of the above is there, these
 * tell one application from another. */
bool credential_in_other_header(struct span line, struct span *key);

/* The same for what stands behind the '?' of a URL: the value of key or api-key, as it stands. */
bool credential_in_query(struct span query, struct span *key);

#endif
