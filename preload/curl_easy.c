/*
 * curl_easy.c - the easy interface. A handle that is inside its own perform, or that we do not know
 * (libcurl's internal ones), passes straight.
 */
#include "curl_call.h"

#include "guard.h"

#include <stdlib.h>
#include <string.h>

CURL *hook_easy_init(real_t real)
{
    CURL *handle = real->easy_init();

    if (handle)
        GUARD_ERRNO(easymap_add_easy(handle, real)); /* without memory it runs uncovered */
    return handle;
}

/* The transfer itself, with the handle marked as inside it. */
static CURLcode perform(struct easy *easy)
{
    easy->performing = true;
    CURLcode result = easy->real->easy_perform(easy->handle);
    easy->performing = false;
    return result;
}

CURLcode hook_easy_perform(real_t real, CURL *handle)
{
    struct easy *easy = easymap_easy(handle);

    if (!easy || easy->performing || easy->multi)
        return real->easy_perform(handle);
    curl_call_begin(easy);
    CURLcode result = perform(easy);
    if (easy->refused) {
        GUARD_ERRNO({
            curl_call_restore(easy);
            curl_synth_prepare(easy);
        });
        result = perform(easy);
    }
    curl_call_end(easy, result);
    GUARD_ERRNO(curl_call_restore(easy));
    return result;
}

CURLcode hook_easy_setopt(real_t real, CURL *handle, CURLoption option, void *value)
{
    struct easy *easy = easymap_easy(handle);

    if (!easy)
        return real->easy_setopt(handle, option, value);
    CURLcode result = CURLE_OK;
    if (!curl_options_withheld(&easy->options, option))
        result = real->easy_setopt(handle, option, value);
    if (result == CURLE_OK)
        GUARD_ERRNO({
            if (option == CURLOPT_URL || option == CURLOPT_CURLU)
                easy->request_known = false;
            if (!curl_options_note(&easy->options, option, value))
                easy->unreliable = true;
        });
    return result;
}

/* --- getinfo: after an answer of ours the URL is still the application's
 * -------------------------- */

/* The scheme in the spelling of this libcurl: upper case before 8.0, lower case since. */
static const char *scheme_like(const char *given, bool https)
{
    if (given && given[0] == 'H')
        return https ? "HTTPS" : "HTTP";
    return https ? "https" : "http";
}

static bool is_https(const struct easy *easy)
{
    struct shim_request request;

    return easy->answered_url && shim_request_of_url(span_str(easy->answered_url), &request) &&
           span_ieq(request.scheme, SPAN_LIT("https"));
}

static void tell_own_url(struct easy *easy, CURLINFO info, void *value)
{
    if (!easy->answered_url)
        return;
    switch ((int)info) {
    case CURLINFO_EFFECTIVE_URL:
        *(const char **)value = easy->answered_url;
        break;
    case CURLINFO_SCHEME:
        *(const char **)value = scheme_like(*(const char **)value, is_https(easy));
        break;
    case CURLINFO_PROTOCOL:
        *(long *)value = is_https(easy) ? CURLPROTO_HTTPS : CURLPROTO_HTTP;
        break;
    default:
        break;
    }
}

CURLcode hook_easy_getinfo(real_t real, CURL *handle, CURLINFO info, void *value)
{
    CURLcode result = real->easy_getinfo(handle, info, value);
    struct easy *easy = result == CURLE_OK && value ? easymap_easy(handle) : NULL;

    if (easy && easy->answered)
        tell_own_url(easy, info, value);
    return result;
}

/* --- the life of a handle
 * -------------------------------------------------------------------------- */

CURL *hook_easy_duphandle(real_t real, CURL *handle)
{
    CURL *copy = real->easy_duphandle(handle);
    struct easy *easy = copy ? easymap_easy(handle) : NULL;

    if (!easy)
        return copy;
    GUARD_ERRNO({
        struct easy *twin = easymap_add_easy(copy, real);
        if (twin) {
            twin->unreliable =
                easy->unreliable || !curl_options_copy(&twin->options, &easy->options);
            memcpy(twin->mime_model, easy->mime_model, sizeof twin->mime_model);
            /* A copy made inside a callback carries our overrides: it gets the application's. */
            if (curl_options_overridden(&twin->options))
                curl_options_restore(&twin->options, real, copy);
        }
    });
    return copy;
}

void hook_easy_reset(real_t real, CURL *handle)
{
    struct easy *easy = easymap_easy(handle);

    real->easy_reset(handle);
    if (!easy)
        return;
    GUARD_ERRNO({
        curl_options_clear(&easy->options);
        easy->request_known = false;
        easy->unreliable = easy->answered = false;
        easy->mime_model[0] = '\0';
    });
}

void hook_easy_cleanup(real_t real, CURL *handle)
{
    struct easy *easy = easymap_easy(handle);

    if (easy && !easy->performing) {
        curl_call_abandon(easy);
        GUARD_ERRNO({
            curl_call_restore(easy);
            easymap_remove_easy(easy);
        });
    }
    real->easy_cleanup(handle);
}

CURLcode hook_easy_pause(real_t real, CURL *handle, int bitmask)
{
    struct easy *easy = easymap_easy(handle);

    if (easy)
        easy->paused = (bitmask & CURLPAUSE_ALL) != 0;
    return real->easy_pause(handle, bitmask);
}
