/*
 * curl_url.c - the URL of a transfer: as the application set it, as libcurl would tell it back, and
 * as the synthetic answer needs it.
 */
#include "curl_call.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What getaddrinfo is never asked for, and no HSTS entry names. Nobody is connected to. */
#define NUMERIC_AUTHORITY "127.0.0.1:9"

static __attribute__((format(printf, 1, 2))) char *print(const char *format, ...)
{
    char *text = NULL;
    va_list ap;

    va_start(ap, format);
    int len = vasprintf(&text, format, ap);
    va_end(ap);
    return len < 0 ? NULL : text;
}

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

const char *curl_url_of(const struct easy *easy, char **owned)
{
    CURLU *object = easy->options.value[SHADOW_CURLU].pointer;
    const char *url = easy->options.value[SHADOW_URL].string;
    const char *scheme = easy->options.value[SHADOW_DEFAULT_PROTOCOL].string;

    *owned = NULL;
    if (object)
        return *owned = url_of_object(easy, object);
    if (url && scheme && !strstr(url, "://"))
        return *owned = print("%s://%s", scheme, url);
    return url;
}

/* scheme "://" authority rest; the scheme may be missing. */
struct parts {
    struct span scheme, authority;
    const char *rest; /* from the path on */
};

static struct parts split(const char *url)
{
    struct parts parts = {.scheme = SPAN_LIT("http")};
    const char *mark = strstr(url, "://");
    const char *authority = url;

    if (mark && mark == url + strspn(url, "abcdefghijklmnopqrstuvwxyz"
                                          "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.")) {
        parts.scheme = span_of(url, (size_t)(mark - url));
        authority = mark + 3;
    }
    parts.authority = span_of(authority, strcspn(authority, "/?#"));
    parts.rest = authority + parts.authority.len;
    return parts;
}

char *curl_url_told(const char *url)
{
    struct parts parts = split(url);
    char *told = print("%.*s://%.*s%s%s", (int)parts.scheme.len, parts.scheme.ptr,
                       (int)parts.authority.len, parts.authority.ptr,
                       *parts.rest == '/' ? "" : "/", parts.rest);

    for (char *c = told; c && *c != ':'; c++)
        *c = (char)tolower((unsigned char)*c);
    return told;
}

char *curl_url_for_answer(const char *url, bool numeric)
{
    struct parts parts = split(url);

    if (numeric)
        return print("http://" NUMERIC_AUTHORITY "%s", parts.rest);
    return print("http://%.*s%s", (int)parts.authority.len, parts.authority.ptr, parts.rest);
}

bool curl_url_is_https(const char *url)
{
    return span_ieq(split(url).scheme, SPAN_LIT("https"));
}
