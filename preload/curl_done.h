/*
 * curl_done.h - the DONE messages of a multi. Private to curl_multi.c and curl_done.c.
 */
#ifndef BREAKER_PRELOAD_CURL_DONE_H
#define BREAKER_PRELOAD_CURL_DONE_H

#include "curl_call.h"

/* The transfer ended with `result`: settles it and puts the handle back. */
void curl_done_settle(struct easy *easy, CURLcode result);

/* Reads what the application has not read yet, so that the end of a handle that is taken away is
 * known; it gets the messages later. Many programs never read them. */
void curl_done_read_ahead(struct multi *multi);

/* Queues a DONE for the application that libcurl does not have. */
void curl_done_tell(struct easy *easy, CURLcode result);

/* The handle goes: drops what waits of it. */
void curl_done_forget(struct easy *easy);

/* curl_multi.c: the handle becomes a member. */
void curl_multi_join(struct multi *multi, struct easy *easy);

#endif
