/*
 * curl_call.h - one libcurl transfer as the breaker sees it: from the options of a handle to the
 * door (shim.h) and back. Shared by the easy and the multi interface.
 */
#ifndef BREAKER_PRELOAD_CURL_CALL_H
#define BREAKER_PRELOAD_CURL_CALL_H

#include "easymap.h"

/* Before a transfer: opens, reads the model, admits, and prepares the handle for what follows:
 * nothing, a watched body, or our answer. The real call is made in every case. Keeps errno. */
void curl_call_begin(struct easy *easy);

/* After a transfer that passed: settles with what libcurl tells of its end. */
void curl_call_end(struct easy *easy, CURLcode result);

/* The application took the handle away before its end. */
void curl_call_abandon(struct easy *easy);

/* Puts the handle back as the application set it: wrappers and answers gone. Harmless when nothing
 * is installed. */
void curl_call_restore(struct easy *easy);

/* The URL that the application set: CURLU first, as libcurl does. NULL when there is none. Borrowed
 * from the shadow, or held by *owned, which is to be freed with free() in any case. */
const char *curl_call_url(const struct easy *easy, char **owned);

/* curl_facts.c: an ended transfer in the door's words. */
struct call_end curl_facts_end(struct easy *easy, CURLcode result);
struct call_end curl_facts_abandoned(struct easy *easy);
uint64_t curl_facts_now(void); /* CLOCK_MONOTONIC, ns */

/* curl_read.c: watches a body that libcurl pulls by callback, until its model is known. */
void curl_read_watch(struct easy *easy);

/* curl_synth.c: makes the handle's next transfer give shim_response(). Where there is no descriptor
 * for it, the transfer ends as CURLE_COULDNT_CONNECT; no packet leaves in either case. */
void curl_synth_prepare(struct easy *easy);
/* Closes what the answer needed. Harmless when there is none. */
void curl_synth_finish(struct easy *easy);

#endif
