/*
 * easymap.h - CURL*, CURLM*, mime handles and parts -> what we know of them.
 *
 * One hash (uthash) in shards, each under a lock that is held for a look-up only, never across a
 * real call. A fork takes all locks first, so that a child never finds one held by a thread that it
 * does not have. What an entry points to belongs to the thread that uses the handle, as with
 * libcurl.
 */
#ifndef BREAKER_PRELOAD_EASYMAP_H
#define BREAKER_PRELOAD_EASYMAP_H

#include "curl_hooks.h"
#include "curl_options.h"
#include "shim.h"

struct multi;

struct easy {
    CURL *handle;
    real_t real;
    struct curl_options options;
    struct shim_request request; /* of the URL in the shadow, if request_known */
    bool request_known;
    struct shim_call call;
    uint64_t added_round;      /* multi->rounds when it was added */
    struct multi *multi;       /* added to; NULL outside */
    struct easy *next_refused; /* in multi->refused */
    uint64_t started_ns;       /* CLOCK_MONOTONIC of the admission */
    uint64_t body_seen;        /* bytes that our read callback has passed on */
    bool unreliable;           /* the shadow is not to be trusted: the handle runs uncovered */
    bool performing;           /* inside its own curl_easy_perform */
    bool watched;              /* our read callback is installed */
    bool refused;              /* our read callback refused the model: to be answered by us */
    bool synthetic;            /* our answer is under way */
    bool answered;             /* the last answer was ours: getinfo tells the application's URL */
    bool paused;
    uint64_t mark;      /* synthetic: for the connect hook (curl_synth.c); 0: none */
    int peer_fd;        /* synthetic: our end, open until the transfer is over; else -1 */
    char *answered_url; /* owned: what getinfo tells while `answered` */
    struct mime_node *mimes;
    char mime_model[256]; /* the form field "model"; empty: none */
};

struct multi {
    CURLM *handle;
    real_t real;
    uint64_t rounds;      /* performs so far */
    struct easy *refused; /* handles to be answered by us after the perform under way */
};

/* A mime handle or part of an easy handle. Freed with the mime or with the easy handle. */
struct mime_node {
    const void *key;
    const void *mime; /* the mime that it belongs to, or itself */
    struct easy *easy;
    struct mime_node *next;
    bool is_model;
    char data[256];
};

/* NULL when unknown (internal handles of libcurl, handles made past us). */
struct easy *easymap_easy(CURL *handle);
struct multi *easymap_multi(CURLM *handle);
struct mime_node *easymap_mime(const void *key);

/* Make known; NULL when there is no memory. */
struct easy *easymap_add_easy(CURL *handle, real_t real);
struct multi *easymap_add_multi(CURLM *handle, real_t real);
struct mime_node *easymap_add_mime(const void *key, const void *mime, struct easy *easy);

void easymap_remove_easy(struct easy *easy);    /* and its mimes; frees */
void easymap_leave_multi(struct multi *multi);  /* its handles are outside again */
void easymap_remove_multi(struct multi *multi); /* frees */
void easymap_remove_mime(const void *mime);     /* with its parts */

#endif
