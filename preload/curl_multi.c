/*
 * curl_multi.c - the multi interface, multi_socket included. Admission at add_handle; the end at
 * DONE from info_read, or at remove_handle or cleanup when the application never read it.
 */
#include "curl_call.h"

#include "guard.h"

/* Known from its first handle on. */
static struct multi *multi_of(real_t real, CURLM *handle)
{
    struct multi *multi = easymap_multi(handle);

    return multi ? multi : easymap_add_multi(handle, real);
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
    CURLMcode result = real->multi_add_handle(handle, easy_handle);
    if (result == CURLM_OK) {
        easy->multi = multi;
        easy->added_round = multi->rounds;
    } else {
        GUARD_ERRNO({
            shim_drop(&easy->call);
            curl_call_restore(easy);
        });
    }
    return result;
}

static void forget_refusal(struct easy *easy)
{
    struct easy **link = easy->multi ? &easy->multi->refused : NULL;

    while (link && *link && *link != easy)
        link = &(*link)->next_refused;
    if (link && *link)
        *link = easy->next_refused;
    easy->refused = false;
}

CURLMcode hook_multi_remove_handle(real_t real, CURLM *handle, CURL *easy_handle)
{
    struct easy *easy = easymap_easy(easy_handle);

    if (!easy || !easy->multi || easy->performing)
        return real->multi_remove_handle(handle, easy_handle);
    /* Asked before: afterwards libcurl has forgotten how far it came. */
    curl_call_abandon(easy);
    CURLMcode result = real->multi_remove_handle(handle, easy_handle);
    if (result == CURLM_OK)
        GUARD_ERRNO({
            forget_refusal(easy);
            easy->multi = NULL;
            curl_call_restore(easy);
        });
    return result;
}

/* --- handles whose body showed a refused model
 * ----------------------------------------------------- */

/* Takes it out (its DONE is dropped with it), prepares our answer and adds it again. */
static bool answer_instead(struct multi *multi, struct easy *easy)
{
    if (multi->real->multi_remove_handle(multi->handle, easy->handle) != CURLM_OK)
        return false; /* inside a callback: the next perform does it */
    curl_call_restore(easy);
    easy->refused = false;
    curl_synth_prepare(easy);
    return multi->real->multi_add_handle(multi->handle, easy->handle) == CURLM_OK;
}

/* After a real perform: whoever was refused in it runs on, so that `running` never falls to 0
 * before the answer was given and loops do not leave. */
static void answer_refused(CURLM *handle, int *running)
{
    struct multi *multi = easymap_multi(handle);

    while (multi && multi->refused) {
        struct easy *easy = multi->refused;
        multi->refused = easy->next_refused;
        if (answer_instead(multi, easy)) {
            if (running)
                ++*running;
        } else {
            easy->next_refused = multi->refused;
            multi->refused = easy;
            break;
        }
    }
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

/* --- ends
 * -------------------------------------------------------------------------------------------- */

CURLMsg *hook_multi_info_read(real_t real, CURLM *multi, int *queued)
{
    CURLMsg *message = real->multi_info_read(multi, queued);

    while (message && message->msg == CURLMSG_DONE) {
        struct easy *easy = easymap_easy(message->easy_handle);
        if (!easy || easy->performing)
            break;
        if (!easy->refused) {
            CURLcode result = message->data.result;
            curl_call_end(easy, result);
            GUARD_ERRNO(curl_call_restore(easy));
            break;
        }
        /* Read from inside perform (8.17's notify callback): its end is not the application's. */
        message = real->multi_info_read(multi, queued);
    }
    return message;
}

CURLMcode hook_multi_cleanup(real_t real, CURLM *handle)
{
    struct multi *multi = easymap_multi(handle);

    GUARD_ERRNO({
        if (multi)
            easymap_leave_multi(multi);
    });
    CURLMcode result = real->multi_cleanup(handle);
    if (multi && result == CURLM_OK)
        GUARD_ERRNO(easymap_remove_multi(multi));
    return result;
}
