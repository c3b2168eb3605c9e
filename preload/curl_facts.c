/*
 * curl_facts.c - how a transfer ended, in the door's words. The rules that judge it are in
 * shim/http/outcome.c; here is only what libcurl's codes and getinfo mean.
 */
#include "curl_call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t curl_facts_now(void)
{
    struct timespec ts = {0, 0};

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static long info_long(const struct easy *easy, CURLINFO info)
{
    long value = 0;

    return easy->real->easy_getinfo(easy->handle, info, &value) == CURLE_OK ? value : 0;
}

static uint64_t info_us(const struct easy *easy, CURLINFO info)
{
    curl_off_t value = 0;

    return easy->real->easy_getinfo(easy->handle, info, &value) == CURLE_OK && value > 0
               ? (uint64_t)value
               : 0;
}

/* --- proxies
 * -------------------------------------------------------------------------------------- */

static const char *environment_proxy(const char *scheme)
{
    static const char *const names[][4] = {
        {"http_proxy", "all_proxy", "ALL_PROXY",
         NULL}, /* HTTP_PROXY: a CGI trap, libcurl skips it */
        {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"},
    };
    const char *value = NULL;

    for (unsigned i = 0; i < 4 && !(value && *value); i++) {
        const char *name = names[strcasecmp(scheme, "https") == 0][i];
        value = name ? getenv(name) : NULL;
    }
    return value;
}

/* Is the host in a no_proxy list ("*", names, domains)? */
static bool is_exempt(struct span host, const char *list)
{
    if (!list)
        return false;
    while (*list) {
        size_t len = strcspn(list, ", ");
        struct span item = span_of(list, len);
        list += len + strspn(list + len, ", ");
        while (item.len > 0 && item.ptr[0] == '.')
            item = span_skip(item, 1);
        if (span_eq(item, SPAN_LIT("*")))
            return true;
        if (item.len == 0 || item.len > host.len)
            continue;
        struct span tail = span_skip(host, host.len - item.len);
        if (span_ieq(tail, item) &&
            (tail.len == host.len || host.ptr[host.len - tail.len - 1] == '.'))
            return true;
    }
    return false;
}

/* Does the way to the host lead through a proxy? Its troubles are not the provider's. */
static bool is_proxied(struct easy *easy)
{
    const struct shadow_value *proxy = &easy->options.value[SHADOW_PROXY];
    const struct shadow_value *exempt = &easy->options.value[SHADOW_NOPROXY];
    struct shim_request request = {.path = SPAN_NONE};
    char *owned;
    const char *url = curl_call_url(easy, &owned);
    char scheme[8] = "";
    bool proxied = false;

    if (url && shim_request_of_url(span_str(url), &request) && request.scheme.len < sizeof scheme) {
        const char *list = exempt->string;
        memcpy(scheme, request.scheme.ptr, request.scheme.len);
        if (!list && !(list = getenv("no_proxy")))
            list = getenv("NO_PROXY");
        const char *used = proxy->string ? proxy->string : environment_proxy(scheme);
        proxied = used && *used && !is_exempt(request.host, list);
        if (easy->options.value[SHADOW_PRE_PROXY].string)
            proxied = true;
    }
    free(owned);
    return proxied;
}

/* --- how far it came
 * ------------------------------------------------------------------------------- */

static enum call_phase phase_of(const struct easy *easy, long status)
{
    if (status >= 200)
        return PHASE_BODY;
    if (info_us(easy, CURLINFO_PRETRANSFER_TIME_T) > 0)
        return PHASE_WAITING;
    return info_us(easy, CURLINFO_CONNECT_TIME_T) > 0 ? PHASE_HANDSHAKE : PHASE_CONNECTING;
}

/* It waited in the multi's queue, or for its name, and never had a socket. */
static bool never_connected(const struct easy *easy)
{
    return info_us(easy, CURLINFO_NAMELOOKUP_TIME_T) == 0 &&
           info_us(easy, CURLINFO_CONNECT_TIME_T) == 0 &&
           info_us(easy, CURLINFO_PRETRANSFER_TIME_T) == 0;
}

static bool redirected_away(struct easy *easy)
{
    struct shim_request first, last;
    const char *effective = NULL;
    bool away = false;

    if (info_long(easy, CURLINFO_REDIRECT_COUNT) == 0)
        return false;
    char *owned;
    const char *url = curl_call_url(easy, &owned);
    easy->real->easy_getinfo(easy->handle, CURLINFO_EFFECTIVE_URL, &effective);
    if (url && effective && shim_request_of_url(span_str(url), &first) &&
        shim_request_of_url(span_str(effective), &last))
        away = !span_ieq(first.host, last.host) || first.port != last.port;
    free(owned);
    return away;
}

/* --- what the codes mean
 * --------------------------------------------------------------------------- */

/* Local trouble as the operating system names it (DESIGN, Outcomes). */
static bool is_local_errno(long number)
{
    switch (number) {
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

static enum call_end_kind connect_failure(struct easy *easy)
{
    long number = info_long(easy, CURLINFO_OS_ERRNO);

    /* 0: connect() was never asked; there was no descriptor, or a callback gave none. */
    return number == 0 || is_local_errno(number) || is_proxied(easy) ? END_LOCAL : END_CONNECT;
}

/* The exchange broke. Behind a proxy that has not let us through yet it is the proxy's doing. */
static enum call_end_kind broken(struct easy *easy, long status)
{
    long tunnel = info_long(easy, CURLINFO_HTTP_CONNECTCODE);

    if (status >= 200)
        return END_BROKEN;
    if (tunnel != 0)
        return tunnel / 100 == 2 ? END_BROKEN : END_LOCAL;
    return is_proxied(easy) ? END_LOCAL : END_BROKEN;
}

/*
 * The kinds by code, in three groups; what is in none is local trouble (URL and option errors,
 * certificates, memory, interfaces, other protocols): neutral.
 */
static enum call_end_kind kind_of(struct easy *easy, CURLcode result, long status)
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
        return status >= 100 ? END_COMPLETE : END_LOCAL;
    case CURLE_COULDNT_CONNECT:
        return connect_failure(easy);
    case CURLE_SSL_CONNECT_ERROR: /* reset, closed or garbled while TLS came up */
        return END_HANDSHAKE;
    case CURLE_OPERATION_TIMEDOUT:
        return never_connected(easy) ? END_UNSENT : END_TIMEOUT;
    case CURLE_WRITE_ERROR:
    case CURLE_READ_ERROR:
    case CURLE_ABORTED_BY_CALLBACK:
        return END_ABORTED;
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_HTTP3:
    case CURLE_QUIC_CONNECT_ERROR:
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_CHUNK_FAILED:
    case CURLE_UNSUPPORTED_PROTOCOL: /* a reply that is no HTTP (1 with HTTP09 off) */
        return broken(easy, status);
    default:
        return END_LOCAL;
    }
}

/* From the connect on; before it there was only the queue and the name. */
static uint64_t age_of(const struct easy *easy, uint64_t total_ns)
{
    uint64_t lookup = info_us(easy, CURLINFO_NAMELOOKUP_TIME_T) * 1000;

    return total_ns > lookup ? total_ns - lookup : 0;
}

static struct call_end end_of(struct easy *easy, enum call_end_kind kind, long status,
                              uint64_t total_ns)
{
    uint64_t retry_after = info_us(easy, CURLINFO_RETRY_AFTER); /* s */

    return (struct call_end){
        .kind = kind,
        .phase = phase_of(easy, status),
        .status =
            (uint16_t)(status >= 101 && status < 1000 && status != 102 && status != 103 ? status
                                                                                        : 0),
        .byte_received = status > 0,
        .paused = easy->paused,
        .redirected_away = redirected_away(easy),
        .age_ns = age_of(easy, total_ns),
        .retry_after_ms =
            retry_after < UINT32_MAX / 1000 ? (uint32_t)retry_after * 1000 : UINT32_MAX,
    };
}

struct call_end curl_facts_end(struct easy *easy, CURLcode result)
{
    long status = info_long(easy, CURLINFO_RESPONSE_CODE);

    return end_of(easy, kind_of(easy, result, status), status,
                  info_us(easy, CURLINFO_TOTAL_TIME_T) * 1000);
}

/* libcurl's own total is as old as its last step; ours is not. */
struct call_end curl_facts_abandoned(struct easy *easy)
{
    /* Nothing ran since it was added: what getinfo tells is of the transfer before. */
    if (easy->multi && easy->added_round == easy->multi->rounds)
        return (struct call_end){.kind = END_UNSENT};
    long status = info_long(easy, CURLINFO_RESPONSE_CODE);
    uint64_t total = curl_facts_now() - easy->started_ns;

    return end_of(easy, never_connected(easy) ? END_UNSENT : END_ABORTED, status, total);
}
