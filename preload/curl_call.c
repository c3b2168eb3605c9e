#include "curl_call.h"

#include "guard.h"

#include <stdlib.h>
#include <string.h>

/* --- what the request is ------------------------------------------------------------------ */

/* Feeds what of the body is known before it is sent. */
static void feed_body(struct easy *easy)
{
    const struct curl_options *options = &easy->options;

    switch (curl_options_body(options)) {
    case BODY_READ:
        if (curl_options_body_size(options) == 0)
            break;
        return; /* shows itself while it is sent */
    case BODY_FIELDS:
        shim_body(&easy->call, curl_options_fields(options), true);
        return;
    case BODY_MIME:
    case BODY_FORM:
        shim_model(&easy->call, curl_mime_model(easy));
        return;
    case BODY_NONE:
        break;
    }
    shim_body(&easy->call, SPAN_LIT(""), true);
}

/* True when the call is covered; its model may still be to come. */
static bool open_call(struct easy *easy, const char *url)
{
    struct shim_request request = {.method = span_str(curl_options_method(&easy->options))};
    const struct shadow_value *port = &easy->options.value[SHADOW_PORT];

    if (!url || !shim_request_of_url(span_str(url), &request))
        return false;
    if (port->set && port->number > 0 && port->number < 65536)
        request.port = (uint16_t)port->number;
    enum shim_need need = shim_open(&easy->call, &request);
    if (need == SHIM_NEEDS_BODY)
        feed_body(easy);
    return need != SHIM_UNCOVERED;
}

/* --- begin and end ------------------------------------------------------------------------ */

/* What went wrong in TLS is told in words only (curl_facts.c): asks for them where the application
 * does not. */
static void ask_for_errors(struct easy *easy)
{
    if (easy->options.value[SHADOW_ERRORBUFFER].pointer)
        return;
    easy->errors[0] = '\0';
    curl_options_override(&easy->options, easy->real, easy->handle, SHADOW_ERRORBUFFER,
                          easy->errors);
}

static void admit(struct easy *easy, const char *url)
{
    easy->started_ns = curl_facts_now();
    if (shim_admit(&easy->call) == SHIM_REFUSED) {
        curl_synth_prepare(easy);
        return;
    }
    if (curl_url_is_https(url))
        ask_for_errors(easy);
    if (shim_model_pending(&easy->call))
        curl_read_watch(easy);
}

static void begin(struct easy *easy)
{
    char *owned;

    curl_call_restore(easy); /* left behind where an exception flew through libcurl */
    easy->answered = easy->refused = easy->paused = false;
    if (easy->unreliable) {
        shim_drop(&easy->call);
        return;
    }
    const char *url = curl_url_of(easy, &owned);
    if (open_call(easy, url))
        admit(easy, url);
    free(owned);
}

void curl_call_begin(struct easy *easy)
{
    GUARD_ERRNO(begin(easy));
}

void curl_call_restore(struct easy *easy)
{
    curl_options_restore(&easy->options, easy->real, easy->handle);
    curl_synth_finish(easy);
}

bool curl_call_answer(struct easy *easy)
{
    char *errors = easy->options.value[SHADOW_ERRORBUFFER].pointer;

    curl_call_restore(easy);
    easy->refused = false;
    if (!curl_synth_prepare(easy))
        return false;
    if (errors) /* of the transfer that the application never learns of */
        errors[0] = '\0';
    return true;
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
