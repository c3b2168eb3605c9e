/*
 * curl_url.c - the URL of a transfer, in the spelling that libcurl itself goes by. There are many
 * ways to write one place ("http:/127.1:080/a/../b") and what libcurl makes of them differs between
 * its versions: so it is asked, by its URL API, as it asks itself.
 */
#include "curl_detour.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef CURLU_GET_EMPTY /* since 8.8.0 */
#define CURLU_GET_EMPTY (1 << 14)
#endif

/* --- libcurl's spelling --------------------------------------------------------------------- */

static char *copy_of(real_t real, CURLU *object, unsigned flags)
{
    char *text = NULL, *copy;

    if (!real->url_get || !real->free ||
        real->url_get(object, CURLUPART_URL, &text, flags) != CURLUE_OK)
        return NULL;
    copy = strdup(text);
    real->free(text);
    return copy;
}

/* As libcurl sets them for its own reading of the URL option. DISALLOW_USERNAME_IN_URL is left out:
 * what it forbids libcurl refuses by itself, of our answer's URL too. */
static unsigned flags_of(const struct easy *easy)
{
    return CURLU_GUESS_SCHEME | CURLU_NON_SUPPORT_SCHEME |
           (easy->options.value[SHADOW_PATH_AS_IS].number ? CURLU_PATH_AS_IS : 0);
}

static bool has_scheme(const char *url)
{
    size_t len = strspn(url, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");

    return len > 0 && strncmp(url + len, ":/", 2) == 0;
}

static char *with_scheme(const char *scheme, const char *url)
{
    char *full;

    if (has_scheme(url))
        return strdup(url);
    return asprintf(&full, "%s://%s", scheme, url) < 0 ? NULL : full;
}

/* NULL: libcurl does not take it, or no memory. */
static char *spell(const struct easy *easy, const char *url)
{
    real_t real = easy->real;
    char *spelled = NULL;

    if (!real->url || !real->url_set || !real->url_cleanup)
        return with_scheme("http", url); /* before 7.62 */
    CURLU *object = real->url();
    if (object && real->url_set(object, CURLUPART_URL, url, flags_of(easy)) == CURLUE_OK)
        spelled = copy_of(real, object, real->version >= 0x081500 ? CURLU_GET_EMPTY : 0);
    real->url_cleanup(object);
    return spelled;
}

/* --- of a handle ---------------------------------------------------------------------------- */

bool curl_url_know(struct easy *easy)
{
    const struct shadow_value *value = easy->options.value;

    if (easy->request_known && easy->url_flags == flags_of(easy))
        return true;
    if (!value[SHADOW_URL].string || value[SHADOW_CURLU].pointer ||
        value[SHADOW_DEFAULT_PROTOCOL].string)
        return false;
    free(easy->url);
    easy->url = spell(easy, value[SHADOW_URL].string);
    easy->url_flags = flags_of(easy);
    easy->request = (struct shim_request){.host = SPAN_NONE};
    if (easy->url)
        shim_request_of_url(span_str(easy->url), &easy->request);
    return easy->request_known = true;
}

const char *curl_url_of(const struct easy *easy, char **owned)
{
    const struct shadow_value *value = easy->options.value;
    const char *scheme = value[SHADOW_DEFAULT_PROTOCOL].string;

    *owned = NULL;
    if (value[SHADOW_CURLU].pointer)
        return *owned = copy_of(easy->real, value[SHADOW_CURLU].pointer, 0);
    if (!value[SHADOW_URL].string)
        return NULL;
    if (easy->request_known)
        return easy->url;
    if (!scheme)
        return *owned = spell(easy, value[SHADOW_URL].string);
    char *full = with_scheme(scheme, value[SHADOW_URL].string);
    *owned = full ? spell(easy, full) : NULL;
    free(full);
    return *owned;
}

const char *curl_url_under_way(const struct easy *easy, char **owned)
{
    const char *there = curl_detour_is_going(easy) ? easy->detour->way.url : NULL;

    *owned = NULL;
    return there ? there : curl_url_of(easy, owned);
}

char *curl_url_for_answer(const char *url, bool numeric)
{
    const char *scheme_end = strstr(url, "://");
    const char *authority = scheme_end ? scheme_end + 3 : url;
    size_t len = strcspn(authority, "/?#");
    const char *user_end = memrchr(authority, '@', len);
    int user_len = user_end ? (int)(user_end + 1 - authority) : 0;
    char *answer;
    int made = numeric ? asprintf(&answer, "http://%.*s" CURL_URL_NUMERIC "%s", user_len, authority,
                                  authority + len)
                       : asprintf(&answer, "http://%s", authority);

    return made < 0 ? NULL : answer;
}

bool curl_url_is_https(const char *url)
{
    return strncasecmp(url, "https:", 6) == 0;
}
