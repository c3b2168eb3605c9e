/*
 * curl_proxy.c - does the way to a host lead through a proxy? As libcurl decides it, from the
 * options and the environment. Asked only when a connection failed: a proxy's troubles are not the
 * provider's.
 */
#include "curl_call.h"

#include <stdlib.h>
#include <string.h>

static const char *first_set(const char *const names[], unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return value;
    }
    return NULL;
}

static const char *environment_proxy(bool https)
{
    /* HTTP_PROXY in capitals is what a CGI client can set: libcurl skips it. */
    static const char *const for_http[] = {"http_proxy", "all_proxy", "ALL_PROXY"};
    static const char *const for_https[] = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};

    return https ? first_set(for_https, 4) : first_set(for_http, 3);
}

static const char *exempt_list(const struct curl_options *options)
{
    static const char *const names[] = {"no_proxy", "NO_PROXY"};
    const char *list = options->value[SHADOW_NOPROXY].string;

    return list ? list : first_set(names, 2);
}

/* Is the host in a no_proxy list ("*", names, domains)? */
static bool is_exempt(struct span host, const char *list)
{
    while (list && *list) {
        size_t len = strcspn(list, ", ");
        struct span item = span_of(list, len);
        list += len + strspn(list + len, ", ");
        if (item.len > 0 && item.ptr[0] == '.')
            item = span_skip(item, 1);
        if (span_eq(item, SPAN_LIT("*")))
            return true;
        if (item.len == 0 || item.len > host.len)
            continue;
        struct span tail = span_skip(host, host.len - item.len);
        if (span_ieq(tail, item) && (tail.len == host.len || tail.ptr[-1] == '.'))
            return true;
    }
    return false;
}

bool curl_proxy_used(const struct easy *easy)
{
    const struct curl_options *options = &easy->options;
    const char *proxy = options->value[SHADOW_PROXY].string;
    struct shim_request request = {.path = SPAN_NONE};
    char *owned;
    const char *url = curl_url_of(easy, &owned);
    bool used = false;

    if (url && shim_request_of_url(span_str(url), &request) &&
        !is_exempt(request.host, exempt_list(options))) {
        if (!proxy)
            proxy = environment_proxy(curl_url_is_https(url));
        used = (proxy && *proxy) || options->value[SHADOW_PRE_PROXY].string;
    }
    free(owned);
    return used;
}
