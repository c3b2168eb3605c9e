/*
 * late.c - options that change hands at an odd time: while a transfer runs, and between the copies
 * of a handle.
 *
 *   late MODE URL
 *
 * Prints what libcurl and the application saw; a run without the breaker prints the same.
 */
#include "program.h"

#include <curl/curl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *url;

static CURL *new_handle(void)
{
    CURL *easy = curl_easy_init();

    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, sink);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT, 15L);
    return easy;
}

static void tell(const char *what, CURL *easy, CURLcode code)
{
    long status = 0;

    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    printf("%s %d %ld\n", what, code, status);
}

/* --- a pulled body whose source is set anew while it is read -----------------------------------
 */

/* While set, libbreaker gets no memory; the program and libcurl do. */
static int starved;

void *calloc(size_t count, size_t size)
{
    return starved && is_of_breaker(__builtin_return_address(0)) ? NULL : zeroed(count, size);
}

struct text {
    CURL *easy;
    const char *bytes;
    size_t at;
    struct text *later; /* set as READDATA at each read */
    CURL *copy;         /* made at the first read, when asked for */
    enum { COPY_NONE, COPY_ONE, COPY_STARVED } copies;
};

static size_t read_text(char *buffer, size_t size, size_t count, void *data)
{
    struct text *text = data;
    size_t left = strlen(text->bytes) - text->at, len = left < 8 ? left : 8;

    (void)size;
    (void)count;
    memcpy(buffer, text->bytes + text->at, len);
    text->at += len;
    if (text->later)
        curl_easy_setopt(text->easy, CURLOPT_READDATA, text->later);
    if (text->copies && !text->copy) {
        starved = text->copies == COPY_STARVED;
        text->copy = curl_easy_duphandle(text->easy);
        starved = 0;
    }
    return len;
}

static void post_text(CURL *easy, struct text *text)
{
    text->easy = easy;
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, read_text);
    curl_easy_setopt(easy, CURLOPT_READDATA, text);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)strlen(text->bytes));
}

/* libcurl takes READDATA over when the transfer begins; the new one is for the next. */
static void read_data_set_late(void)
{
    struct text second = {.bytes = "{\"x\":\"second, second\",\"model\":\"m\"}"};
    struct text first = {.bytes = "{\"x\":\"first, first\",\"model\":\"m\"}", .later = &second};
    CURL *easy = new_handle();

    post_text(easy, &first);
    tell("first", easy, curl_easy_perform(easy));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)strlen(second.bytes));
    tell("second", easy, curl_easy_perform(easy));
    curl_easy_cleanup(easy);
}

/* A copy made while the body is read is as the application set the original. */
static void copy_while_read(int copies)
{
    struct text text = {.bytes = "{\"x\":\"x\",\"model\":\"m\"}", .copies = copies};
    CURL *easy = new_handle();

    post_text(easy, &text);
    tell("original", easy, curl_easy_perform(easy));
    curl_easy_cleanup(easy);
    text.at = 0;
    tell("copy", text.copy, curl_easy_perform(text.copy));
    curl_easy_cleanup(text.copy);
}

static void copied_while_read(void)
{
    copy_while_read(COPY_ONE);
}

static void copied_without_memory(void)
{
    copy_while_read(COPY_STARVED);
}

/* --- the copy of a mime ------------------------------------------------------------------------
 */

static curl_mime *mime_of(CURL *easy, const char *model)
{
    curl_mime *mime = curl_mime_init(easy);
    curl_mimepart *part = curl_mime_addpart(mime);

    curl_mime_name(part, "model");
    curl_mime_data(part, model, CURL_ZERO_TERMINATED);
    curl_easy_setopt(easy, CURLOPT_MIMEPOST, mime);
    return mime;
}

/* The copy keeps the mime of its making, whatever comes to stand at that address. */
static void mime_of_a_copy(void)
{
    CURL *easy = new_handle();
    curl_mime *fine = mime_of(easy, "fine");
    CURL *copy = curl_easy_duphandle(easy);

    curl_easy_setopt(easy, CURLOPT_MIMEPOST, NULL);
    curl_mime_free(fine);
    curl_mime *shut = mime_of(easy, "shut");
    tell("copy", copy, curl_easy_perform(copy));
    curl_easy_cleanup(copy);
    curl_easy_cleanup(easy);
    curl_mime_free(shut);
}

static size_t read_fine(char *buffer, size_t size, size_t count, void *data)
{
    bool *done = data;

    if (*done || size * count < 4)
        return 0;
    *done = true;
    memcpy(buffer, "fine", 4);
    return 4;
}

/* A part that was given one content and then another, which only libcurl sees. */
static void mime_replaced(void)
{
    CURL *easy = new_handle();
    curl_mime *mime = curl_mime_init(easy);
    curl_mimepart *part = curl_mime_addpart(mime);
    bool done = false;

    curl_mime_name(part, "model");
    curl_mime_data(part, "shut", CURL_ZERO_TERMINATED);
    curl_mime_data_cb(part, 4, read_fine, NULL, NULL, &done);
    curl_easy_setopt(easy, CURLOPT_MIMEPOST, mime);
    tell("replaced", easy, curl_easy_perform(easy));
    curl_easy_cleanup(easy);
    curl_mime_free(mime);
}

/* --- the same handle, another request -----------------------------------------------------------
 */

/* The URL is set anew each time, as many programs do; what differs is said otherwise. */
static void again(CURL *easy, const char *what, CURLoption option, const void *value)
{
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, option, value);
    tell(what, easy, curl_easy_perform(easy));
}

static void methods(void)
{
    static const char body[] = "{\"model\":\"shut\"}";
    CURL *easy = new_handle();
    char *other = NULL;

    again(easy, "post", CURLOPT_POSTFIELDS, body);
    again(easy, "get", CURLOPT_HTTPGET, (void *)1L);
    again(easy, "post", CURLOPT_POSTFIELDS, body);
    again(easy, "delete", CURLOPT_CUSTOMREQUEST, "DELETE");
    again(easy, "purge", CURLOPT_CUSTOMREQUEST, "PURGEX");
    again(easy, "post", CURLOPT_CUSTOMREQUEST, NULL);
    again(easy, "other model", CURLOPT_POSTFIELDS, "{\"model\":\"fine\"}");
    if (asprintf(&other, "%s/none", url) < 0)
        exit(1);
    curl_easy_setopt(easy, CURLOPT_URL, other);
    tell("other path", easy, curl_easy_perform(easy));
    again(easy, "post", CURLOPT_POSTFIELDS, body);
    free(other);
    curl_easy_cleanup(easy);
}

/* A CURLU that was used and is taken away: 7.88 goes where it led, newer ones may not. */
static void curlu_taken_away(void)
{
    CURL *easy = new_handle();
    CURLU *place = curl_url();
    char *other = NULL;

    if (asprintf(&other, "%s?other", url) < 0)
        exit(1);
    curl_url_set(place, CURLUPART_URL, other, 0);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "{\"model\":\"shut\"}");
    tell("url", easy, curl_easy_perform(easy));
    curl_easy_setopt(easy, CURLOPT_CURLU, place);
    tell("curlu", easy, curl_easy_perform(easy));
    curl_easy_setopt(easy, CURLOPT_CURLU, NULL);
    tell("neither", easy, curl_easy_perform(easy));
    curl_easy_setopt(easy, CURLOPT_URL, url);
    tell("url", easy, curl_easy_perform(easy));
    curl_url_cleanup(place);
    curl_easy_cleanup(easy);
    free(other);
}

/* A custom method without a body: what POSTFIELDS holds is not sent. */
static void no_body(void)
{
    CURL *easy = new_handle();

    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, "PUT");
    curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "{\"model\":\"shut\"}");
    tell("head", easy, curl_easy_perform(easy));
    curl_easy_cleanup(easy);
}

/* Six calls that are redirected to another path of the same place. */
static void redirected_by_port(void)
{
    CURL *easy = new_handle();
    CURLU *place = curl_url();
    char *port = NULL, *bare = NULL;

    curl_url_set(place, CURLUPART_URL, url, 0);
    curl_url_get(place, CURLUPART_PORT, &port, 0);
    curl_url_set(place, CURLUPART_PORT, NULL, 0);
    curl_url_get(place, CURLUPART_URL, &bare, 0);
    curl_easy_setopt(easy, CURLOPT_URL, bare);
    curl_easy_setopt(easy, CURLOPT_PORT, atol(port));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "{\"model\":\"m\"}");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(easy, CURLOPT_POSTREDIR, CURL_REDIR_POST_ALL);
    for (int i = 0; i < 6; i++)
        tell("call", easy, curl_easy_perform(easy));
    curl_free(port);
    curl_free(bare);
    curl_url_cleanup(place);
    curl_easy_cleanup(easy);
}

/* --- words for an error, asked for late --------------------------------------------------------
 */

static void error_buffer_set_late(void)
{
    static char words[CURL_ERROR_SIZE];
    CURLM *multi = curl_multi_init();
    CURL *easy = new_handle();
    int running = 1, queued;

    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "{\"model\":\"m\"}");
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L); /* its file need not be there */
    curl_multi_add_handle(multi, easy);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, words);
    while (running) {
        curl_multi_perform(multi, &running);
        curl_multi_poll(multi, NULL, 0, 100, NULL);
    }
    CURLMsg *message = curl_multi_info_read(multi, &queued);
    printf("%d %s\n", message ? message->data.result : -1, *words ? "words" : "no words");
    curl_multi_remove_handle(multi, easy);
    curl_easy_cleanup(easy);
    curl_multi_cleanup(multi);
}

/* --- a handle of which we know nothing ---------------------------------------------------------
 */

static void unknown_handle(void)
{
    starved = 1;
    CURL *easy = new_handle();
    starved = 0;

    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "{\"model\":\"shut\"}");
    tell("unknown", easy, curl_easy_perform(easy));
    curl_easy_reset(easy);
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, sink);
    tell("reset", easy, curl_easy_perform(easy));
    curl_easy_cleanup(easy);
    easy = new_handle();
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "{\"model\":\"shut\"}");
    tell("known", easy, curl_easy_perform(easy));
    curl_easy_cleanup(easy);
}

int main(int argc, char **argv)
{
    static const struct mode modes[] = {{"read-data", read_data_set_late},
                                        {"copied", copied_while_read},
                                        {"copied-starved", copied_without_memory},
                                        {"mime-copy", mime_of_a_copy},
                                        {"mime-replaced", mime_replaced},
                                        {"methods", methods},
                                        {"curlu", curlu_taken_away},
                                        {"no-body", no_body},
                                        {"redirected", redirected_by_port},
                                        {"error-buffer", error_buffer_set_late},
                                        {"unknown", unknown_handle}};

    if (argc != 3)
        return 2;
    url = argv[2];
    curl_global_init(CURL_GLOBAL_DEFAULT);
    return RUN_MODE(modes, argv[1]);
}
