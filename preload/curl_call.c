#include "curl_call.h"

#include "guard.h"

#include <stdlib.h>
#include <string.h>

/* --- what the request is ------------------------------------------------------------------------
 */

const char *curl_call_url(const struct easy *easy, char **owned)
{
    const struct curl_options *options = &easy->options;
    CURLU *parts = options->value[SHADOW_CURLU].pointer;
    char *text = NULL;

    *owned = NULL;
    if (!parts)
        return options->value[SHADOW_URL].string;
    if (easy->real->url_get && easy->real->free &&
        easy->real->url_get(parts, CURLUPART_URL, &text, 0) == CURLUE_OK) {
        *owned = strdup(text);
        easy->real->free(text);
    }
    return *owned;
}

/* Feeds what of the body is in memory; true when the model is decided. */
static bool feed_body(struct easy *easy)
{
    const struct curl_options *options = &easy->options;
    const struct shadow_value *fields = &options->value[SHADOW_POSTFIELDS];
    const struct shadow_value *size = &options->value[SHADOW_POSTFIELDSIZE_LARGE];

    switch (curl_options_body(options)) {
    case BODY_READ:
        return false;
    case BODY_FIELDS:
        if (options->copied_fields)
            return shim_body(&easy->call, span_of(options->copied_fields, options->copied_size),
                             true);
        return shim_body(&easy->call,
                         span_of(fields->pointer, size->set && size->number >= 0
                                                      ? (size_t)size->number
                                                      : strlen(fields->pointer)),
                         true);
    case BODY_MIME:
        shim_model(&easy->call, *easy->mime_model ? span_str(easy->mime_model) : SPAN_NONE);
        return true;
    case BODY_FORM:
    case BODY_NONE:
        break;
    }
    return shim_body(&easy->call, SPAN_LIT(""), true);
}

/* The request of the handle; what a URL says is remembered until it is set anew. A CURLU may change
 * without us: *owned holds its text, to be freed. */
static bool request_of(struct easy *easy, struct shim_request *request, char **owned)
{
    const struct shadow_value *port = &easy->options.value[SHADOW_PORT];

    *owned = NULL;
    if (easy->request_known) {
        *request = easy->request;
    } else {
        const char *url = curl_call_url(easy, owned);
        if (!url || !shim_request_of_url(span_str(url), request))
            return false;
        easy->request = *request;
        easy->request_known = *owned == NULL;
    }
    request->method = span_str(curl_options_method(&easy->options));
    if (port->set && port->number > 0 && port->number < 65536)
        request->port = (uint16_t)port->number;
    return true;
}

/* True when the call is covered; its model may still be to come. */
static bool open_call(struct easy *easy)
{
    struct shim_request request;
    enum shim_need need = SHIM_UNCOVERED;
    char *owned;

    if (request_of(easy, &request, &owned))
        need = shim_open(&easy->call, &request);
    if (need == SHIM_NEEDS_BODY)
        feed_body(easy);
    free(owned);
    return need != SHIM_UNCOVERED;
}

/* --- begin and end ------------------------------------------------------------------------------
 */

static void begin(struct easy *easy)
{
    easy->answered = easy->refused = easy->paused = false;
    if (easy->unreliable || !open_call(easy))
        return;
    easy->started_ns = curl_facts_now();
    if (shim_admit(&easy->call) == SHIM_REFUSED)
        curl_synth_prepare(easy);
    else if (shim_model_pending(&easy->call))
        curl_read_watch(easy);
}

void curl_call_begin(struct easy *easy)
{
    GUARD_ERRNO(begin(easy));
}

void curl_call_restore(struct easy *easy)
{
    easy->watched = false;
    if (easy->synthetic || curl_options_overridden(&easy->options))
        curl_options_restore(&easy->options, easy->real, easy->handle);
    curl_synth_finish(easy);
}

void curl_call_end(struct easy *easy, CURLcode result)
{
    if (!shim_admitted(&easy->call))
        return;
    GUARD_ERRNO({
        struct call_end end = curl_facts_end(easy, result);
        shim_settle(&easy->call, &end);
    });
}

void curl_call_abandon(struct easy *easy)
{
    if (!shim_admitted(&easy->call))
        return;
    GUARD_ERRNO({
        struct call_end end = curl_facts_abandoned(easy);
        shim_settle(&easy->call, &end);
    });
}
