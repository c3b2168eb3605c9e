/*
 * client.h - what the parts of client.c share: a request to a model, its body, its line of output.
 */
#ifndef TEST_CLIENT_H
#define TEST_CLIENT_H

#include <curl/curl.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const char *url;
/* The third argument, a mode's own ("" when there is none). */
extern const char *extra;

void die(const char *what) __attribute__((noreturn));

struct request {
    CURL *easy;
    const char *model;
    char *body;
    size_t sent, received;
    int ready; /* a body's next piece */
    FILE *file;
    curl_mime *mime;
};

typedef void (*prepare_t)(struct request *);

/* A way of using libcurl. One list per part, closed by a mode without a name. */
struct mode {
    const char *name;
    void (*run)(prepare_t);
    prepare_t prepare;
    void (*whole)(void); /* instead of both */
};
extern const struct mode body_modes[], option_modes[], connection_modes[], rewind_modes[],
    life_modes[], multi_modes[], messages_modes[], socket_modes[], pulled_modes[];

/* client.c */
char *body_of(const char *model);
size_t count_bytes(char *data, size_t size, size_t count, void *sum);
int is_shut(const struct request *r);
void begin(struct request *r, CURL *easy, const char *model);
void finish(struct request *r, CURLcode code); /* prints the line, frees what the request owns */
void perform(struct request *r);
void three(prepare_t prepare); /* fine, shut, fine on one handle and one connection pool */

/* client_bodies.c */
void post_fields(struct request *r);
void post_read(struct request *r, int chunked);
void post_file(struct request *r);
void prepare_read(struct request *r);
void prepare_chunked(struct request *r);

/* client_rewind.c: what begins anew, beside post_read() */
void seek_in_body(struct request *r);
void restart_body(struct request *r);

/* client_multi.c: MANY handles, fine and shut in turns, each known by its PRIVATE */
#define MANY 6
void add_many(CURLM *multi, struct request *requests, prepare_t prepare);
int reap(CURLM *multi);                  /* how many ended */
void drive(CURLM *multi, int transfers); /* until so many ended */
void multi_many(prepare_t prepare);

#endif
