/*
 * place.h - where calls may go besides their own host, out of text: bases (URLs) and addresses
 * (HOST:PORT). Stricter than http/url.h: it is people who write them, and a mistake is to be told.
 * Private to config/. Pure.
 */
#ifndef BREAKER_CONFIG_PLACE_H
#define BREAKER_CONFIG_PLACE_H

#include "base/span.h"

#include <stdint.h>

/* Spans into the text that was parsed. */
struct place_base {
    struct span text;   /* without a '/' at its end */
    struct span scheme; /* "http" or "https"; static storage */
    struct span host;   /* as written, brackets included */
    uint16_t port;      /* 443 or 80 where none is written */
    struct span path;   /* without a '/' at its end */
};

/* NULL: it is one. Else what is wrong with it, without a word of its own: it may hold a password.
 * *out is untouched then. */
const char *place_base_parse(struct span text, struct place_base *out);

/* What a text that is no base is, for a problem's `found`: the text too, unless a secret may be in
 * it. */
void place_base_describe(struct span text, char *buf, size_t size);

/* HOST:PORT as a key H spells it, but with port 443 too. Returns the length, no NUL; 0: it is none,
 * or does not fit. */
size_t place_address_write(struct span text, char *buf, size_t size);

/* "localhost" or below it, 127.0.0.0/8, [::1]: this machine, whoever answers for names. */
bool place_is_loopback(struct span host);

#endif
