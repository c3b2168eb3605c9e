#include "http/url.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_scheme_char(char c)
{
    char lower = span_lower(c);

    return (lower >= 'a' && lower <= 'z') || is_digit(c) || c == '+' || c == '-' || c == '.';
}

/* Splits "scheme://" off; a text without one is http, as curl guesses. One to three slashes are the
 * same to libcurl. False: file: and the like. */
static bool take_scheme(struct span *text, struct span *scheme)
{
    size_t len = 0, slashes = 0;

    while (len < text->len && is_scheme_char(text->ptr[len]))
        len++;
    if (len == 0 || !span_starts(span_skip(*text, len), SPAN_LIT(":/"))) {
        *scheme = SPAN_LIT("http");
        return true;
    }
    *scheme = span_of(text->ptr, len);
    *text = span_skip(*text, len + 1);
    while (slashes < text->len && text->ptr[slashes] == '/')
        slashes++;
    *text = span_skip(*text, slashes);
    return slashes <= 3 && !span_ieq(*scheme, SPAN_LIT("file"));
}

static size_t index_of_any(struct span text, const char *set)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] && strchr(set, text.ptr[i]))
            return i;
    return text.len;
}

static bool parse_port(struct span text, uint16_t *port)
{
    unsigned value = 0;

    if (text.len == 0)
        return true; /* "host:" is the default port */
    while (text.len > 1 && text.ptr[0] == '0')
        text = span_skip(text, 1);
    if (text.len > 5)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (!is_digit(text.ptr[i]))
            return false;
        value = value * 10 + (unsigned)(text.ptr[i] - '0');
    }
    if (value == 0 || value > 65535)
        return false;
    *port = (uint16_t)value;
    return true;
}

/* authority without userinfo -> host and port */
static bool split_authority(struct span authority, struct url *url)
{
    struct span rest;

    if (authority.len > 0 && authority.ptr[0] == '[') {
        size_t end = index_of_any(authority, "]");
        if (end == authority.len)
            return false;
        url->host = span_of(authority.ptr, end + 1);
        rest = span_skip(authority, end + 1);
    } else {
        size_t end = index_of_any(authority, ":");
        url->host = span_of(authority.ptr, end);
        rest = span_skip(authority, end);
    }
    if (url->host.len == 0 || index_of_any(url->host, " \t\r\n") < url->host.len)
        return false;
    if (rest.len == 0)
        return true;
    return rest.ptr[0] == ':' && parse_port(span_skip(rest, 1), &url->port);
}

bool url_parse(struct span text, struct url *out)
{
    struct url url = {.query = SPAN_NONE};

    if (!text.ptr || !take_scheme(&text, &url.scheme))
        return false;
    url.port =
        span_ieq(url.scheme, SPAN_LIT("https")) || span_ieq(url.scheme, SPAN_LIT("wss")) ? 443 : 80;
    size_t end = index_of_any(text, "/?#");
    struct span authority = span_of(text.ptr, end);
    for (size_t i = authority.len; i > 0; i--)
        if (authority.ptr[i - 1] == '@') { /* the last one: passwords may hold others */
            authority = span_skip(authority, i);
            break;
        }
    if (!split_authority(authority, &url))
        return false;
    text = span_skip(text, end);
    text.len = index_of_any(text, "#");
    end = index_of_any(text, "?");
    url.path = span_of(text.ptr, end);
    if (end < text.len)
        url.query = span_skip(text, end + 1);
    *out = url;
    return true;
}

struct span url_userinfo(struct span text, const struct url *url)
{
    const char *end = url->host.ptr, *begin;

    if (end == text.ptr || end[-1] != '@')
        return SPAN_NONE;
    for (begin = --end; begin > text.ptr && begin[-1] != '/'; begin--)
        ;
    return span_of(begin, (size_t)(end - begin));
}

static int hex_value(char c)
{
    char lower = span_lower(c);

    if (is_digit(c))
        return c - '0';
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

size_t url_decode(struct span text, char *buf, size_t size)
{
    size_t at = 0;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '%' && i + 2 < text.len && hex_value(text.ptr[i + 1]) >= 0 &&
            hex_value(text.ptr[i + 2]) >= 0) {
            c = (char)(hex_value(text.ptr[i + 1]) << 4 | hex_value(text.ptr[i + 2]));
            i += 2;
        }
        if (at == size)
            return 0;
        buf[at++] = c;
    }
    return at;
}

/* May this byte stand in a name, or between the brackets of an IPv6 address? libcurl connects to no
 * host with another, and a key with one could not be told from other text. */
static bool is_host_char(unsigned char c, bool bracketed)
{
    if ((c >= 'a' && c <= 'z') || (c >= '-' && c <= '9' && c != '/')) /* nearly all */
        return true;
    return c > 0x20 && c != 0x7f && !strchr("/\"\\<>#?@%[]", c) && (bracketed || c != ':');
}

/* The host, decoded as libcurl decodes it, in lower case, without a zone id (it names an interface
 * of this machine, no provider) and a trailing dot. 0: unusable, or it does not fit. */
static size_t write_host(struct span host, char *buf, size_t size)
{
    bool bracketed = host.len > 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']';
    const char *zone = bracketed ? memchr(host.ptr, '%', host.len) : NULL;
    size_t len = 0;

    if (zone)
        host.len = (size_t)(zone - host.ptr);
    len = url_decode(host, buf, size);
    if (zone && len > 0) {
        if (len == size)
            return 0;
        buf[len++] = ']';
    }
    bool dotted = len > 1 && buf[len - 1] == '.';
    len -= dotted;
    if (len <= 2u * bracketed || (dotted && buf[len - 1] == '.'))
        return 0; /* nothing, nothing between the brackets, or no name before its last dot */
    for (size_t i = bracketed; i < len - bracketed; i++) {
        if (!is_host_char((unsigned char)buf[i], bracketed))
            return 0;
        buf[i] = span_lower(buf[i]);
    }
    return len;
}

/* ":PORT" into the end of `buf`; of printf alone the stack may be too small for a hook. */
static struct span write_port(uint16_t port, char buf[8])
{
    char *at = buf + 8;

    do
        *--at = (char)('0' + port % 10);
    while ((port /= 10) > 0);
    *--at = ':';
    return span_of(at, (size_t)(buf + 8 - at));
}

size_t url_host_key(struct span host, uint16_t port, char *buf, size_t size)
{
    char digits[8];
    struct span tail = port != 443 ? write_port(port, digits) : SPAN_LIT("");
    size_t at = write_host(host, buf, size);

    if (at == 0 || at + tail.len > size)
        return 0;
    memcpy(buf + at, tail.ptr, tail.len);
    return at + tail.len;
}

struct span url_port_part(struct span host_port)
{
    const char *colon = host_port.len ? memrchr(host_port.ptr, ':', host_port.len) : NULL;
    size_t at = colon ? (size_t)(colon - host_port.ptr) : host_port.len;

    if (colon && memchr(colon, ']', host_port.len - at))
        at = host_port.len;
    return span_skip(host_port, at);
}
