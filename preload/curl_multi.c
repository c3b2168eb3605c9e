/*
 * curl_multi.c - the multi interface, multi_socket included. Admission at add_handle; the end at
 * DONE from info_read, or at remove_handle or a cleanup when the application never read it.
 */
#include "curl_done.h"

#include "base/clock.h"
#include "curl_detour.h"
#include "guard.h"
#include "real_library.h"

#include <utlist.h>

/* --- members ------------------------------------------------------------------------------- */

/* Known from its first handle on. */
static struct multi *multi_of(real_t real, CURLM *handle)
{
    struct multi *multi = easymap_multi(handle);

    return multi ? multi : easymap_add_multi(handle, real);
}

/* What getinfo tells is of the transfer before, until this one ran. */
static void begin_transfer(struct multi *multi, struct easy *easy)
{
    easy->added_round = multi->rounds;
    easy->left_queue_ns = 0;
    if (shim_admitted(easy->active))
        easy->started_ns = clock_system.mono_ns();
    multi->fails_over |= curl_detour_may_fail_over(easy);
}

void curl_multi_join(struct multi *multi, struct easy *easy)
{
    easy->multi = multi;
    begin_transfer(multi, easy);
    multi->queues |= easy->options.value[SHADOW_PIPEWAIT].number != 0;
    DL_PREPEND2(multi->members, easy, previous_member, next_member);
}

/* Out of every list of its multi. */
static void leave(struct easy *easy)
{
    struct multi *multi = easy->multi;

    DL_DELETE2(multi->members, easy, previous_member, next_member);
    if (easy->superseded)
        LL_DELETE2(multi->superseded, easy, next_superseded);
    curl_done_forget(easy);
    easy->superseded = easy->prepared = easy->stranded = false;
    easy->multi = NULL;
}

/* One that it was made for in vain is not kept: the application gave us no multi at all. */
static void forget_empty(struct multi *multi)
{
    if (!multi->members && multi->rounds == 0 && !multi->queues)
        easymap_remove_multi(multi);
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
    GUARD_ERRNO(shim_credential_now(&easy->call));
    curl_multi_join(multi, easy); /* first: libcurl's timer callback may run inside add_handle */
    CURLMcode result = real->multi_add_handle(handle, easy_handle);
    if (result != CURLM_OK)
        GUARD_ERRNO({
            leave(easy);
            shim_drop(easy->active);
            curl_call_put_back(easy); /* it went nowhere */
            curl_call_restore(easy);
            forget_empty(multi);
        });
    return result;
}

CURLMcode hook_multi_setopt(real_t real, CURLM *handle, CURLMoption option, void *value)
{
    CURLMcode result = real->multi_setopt(handle, option, value);
    bool limits = option == CURLMOPT_MAX_TOTAL_CONNECTIONS ||
                  option == CURLMOPT_MAX_HOST_CONNECTIONS ||
                  option == CURLMOPT_MAX_CONCURRENT_STREAMS;
    struct multi *multi = NULL;

    if (result == CURLM_OK && limits && value)
        GUARD_ERRNO(multi = multi_of(real, handle));
    if (multi)
        multi->queues = true;
    return result;
}

CURLMcode hook_multi_remove_handle(real_t real, CURLM *handle, CURL *easy_handle)
{
    struct easy *easy = easymap_easy(easy_handle);
    struct call_end end = {.kind = END_UNSENT};

    if (!easy || !easy->multi)
        return real->multi_remove_handle(handle, easy_handle);
    if (easy->stranded && easymap_multi(handle) == easy->multi) {
        GUARD_ERRNO(real->multi_remove_handle(handle, easy_handle)); /* it may have kept a half */
        leave(easy);
        return CURLM_OK;
    }
    if (shim_admitted(easy->active))
        GUARD_ERRNO(curl_done_read_ahead(easy->multi));
    if (shim_admitted(easy->active)) /* now: afterwards libcurl has forgotten how far it came */
        GUARD_ERRNO(end = curl_facts_abandoned(easy));
    CURLMcode result = real->multi_remove_handle(handle, easy_handle);
    if (result == CURLM_OK)
        GUARD_ERRNO({
            shim_settle(easy->active, &end);
            leave(easy);
            curl_call_restore(easy);
        });
    return result;
}

void curl_multi_forget(struct easy *easy)
{
    if (!easy->multi)
        return;
    if (shim_admitted(easy->active))
        curl_done_read_ahead(easy->multi);
    if (shim_admitted(easy->active)) {
        struct call_end end = curl_facts_abandoned(easy);
        shim_settle(easy->active, &end);
    }
    leave(easy);
}

/* Before a cleanup, which libcurl may refuse (inside a callback): what will not be told afterwards
 * is learnt, and nothing is changed yet. */
static void learn_ends(struct multi *multi)
{
    struct easy *easy;

    curl_done_read_ahead(multi);
    DL_FOREACH2 (multi->members, easy, next_member)
        if (shim_admitted(easy->active))
            easy->end = curl_facts_abandoned(easy);
}

/* The handles that are still in it outlive it. */
static void end_members(struct multi *multi)
{
    while (multi->members) {
        struct easy *easy = multi->members;
        shim_settle(easy->active, &easy->end);
        leave(easy);
        curl_call_restore(easy);
    }
}

CURLMcode hook_multi_cleanup(real_t real, CURLM *handle)
{
    struct multi *multi = easymap_multi(handle);

    if (multi)
        GUARD_ERRNO(learn_ends(multi));
    CURLMcode result = real->multi_cleanup(handle);
    if (multi && result == CURLM_OK)
        GUARD_ERRNO({
            end_members(multi);
            easymap_remove_multi(multi);
        });
    return result;
}

/* --- handles whose transfer is superseded -------------------------------------------------- */

/* libcurl did not take the handle back (a timer callback that says no, no memory): it ends here,
 * and the application is told as it is of any transfer. */
static void strand(struct easy *easy, CURLMcode why)
{
    curl_call_restore(easy);
    easy->answered = false;
    easy->stranded = true;
    curl_done_tell(easy,
                   why == CURLM_OUT_OF_MEMORY ? CURLE_OUT_OF_MEMORY : CURLE_ABORTED_BY_CALLBACK);
}

/* Takes it out (its DONE is dropped with it) and adds it again with our answer, or its way to a
 * fallback, prepared. False: we are inside a callback, and the perform around it does it. */
static bool add_anew(struct multi *multi, struct easy *easy, int *running)
{
    if (multi->real->multi_remove_handle(multi->handle, easy->handle) != CURLM_OK)
        return false;
    multi->superseded = easy->next_superseded;
    if (!easy->prepared)
        curl_call_answer(easy);
    easy->superseded = easy->prepared = false;
    begin_transfer(multi, easy);
    CURLMcode result = multi->real->multi_add_handle(multi->handle, easy->handle);
    if (result != CURLM_OK)
        strand(easy, result);
    else if (running)
        ++*running;
    return true;
}

/* From then on a transfer is as old as its connection (age_of() in curl_facts.c). */
static void note_starts(struct multi *multi)
{
    struct easy *easy;

    DL_FOREACH2 (multi->members, easy, next_member)
        if (easy->left_queue_ns == 0 && shim_admitted(easy->active) && curl_facts_left_queue(easy))
            easy->left_queue_ns = clock_system.mono_ns();
}

/* After a real perform: whose transfer was superseded in it runs on, so that `running` never falls
 * to 0 before the answer was given, and loops do not leave. */
static void end_round(CURLM *handle, int *running)
{
    struct multi *multi = easymap_multi(handle);

    if (!multi)
        return;
    if (multi->queues && multi->real->version < 0x080600)
        note_starts(multi);
    if (multi->fails_over)
        curl_done_read_ahead(multi);
    while (multi->superseded && add_anew(multi, multi->superseded, running))
        ;
    multi->in_round = false;
}

static void begin_round(CURLM *handle)
{
    struct multi *multi = easymap_multi(handle);

    if (!multi)
        return;
    multi->rounds++;
    multi->in_round = true;
}

CURLMcode hook_multi_perform(real_t real, CURLM *multi, int *running)
{
    begin_round(multi);
    bool before = library_enter();
    CURLMcode result = real->multi_perform(multi, running);
    library_leave(before);
    GUARD_ERRNO(end_round(multi, running));
    return result;
}

CURLMcode hook_multi_socket(real_t real, CURLM *multi, curl_socket_t s, int *running)
{
    begin_round(multi);
    bool before = library_enter();
    CURLMcode result = real->multi_socket(multi, s, running);
    library_leave(before);
    GUARD_ERRNO(end_round(multi, running));
    return result;
}

CURLMcode hook_multi_socket_all(real_t real, CURLM *multi, int *running)
{
    begin_round(multi);
    bool before = library_enter();
    CURLMcode result = real->multi_socket_all(multi, running);
    library_leave(before);
    GUARD_ERRNO(end_round(multi, running));
    return result;
}

CURLMcode hook_multi_socket_action(real_t real, CURLM *multi, curl_socket_t s, int events,
                                   int *running)
{
    begin_round(multi);
    bool before = library_enter();
    CURLMcode result = real->multi_socket_action(multi, s, events, running);
    library_leave(before);
    GUARD_ERRNO(end_round(multi, running));
    return result;
}
