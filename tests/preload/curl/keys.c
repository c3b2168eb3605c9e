/*
 * keys.c - what becomes of the headers that name a key, while a transfer runs and after it.
 *
 *   keys MODE URL KEY...
 *
 * Makes a call with each of the keys and prints its status. Modes:
 *   place    one handle and one list; the line is written over in its place between the calls
 *   options  a bearer token in place of headers, set anew for each
 *   pulled   the body comes by a read callback: its model is known late
 *   set      a callback sets other headers meanwhile, of the key "other", and frees the first ones
 *   reset    the read callback resets the handle, and frees the headers
 *   token    a callback sets another bearer token meanwhile: "other"
 *   parsed   the key is in a CURLU, and a callback puts "other" in its place meanwhile
 *   jump     the write callback leaves the transfer by longjmp, and the headers are freed then
 */
#include "program.h"

#include <curl/curl.h>

#include <setjmp.h>
#include <stdio.h>

static const char body[] = "{\"model\":\"m\"}";
static const char *mode;
static CURL *easy;
static CURLU *parts;
static struct curl_slist *headers, *others;
static char line[128];
static size_t sent;
static jmp_buf out;

static bool is(const char *name)
{
    return strcmp(mode, name) == 0;
}

static struct curl_slist *headers_of(const char *key)
{
    snprintf(line, sizeof line, "Authorization: Bearer %s", key);
    return curl_slist_append(NULL, line);
}

static void set_query(const char *key)
{
    snprintf(line, sizeof line, "key=%s", key);
    curl_url_set(parts, CURLUPART_QUERY, line, 0);
}

static void free_headers(void)
{
    curl_slist_free_all(headers);
    headers = NULL;
}

/* A head's first line. */
static size_t on_head(char *data, size_t size, size_t count, void *user)
{
    (void)data;
    (void)user;
    if (is("set") && !others) {
        others = headers_of("other");
        curl_easy_setopt(easy, CURLOPT_HTTPHEADER, others);
        free_headers();
    } else if (is("token")) {
        curl_easy_setopt(easy, CURLOPT_XOAUTH2_BEARER, "other");
    } else if (is("parsed")) {
        set_query("other");
    }
    return size * count;
}

static size_t on_body(char *data, size_t size, size_t count, void *user)
{
    if (is("jump"))
        longjmp(out, 1);
    return sink(data, size, count, user);
}

static size_t on_read(char *data, size_t size, size_t count, void *user)
{
    size_t left = sizeof body - 1 - sent, len = size * count < left ? size * count : left;

    (void)user;
    memcpy(data, body + sent, len);
    sent += len;
    if (is("reset") && headers) {
        curl_easy_reset(easy);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, sink);
        free_headers();
    }
    return len;
}

static void prepare(const char *url)
{
    easy = curl_easy_init();
    if (is("parsed")) {
        parts = curl_url();
        curl_url_set(parts, CURLUPART_URL, url, 0);
        curl_easy_setopt(easy, CURLOPT_CURLU, parts);
    } else {
        curl_easy_setopt(easy, CURLOPT_URL, url);
    }
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_head);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    if (is("pulled") || is("reset")) {
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)(sizeof body - 1));
        curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
    } else {
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body);
    }
}

static void set_key(const char *key)
{
    if (is("parsed")) {
        set_query(key);
        return;
    }
    if (is("options") || is("token")) {
        curl_easy_setopt(easy, CURLOPT_XOAUTH2_BEARER, key);
        curl_easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
        return;
    }
    if (headers && is("place")) { /* all keys are as long */
        memcpy(strstr(headers->data, "Bearer ") + 7, key, strlen(key));
        return;
    }
    headers = headers_of(key);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
}

/* libcurl's handle is of no use after this. */
static void leave(void)
{
    free_headers();
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, NULL);
    curl_easy_setopt(easy, CURLOPT_XOAUTH2_BEARER, NULL);
}

static long call(const char *key)
{
    long status = 0;

    sent = 0;
    set_key(key);
    if (setjmp(out) == 0)
        curl_easy_perform(easy);
    else
        leave();
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

int main(int count, char **words)
{
    mode = words[1];
    for (int i = 3; i < count; i++) {
        if (!easy)
            prepare(words[2]);
        printf("%ld\n", call(words[i]));
        fflush(stdout);
        if (is("jump") || is("set") || is("reset")) {
            if (!is("jump"))
                curl_easy_cleanup(easy);
            easy = NULL;
        }
        if (!is("place"))
            free_headers();
        curl_slist_free_all(others);
        others = NULL;
    }
    return 0;
}
