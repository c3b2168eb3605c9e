#include "curl_detour.h"

#include <stdlib.h>
#include <string.h>

/* --- to one candidate ----------------------------------------------------------------------- */

/* A socket that the application has connected leads to the target's host. */
static int sockopt_watched(void *data, curl_socket_t fd, curlsocktype purpose)
{
    const struct easy *easy = data;
    const struct shadow_value *value = easy->options.value;
    curl_sockopt_callback theirs = (curl_sockopt_callback)value[SHADOW_SOCKOPTFUNCTION].pointer;
    int result = theirs ? theirs(value[SHADOW_SOCKOPTDATA].pointer, fd, purpose) : CURL_SOCKOPT_OK;

    return result == CURL_SOCKOPT_ALREADY_CONNECTED ? CURL_SOCKOPT_ERROR : result;
}

static void override_sockopt(struct easy *easy)
{
    const curl_sockopt_callback watched = sockopt_watched;

    if (!easy->options.value[SHADOW_SOCKOPTFUNCTION].pointer) {
        curl_options_guard(&easy->options, SHADOW_SOCKOPTFUNCTION);
        return;
    }
    curl_call_override(easy, SHADOW_SOCKOPTFUNCTION, (void *)watched);
    curl_call_override(easy, SHADOW_SOCKOPTDATA, easy);
}

/* What would lead the URL elsewhere, and what was meant for the target's host. */
static void override_place(struct easy *easy)
{
    static const enum shadow_index other_ways[] = {
        SHADOW_PORT, SHADOW_CONNECT_TO, SHADOW_UNIX_SOCKET_PATH, SHADOW_ABSTRACT_UNIX_SOCKET};
    static const enum shadow_index ways_off[] = {SHADOW_INTERFACE, SHADOW_LOCALPORT,
                                                 SHADOW_IPRESOLVE, SHADOW_PRE_PROXY};
    struct curl_options *options = &easy->options;
    const struct shim_detour *way = &easy->detour->way;
    const struct shadow_value *version = &options->value[SHADOW_HTTP_VERSION];

    curl_call_neutralise(easy, other_ways, sizeof other_ways / sizeof *other_ways);
    curl_options_allow_http(options, easy->real, easy->handle);
    if (way->loopback) { /* none of these leads to this machine */
        curl_call_neutralise(easy, ways_off, sizeof ways_off / sizeof *ways_off);
        curl_call_override(easy, SHADOW_PROXY, "");
    }
    if (!way->foreign)
        return;
    override_sockopt(easy);
    if (version->number == CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE ||
        version->number >= CURL_HTTP_VERSION_3) /* known of the target's host */
        curl_call_override_number(easy, SHADOW_HTTP_VERSION, CURL_HTTP_VERSION_2TLS);
    curl_options_guard(options, SHADOW_HTTP_VERSION);
}

/* False: no memory, and no way there. Before anything that is meant for the fallback alone. */
static bool override_url(struct easy *easy)
{
    struct curl_options *options = &easy->options;

    /* It wins over the URL on 8.14+. */
    curl_options_neutralise(options, easy->real, easy->handle, SHADOW_CURLU);
    curl_call_override(easy, SHADOW_URL, (void *)easy->detour->way.url);
    return options->value[SHADOW_URL].overridden;
}

static void override_address(struct easy *easy)
{
    static const enum shadow_index other_ways[] = {SHADOW_UNIX_SOCKET_PATH,
                                                   SHADOW_ABSTRACT_UNIX_SOCKET};

    curl_call_neutralise(easy, other_ways, sizeof other_ways / sizeof *other_ways);
    curl_call_override(easy, SHADOW_CONNECT_TO, easy->detour->connect_to);
}

/* "HOST:PORT:HOST:PORT", for the target's own place alone: a redirect leads where it says. */
static bool plan_address(struct easy *easy)
{
    struct detour *detour = easy->detour;
    uint16_t port = curl_options_port(&easy->options);
    struct shim_request request;
    char *entry;

    if (!shim_request_of_url(span_str(detour->url), &request))
        return false;
    if (port > 0)
        request.port = port;
    if (asprintf(&entry, "%.*s:%u:%s", (int)request.host.len, request.host.ptr, request.port,
                 detour->way.address) < 0)
        return false;
    detour->connect_to = calloc(1, sizeof *detour->connect_to);
    if (detour->connect_to)
        detour->connect_to->data = entry;
    else
        free(entry);
    return detour->connect_to != NULL;
}

/* What is left of the caller's time for all of it; 0: it sets none; -1: none. */
static long time_left_ms(const struct easy *easy)
{
    long timeout_ms = curl_options_timeout_ms(&easy->options);

    if (timeout_ms == 0)
        return 0;
    uint64_t spent_ms = (shim_mono_ns() - easy->began_ns) / 1000000;
    return (uint64_t)timeout_ms > spent_ms ? timeout_ms - (long)spent_ms : -1;
}

/* How long the next transfer may take. */
static void tell_time(struct easy *easy)
{
    struct detour *detour = easy->detour;
    long time_ms = detour->follows ? time_left_ms(easy) : curl_options_timeout_ms(&easy->options);

    shim_detour_timeout(&detour->way, time_ms > 0 ? (uint64_t)time_ms : 0);
}

void curl_detour_override_time(struct easy *easy)
{
    long left_ms = easy->detour && easy->detour->follows ? time_left_ms(easy) : 0;

    if (left_ms != 0)
        curl_call_override_number(easy, SHADOW_TIMEOUT_MS, left_ms > 0 ? left_ms : 1);
}

/* False: no memory for it; the handle is as it was. */
static bool go(struct easy *easy)
{
    struct detour *detour = easy->detour;
    char *errors = easy->options.value[SHADOW_ERRORBUFFER].pointer;

    if (detour->way.url && !override_url(easy)) {
        curl_call_put_back(easy);
        return false;
    }
    if (detour->way.url)
        override_place(easy);
    else
        override_address(easy);
    curl_options_guard(&easy->options, SHADOW_REQUEST_TARGET); /* as planned, both */
    curl_options_guard(&easy->options, SHADOW_CONNECT_ONLY);
    curl_detour_override_request(easy);
    curl_detour_override_time(easy);
    if (errors) /* of a transfer that the application never learns of */
        errors[0] = '\0';
    detour->going = true;
    easy->active = &detour->way.call;
    curl_call_prepare(easy);
    return true;
}

static const char *plan(struct easy *easy)
{
    if (easy->options.value[SHADOW_CONNECT_ONLY].number)
        return "it is a bare connection";
    if (easy->options.value[SHADOW_REQUEST_TARGET].string)
        return "its request target is the application's own";
    if (easy->detour->way.address && !plan_address(easy))
        return "no memory";
    return curl_detour_plan_request(easy);
}

/* --- the chain ------------------------------------------------------------------------------ */

static bool begin(struct easy *easy, bool refused)
{
    struct detour *detour = calloc(1, sizeof *detour);
    char *owned = NULL;
    const char *url = detour ? curl_url_of(easy, &owned) : NULL;

    if (url && (detour->url = owned ? owned : strdup(url)) &&
        (detour->method = strdup(curl_options_method(&easy->options))) &&
        shim_detour_begin(&detour->way, &easy->call, span_str(detour->method),
                          span_str(detour->url), curl_options_port(&easy->options))) {
        detour->refused = refused;
        detour->follows = !refused || easy->body_shown > 0;
        easy->detour = detour;
        curl_detour_show_body(easy);
        return true;
    }
    if (detour) {
        free(detour->url);
        free(detour->method);
    }
    free(detour);
    return false;
}

static bool try_candidates(struct easy *easy)
{
    struct shim_detour *way = &easy->detour->way;

    easy->active = &easy->call;
    tell_time(easy);
    while (curl_detour_drop_request(easy), shim_detour_next(way)) {
        const char *why_not = plan(easy);
        if (why_not) {
            shim_detour_skip(way, why_not);
        } else if (shim_detour_admit(way) == SHIM_ADMITTED) {
            if (go(easy))
                return true;
            shim_detour_skip(way, "no memory");
        }
    }
    return false;
}

bool curl_detour_next(struct easy *easy)
{
    return (easy->detour || begin(easy, true)) && try_candidates(easy);
}

/* CURLSSLOPT_EARLYDATA, since 8.11: the handshake carries a request. */
#define EARLY_DATA (1L << 6)

/* Was the host of the application's own call not to be reached? Whether it counts is the door's to
 * say. */
static bool failed_to_connect(const struct easy *easy, const struct call_end *end)
{
    if (end->kind == END_HANDSHAKE)
        return !(easy->options.value[SHADOW_SSL_OPTIONS].number & EARLY_DATA);
    return end->kind == END_CONNECT || (end->kind == END_TIMEOUT && end->phase < PHASE_WAITING);
}

/* May another place have it: did it end, and not by the application's will, before a byte of any
 * request went out, that of a redirect's first included? Of a fallback anything that kept it from
 * that will do. */
static bool goes_on(const struct easy *easy, const struct call_end *end)
{
    if (end->byte_received || curl_facts_sent(easy) || end->kind == END_ABORTED)
        return false;
    return curl_detour_is_going(easy) ||
           (shim_admitted(easy->active) && failed_to_connect(easy, end));
}

bool curl_detour_may_fail_over(const struct easy *easy)
{
    return easy->fails_over || curl_detour_is_going(easy);
}

bool curl_detour_fail_over(struct easy *easy, CURLcode result)
{
    if (result == CURLE_OK || !curl_detour_may_fail_over(easy))
        return false;
    struct call_end end = curl_facts_end(easy, result);
    if (!goes_on(easy, &end))
        return false;
    shim_settle(easy->active, &end);
    if (curl_detour_is_going(easy))
        shim_detour_skip(&easy->detour->way, easy->real->easy_strerror(result));
    curl_call_put_back(easy);
    if (!easy->detour && !begin(easy, false))
        return false;
    easy->detour->follows = true;
    if (time_left_ms(easy) >= 0 && try_candidates(easy))
        return true;
    if (!easy->detour->refused)
        return false;
    curl_call_give_up(easy);
    return true;
}

void curl_detour_leave(struct easy *easy)
{
    struct detour *detour = easy->detour;
    const char *effective = NULL;

    if (!curl_detour_is_going(easy))
        return;
    detour->going = false;
    curl_detour_put_part_back(easy);
    easy->rerouted = detour->way.url != NULL;
    if (!easy->rerouted)
        return;
    easy->real->easy_getinfo(easy->handle, CURLINFO_EFFECTIVE_URL, &effective);
    free(easy->answered_url);
    easy->answered_url = effective ? strdup(effective) : NULL;
}

void curl_detour_end(struct easy *easy)
{
    struct detour *detour = easy->detour;

    if (!detour)
        return;
    curl_detour_drop_request(easy);
    easy->detour = NULL;
    easy->active = &easy->call;
    shim_detour_end(&detour->way);
    free(detour->pulled);
    free(detour->fields);
    free(detour->method);
    free(detour->url);
    explicit_bzero(detour, sizeof *detour); /* a key, perhaps */
    free(detour);
}
