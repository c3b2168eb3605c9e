/*
 * curl_synth.c - the synthetic answer, made by libcurl itself (FIELD-NOTES 2.4).
 *
 * The handle's URL becomes plain http, its connection goes "to" a numeric address (no DNS), libcurl
 * is handed one end of a socketpair that already holds the whole response, and every option that
 * could lead elsewhere is neutralised. So callbacks, getinfo, FAILONERROR and headers behave as for
 * a server's own 503. The socketpair exists only while libcurl has the transfer connected: a
 * thousand refused handles in a multi cost no descriptor before their turn.
 */
#include "curl_call.h"
#include "guard.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- the mark for connect() --------------------------------------------------------------- */

#define MARKS 256

/* Descriptors + 1 that connect() shall answer for once; 0 = free. Set just before libcurl gets the
 * descriptor, taken by the connect hook, removed before the descriptor is closed: a stale one would
 * break the next connection with that number. `mark_count` lets the hook pass at the cost of one
 * load. */
static _Atomic int marks[MARKS];
static atomic_uint mark_count;

static bool set_mark(int fd)
{
    for (unsigned i = 0; i < MARKS; i++) {
        int expected = 0;
        if (atomic_compare_exchange_strong(&marks[i], &expected, fd + 1)) {
            atomic_fetch_add(&mark_count, 1);
            return true;
        }
    }
    return false;
}

bool curl_synth_take_mark(int fd)
{
    if (atomic_load_explicit(&mark_count, memory_order_relaxed) == 0 || fd < 0)
        return false;
    for (unsigned i = 0; i < MARKS; i++) {
        int expected = fd + 1;
        if (atomic_compare_exchange_strong(&marks[i], &expected, 0)) {
            atomic_fetch_sub(&mark_count, 1);
            return true;
        }
    }
    return false;
}

/* Only these two call connect() on what they were told is connected. */
static bool needs_mark(const struct easy *easy)
{
    return easy->real->version == 0x075800 || easy->real->version == 0x075801;
}

/* --- the connection ------------------------------------------------------------------------ */

/* Our end of a socketpair. Shared by the handle that prepared the answer and by libcurl's
 * connection, which may close after the handle is done with it: whoever comes last frees it. */
struct synth_socket {
    int peer; /* open until libcurl closes its own end, or its sending would fail */
    bool connected;
    bool abandoned; /* by the handle */
};

/* The program may have closed 0, 1 and 2: what it writes there must not meet our pair. */
static bool lift_above_stdio(int *fd)
{
    if (*fd > STDERR_FILENO)
        return true;
    int lifted = fcntl(*fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(*fd);
    *fd = lifted;
    return lifted >= 0;
}

static void close_pair(const int pair[2])
{
    for (unsigned i = 0; i < 2; i++)
        if (pair[i] >= 0)
            close(pair[i]);
}

/* A pair whose second end holds the whole response; it fits the socket's buffer by far. */
static bool open_pair(const struct easy *easy, int pair[2])
{
    char response[SHIM_RESPONSE_MAX];
    size_t len = shim_response(&easy->call, response, sizeof response, easy->options.no_body);

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return false;
    bool first = lift_above_stdio(&pair[0]), second = lift_above_stdio(&pair[1]);
    if (first && second &&
        send(pair[1], response, len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len &&
        shutdown(pair[1], SHUT_WR) == 0 && (!needs_mark(easy) || set_mark(pair[0])))
        return true;
    close_pair(pair);
    return false;
}

static curl_socket_t take_answer(const struct easy *easy)
{
    struct synth_socket *synth = easy->socket;
    int pair[2];

    /* A bare connection is what is refused to CONNECT_ONLY. And never a second one. */
    if (easy->options.value[SHADOW_CONNECT_ONLY].number || !synth || synth->connected ||
        !open_pair(easy, pair))
        return CURL_SOCKET_BAD;
    synth->connected = true;
    synth->peer = pair[1];
    return pair[0]; /* libcurl's from here on */
}

static curl_socket_t open_answer(void *data, curlsocktype purpose, struct curl_sockaddr *address)
{
    curl_socket_t fd;

    (void)purpose;
    (void)address;
    GUARD_ERRNO(fd = take_answer(data));
    return fd;
}

static int close_answer(void *data, curl_socket_t fd)
{
    struct synth_socket *synth = data;

    curl_synth_take_mark(fd); /* when it was closed unconnected */
    GUARD_ERRNO(close(synth->peer));
    synth->connected = false;
    if (synth->abandoned)
        free(synth);
    return close(fd);
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

static void override_number(struct easy *easy, enum shadow_index index, long value)
{
    curl_options_override(&easy->options, easy->real, easy->handle, index, (void *)(intptr_t)value);
}

static void override_pointer(struct easy *easy, enum shadow_index index, void *value)
{
    curl_options_override(&easy->options, easy->real, easy->handle, index, value);
}

static void neutralise_options(struct easy *easy)
{
    static const enum shadow_index indices[] = {
        SHADOW_CURLU, /* before URL: it wins over it on 8.14+ */
        SHADOW_SOCKOPTDATA,
        SHADOW_PRE_PROXY,
        SHADOW_INTERFACE,
        SHADOW_LOCALPORT,
        SHADOW_IPRESOLVE,
        SHADOW_UNIX_SOCKET_PATH,
        SHADOW_ABSTRACT_UNIX_SOCKET,
        SHADOW_HAPROXYPROTOCOL,
        SHADOW_RESUME_FROM_LARGE,
        SHADOW_RANGE,
        SHADOW_TIMECONDITION,
        SHADOW_PREREQFUNCTION, /* it would judge a peer that is ourselves */
        SHADOW_TCP_FASTOPEN,
        SHADOW_KEEP_SENDING_ON_ERROR,
    };

    for (unsigned i = 0; i < sizeof indices / sizeof *indices; i++)
        curl_options_neutralise(&easy->options, easy->real, easy->handle, indices[i]);
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

    override_pointer(easy, SHADOW_CONNECT_TO, &connect_to);
    override_pointer(easy, SHADOW_PROXY, "");
    override_pointer(easy, SHADOW_OPENSOCKETFUNCTION, (void *)opensocket);
    override_pointer(easy, SHADOW_OPENSOCKETDATA, easy);
    override_pointer(easy, SHADOW_CLOSESOCKETFUNCTION, (void *)closesocket);
    override_pointer(easy, SHADOW_CLOSESOCKETDATA, easy->socket);
    override_pointer(easy, SHADOW_SOCKOPTFUNCTION, (void *)sockopt);
    override_number(easy, SHADOW_FRESH_CONNECT, 1); /* or a pooled connection takes the request */
    override_number(easy, SHADOW_FORBID_REUSE, 1);
    override_number(easy, SHADOW_TCP_NODELAY, 0); /* there is no TCP */
}

static void override_protocol(struct easy *easy)
{
    const struct shadow_value *value = easy->options.value;
    const curl_read_callback read = read_nothing;

    /* Unset it is HTTP/1.1 for http: URLs. */
    if (value[SHADOW_HTTP_VERSION].set &&
        value[SHADOW_HTTP_VERSION].number != CURL_HTTP_VERSION_1_0)
        override_number(easy, SHADOW_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    if (value[SHADOW_PROTOCOLS].set || value[SHADOW_PROTOCOLS_STR].set) {
        if (easy->real->version >= 0x075500)
            override_pointer(easy, SHADOW_PROTOCOLS_STR, "http,https");
        else
            override_number(easy, SHADOW_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
    }
    if (curl_options_body(&easy->options) == BODY_READ) {
        override_pointer(easy, SHADOW_READFUNCTION, (void *)read);
        override_pointer(easy, SHADOW_READDATA, NULL);
    }
}

/* Where memory ends the URL is one that leads nowhere either. */
static void override_url(struct easy *easy)
{
    char *owned, *own;
    const char *url = curl_url_of(easy, &owned);

    free(easy->answered_url);
    easy->answered_url = url ? curl_url_told(url) : NULL;
    easy->answered_https = url && curl_url_is_https(url);
    own = url ? curl_url_for_answer(url, easy->options.may_have_hsts) : NULL;
    override_pointer(easy, SHADOW_URL, own ? own : "http://" CURL_URL_NUMERIC "/");
    free(own); /* libcurl has its copy */
    free(owned);
}

void curl_synth_prepare(struct easy *easy)
{
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
