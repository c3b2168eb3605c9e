/*
 * curl_easy.c - the easy interface. A handle that is inside its own perform, or that we do not know
 * (libcurl's internal ones), passes straight.
 */
#include "curl_call.h"

#include "guard.h"
#include "real_library.h"

#include <stdlib.h>
#include <string.h>

CURL *hook_easy_init(real_t real)
{
    CURL *handle = real->easy_init();

    if (handle && !shim_fenced())
        GUARD_ERRNO(easymap_add_easy(handle, real)); /* without memory it runs uncovered */
    return handle;
}

/* The transfer itself, with the handle marked as inside it. A C++ exception that the application
 * throws through libcurl leaves the mark: libcurl's own handle is of no use any more either. */
static CURLcode perform(struct easy *easy)
{
    bool before = library_enter();

    easy->performing = true;
    CURLcode result = easy->real->easy_perform(easy->handle);
    easy->performing = false;
    library_leave(before);
    return result;
}

CURLcode hook_easy_perform(real_t real, CURL *handle)
{
    struct easy *easy = easymap_easy(handle);

    if (!easy || easy->performing || easy->multi)
        return real->easy_perform(handle);
    curl_call_begin(easy);
    CURLcode result = perform(easy);
    while (curl_call_goes_on(easy, result)) /* as often as there are fallbacks */
        result = perform(easy);
    curl_call_end(easy, result);
    GUARD_ERRNO(curl_call_restore(easy));
    return result;
}

/* What the next call is about may be new; a URL that is set is what EFFECTIVE_URL tells. */
static void forget_request(struct easy *easy, CURLoption option, const void *value)
{
    bool url =
        option == CURLOPT_URL || option == CURLOPT_CURLU || option == CURLOPT_DEFAULT_PROTOCOL;

    if (curl_options_change_place(&easy->options, option, value)) {
        easy->same_request = false;
        if (url)
            easy->request_known = false;
    }
    if (option == CURLOPT_URL)
        easy->url_doubtful = false;
    if (!url || easy->synthetic || easy->detour)
        return;
    free(easy->answered_url);
    easy->answered_url = NULL;
}

/* A value that libcurl was not told of must be kept, or the application must learn that it is lost.
 */
static CURLcode note_option(struct easy *easy, CURLoption option, void *value, bool withheld)
{
    if (easy->performing)
        curl_credential_note(easy, option);
    forget_request(easy, option, value);
    if (curl_options_note(&easy->options, option, value))
        return CURLE_OK;
    if (withheld)
        return CURLE_OUT_OF_MEMORY;
    easy->unreliable = true;
    return CURLE_OK;
}

CURLcode hook_easy_setopt(real_t real, CURL *handle, CURLoption option, void *value)
{
    struct easy *easy = easymap_easy(handle);

    if (!easy)
        return real->easy_setopt(handle, option, value);
    if (option == CURLOPT_ERRORBUFFER && value) /* its own is as good as ours (curl_call.c) */
        curl_options_release(&easy->options, SHADOW_ERRORBUFFER);
    if (easy->options.overridden > 0)
        curl_write_note(easy, option);
    bool withheld = curl_options_withheld(&easy->options, option);
    CURLcode result = withheld ? CURLE_OK : real->easy_setopt(handle, option, value);
    if (result == CURLE_OK)
        GUARD_ERRNO(result = note_option(easy, option, value, withheld));
    return result;
}

/* --- getinfo: after an answer of ours the URL is still the application's ------------------- */

/* The scheme in the spelling of this libcurl: upper case before 8.0, lower case since. */
static const char *scheme_like(const char *given, bool https)
{
    if (given && given[0] == 'H')
        return https ? "HTTPS" : "HTTP";
    return https ? "https" : "http";
}

static void tell_own_url(const struct easy *easy, CURLINFO info, void *value)
{
    bool https = easy->answered_https;

    switch ((int)info) {
    case CURLINFO_EFFECTIVE_URL:
        if (easy->answered_url)
            *(const char **)value = easy->answered_url;
        break;
    case CURLINFO_SCHEME:
        *(const char **)value = scheme_like(*(const char **)value, https);
        break;
    case CURLINFO_PROTOCOL:
        *(long *)value = https ? CURLPROTO_HTTPS : CURLPROTO_HTTP;
        break;
    default:
        break;
    }
}

CURLcode hook_easy_getinfo(real_t real, CURL *handle, CURLINFO info, void *value)
{
    CURLcode result = real->easy_getinfo(handle, info, value);
    struct easy *easy = value ? easymap_easy(handle) : NULL;

    if (!easy || !(easy->answered || easy->rerouted))
        return result;
    if (!easy->answered && info != CURLINFO_EFFECTIVE_URL)
        return result;
    if (info == CURLINFO_EFFECTIVE_URL && easy->answered_url)
        result = CURLE_OK; /* 8.23 fails on the URL that was put back, where it has no scheme */
    if (result == CURLE_OK)
        tell_own_url(easy, info, value);
    return result;
}

/* --- the life of a handle ------------------------------------------------------------------ */

/* The shadow of a new copy. One made inside a callback carries our values: it gets the
 * application's at once, whether or not there is memory for a shadow. */
static void copy_shadow(const struct easy *easy, CURL *copy)
{
    curl_options_restore_copy(&easy->options, easy->real, copy);
    struct easy *twin = easymap_add_easy(copy, easy->real);
    if (!twin)
        return;
    struct span model = curl_mime_model(easy);
    if (model.len < sizeof twin->mime_model && model.len > 0)
        memcpy(twin->mime_model, model.ptr, model.len);
    twin->url_doubtful = easy->url_doubtful;
    twin->unreliable = easy->unreliable || !curl_options_copy(&twin->options, &easy->options);
    /* libcurl copied the mime; at the original's address another's may come to stand. */
    twin->options.value[SHADOW_MIMEPOST].pointer = NULL;
}

CURL *hook_easy_duphandle(real_t real, CURL *handle)
{
    CURL *copy = real->easy_duphandle(handle);
    struct easy *easy = copy ? easymap_easy(handle) : NULL;

    if (easy)
        GUARD_ERRNO(copy_shadow(easy, copy));
    return copy;
}

void hook_easy_reset(real_t real, CURL *handle)
{
    struct easy *easy = easymap_easy(handle);

    real->easy_reset(handle);
    if (!easy)
        return;
    GUARD_ERRNO({
        if (easy->performing)
            shim_credential_lost(&easy->call);
        /* A reset forgets neither the hosts nor the cookies nor the share. */
        const struct curl_options kept = easy->options;
        curl_options_clear(&easy->options);
        easy->options.may_have_hsts = kept.may_have_hsts;
        easy->options.has_cookie_jar = kept.has_cookie_jar;
        easy->options.may_share_cookies = kept.may_share_cookies;
        easy->unreliable = easy->answered = easy->rerouted = false;
        easy->request_known = easy->same_request = easy->url_doubtful = false;
        easy->mime_model[0] = '\0';
    });
}

void hook_easy_cleanup(real_t real, CURL *handle)
{
    struct easy *easy = easymap_easy(handle);

    if (easy)
        GUARD_ERRNO({
            curl_multi_forget(easy);
            shim_drop(easy->active);
            curl_call_restore(easy);
            easymap_remove_easy(easy);
        });
    real->easy_cleanup(handle);
}

CURLcode hook_easy_pause(real_t real, CURL *handle, int bitmask)
{
    struct easy *easy = easymap_easy(handle);

    if (easy) {
        easy->paused = (bitmask & CURLPAUSE_ALL) != 0;
        easy->held |= !easy->headed;
        GUARD_ERRNO(curl_slow_hear(easy)); /* nothing could come until now */
    }
    return real->easy_pause(handle, bitmask);
}
