/*
 * curl_facts.c - how a transfer ended, in the door's words. The rules that judge it are in
 * shim/http/outcome.c; here is only what libcurl's codes and getinfo mean.
 */
#include "curl_call.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- what libcurl tells ------------------------------------------------------------------- */

long curl_facts_long(const struct easy *easy, CURLINFO info)
{
    long value = 0;

    return easy->real->easy_getinfo(easy->handle, info, &value) == CURLE_OK ? value : 0;
}

uint64_t curl_facts_offset(const struct easy *easy, CURLINFO info)
{
    curl_off_t value = 0;

    return easy->real->easy_getinfo(easy->handle, info, &value) == CURLE_OK && value > 0
               ? (uint64_t)value
               : 0;
}

/* Did the transfer end as HTTP lets it end, with a head that was the last one? */
static bool ended_by_head(CURLcode result)
{
    return result == CURLE_OK || result == CURLE_HTTP_RETURNED_ERROR ||
           result == CURLE_TOO_MANY_REDIRECTS;
}

/* libcurl's RESPONSE_CODE is that of the last head, which need not be the final one: a 3xx that was
 * followed, a 401 that was answered, a 1xx. */
static uint16_t final_status(const struct easy *easy, long status, CURLcode result)
{
    long auth = easy->options.value[SHADOW_HTTPAUTH].number;

    if (status != 101 && (status < 200 || status > 999))
        return 0;
    if (ended_by_head(result))
        return (uint16_t)status;
    if (status / 100 == 3 && curl_facts_long(easy, CURLINFO_REDIRECT_COUNT) > 0)
        return 0;
    if (status == 401 && (auth & ~(long)CURLAUTH_BASIC) != 0)
        return 0;
    return (uint16_t)status;
}

/* --- how far it came ---------------------------------------------------------------------- */

/* Is there a connection, new or kept? Since 8.21 PRETRANSFER_TIME is told of a failed connect too.
 */
static bool is_connected(const struct easy *easy)
{
    return curl_facts_offset(easy, CURLINFO_CONNECT_TIME_T) > 0 ||
           curl_facts_long(easy, CURLINFO_LOCAL_PORT) > 0;
}

static enum call_phase phase_of(const struct easy *easy, uint16_t status)
{
    if (status != 0)
        return PHASE_BODY;
    if (curl_facts_offset(easy, CURLINFO_PRETRANSFER_TIME_T) > 0 && is_connected(easy))
        return PHASE_WAITING;
    return curl_facts_offset(easy, CURLINFO_CONNECT_TIME_T) > 0 ? PHASE_HANDSHAKE
                                                                : PHASE_CONNECTING;
}

/* It waited in the multi's queue, or for its name, and never had a socket. */
static bool never_connected(const struct easy *easy)
{
    return curl_facts_offset(easy, CURLINFO_NAMELOOKUP_TIME_T) == 0 &&
           curl_facts_offset(easy, CURLINFO_CONNECT_TIME_T) == 0 &&
           curl_facts_offset(easy, CURLINFO_PRETRANSFER_TIME_T) == 0;
}

/* Until a proxy has let us through, all trouble is between it and us. One for plain http never says
 * that it did: before the head it may be its doing that the exchange broke. */
static bool at_the_proxy(const struct easy *easy, enum call_end_kind kind, enum call_phase phase)
{
    long tunnel = curl_facts_long(easy, CURLINFO_HTTP_CONNECTCODE);

    if (tunnel != 0)
        return tunnel / 100 != 2;
    return phase < (kind == END_BROKEN ? PHASE_BODY : PHASE_WAITING) && curl_proxy_used(easy);
}

bool curl_facts_redirected_away(const struct easy *easy)
{
    struct shim_request first, last;
    const char *effective = NULL;
    char *owned;
    bool away = false;

    if (easy->options.value[SHADOW_FOLLOWLOCATION].number == 0 ||
        curl_facts_long(easy, CURLINFO_REDIRECT_COUNT) == 0)
        return false;
    const char *url = curl_url_under_way(easy, &owned);
    easy->real->easy_getinfo(easy->handle, CURLINFO_EFFECTIVE_URL, &effective);
    if (url && effective && shim_request_of_url(span_str(url), &first) &&
        shim_request_of_url(span_str(effective), &last)) {
        uint16_t port = curl_options_port(&easy->options);
        if (port > 0 && !easy->options.value[SHADOW_PORT].overridden)
            first.port = port;
        away = !span_ieq(first.host, last.host) || first.port != last.port;
    }
    free(owned);
    return away;
}

/* --- what the codes mean ------------------------------------------------------------------ */

/* Local trouble as the operating system names it (DESIGN, Outcomes). 0: it was never asked to
 * connect, there was no socket to be had. */
static bool is_local_errno(long number)
{
    switch (number) {
    case 0:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
    case EACCES:
    case EPERM:
    case EADDRNOTAVAIL:
    case EADDRINUSE:
    case EAFNOSUPPORT:
    case ENETUNREACH:
    case ENETDOWN:
    case EHOSTUNREACH:
        return true;
    default:
        return false;
    }
}

/*
 * Error 35 says only that TLS did not come up. Closed or reset by the peer is the host's failure; a
 * disagreement on versions or ciphers is the client's own matter, which must not open the host's
 * breaker for everyone. Only libcurl's words tell them apart: of OpenSSL a system error (its name
 * without "error:…"), of GnuTLS the pull function or an ended connection.
 */
static bool handshake_was_cut(const struct easy *easy)
{
    static const char *const words[] = {
        "unexpected eof", "SSL_ERROR_SYSCALL", "reset",         "closed",
        "terminated",     "pull function",     "push function", "internal error",
    };
    const char *said = easy->options.value[SHADOW_ERRORBUFFER].pointer;

    if (!said)
        said = easy->errors;
    if (strstr(said, "SSL_connect: ") && !strstr(said, "error:"))
        return true;
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasestr(said, words[i]))
            return true;
    return false;
}

/*
 * By code; what is not named is local trouble (URL and option errors, DNS, certificates, memory,
 * interfaces, proxies, other protocols): neutral.
 */
static enum call_end_kind kind_of(const struct easy *easy, CURLcode result, uint16_t status)
{
    switch ((int)result) {
    case CURLE_OK:
    case CURLE_HTTP_RETURNED_ERROR:  /* FAILONERROR: the head says all */
    case CURLE_TOO_MANY_REDIRECTS:   /* the last head is a 3xx that was not followed */
    case CURLE_BAD_CONTENT_ENCODING: /* the client's own decoder; the message had come */
    case CURLE_LOGIN_DENIED:
    case CURLE_FILESIZE_EXCEEDED:
    case CURLE_SEND_FAIL_REWIND:
    case CURLE_RANGE_ERROR:
        return status != 0 ? END_COMPLETE : END_LOCAL;
    case CURLE_QUIC_CONNECT_ERROR:
        return END_CONNECT;
    case CURLE_COULDNT_CONNECT:
        return is_local_errno(curl_facts_long(easy, CURLINFO_OS_ERRNO)) ? END_LOCAL : END_CONNECT;
    case CURLE_SSL_CONNECT_ERROR:
        return handshake_was_cut(easy) ? END_HANDSHAKE : END_LOCAL;
    case CURLE_OPERATION_TIMEDOUT:
        return never_connected(easy) ? END_UNSENT : END_TIMEOUT;
    case CURLE_WRITE_ERROR:
    case CURLE_READ_ERROR:
    case CURLE_ABORTED_BY_CALLBACK:
        return END_ABORTED;
    case CURLE_UNSUPPORTED_PROTOCOL: /* a reply that is no HTTP, if a request was sent at all */
        return curl_facts_offset(easy, CURLINFO_PRETRANSFER_TIME_T) == 0  ? END_LOCAL
               : curl_facts_long(easy, CURLINFO_RESPONSE_CODE) / 100 == 3 ? END_COMPLETE
                                                                          : END_BROKEN;
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_HTTP3:
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_CHUNK_FAILED:
        return END_BROKEN;
    default:
        return END_LOCAL;
    }
}

static enum call_end_kind behind_the_proxy(const struct easy *easy, enum call_end_kind kind,
                                           enum call_phase phase)
{
    switch (kind) {
    case END_CONNECT:
    case END_HANDSHAKE:
    case END_BROKEN:
    case END_TIMEOUT:
    case END_ABORTED:
        return at_the_proxy(easy, kind, phase) ? END_LOCAL : kind;
    default:
        return kind;
    }
}

#define INFO_QUEUE_TIME ((CURLINFO)(CURLINFO_OFF_T + 65)) /* CURLINFO_QUEUE_TIME_T, since 8.6.0 */

uint64_t curl_facts_behind_queue(const struct easy *easy, uint64_t total_ns)
{
    uint64_t queued_ns;

    if (easy->real->version >= 0x080600) {
        queued_ns = curl_facts_offset(easy, INFO_QUEUE_TIME) * 1000;
        return total_ns > queued_ns ? total_ns - queued_ns : 0;
    }
    if (!easy->multi || !easy->multi->queues)
        return total_ns;
    return easy->left_queue_ns ? clock_system.mono_ns() - easy->left_queue_ns +
                                     curl_facts_offset(easy, CURLINFO_NAMELOOKUP_TIME_T) * 1000
                               : 0;
}

/* From the connect on; before it there were only the queue and the name. */
static uint64_t age_of(const struct easy *easy, uint64_t total_ns)
{
    uint64_t behind = curl_facts_behind_queue(easy, total_ns),
             name = curl_facts_offset(easy, CURLINFO_NAMELOOKUP_TIME_T) * 1000;

    return behind > name ? behind - name : 0;
}

bool curl_facts_sent(const struct easy *easy)
{
    return curl_facts_long(easy, CURLINFO_REQUEST_SIZE) > 0;
}

bool curl_facts_left_queue(const struct easy *easy)
{
    return !never_connected(easy);
}

/* struct curl_header of libcurl (header.h), CURLH_HEADER, and "of the last request". */
struct header {
    const char *name, *value;
    size_t amount, index;
    unsigned origin;
    void *anchor;
};
#define OF_THE_HEAD         1u
#define OF_THE_LAST_REQUEST (-1)

static struct span header_of(const struct easy *easy, const char *name)
{
    void *found = NULL;

    if (!easy->real->easy_header ||
        easy->real->easy_header(easy->handle, name, 0, OF_THE_HEAD, OF_THE_LAST_REQUEST, &found) !=
            0 ||
        !found)
        return SPAN_NONE;
    return span_str(((const struct header *)found)->value);
}

/* libcurl's own reading knows Retry-After only, in whole seconds. */
static uint32_t retry_after_ms(const struct easy *easy)
{
    const struct shim_retry said = {
        .ms = header_of(easy, "retry-after-ms"),
        .amz = header_of(easy, "x-amz-retry-after"),
        .after = header_of(easy, "retry-after"),
    };
    uint64_t seconds;

    if (said.ms.ptr || said.amz.ptr || said.after.ptr)
        return shim_retry_after_ms(&said);
    seconds = curl_facts_offset(easy, CURLINFO_RETRY_AFTER);
    return seconds < UINT32_MAX / 1000 ? (uint32_t)seconds * 1000 : UINT32_MAX;
}

static struct call_end end_of(const struct easy *easy, enum call_end_kind kind, uint16_t status,
                              uint64_t total_ns)
{
    enum call_phase phase = phase_of(easy, status);
    struct call_end end = {
        .kind = behind_the_proxy(easy, kind, phase),
        .phase = phase,
        .status = status,
        .byte_received = status != 0 || curl_facts_long(easy, CURLINFO_RESPONSE_CODE) > 0,
        .paused = easy->paused,
        .redirected_away = curl_facts_redirected_away(easy),
        .age_ns = age_of(easy, total_ns),
        .retry_after_ms = status >= 400 ? retry_after_ms(easy) : 0,
    };

    curl_slow_tell(easy, &end, total_ns);
    return end;
}

struct call_end curl_facts_end(struct easy *easy, CURLcode result)
{
    long status = curl_facts_long(easy, CURLINFO_RESPONSE_CODE);
    uint16_t last;

    if (result == CURLE_OK && status / 100 == 2) /* the healthy path: a good head has no age */
        return (struct call_end){.kind = END_COMPLETE,
                                 .phase = PHASE_BODY,
                                 .status = (uint16_t)status,
                                 .byte_received = true,
                                 .redirected_away = curl_facts_redirected_away(easy),
                                 .first_byte_ns = curl_slow_first_byte(easy)};
    last = final_status(easy, status, result);
    return end_of(easy, kind_of(easy, result, last), last,
                  curl_facts_offset(easy, CURLINFO_TOTAL_TIME_T) * 1000);
}

/* libcurl's own total is as old as its last step; ours is not. */
struct call_end curl_facts_abandoned(struct easy *easy)
{
    /* Nothing ran since it was added: what getinfo tells is of the transfer before. */
    if (easy->multi && easy->added_round == easy->multi->rounds)
        return (struct call_end){.kind = END_UNSENT};
    uint16_t status = final_status(easy, curl_facts_long(easy, CURLINFO_RESPONSE_CODE),
                                   CURLE_ABORTED_BY_CALLBACK);

    return end_of(easy, never_connected(easy) ? END_UNSENT : END_ABORTED, status,
                  clock_system.mono_ns() - easy->started_ns);
}
