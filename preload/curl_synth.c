/*
 * curl_synth.c - the synthetic answer, made by libcurl itself (FIELD-NOTES 2.4).
 *
 * The handle's URL becomes plain http, its connection goes "to" a numeric address (no DNS), libcurl
 * is handed one end of a socketpair that already holds the whole response, and every option that
 * could lead elsewhere is neutralised. So callbacks, getinfo, FAILONERROR and headers behave as for
 * a server's own 503. The socketpair is taken only while libcurl has the transfer connected: a
 * thousand refused handles in a multi cost no descriptor before their turn.
 */
#include "curl_call.h"
#include "guard.h"
#include "synth_mark.h"
#include "synth_pair.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* --- the connection ------------------------------------------------------------------------ */

/* Only these two call connect() on what they were told is connected. */
static bool needs_mark(const struct easy *easy)
{
    return easy->real->version == 0x075800 || easy->real->version == 0x075801;
}

/* The pair of the answer under way. Shared by the handle that prepared the answer and by libcurl's
 * connection, which may close after the handle is done with it: whoever comes last frees it. */
struct synth_socket {
    struct synth_pair pair; /* while `connected`: the far end stays open until libcurl closes */
    bool connected;
    bool abandoned; /* by the handle */
    bool reusable;  /* libcurl ends by the Content-Length: the pair need not be shut down */
};

/* Puts the whole response in; it fits the socket's buffer by far. */
static bool fill_pair(const struct easy *easy, const struct synth_socket *synth)
{
    char response[SHIM_RESPONSE_MAX];
    size_t len = shim_response(easy->refuser, response, sizeof response, easy->options.no_body);

    return send(synth->pair.far, response, len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len &&
           (synth->reusable || shutdown(synth->pair.far, SHUT_WR) == 0) &&
           (!needs_mark(easy) || synth_mark_set(synth->pair.near));
}

static curl_socket_t take_answer(const struct easy *easy)
{
    struct synth_socket *synth = easy->socket;

    /* A bare connection is what is refused to CONNECT_ONLY. And never a second one. */
    if (easy->options.value[SHADOW_CONNECT_ONLY].number || !synth || synth->connected ||
        !synth_pair_take(&synth->pair))
        return CURL_SOCKET_BAD;
    /* In a multi the application watches descriptors itself: there each answer has its own. */
    synth->reusable = !easy->multi;
    synth->connected = fill_pair(easy, synth);
    if (synth->connected)
        return synth->pair.near; /* libcurl's from here on */
    synth_pair_close(&synth->pair);
    return CURL_SOCKET_BAD;
}

static curl_socket_t open_answer(void *data, curlsocktype purpose, struct curl_sockaddr *address)
{
    curl_socket_t fd;

    (void)purpose;
    GUARD_ERRNO(fd = take_answer(data));
    if (needs_mark(data))
        address->addr.sa_family = AF_UNIX;
    return fd;
}

static void close_pair(struct synth_socket *synth)
{
    synth->connected = false;
    if (synth->reusable)
        synth_pair_give(&synth->pair);
    else
        synth_pair_close(&synth->pair);
    if (synth->abandoned)
        free(synth);
}

static int close_answer(void *data, curl_socket_t fd)
{
    synth_mark_take(fd); /* when it was closed unconnected */
    GUARD_ERRNO(close_pair(data));
    return 0;
}

static int say_connected(void *data, curl_socket_t fd, curlsocktype purpose)
{
    (void)data;
    (void)fd;
    (void)purpose;
    return CURL_SOCKOPT_ALREADY_CONNECTED;
}

/* The application's body is not read for an answer of ours. Pausing, not ending: an early end would
 * be an error where a Content-Length was announced. */
static size_t read_nothing(char *buffer, size_t size, size_t count, void *data)
{
    (void)buffer;
    (void)size;
    (void)count;
    (void)data;
    return CURL_READFUNC_PAUSE;
}

/* --- the options ---------------------------------------------------------------------------- */

/* What leads elsewhere or keeps libcurl from the answer. Options that only change the request
 * (RANGE, a PROXY line) are left: nobody reads it. */
static void neutralise_options(struct easy *easy)
{
    static const enum shadow_index indices[] = {
        SHADOW_CURLU, /* before URL: it wins over it on 8.14+ */
        SHADOW_PRE_PROXY,
        SHADOW_INTERFACE,
        SHADOW_LOCALPORT,
        SHADOW_IPRESOLVE,
        SHADOW_UNIX_SOCKET_PATH,
        SHADOW_ABSTRACT_UNIX_SOCKET,
        SHADOW_RESUME_FROM_LARGE,
        SHADOW_PREREQFUNCTION, /* it would judge a peer that is ourselves */
        SHADOW_TCP_FASTOPEN,
        SHADOW_IGNORE_CONTENT_LENGTH, /* it would wait for an end of the connection */
    };

    curl_call_neutralise(easy, indices, sizeof indices / sizeof *indices);
}

/* The destination is nobody's, and no application's: libcurl keeps what it learns of a host (that
 * it speaks no HTTP/2), and counts its connections, by where they go. */
static void override_connection(struct easy *easy)
{
    static char destination[] = "::127.255.255.254:9";
    static struct curl_slist connect_to = {.data = destination};
    const curl_opensocket_callback opensocket = open_answer;
    const curl_closesocket_callback closesocket = close_answer;
    const curl_sockopt_callback sockopt = say_connected;

    curl_call_override(easy, SHADOW_CONNECT_TO, &connect_to);
    curl_call_override(easy, SHADOW_PROXY, "");
    curl_call_override(easy, SHADOW_OPENSOCKETFUNCTION, (void *)opensocket);
    curl_call_override(easy, SHADOW_OPENSOCKETDATA, easy);
    curl_call_override(easy, SHADOW_CLOSESOCKETFUNCTION, (void *)closesocket);
    curl_call_override(easy, SHADOW_CLOSESOCKETDATA, easy->socket);
    curl_call_override(easy, SHADOW_SOCKOPTFUNCTION, (void *)sockopt);
    curl_call_override_number(easy, SHADOW_FRESH_CONNECT,
                              1); /* or a pooled connection takes the request */
    curl_call_override_number(easy, SHADOW_FORBID_REUSE, 1);
    curl_call_override_number(easy, SHADOW_TCP_NODELAY, 0); /* there is no TCP */
}

static void override_protocol(struct easy *easy)
{
    const struct shadow_value *value = easy->options.value;

    /* Unset it is HTTP/1.1 for http: URLs. */
    if (value[SHADOW_HTTP_VERSION].set &&
        value[SHADOW_HTTP_VERSION].number != CURL_HTTP_VERSION_1_0)
        curl_call_override_number(easy, SHADOW_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    curl_options_allow_http(&easy->options, easy->real, easy->handle);
    if (curl_options_body(&easy->options) == BODY_READ)
        curl_read_install(easy, read_nothing, NULL);
}

/* Where memory ends the URL is one that leads nowhere either. */
static void override_url(struct easy *easy)
{
    char *owned, *own;
    const char *url = curl_url_of(easy, &owned);

    free(easy->answered_url);
    easy->answered_url = url ? strdup(url) : NULL;
    easy->answered_https = url && curl_url_is_https(url);
    own = url ? curl_url_for_answer(url, easy->options.may_have_hsts) : NULL;
    curl_call_override(easy, SHADOW_URL, own ? own : "http://" CURL_URL_NUMERIC "/");
    free(own); /* libcurl has its copy */
    free(owned);
}

void curl_synth_prepare(struct easy *easy, const struct shim_call *refuser)
{
    easy->refuser = refuser;
    easy->socket = calloc(1, sizeof *easy->socket);
    easy->synthetic = easy->answered = true;
    neutralise_options(easy);
    override_url(easy);
    override_connection(easy);
    override_protocol(easy);
}

void curl_synth_finish(struct easy *easy)
{
    struct synth_socket *synth = easy->socket;

    easy->synthetic = false;
    easy->socket = NULL;
    if (!synth)
        return;
    if (synth->connected)
        synth->abandoned = true;
    else
        free(synth);
}
