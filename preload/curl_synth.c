/*
 * curl_synth.c - the synthetic answer, made by libcurl itself (FIELD-NOTES 2.4).
 *
 * The handle's URL becomes a numeric http one (no DNS, no HSTS, no alt-svc), libcurl is handed one
 * end of a socketpair that already holds the whole response, and every option that could lead
 * elsewhere is neutralised. So callbacks, getinfo, FAILONERROR and headers behave as for a server's
 * own 503.
 */
#include "curl_call.h"

#include "guard.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_URL "http://127.0.0.1:9/"

/* --- the mark for connect() ---------------------------------------------------------------------
 */

#define MARKS 256

/* Descriptor + 1 in the low half, a number of its own in the high half; 0 = free. Set before
 * libcurl gets the descriptor, taken by the connect hook, removed at the end by its number: by then
 * the descriptor may be closed and another answer's. A stale mark would break the next connection
 * with that descriptor. `mark_count` lets the hook pass at the cost of one load. */
static _Atomic uint64_t marks[MARKS];
static atomic_uint mark_count;
static atomic_uint mark_numbers;

static bool drop_mark(_Atomic uint64_t *mark, uint64_t value)
{
    if (!atomic_compare_exchange_strong(mark, &value, 0))
        return false;
    atomic_fetch_sub(&mark_count, 1);
    return true;
}

/* The mark's value, 0 when there is no room. */
static uint64_t set_mark(int fd)
{
    uint64_t value = (uint64_t)atomic_fetch_add(&mark_numbers, 1) << 32 | (unsigned)(fd + 1);

    for (unsigned i = 0; i < MARKS; i++) {
        uint64_t expected = 0;
        if (atomic_compare_exchange_strong(&marks[i], &expected, value)) {
            atomic_fetch_add(&mark_count, 1);
            return value;
        }
    }
    return 0;
}

static void remove_mark(uint64_t value)
{
    for (unsigned i = 0; value && i < MARKS; i++)
        if (atomic_load_explicit(&marks[i], memory_order_relaxed) == value)
            drop_mark(&marks[i], value);
}

bool curl_synth_take_mark(int fd)
{
    if (atomic_load_explicit(&mark_count, memory_order_relaxed) == 0 || fd < 0)
        return false;
    for (unsigned i = 0; i < MARKS; i++) {
        uint64_t value = atomic_load(&marks[i]);
        if ((uint32_t)value == (unsigned)(fd + 1) && drop_mark(&marks[i], value))
            return true;
    }
    return false;
}

/* --- libcurl's callbacks -------------------------------------------------------------------------
 */

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

static void close_pair(int pair[2])
{
    for (unsigned i = 0; i < 2; i++)
        if (pair[i] >= 0)
            close(pair[i]);
}

/* A pair whose second end holds the whole response; it fits the socket's buffer by far. The peer
 * stays open, or libcurl's sending would fail. */
static bool open_pair(const struct easy *easy, int pair[2])
{
    char response[SHIM_RESPONSE_MAX];
    bool head_only = easy->options.method == METHOD_HEAD;
    size_t len = shim_response(&easy->call, response, sizeof response, head_only);

    if (len == 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return false;
    bool first = lift_above_stdio(&pair[0]), second = lift_above_stdio(&pair[1]);
    if (first && second &&
        send(pair[1], response, len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len &&
        shutdown(pair[1], SHUT_WR) == 0)
        return true;
    close_pair(pair);
    return false;
}

/* Made when libcurl asks for it: a thousand refused handles of a multi need no thousand descriptors
 * at once. Without one libcurl says CURLE_COULDNT_CONNECT, and no packet leaves either. A
 * CONNECT_ONLY handle has no use for an answer and gets that always. */
static curl_socket_t take_answer(struct easy *easy)
{
    int pair[2] = {-1, -1};

    if (easy->options.value[SHADOW_CONNECT_ONLY].number || easy->mark || !open_pair(easy, pair))
        return CURL_SOCKET_BAD;
    easy->mark = set_mark(pair[0]);
    if (!easy->mark) {
        close_pair(pair);
        return CURL_SOCKET_BAD;
    }
    easy->peer_fd = pair[1];
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

static void close_peer(struct easy *easy)
{
    if (easy->peer_fd >= 0)
        close(easy->peer_fd);
    easy->peer_fd = -1;
}

/* FORBID_REUSE: libcurl closes the connection at the end of its transfer, while the handle lives.
 */
static int close_answer(void *data, curl_socket_t fd)
{
    GUARD_ERRNO(close_peer(data));
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

/* --- prepare and finish
 * --------------------------------------------------------------------------- */

static void override_number(struct easy *easy, enum shadow_index index, long value)
{
    curl_options_override(&easy->options, easy->real, easy->handle, index, (void *)(intptr_t)value);
}

static void override_pointer(struct easy *easy, enum shadow_index index, void *value)
{
    curl_options_override(&easy->options, easy->real, easy->handle, index, value);
}

/* Whatever would lead the transfer elsewhere, or make a 503 an error of another kind. */
static void neutralise_options(struct easy *easy)
{
    static const enum shadow_index indices[] = {
        SHADOW_CURLU, /* before URL: it wins over it on 8.14+ */
        SHADOW_PORT,
        SHADOW_CONNECT_TO,
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
        SHADOW_TCP_FASTOPEN,
        SHADOW_KEEP_SENDING_ON_ERROR,
        SHADOW_PREREQFUNCTION, /* it would judge a peer that is ourselves */
    };

    for (unsigned i = 0; i < sizeof indices / sizeof *indices; i++)
        curl_options_neutralise(&easy->options, easy->real, easy->handle, indices[i]);
}

static void override_options(struct easy *easy)
{
    curl_opensocket_callback opensocket = open_answer;
    curl_closesocket_callback closesocket = close_answer;
    curl_sockopt_callback sockopt = say_connected;
    curl_read_callback read = read_nothing;

    neutralise_options(easy);
    override_pointer(easy, SHADOW_URL, ANSWER_URL);
    override_pointer(easy, SHADOW_OPENSOCKETFUNCTION, (void *)opensocket);
    override_pointer(easy, SHADOW_OPENSOCKETDATA, easy);
    override_pointer(easy, SHADOW_CLOSESOCKETFUNCTION, (void *)closesocket);
    override_pointer(easy, SHADOW_CLOSESOCKETDATA, easy);
    override_pointer(easy, SHADOW_SOCKOPTFUNCTION, (void *)sockopt);
    override_pointer(easy, SHADOW_PROXY, "");
    override_number(easy, SHADOW_FRESH_CONNECT, 1);
    override_number(easy, SHADOW_FORBID_REUSE, 1);
    override_number(easy, SHADOW_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    if (easy->options.value[SHADOW_PROTOCOLS].set ||
        easy->options.value[SHADOW_PROTOCOLS_STR].set) {
        if (easy->real->version >= 0x075500)
            override_pointer(easy, SHADOW_PROTOCOLS_STR, "http,https");
        else
            override_number(easy, SHADOW_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
    }
    if (curl_options_body(&easy->options) == BODY_READ) {
        override_pointer(easy, SHADOW_READFUNCTION, (void *)read);
        override_pointer(easy, SHADOW_READDATA, easy);
    }
}

void curl_synth_prepare(struct easy *easy)
{
    char *owned;
    const char *url = curl_call_url(easy, &owned);

    free(easy->answered_url);
    easy->answered_url = url ? strdup(url) : NULL;
    free(owned);
    easy->synthetic = true;
    easy->answered = true;
    override_options(easy);
}

void curl_synth_finish(struct easy *easy)
{
    if (!easy->synthetic)
        return;
    easy->synthetic = false;
    remove_mark(easy->mark); /* of a libcurl that did not connect() */
    easy->mark = 0;
    close_peer(easy);
}
