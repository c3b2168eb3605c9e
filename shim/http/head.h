/*
 * head.h - HTTP/1.x request and response heads, read as they pass by: resumable at any byte, no
 * allocation. Pure.
 *
 * Reads what routing and framing need (RFC 9112, RFC 9110) and looks over the rest. It must agree
 * with what client and server made of the same bytes, not judge them: a head that it cannot follow
 * with certainty is HTTP_HEAD_ALIEN, and the connection is left alone.
 *
 * Ours, because Debian 12 has no HTTP/1 head parser that is still maintained (http-parser was
 * archived in 2022; llhttp and picohttpparser are not packaged). Fuzzed: tests/fuzz/.
 */
#ifndef BREAKER_HTTP_HEAD_H
#define BREAKER_HTTP_HEAD_H

#include "base/span.h"
#include "http/content.h"

#include <stdint.h>

enum http_head_state {
    HTTP_HEAD_MORE,
    HTTP_HEAD_DONE,  /* the blank line was the last byte consumed */
    HTTP_HEAD_ALIEN, /* no HTTP/1.x head, or one that cannot be followed */
};

#define HTTP_HEAD_PATH_MAX 1024 /* a longer path: path_len 0, no LLM shape */
#define HTTP_HEAD_HOST_MAX 262
#define HTTP_HEAD_LINE_MAX 1024 /* of a header line that is read, without its LF; else ALIEN */
#define HTTP_HEAD_MAX      (256 * 1024) /* a longer head is ALIEN */

/* What a head said; valid once DONE. */
struct http_head_facts {
    uint16_t status;         /* responses: 100..999 */
    uint8_t minor;           /* HTTP/1.<minor> */
    bool has_length;         /* Content-Length, the same everywhere it stands */
    bool chunked;            /* the last transfer coding is chunked */
    bool coded;              /* a Transfer-Encoding whose last coding is another: ends with the
                                connection (responses), ALIEN in a request */
    bool close;              /* Connection: close, or HTTP/1.0 without keep-alive */
    bool upgrade;            /* Connection: upgrade together with an Upgrade header */
    uint8_t content;         /* responses: enum content_kind of Content-Type */
    bool encoded;            /* responses: a Content-Encoding that is not "identity" */
    bool has_query;          /* requests: the target has one */
    uint64_t credential;     /* requests: credential_hash() of the first header that is one, else
                                of all that may be (credential.h); of a longer line than
                                HTTP_HEAD_LINE_MAX of what fits; 0: there is none */
    bool absolute;           /* request target in absolute form: for a proxy */
    uint64_t length;         /* of Content-Length */
    bool retry_is_date;      /* responses: Retry-After is an IMF-fixdate, and the best there is */
    int64_t retry_at_s;      /* then: seconds since 1970 */
    uint32_t retry_after_ms; /* else: retry-after-ms, x-amz-retry-after (ms) or Retry-After in
                                seconds, the first of them; 0: none. Clamped to 24 h */
    uint16_t method_len, path_len, host_len;
    char method[16];
    char path[HTTP_HEAD_PATH_MAX]; /* percent-encoded as it stood, without query or fragment */
    char host[HTTP_HEAD_HOST_MAX]; /* of the target in absolute form, else of the Host header; with
                                      its port if it has one; empty: none */
};

/* Private but for state and facts; fixed in size, plain bytes, copied by assignment. */
struct http_head {
    enum http_head_state state;
    /* private, and here for what is used together to lie together */
    bool response;
    bool known;    /* the last header line was one that is read: a folded one after it is not */
    bool overlong; /* inside a line that outgrew line[] and is looked over */
    uint8_t step;
    uint8_t empties;      /* empty lines before the head */
    uint8_t words;        /* bits: which of a step's words the bytes can still become */
    uint8_t at;           /* how many of the word's bytes, or digits, were there */
    uint8_t seen;         /* bits: what the lines said */
    uint8_t retry_source; /* the better of the headers behind retry_after_ms */
    bool like_last;       /* facts and line[0..kept_len) are those of the head before this one */
    uint16_t kept_len;    /* once DONE: line[] holds the whole head; 0: it does not */
    uint16_t number_at;   /* where in it the number of Content-Length stands */
    uint16_t number_len;  /* 0: there is none */
    uint16_t line_len;
    uint32_t total;     /* bytes consumed */
    uint32_t path_len;  /* as it stood */
    uint32_t host_len;  /* of the target's authority, as it stood */
    uint64_t others;    /* hash of what may be a credential, for when nothing is one */
    uint64_t host_line; /* hash of the first Host header's value */
    const char *number; /* the last Content-Length's value, where it stood in the bytes fed */
    struct http_head_facts facts;
    char line[HTTP_HEAD_LINE_MAX]; /* a line whose end is still to come */
};

void http_head_init_request(struct http_head *head);
/* For the next request, where clients mostly send one head after the other that differ in their
 * Content-Length alone: such a one is compared with the last instead of read. `head` is all-zero or
 * was in use. The same facts as after http_head_init_request(). */
void http_head_next_request(struct http_head *head);
/* Of a request that is DONE: is it the last one again, but for its Content-Length? */
bool http_head_is_again(const struct http_head *head);
void http_head_init_response(struct http_head *head);

/* When a response says to come again, in ms from `wall_s` (seconds since 1970) on; 0: it does not,
 * or it is past. */
uint32_t http_head_retry_ms(const struct http_head_facts *facts, int64_t wall_s);

/* The same of the values of retry-after-ms, x-amz-retry-after and Retry-After; SPAN_NONE: there is
 * no such header. */
uint32_t http_retry_ms(struct span ms, struct span amz, struct span after, int64_t wall_s);

/* Consumes up to the end of the head; returns how much. Nothing is consumed once DONE or ALIEN. A
 * request that cannot be one is ALIEN at the earliest byte that shows it (methods: GET HEAD POST
 * PUT PATCH DELETE OPTIONS; CONNECT and PRI are ALIEN), so that other protocols are let go at their
 * first write. Empty lines before a head are looked over (RFC 9112 2.2), at most 4.
 * State and facts depend on the bytes alone, not on how they are cut; so does what is consumed of a
 * head that is not ALIEN. */
size_t http_head_feed(struct http_head *head, struct span bytes);

#endif
