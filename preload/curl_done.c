/*
 * curl_done.c - the DONE messages of a multi: what they settle, and those that we had to read
 * before the application does.
 */
#include "curl_done.h"

#include "base/clock.h"
#include "curl_detour.h"
#include "guard.h"

#include <utlist.h>

/* --- what a DONE settles -----------------------------------------------------------------------
 */

#define AT_ONCE_NS 1000000000u

/* Transfers that fell with one connection (HTTP/2) are one failure: the first, asked about, tells
 * of it. By their local port: those on a local socket have none, and count one by one. */
static bool fell_with_another(struct easy *easy)
{
    struct multi *multi = easy->multi;
    long port = curl_facts_long(easy, CURLINFO_LOCAL_PORT);

    if (!multi || port <= 0)
        return false;
    uint64_t now = clock_system.mono_ns();
    bool same = multi->broken_port == port && now - multi->broken_ns < AT_ONCE_NS;
    multi->broken_port = port;
    multi->broken_ns = now;
    return same;
}

void curl_done_settle(struct easy *easy, CURLcode result)
{
    if (shim_admitted(easy->active)) {
        struct call_end end = curl_facts_end(easy, result);
        bool connection_failed = end.kind == END_BROKEN || end.kind == END_HANDSHAKE;
        if (connection_failed && fell_with_another(easy))
            end.kind = END_LOCAL;
        shim_settle(easy->active, &end);
    }
    curl_call_restore(easy);
}

/* --- those that the application has not read ----------------------------------------------------
 */

static void append(struct multi *multi, struct easy *easy, const CURLMsg *message)
{
    easy->message = *message;
    easy->done_unread = true;
    easy->next_unread = NULL;
    *(multi->last ? &multi->last->next_unread : &multi->unread) = easy;
    multi->last = easy;
}

void curl_done_forget(struct easy *easy)
{
    struct multi *multi = easy->multi;
    struct easy *before = NULL, *at = multi->unread;

    if (!easy->done_unread)
        return;
    for (; at != easy; at = at->next_unread)
        before = at;
    *(before ? &before->next_unread : &multi->unread) = easy->next_unread;
    if (multi->last == easy)
        multi->last = before;
    easy->done_unread = false;
}

void curl_done_tell(struct easy *easy, CURLcode result)
{
    CURLMsg message = {.msg = CURLMSG_DONE, .easy_handle = easy->handle};

    message.data.result = result;
    append(easy->multi, easy, &message);
}

/* A handle that came into the multi past us: one that the server pushed, or for which there was no
 * memory, or that an exception left inside its perform. It runs uncovered, but we must know when it
 * goes. */
static struct easy *adopt(struct multi *multi, CURL *handle)
{
    struct easy *easy = easymap_easy(handle);

    if (!easy && (easy = easymap_add_easy(handle, multi->real)))
        easy->unreliable = true;
    if (easy && !easy->multi)
        curl_multi_join(multi, easy);
    return easy;
}

/* Is the DONE not the application's: of a transfer that was broken off for our answer, or that goes
 * to a fallback now? Never at a time at which nobody would add it again (curl_multi.c). */
static bool is_ours(struct easy *easy, CURLcode result)
{
    struct multi *multi = easy->multi;

    if (easy->superseded)
        return true;
    if (!multi || !multi->in_round || !curl_detour_fail_over(easy, result))
        return false;
    easy->superseded = easy->prepared = true;
    LL_PREPEND2(multi->superseded, easy, next_superseded);
    return true;
}

/* libcurl's promise is kept: a message stays until its handle is removed. Of a handle for which
 * there is no memory now either, it is lost. */
void curl_done_read_ahead(struct multi *multi)
{
    CURLMsg *message;
    int queued;

    while ((message = multi->real->multi_info_read(multi->handle, &queued))) {
        struct easy *easy = easymap_easy(message->easy_handle);
        if (easy && is_ours(easy, message->data.result))
            continue;
        if (!easy || !easy->multi)
            easy = adopt(multi, message->easy_handle);
        if (!easy)
            continue;
        append(multi, easy, message);
        curl_done_settle(easy, easy->message.data.result);
    }
}

/* There is one. */
static CURLMsg *next_unread(struct multi *multi)
{
    struct easy *easy = multi->unread;

    curl_done_forget(easy);
    return &easy->message;
}

/* Some are read inside perform, too (8.17's notify callback). */
static CURLMsg *next_message(real_t real, CURLM *handle, int *queued)
{
    CURLMsg *message;
    struct easy *easy;

    while ((message = real->multi_info_read(handle, queued)) && message->msg == CURLMSG_DONE &&
           (easy = easymap_easy(message->easy_handle)) && !easy->performing) {
        bool ours;
        GUARD_ERRNO(ours = is_ours(easy, message->data.result));
        if (ours)
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
        for (struct easy *easy = multi->unread; easy; easy = easy->next_unread)
            ++*queued;
    });
    return message;
}
