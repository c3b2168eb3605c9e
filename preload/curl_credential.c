/*
 * curl_credential.c - whose quota a transfer draws on. Asked each time, since a list of headers may
 * be changed in place between two transfers, and as seldom as the door has it (shim.h).
 *
 * libcurl has the application keep the list as long as it uses the handle for a transfer. Inside
 * curl_easy_perform that is sure, and the door is told when it wants to know. A transfer of a multi
 * is over before we hear of it, and programs free the list as soon as they see that: the door is
 * told when it begins. So it is of a CURLU, which libcurl copies at once.
 */
#include "curl_call.h"

#include <stdlib.h>
#include <string.h>

static bool in_headers(struct easy *easy)
{
    const struct curl_slist *line = easy->options.value[SHADOW_HTTPHEADER].pointer;
    bool told = false, others = false;

    for (const struct curl_slist *at = line; at && !told; at = at->next)
        told = at->data && shim_credential_header(&easy->call, span_str(at->data), &others);
    if (told || !others)
        return told;
    for (; line; line = line->next) /* these are one together */
        told |= line->data && shim_credential_other_header(&easy->call, span_str(line->data));
    return told;
}

/* Sets *query: there is one, in which a key may stand by another name. */
static bool in_url(struct easy *easy, bool *query)
{
    const struct shadow_value *value = easy->options.value;
    char *owned = NULL;
    const char *url = easy->request_known           ? easy->url
                      : value[SHADOW_CURLU].pointer ? curl_url_of(easy, &owned)
                                                    : value[SHADOW_URL].string;

    *query = url && strchr(url, '?');
    bool told = url && strpbrk(url, "?@") && shim_credential_url(&easy->call, span_str(url));
    free(owned);
    return told;
}

void curl_credential_tell(void *data)
{
    struct easy *easy = data;
    const struct shadow_value *value = easy->options.value;
    const char *bearer = value[SHADOW_XOAUTH2_BEARER].string;
    const char *user = value[SHADOW_USERNAME].string;
    const char *cookie = value[SHADOW_COOKIE].string;
    bool query;

    if (in_headers(easy) || in_url(easy, &query))
        return;
    if (!bearer && user) {
        shim_credential(&easy->call, span_str(user));
        shim_credential(&easy->call, span_str(value[SHADOW_PASSWORD].string));
    } else if (bearer || cookie || !query) {
        shim_credential(&easy->call, span_str(bearer ? bearer : cookie));
    }
}

static bool is_told_by(CURLoption option)
{
    switch ((int)option) {
    case CURLOPT_HTTPHEADER:
    case CURLOPT_URL:
    case CURLOPT_CURLU:
    case CURLOPT_XOAUTH2_BEARER:
    case CURLOPT_USERPWD:
    case CURLOPT_USERNAME:
    case CURLOPT_PASSWORD:
    case CURLOPT_COOKIE:
        return true;
    default:
        return false;
    }
}

/* What it was before may be gone already: whether an exception left the transfer is not known. */
void curl_credential_note(struct easy *easy, CURLoption option)
{
    if (is_told_by(option))
        shim_credential_lost(&easy->call);
}
