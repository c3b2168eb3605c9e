/*
 * url.h - takes a URL apart as far as routing needs it. Borrowed spans into the text given.
 *
 * Accepts what libcurl accepts: no scheme ("example.com/x": http), userinfo, IPv6 literals in
 * brackets, back slashes left alone; in the path spaces too. Spells nothing anew: of libcurl's URLs
 * that is libcurl's own part (preload/curl_url.c). Pure.
 */
#ifndef BREAKER_HTTP_URL_H
#define BREAKER_HTTP_URL_H

#include "base/span.h"

#include <stdint.h>

struct url {
    struct span scheme; /* as written, or "http" when left out */
    struct span host;   /* as written, brackets and a zone id included; never empty */
    uint16_t port;      /* explicit, or 443 for https and wss, 80 else */
    struct span path;   /* from the first '/', without query and fragment; may be empty */
    struct span query;  /* after '?', without fragment; SPAN_NONE when there is none */
};

/* False: no URL with a host (file:, empty, blanks in it, port not 1..65535); *out untouched. */
bool url_parse(struct span text, struct url *out);

/* What of the text stands before the '@' of a URL that was parsed from it; empty: nothing. */
struct span url_userinfo(struct span text, const struct url *url);

/* Key H: host percent-decoded and in lower case, a zone id and one trailing dot dropped, ":port"
 * unless 443. Writes at most `size` bytes, no NUL; returns the length, 0 when it does not fit or
 * is no host: blanks, control characters, unpaired brackets, two dots at its end, or one of
 * /"\<>#?@%, decoded. A key's host gives that key again. */
size_t url_host_key(struct span host, uint16_t port, char *buf, size_t size);

/* The ":PORT" at the end of "HOST[:PORT]", colon included; empty when there is none. Colons inside
 * the brackets of an IPv6 address begin no port. Does not judge what stands behind the colon. */
struct span url_port_part(struct span host_port);

/* Percent-decodes; a broken escape stays as it is. Returns the length, 0 when it does not fit. */
size_t url_decode(struct span text, char *buf, size_t size);

#endif
