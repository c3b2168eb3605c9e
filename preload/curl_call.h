/*
 * curl_call.h - one libcurl transfer as the breaker sees it: from the options of a handle to the
 * door (shim.h) and back. Shared by the easy and the multi interface.
 */
#ifndef BREAKER_PRELOAD_CURL_CALL_H
#define BREAKER_PRELOAD_CURL_CALL_H

#include "easymap.h"

/* Before a transfer: opens, reads the model, admits, and prepares the handle for what follows: a
 * watched body, or our answer in place of a transfer. An uncovered handle is left as it is. Keeps
 * errno. */
void curl_call_begin(struct easy *easy);

/* After a transfer that ended: settles with what libcurl tells of it. Keeps errno. */
void curl_call_end(struct easy *easy, CURLcode result);

/* After a transfer that is over: puts the handle back as the application set it, wrappers, answers
 * and detours gone. Harmless when nothing is installed. */
void curl_call_restore(struct easy *easy);
/* Between two transfers of one call: the same, but the detour goes on. */
void curl_call_put_back(struct easy *easy);

/* curl_options_override() and _neutralise() for the handle. */
static inline void curl_call_override(struct easy *easy, enum shadow_index index, void *value)
{
    curl_options_override(&easy->options, easy->real, easy->handle, index, value);
}

static inline void curl_call_override_number(struct easy *easy, enum shadow_index index, long value)
{
    curl_call_override(easy, index, (void *)(intptr_t)value);
}

static inline void curl_call_neutralise(struct easy *easy, const enum shadow_index *indices,
                                        size_t count)
{
    for (size_t i = 0; i < count; i++)
        curl_options_neutralise(&easy->options, easy->real, easy->handle, indices[i]);
}

/* Is the transfer that ended with `result` not what the application gets? Then another one is
 * prepared in its place: a fallback's, or our answer. */
bool curl_call_goes_on(struct easy *easy, CURLcode result);
/* The body showed a model that is refused: after the transfer that was broken off for it. */
void curl_call_answer(struct easy *easy);

/* Private to curl_call.c and curl_detour.c: what an admitted transfer needs while it runs; and for
 * a refused call that no fallback takes, our answer, or its way past a breaker that lets it. */
void curl_call_prepare(struct easy *easy);
void curl_call_give_up(struct easy *easy);

/* curl_multi.c: the handle leaves its multi, if it is in one: a transfer under way is settled as
 * one that the application ended. */
void curl_multi_forget(struct easy *easy);

/* curl_url.c. The URL that the application set, CURLU first, as the handle's libcurl spells it, in
 * EFFECTIVE_URL too: with scheme and path, numbers and dots resolved. NULL when there is none, or
 * none that libcurl takes. Borrowed, or held by *owned, to be freed with free() in any case. */
const char *curl_url_of(const struct easy *easy, char **owned);
/* That of the transfer under way: the fallback's, if it goes there. */
const char *curl_url_under_way(const struct easy *easy, char **owned);
/* The URL option stays as it is for many calls: it is spelled and taken apart once, into easy->url
 * and easy->request (without a host where libcurl does not take it, or it has none). False: other
 * options have a say in it, to be asked by curl_url_of() each time. */
bool curl_url_know(struct easy *easy);
/* For the synthetic answer: the same in plain http, or of a numeric host. Owned. */
char *curl_url_for_answer(const char *url, bool numeric);
/* What getaddrinfo is never asked for, and no HSTS entry names. Nobody is connected to. */
#define CURL_URL_NUMERIC "127.0.0.1:9"
bool curl_url_is_https(const char *url);

/* curl_mime.c: the model of a multipart body; SPAN_NONE when it names none. */
struct span curl_mime_model(const struct easy *easy);
/* Its part; NULL where there is none that we saw made. */
curl_mimepart *curl_mime_model_part(const struct easy *easy);

/* curl_facts.c: what getinfo tells; 0: nothing, or less than that. */
long curl_facts_long(const struct easy *easy, CURLINFO info);
uint64_t curl_facts_offset(const struct easy *easy, CURLINFO info);
/* Of a total, which counts it, the time behind the queue of its multi: from there on libcurl tells
 * of all points. Before 8.6 by our own clock, as left_queue_ns says, once the name was known. */
uint64_t curl_facts_behind_queue(const struct easy *easy, uint64_t total_ns);
/* How far a transfer is, or how it ended, in the door's words. */
struct call_end curl_facts_end(struct easy *easy, CURLcode result);
struct call_end curl_facts_abandoned(struct easy *easy);
/* Did a byte of a request leave? */
bool curl_facts_sent(const struct easy *easy);
/* Did a redirect that was followed lead to another host? */
bool curl_facts_redirected_away(const struct easy *easy);
/* Does it have, or look for, a connection: no longer in its multi's queue? */
bool curl_facts_left_queue(const struct easy *easy);

/* curl_slow.c. Of an answer whose final head is there, how long its first byte took; 0 where that
 * is not asked for. */
uint64_t curl_slow_first_byte(const struct easy *easy);
/* The application has taken some of the body, or lets it come again. */
void curl_slow_hear(struct easy *easy);
/* Adds it all to the end of a transfer that took so long. */
void curl_slow_tell(const struct easy *easy, struct call_end *end, uint64_t total_ns);

/* curl_credential.c: tells the door of the credential of the handle's call: a shim_credential_tell.
 */
void curl_credential_tell(void *easy);
/* Inside of a transfer, before the shadow of an option changes: it is not of what is set now. */
void curl_credential_note(struct easy *easy, CURLoption option);

/* curl_proxy.c: does the way to the handle's host lead through a proxy? */
bool curl_proxy_used(const struct easy *easy);

/* curl_read.c: watches a body that libcurl pulls by callback, until its model is known. */
void curl_read_watch(struct easy *easy);
/* Can the application's callback begin anew? */
bool curl_read_can_rewind(const struct easy *easy);
/* Has it do so; false: it says no. For a transfer that is not under way. */
bool curl_read_rewind(struct easy *easy);
/* Has libcurl pull the body from these, with the handle as their data. `seek` NULL: it cannot begin
 * anew, or not otherwise than by the application's own. */
void curl_read_install(struct easy *easy, curl_read_callback read, curl_seek_callback seek);
/* Asks the application's callback itself, as libcurl would. */
size_t curl_read_application(struct easy *easy, char *buffer, size_t size);

/* curl_write.c: watches what the application of an admitted LLM call receives. */
void curl_write_watch(struct easy *easy);
/* Not any more: its own callback is put back. Harmless when nothing is watched. */
void curl_write_leave(struct easy *easy);
/* Before the application sets an option: of one that has libcurl give other things to the write
 * callback, or with other data, it is put back first. */
void curl_write_note(struct easy *easy, CURLoption option);

/* curl_synth.c: makes the handle's next transfer give shim_response(refuser). It ends as
 * CURLE_COULDNT_CONNECT where CONNECT_ONLY asked for a connection alone, or where there is no
 * descriptor or memory for an answer; no packet leaves in any case. */
void curl_synth_prepare(struct easy *easy, const struct shim_call *refuser);
/* Lets go of what the answer needed. Harmless when there is none. */
void curl_synth_finish(struct easy *easy);

#endif
