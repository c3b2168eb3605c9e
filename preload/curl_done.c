/*
 * curl_done.c - the DONE messages of a multi: what they settle, and those that we had to read
 * before the application does.
 */
#include "curl_done.h"
#include "guard.h"

#include <stdlib.h>

/* --- what a DONE settles -----------------------------------------------------------------------
 */

#define AT_ONCE_NS 1000000000u

/* Transfers that fell with one connection (HTTP/2) are one failure: the first tells of it. */
static bool fell_with_another(struct easy *easy, CURLcode result)
{
    struct multi *multi = easy->multi;
    long port = 0;

    if (!multi || result == CURLE_OK ||
        easy->real->easy_getinfo(easy->handle, CURLINFO_LOCAL_PORT, &port) != CURLE_OK || port <= 0)
        return false;
    uint64_t now = curl_facts_now();
    bool same = multi->broken_port == port && now - multi->broken_ns < AT_ONCE_NS;
    multi->broken_port = port;
    multi->broken_ns = now;
    return same;
}

void curl_done_settle(struct easy *easy, CURLcode result)
{
    if (shim_admitted(&easy->call)) {
        struct call_end end = curl_facts_end(easy, result);
        bool connection_failed = end.kind == END_BROKEN || end.kind == END_HANDSHAKE;
        if (connection_failed && fell_with_another(easy, result))
            end.kind = END_LOCAL;
        shim_settle(&easy->call, &end);
    }
    curl_call_restore(easy);
}

/* --- those that the application has not read ----------------------------------------------------
 */

static void append_unread(struct multi *multi, struct unread *unread)
{
    unread->next = NULL;
    *(multi->last ? &multi->last->next : &multi->unread) = unread;
    multi->last = unread;
}

void curl_done_forget(struct multi *multi, const CURL *handle)
{
    struct unread **link = &multi->unread;

    multi->last = NULL;
    while (*link) {
        struct unread *unread = *link;
        if (unread->message->easy_handle == handle) {
            *link = unread->next;
            free(unread);
        } else {
            multi->last = unread;
            link = &unread->next;
        }
    }
}

void curl_done_tell(struct multi *multi, struct easy *easy, CURLcode result)
{
    struct unread *unread = malloc(sizeof *unread);

    if (!unread)
        return;
    easy->message = (CURLMsg){.msg = CURLMSG_DONE, .easy_handle = easy->handle};
    easy->message.data.result = result;
    easy->done_unread = true;
    unread->message = &easy->message;
    append_unread(multi, unread);
}

/* A handle that came into the multi past us: one that the server pushed, or for which there was no
 * memory. It runs uncovered, but we must know when it goes. */
static struct easy *adopt(struct multi *multi, CURL *handle)
{
    struct easy *easy = easymap_add_easy(handle, multi->real);

    if (easy) {
        easy->unreliable = true;
        curl_multi_join(multi, easy);
    }
    return easy;
}

/* Keeps a DONE for the application, with libcurl's promise: it stays until the handle is removed.
 */
static void keep_unread(struct multi *multi, struct unread *unread, CURLMsg *message)
{
    struct easy *easy = easymap_easy(message->easy_handle);

    if (!easy)
        easy = adopt(multi, message->easy_handle);
    if (easy) {
        easy->message = *message;
        easy->done_unread = true;
        message = &easy->message;
    }
    unread->message = message;
    append_unread(multi, unread);
}

/* Reads what the application has not read yet, so that the end of a handle that is taken away is
 * known; it gets the messages later. Many programs never read them. */
void curl_done_read_ahead(struct multi *multi)
{
    struct unread *unread;
    CURLMsg *message;
    int queued;

    while ((unread = malloc(sizeof *unread)) &&
           (message = multi->real->multi_info_read(multi->handle, &queued))) {
        struct easy *easy = easymap_easy(message->easy_handle);
        if (easy && easy->refused) { /* not the application's, see next_message() */
            free(unread);
            continue;
        }
        CURLcode result = message->data.result;
        keep_unread(multi, unread, message);
        if (easy)
            curl_done_settle(easy, result);
    }
    free(unread);
}

static CURLMsg *next_unread(struct multi *multi)
{
    struct unread *unread = multi ? multi->unread : NULL;

    if (!unread)
        return NULL;
    CURLMsg *message = unread->message;
    struct easy *easy = easymap_easy(message->easy_handle);
    if (easy)
        easy->done_unread = false;
    multi->unread = unread->next;
    if (!multi->unread)
        multi->last = NULL;
    free(unread);
    return message;
}

void curl_done_forget_all(struct multi *multi)
{
    while (next_unread(multi))
        ;
}

/* Read from inside perform (8.17's notify callback), the DONE of a transfer that was broken off for
 * our answer is not the application's. */
static CURLMsg *next_message(real_t real, CURLM *handle, int *queued)
{
    CURLMsg *message;
    struct easy *easy;

    while ((message = real->multi_info_read(handle, queued)) && message->msg == CURLMSG_DONE &&
           (easy = easymap_easy(message->easy_handle)) && !easy->performing) {
        if (easy->refused)
            continue;
        GUARD_ERRNO(curl_done_settle(easy, message->data.result));
        break;
    }
    return message;
}

CURLMsg *hook_multi_info_read(real_t real, CURLM *handle, int *queued)
{
    struct multi *multi = easymap_multi(handle);
    CURLMsg *message;

    if (!multi || !multi->unread)
        return next_message(real, handle, queued);
    GUARD_ERRNO({
        curl_done_read_ahead(multi); /* what came since: `queued` counts it, the order stays */
        message = next_unread(multi);
        *queued = 0;
        for (struct unread *unread = multi->unread; unread; unread = unread->next)
            ++*queued;
    });
    return message;
}
