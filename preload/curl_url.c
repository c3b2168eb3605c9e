/*
 * curl_url.c - the URL of a transfer: as the application set it, as libcurl would tell it back, and
 * as the synthetic answer needs it.
 */
#include "curl_call.h"

#include <stdlib.h>
#include <string.h>

/* From a CURLU, which wins over the URL option. */
static char *url_of_object(const struct easy *easy, CURLU *url)
{
    char *text = NULL, *copy;

    if (!easy->real->url_get || !easy->real->free ||
        easy->real->url_get(url, CURLUPART_URL, &text, 0) != CURLUE_OK)
        return NULL;
    copy = strdup(text);
    easy->real->free(text);
    return copy;
}

/* scheme "://" authority rest; the scheme may be missing. */
struct parts {
    struct span scheme, authority, rest; /* the rest: from the path on */
};

static struct parts split(const char *url)
{
    struct parts parts = {.scheme = SPAN_LIT("http")};
    const char *end = url;

    while (*end && *end != ':' && *end != '/' && *end != '?' && *end != '#')
        end++;
    if (strncmp(end, "://", 3) == 0) {
        parts.scheme = span_of(url, (size_t)(end - url));
        url = end = end + 3;
    }
    while (*end && *end != '/' && *end != '?' && *end != '#')
        end++;
    parts.authority = span_of(url, (size_t)(end - url));
    parts.rest = span_str(end);
    return parts;
}

static char *put(char *at, struct span text)
{
    memcpy(at, text.ptr, text.len);
    return at + text.len;
}

static char *join(struct span scheme, struct span authority, struct span rest)
{
    char *url = malloc(scheme.len + 3 + authority.len + 1 + rest.len + 1), *at = url;

    if (!url)
        return NULL;
    at = put(put(put(at, scheme), SPAN_LIT("://")), authority);
    if (rest.len == 0 || *rest.ptr != '/')
        *at++ = '/';
    *put(at, rest) = '\0';
    return url;
}

const char *curl_url_of(const struct easy *easy, char **owned)
{
    CURLU *object = easy->options.value[SHADOW_CURLU].pointer;
    const char *url = easy->options.value[SHADOW_URL].string;
    const char *scheme = easy->options.value[SHADOW_DEFAULT_PROTOCOL].string;

    *owned = NULL;
    if (object)
        return *owned = url_of_object(easy, object);
    if (url && scheme && !strstr(url, "://")) {
        struct parts parts = split(url);
        return *owned = join(span_str(scheme), parts.authority, parts.rest);
    }
    return url;
}

char *curl_url_told(const char *url)
{
    struct parts parts = split(url);
    char *told = join(parts.scheme, parts.authority, parts.rest);

    for (char *c = told; c && *c != ':'; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c - 'A' + 'a');
    return told;
}

char *curl_url_for_answer(const char *url, bool numeric)
{
    struct parts parts = split(url);

    return join(SPAN_LIT("http"), numeric ? SPAN_LIT(CURL_URL_NUMERIC) : parts.authority,
                parts.rest);
}

bool curl_url_is_https(const char *url)
{
    return span_ieq(split(url).scheme, SPAN_LIT("https"));
}
