/*
 * body.h - where an HTTP/1.x message ends (RFC 9112 6.3), as its bytes pass by. Resumable at any
 * byte. Pure.
 */
#ifndef BREAKER_HTTP_BODY_H
#define BREAKER_HTTP_BODY_H

#include "http/head.h"

enum http_body_state {
    HTTP_BODY_MORE,
    HTTP_BODY_DONE,
    HTTP_BODY_ALIEN, /* broken framing */
};

struct http_body {
    enum http_body_state state;
    bool until_close; /* ends with the connection: never DONE by itself */
    /* private from here */
    uint8_t step;
    uint32_t line_len; /* bytes of the chunk's first line or of the trailer's line so far */
    uint64_t left;     /* payload still to come, of the message or of the chunk */
};

/* The body that follows a head. HTTP_BODY_DONE at once where there is none. */
void http_body_init_request(struct http_body *body, const struct http_head_facts *head);
/* `head_only`: the request was a HEAD. 1xx, 204 and 304 have none either. */
void http_body_init_response(struct http_body *body, const struct http_head_facts *head,
                             bool head_only);

/* Consumes from `bytes` up to and including one run of payload, at least one byte while MORE and
 * bytes.len > 0; returns how much. *payload: that run inside `bytes`, maybe empty. Chunk extensions
 * and trailers are looked over (a line of them at most 64 KB, else ALIEN). Nothing is consumed once
 * DONE or ALIEN. */
size_t http_body_feed(struct http_body *body, struct span bytes, struct span *payload);

#endif
