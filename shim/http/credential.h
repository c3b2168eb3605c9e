/*
 * credential.h - where a request says whose quota it draws on, to be hashed and never kept. Pure.
 */
#ifndef BREAKER_HTTP_CREDENTIAL_H
#define BREAKER_HTTP_CREDENTIAL_H

#include "base/span.h"

#include <stdint.h>

/* What is kept of it: 0, or the same of a part before it, and then this part. Never 0. */
uint64_t credential_hash(uint64_t before, struct span part);

enum credential_kind {
    CREDENTIAL_NONE,
    CREDENTIAL_PROVIDERS, /* Authorization, x-api-key, api-key or x-goog-api-key */
    CREDENTIAL_OTHER,     /* by a name that ends as those of credentials do, of gateways
                             (Ocp-Apim-Subscription-Key, X-Auth-Token), or a cookie: where there is
                             no provider's, these tell one application from another */
};

/* Is this line of a head ("Name: value") one with the key of an application? *key is its value,
 * without blanks around it and without the word "Bearer"; of an AWS signature the id of the key
 * that signed. A line without a value is none, as libcurl's "Name:" and "Name;" are not sent. */
enum credential_kind credential_in_header(struct span line, struct span *key);

/* Does one stand behind the '?' of a URL? *key is the value of key or api-key, as it stands. */
bool credential_in_query(struct span query, struct span *key);

#endif
