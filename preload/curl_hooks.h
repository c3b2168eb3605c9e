/*
 * curl_hooks.h - the testable logic behind each exported curl entry (curl_entries.c holds those).
 *
 * hook_<name>(real, …) behaves as real-><name>(…) would, plus the breaker. `real` is never NULL and
 * is the library that the handle belongs to. For the variadic ones the one argument came as a
 * pointer-sized word.
 */
#ifndef BREAKER_PRELOAD_CURL_HOOKS_H
#define BREAKER_PRELOAD_CURL_HOOKS_H

#include "real.h"

/* The parameters in hooks.def, prefixed by `real`; written out because C has no way to join the
 * lists. curl_entries.c fails to compile when one is missing. */
typedef const struct curl_real *real_t;

CURL *hook_easy_init(real_t real);
CURLcode hook_easy_perform(real_t real, CURL *easy);
CURL *hook_easy_duphandle(real_t real, CURL *easy);
void hook_easy_reset(real_t real, CURL *easy);
void hook_easy_cleanup(real_t real, CURL *easy);
CURLcode hook_easy_pause(real_t real, CURL *easy, int bitmask);
CURLMcode hook_multi_add_handle(real_t real, CURLM *multi, CURL *easy);
CURLMcode hook_multi_remove_handle(real_t real, CURLM *multi, CURL *easy);
CURLMcode hook_multi_perform(real_t real, CURLM *multi, int *running);
CURLMcode hook_multi_socket(real_t real, CURLM *multi, curl_socket_t s, int *running);
CURLMcode hook_multi_socket_all(real_t real, CURLM *multi, int *running);
CURLMcode hook_multi_socket_action(real_t real, CURLM *multi, curl_socket_t s, int events,
                                   int *running);
CURLMsg *hook_multi_info_read(real_t real, CURLM *multi, int *queued);
CURLMcode hook_multi_cleanup(real_t real, CURLM *multi);
CURLMcode hook_multi_setopt(real_t real, CURLM *multi, CURLMoption option, void *value);
CURLcode hook_easy_setopt(real_t real, CURL *easy, CURLoption option, void *value);
CURLcode hook_easy_getinfo(real_t real, CURL *easy, CURLINFO info, void *value);
curl_mime *hook_mime_init(real_t real, CURL *easy);
curl_mimepart *hook_mime_addpart(real_t real, curl_mime *mime);
CURLcode hook_mime_name(real_t real, curl_mimepart *part, const char *name);
CURLcode hook_mime_data(real_t real, curl_mimepart *part, const char *data, size_t size);
CURLcode hook_mime_filedata(real_t real, curl_mimepart *part, const char *path);
CURLcode hook_mime_data_cb(real_t real, curl_mimepart *part, curl_off_t size,
                           curl_read_callback read, curl_seek_callback seek,
                           curl_free_callback release, void *data);
CURLcode hook_mime_subparts(real_t real, curl_mimepart *part, curl_mime *parts);
void hook_mime_free(real_t real, curl_mime *mime);

#endif
