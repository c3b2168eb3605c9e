/*
 * curl_credential.c - whose quota a transfer draws on. Asked when it begins, each time: a list of
 * headers may be changed in place between two transfers, and at the end of one it may be gone,
 * since the program knows that libcurl is through with it.
 */
#include "curl_call.h"

#include <string.h>

static bool in_headers(struct easy *easy)
{
    const struct curl_slist *line = easy->options.value[SHADOW_HTTPHEADER].pointer;

    for (; line; line = line->next)
        if (line->data && shim_credential_header(&easy->call, span_str(line->data)))
            return true;
    return false;
}

static bool in_url(struct easy *easy)
{
    const char *url = easy->request_known ? easy->url : easy->options.value[SHADOW_URL].string;

    return url && !easy->options.value[SHADOW_CURLU].pointer && strchr(url, '?') &&
           shim_credential_url(&easy->call, span_str(url));
}

void curl_credential_tell(struct easy *easy)
{
    const struct shadow_value *value = easy->options.value;

    if (!shim_wants_credential(&easy->call) || in_headers(easy) || in_url(easy))
        return;
    if (value[SHADOW_XOAUTH2_BEARER].string) {
        shim_credential(&easy->call, span_str(value[SHADOW_XOAUTH2_BEARER].string));
        return;
    }
    shim_credential(&easy->call, span_str(value[SHADOW_USERNAME].string));
    shim_credential(&easy->call, span_str(value[SHADOW_PASSWORD].string));
}
