/*
 * curl_proxy.c - does the way to a host lead through a proxy? As libcurl decides it, from the
 * options and the environment. Asked only when a connection failed: a proxy's troubles are not the
 * provider's.
 */
#include "curl_call.h"

#include <arpa/inet.h>
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

/* --- is the host in a no_proxy list? ------------------------------------------------------------
 */

/* What libcurl's versions make of a list. */
#define PARTS_ADDRESSES 0x075600 /* from names, with networks: 10.0.0.0/8 */
#define NEEDS_COMMAS    0x080900 /* blanks separate no more */
#define READS_BITS      0x081200 /* what is no number of bits matches nothing */
#define PARTS_IPV6      0x081500 /* before, an IPv6 address was a name here */

struct address {
    int family; /* 0: none, a name */
    unsigned char bytes[16];
};

static struct address address_of(struct span text, unsigned version)
{
    struct address address = {.family = 0};
    char copy[INET6_ADDRSTRLEN];

    if (version < PARTS_ADDRESSES || text.len >= sizeof copy)
        return address;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    if (inet_pton(AF_INET, copy, address.bytes) == 1)
        address.family = AF_INET;
    else if (version >= PARTS_IPV6 && inet_pton(AF_INET6, copy, address.bytes) == 1)
        address.family = AF_INET6;
    return address;
}

static bool is_number(const char *text)
{
    return *text && !text[strspn(text, "0123456789")];
}

static bool same_bits(const unsigned char *a, const unsigned char *b, int bits)
{
    return memcmp(a, b, (size_t)bits / 8) == 0 &&
           (bits % 8 == 0 || (a[bits / 8] ^ b[bits / 8]) >> (8 - bits % 8) == 0);
}

/* Is the address that of the item, or in its network? Zero bits are all. */
static bool in_network(const struct address *address, struct span item, unsigned version)
{
    char text[128]; /* a longer one matches nothing, says libcurl */
    int all = address->family == AF_INET ? 32 : 128, bits = 0;

    if (item.len >= sizeof text)
        return false;
    memcpy(text, item.ptr, item.len);
    text[item.len] = '\0';
    const char *slash = strchr(text, '/');
    if (slash) {
        if (version >= READS_BITS && !is_number(slash + 1))
            return false;
        bits = atoi(slash + 1); /* NOLINT(cert-err34-c): as libcurl reads it */
        item.len = (size_t)(slash - text);
    }
    struct address network = address_of(item, version);
    return network.family == address->family && bits >= 0 && bits <= all &&
           same_bits(address->bytes, network.bytes, bits == 0 ? all : bits);
}

/* As libcurl looks it up: without the brackets and the zone of an IPv6 address. */
static struct span plain_host(struct span host)
{
    if (host.len == 0 || host.ptr[0] != '[')
        return host;
    host = span_skip(host, 1);
    for (size_t i = 0; i < host.len; i++)
        if (host.ptr[i] == ']' || host.ptr[i] == '%')
            host.len = i;
    return host;
}

static struct span without_dot(struct span name)
{
    if (name.len > 0 && name.ptr[name.len - 1] == '.')
        name.len--;
    return name;
}

static bool in_domain(struct span host, struct span item)
{
    if (item.len > 0 && item.ptr[0] == '.')
        item = span_skip(item, 1);
    if (item.len > host.len)
        return false;
    struct span tail = span_skip(host, host.len - item.len);
    return span_ieq(tail, item) && (tail.len == host.len || tail.ptr[-1] == '.');
}

static const char *behind_separator(const char *list, const char *separators, unsigned version)
{
    list += strspn(list, " \t");
    if (version >= NEEDS_COMMAS && *list != ',')
        return "";
    return list + strspn(list, separators);
}

/* "*", or addresses, networks, names and domains. */
static bool is_exempt(struct span host, const char *list, unsigned version)
{
    bool dots = version < PARTS_ADDRESSES; /* those that end a name say something */
    const char *separators = version < PARTS_ADDRESSES ? ", " : ", \t";

    if (!list || strcmp(list, "*") == 0)
        return list != NULL;
    host = plain_host(host);
    struct address address = address_of(host, version);
    if (!dots)
        host = without_dot(host);
    list += strspn(list, separators);
    while (*list) {
        struct span item = span_of(list, strcspn(list, separators));
        if (address.family ? in_network(&address, item, version)
                           : in_domain(host, dots ? item : without_dot(item)))
            return true;
        list = behind_separator(list + item.len, separators, version);
    }
    return false;
}

/* --- the way ---------------------------------------------------------------------------------- */

static bool is_given(const char *proxy)
{
    return proxy && *proxy;
}

/* The options come first, and an empty one is one. No HTTP proxy leads to a local socket. */
static bool leads_through_proxy(const struct easy *easy, const char *url)
{
    const struct shadow_value *value = easy->options.value;
    const char *proxy = value[SHADOW_PROXY].string, *before = value[SHADOW_PRE_PROXY].string;

    if (!proxy && !before)
        proxy = environment_proxy(curl_url_is_https(url));
    if (value[SHADOW_UNIX_SOCKET_PATH].string || value[SHADOW_ABSTRACT_UNIX_SOCKET].string)
        proxy = NULL;
    return is_given(proxy) || is_given(before);
}

bool curl_proxy_used(const struct easy *easy)
{
    struct shim_request request = {.path = SPAN_NONE};
    char *owned;
    const char *url = curl_url_under_way(easy, &owned);
    bool used = url && !easy->options.value[SHADOW_PROXY].overridden &&
                shim_request_of_url(span_str(url), &request) &&
                !is_exempt(request.host, exempt_list(&easy->options), easy->real->version) &&
                leads_through_proxy(easy, url);

    free(owned);
    return used;
}
