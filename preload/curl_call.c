#include "curl_detour.h"

#include "guard.h"

#include <stdlib.h>

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

/* The request's own text: *owned holds what the spans point into, if anything. False: no URL with a
 * host that libcurl takes: it says so itself. */
static bool request_of(struct easy *easy, struct shim_request *request, char **owned)
{
    uint16_t port = curl_options_port(&easy->options);

    *owned = NULL;
    if (curl_url_know(easy)) {
        if (!easy->request.host.ptr)
            return false;
        *request = easy->request;
    } else {
        const char *url = curl_url_of(easy, owned);
        if (!url || !shim_request_of_url(span_str(url), request))
            return false;
    }
    request->method = span_str(curl_options_method(&easy->options));
    request->reroutes = true;
    if (port > 0)
        request->port = port;
    return true;
}

static void tell_timeout(struct easy *easy)
{
    long timeout_ms = curl_options_timeout_ms(&easy->options);

    if (timeout_ms > 0 && shim_wants_timeout(&easy->call))
        shim_timeout(&easy->call, (uint64_t)timeout_ms);
}

/* --- begin and end ------------------------------------------------------------------------ */

/* What went wrong in TLS is told in words only (curl_facts.c): asks for them where the application
 * does not. */
static void ask_for_errors(struct easy *easy)
{
    if (easy->options.value[SHADOW_ERRORBUFFER].pointer)
        return;
    easy->errors[0] = '\0';
    curl_call_override(easy, SHADOW_ERRORBUFFER, easy->errors);
}

void curl_call_prepare(struct easy *easy)
{
    const char *url = curl_detour_is_going(easy) ? easy->detour->way.url : NULL;

    if (url ? curl_url_is_https(url) : easy->https)
        ask_for_errors(easy);
    if (shim_model_pending(easy->active))
        curl_read_watch(easy);
    if (shim_watches(easy->active))
        curl_write_watch(easy);
}

/* No body is sent from its middle; one that was read beforehand is here. */
static bool can_begin(struct easy *easy)
{
    return (easy->detour && easy->detour->pulled) || easy->body_shown == 0 ||
           curl_read_rewind(easy);
}

/* Past a breaker that lets it, with the body that was read beforehand. False: its model is refused.
 */
static bool pass(struct easy *easy)
{
    struct detour *detour = easy->detour;

    easy->rerouted = false;
    if (detour && detour->pulled) {
        detour->replay = span_of(detour->pulled, detour->pulled_len);
        if (shim_body(&easy->call, detour->replay, true) &&
            shim_admit_model(&easy->call) == SHIM_REFUSED)
            return false;
        curl_replay_install(easy);
    }
    curl_detour_override_time(easy);
    curl_call_prepare(easy);
    return true;
}

void curl_call_give_up(struct easy *easy)
{
    if (can_begin(easy) && shim_exhausted(&easy->call) == SHIM_ADMITTED && pass(easy))
        return;
    shim_obeyed(&easy->call);
    curl_synth_prepare(easy, &easy->call);
}

static void admit(struct easy *easy)
{
    if (shim_detour_possible(&easy->call))
        easy->began_ns = shim_mono_ns();
    easy->fails_over = shim_detour_on_failure(&easy->call);
    if (shim_admit(&easy->call) == SHIM_ADMITTED)
        curl_call_prepare(easy);
    else if (!curl_detour_next(easy))
        curl_call_give_up(easy);
}

static enum shim_need open_anew(struct easy *easy)
{
    struct shim_request request = {.path = SPAN_NONE};
    enum shim_need need = SHIM_UNCOVERED;
    char *owned = NULL;

    if (request_of(easy, &request, &owned)) {
        easy->https = span_ieq(request.scheme, SPAN_LIT("https"));
        need = shim_open(&easy->call, &request);
        easy->same_request = easy->request_known; /* its spans stay */
        easy->method = request.method.ptr;
    } else {
        shim_drop(&easy->call);
    }
    free(owned);
    return need;
}

static bool open_again(struct easy *easy, enum shim_need *need)
{
    return easy->same_request && curl_options_method(&easy->options) == easy->method &&
           shim_open_again(&easy->call, need);
}

/* Do we know what libcurl will do? 7.88 puts a CURLU's text in the URL option's place, and keeps it
 * when the CURLU is taken away. */
static bool is_told(const struct easy *easy)
{
    return !easy->unreliable && (!easy->url_doubtful || easy->options.value[SHADOW_CURLU].pointer);
}

/* Each way lets go of what was open before. */
static enum shim_need open_call(struct easy *easy)
{
    enum shim_need need = SHIM_UNCOVERED;

    if (!is_told(easy))
        shim_drop(&easy->call);
    else if (!open_again(easy, &need))
        need = open_anew(easy);
    return need;
}

static void begin(struct easy *easy)
{
    curl_call_restore(easy); /* left by a transfer whose end passed us by */
    easy->answered = easy->rerouted = easy->superseded = false;
    easy->paused = easy->held = easy->fails_over = false;
    easy->headed = easy->sees_body = false;
    easy->body_shown = 0;
    easy->source.known = false;
    easy->url_doubtful |= easy->options.value[SHADOW_CURLU].pointer != NULL;
    enum shim_need need = open_call(easy);
    if (need == SHIM_NEEDS_BODY)
        feed_body(easy);
    if (need != SHIM_UNCOVERED) {
        if (easy->options.value[SHADOW_CURLU].pointer)
            shim_credential_now(&easy->call);
        tell_timeout(easy);
        admit(easy);
    }
}

void curl_call_begin(struct easy *easy)
{
    GUARD_ERRNO(begin(easy));
}

void curl_call_put_back(struct easy *easy)
{
    curl_detour_leave(easy);
    curl_write_leave(easy);
    curl_options_restore(&easy->options, easy->real, easy->handle);
    if (easy->synthetic)
        curl_synth_finish(easy);
}

void curl_call_restore(struct easy *easy)
{
    if (curl_detour_is_going(easy))
        shim_detour_taken(&easy->detour->way);
    curl_call_put_back(easy);
    curl_detour_end(easy);
}

void curl_call_answer(struct easy *easy)
{
    char *errors = easy->options.value[SHADOW_ERRORBUFFER].pointer;

    if (curl_detour_is_going(easy))
        shim_detour_skip(&easy->detour->way, NULL);
    curl_call_put_back(easy);
    easy->superseded = false;
    if (errors) /* of the transfer that the application never learns of */
        errors[0] = '\0';
    if (easy->detour)
        easy->detour->follows = true;
    if (curl_detour_next(easy))
        return;
    if (easy->detour && !easy->detour->refused) /* the application's own host was not reached */
        curl_synth_prepare(easy, &easy->detour->way.call);
    else
        curl_call_give_up(easy);
}

bool curl_call_goes_on(struct easy *easy, CURLcode result)
{
    bool goes_on = true;

    if (easy->superseded)
        GUARD_ERRNO(curl_call_answer(easy));
    else
        GUARD_ERRNO(goes_on = curl_detour_fail_over(easy, result));
    return goes_on;
}

void curl_call_end(struct easy *easy, CURLcode result)
{
    if (!shim_admitted(easy->active))
        return;
    GUARD_ERRNO({
        struct call_end end = curl_facts_end(easy, result);
        shim_settle(easy->active, &end);
    });
}
