/*
 * curl_multi.c - the multi interface, multi_socket included. Admission at add_handle; the end at
 * DONE from info_read, or at remove_handle or a cleanup when the application never read it.
 */
#include "curl_call.h"
#include "guard.h"

#include <stdlib.h>
#include <utlist.h>

/* --- members ------------------------------------------------------------------------------- */

/* Known from its first handle on. */
static struct multi *multi_of(real_t real, CURLM *handle)
{
    struct multi *multi = easymap_multi(handle);

    return multi ? multi : easymap_add_multi(handle, real);
}

static void join(struct multi *multi, struct easy *easy)
{
    easy->multi = multi;
    easy->added_round = multi->rounds;
    DL_PREPEND2(multi->members, easy, previous_member, next_member);
}

static void forget_unread(struct multi *multi, const CURL *handle)
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

/* Out of every list of its multi. */
static void leave(struct easy *easy)
{
    struct multi *multi = easy->multi;

    DL_DELETE2(multi->members, easy, previous_member, next_member);
    if (easy->refused)
        LL_DELETE2(multi->refused, easy, next_refused);
    if (easy->done_unread)
        forget_unread(multi, easy->handle);
    easy->refused = easy->done_unread = false;
    easy->multi = NULL;
}

CURLMcode hook_multi_add_handle(real_t real, CURLM *handle, CURL *easy_handle)
{
    struct easy *easy = easymap_easy(easy_handle);
    struct multi *multi = NULL;

    if (easy && !easy->performing && !easy->multi)
        GUARD_ERRNO(multi = multi_of(real, handle));
    if (!multi)
        return real->multi_add_handle(handle, easy_handle);
    curl_call_begin(easy);
    if (shim_admitted(&easy->call))
        easy->started_ns = curl_facts_now();
    join(multi, easy); /* first: libcurl's timer callback may run inside add_handle */
    CURLMcode result = real->multi_add_handle(handle, easy_handle);
    if (result != CURLM_OK)
        GUARD_ERRNO({
            leave(easy);
            shim_drop(&easy->call);
            curl_call_restore(easy);
        });
    return result;
}

/* --- ends ------------------------------------------------------------------------------------ */

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

static void settle_done(struct easy *easy, CURLcode result)
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

/* Reads what the application has not read yet, so that the end of a handle that is taken away is
 * known; it gets the messages later. Many programs never read them. */
static void read_ahead(struct multi *multi)
{
    struct unread *unread;
    CURLMsg *message;
    int queued;

    while ((unread = malloc(sizeof *unread)) &&
           (message = multi->real->multi_info_read(multi->handle, &queued))) {
        struct easy *easy =
            message->msg == CURLMSG_DONE ? easymap_easy(message->easy_handle) : NULL;
        if (easy && easy->refused) { /* not the application's, see next_message() */
            free(unread);
            continue;
        }
        *unread = (struct unread){.message = message};
        if (easy) {
            easy->message = *message;
            easy->done_unread = true;
            unread->message = &easy->message;
            settle_done(easy, message->data.result);
        }
        *(multi->last ? &multi->last->next : &multi->unread) = unread;
        multi->last = unread;
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
        GUARD_ERRNO(settle_done(easy, message->data.result));
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
        read_ahead(multi); /* what came since: `queued` counts it, the order stays */
        message = next_unread(multi);
        *queued = 0;
        for (struct unread *unread = multi->unread; unread; unread = unread->next)
            ++*queued;
    });
    return message;
}

CURLMcode hook_multi_remove_handle(real_t real, CURLM *handle, CURL *easy_handle)
{
    struct easy *easy = easymap_easy(easy_handle);
    struct call_end end = {.kind = END_UNSENT};

    if (!easy || !easy->multi || easy->performing)
        return real->multi_remove_handle(handle, easy_handle);
    if (shim_admitted(&easy->call))
        GUARD_ERRNO(read_ahead(easy->multi));
    if (shim_admitted(&easy->call)) /* now: afterwards libcurl has forgotten how far it came */
        GUARD_ERRNO(end = curl_facts_abandoned(easy));
    CURLMcode result = real->multi_remove_handle(handle, easy_handle);
    if (result == CURLM_OK)
        GUARD_ERRNO({
            shim_settle(&easy->call, &end);
            leave(easy);
            curl_call_restore(easy);
        });
    return result;
}

void curl_multi_forget(struct easy *easy)
{
    if (!easy->multi)
        return;
    if (shim_admitted(&easy->call))
        read_ahead(easy->multi);
    if (shim_admitted(&easy->call)) {
        struct call_end end = curl_facts_abandoned(easy);
        shim_settle(&easy->call, &end);
    }
    leave(easy);
}

/* The handles that are still in it outlive it. */
static void end_members(struct multi *multi)
{
    while (multi->members) {
        struct easy *easy = multi->members;
        curl_multi_forget(easy);
        curl_call_restore(easy);
    }
    while (next_unread(multi))
        ;
}

CURLMcode hook_multi_cleanup(real_t real, CURLM *handle)
{
    struct multi *multi = easymap_multi(handle);

    if (multi)
        GUARD_ERRNO({
            end_members(multi);
            easymap_remove_multi(multi);
        });
    return real->multi_cleanup(handle);
}

/* --- handles whose body showed a refused model --------------------------------------------- */

/* Takes it out (its DONE is dropped with it) and adds it again with our answer prepared. False: we
 * are inside a callback, and the perform around it does it. */
static bool answer_instead(struct multi *multi, struct easy *easy, int *running)
{
    if (multi->real->multi_remove_handle(multi->handle, easy->handle) != CURLM_OK)
        return false;
    multi->refused = easy->next_refused;
    curl_call_answer(easy);
    if (multi->real->multi_add_handle(multi->handle, easy->handle) != CURLM_OK)
        leave(easy);
    else if (running)
        ++*running;
    return true;
}

/* After a real perform: whoever was refused in it runs on, so that `running` never falls to 0
 * before the answer was given, and loops do not leave. */
static void answer_refused(CURLM *handle, int *running)
{
    struct multi *multi = easymap_multi(handle);

    while (multi && multi->refused && answer_instead(multi, multi->refused, running))
        ;
}

static void begin_round(CURLM *handle)
{
    struct multi *multi = easymap_multi(handle);

    if (multi)
        multi->rounds++;
}

CURLMcode hook_multi_perform(real_t real, CURLM *multi, int *running)
{
    begin_round(multi);
    CURLMcode result = real->multi_perform(multi, running);
    GUARD_ERRNO(answer_refused(multi, running));
    return result;
}

CURLMcode hook_multi_socket(real_t real, CURLM *multi, curl_socket_t s, int *running)
{
    begin_round(multi);
    CURLMcode result = real->multi_socket(multi, s, running);
    GUARD_ERRNO(answer_refused(multi, running));
    return result;
}

CURLMcode hook_multi_socket_all(real_t real, CURLM *multi, int *running)
{
    begin_round(multi);
    CURLMcode result = real->multi_socket_all(multi, running);
    GUARD_ERRNO(answer_refused(multi, running));
    return result;
}

CURLMcode hook_multi_socket_action(real_t real, CURLM *multi, curl_socket_t s, int events,
                                   int *running)
{
    begin_round(multi);
    CURLMcode result = real->multi_socket_action(multi, s, events, running);
    GUARD_ERRNO(answer_refused(multi, running));
    return result;
}
