#include "config/place.h"

#include "http/url.h"

#include <stdio.h>

#define HOST_MAX 255

/* --- literal addresses; inet_pton() belongs to the sockets, of which shim/ knows nothing --------
 */

/* A number of at most `digits` digits at the start of *text, taken off; -1: none. */
static long take_number(struct span *text, unsigned base, unsigned digits)
{
    long value = 0;
    unsigned count = 0;

    for (; count < digits && text->len > 0; count++, *text = span_skip(*text, 1)) {
        char c = span_lower(text->ptr[0]);
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                                                : base;
        if (digit >= base)
            break;
        value = value * (long)base + digit;
    }
    return count ? value : -1;
}

static bool take_byte(struct span *text, char c)
{
    if (text->len == 0 || text->ptr[0] != c)
        return false;
    *text = span_skip(*text, 1);
    return true;
}

static bool parse_ipv4(struct span text, uint8_t out[4])
{
    for (unsigned i = 0; i < 4; i++) {
        long value = i > 0 && !take_byte(&text, '.') ? -1 : take_number(&text, 10, 3);
        if (value < 0 || value > 255)
            return false;
        out[i] = (uint8_t)value;
    }
    return text.len == 0;
}

/* The words of one side of "::"; SIZE_MAX: it is none. */
static size_t parse_words(struct span text, uint16_t out[8])
{
    uint8_t tail[4];
    size_t count = 0;

    if (text.len == 0)
        return 0;
    do {
        if (count <= 6 && parse_ipv4(text, tail)) {
            out[count++] = (uint16_t)(tail[0] << 8 | tail[1]);
            out[count++] = (uint16_t)(tail[2] << 8 | tail[3]);
            return count;
        }
        long word = count < 8 ? take_number(&text, 16, 4) : -1;
        if (word < 0)
            return SIZE_MAX;
        out[count++] = (uint16_t)word;
    } while (take_byte(&text, ':'));
    return text.len == 0 ? count : SIZE_MAX;
}

/* Without brackets and zone. */
static bool parse_ipv6(struct span text, uint16_t out[8])
{
    const char *gap = text.len ? memmem(text.ptr, text.len, "::", 2) : NULL;
    size_t left_len = gap ? (size_t)(gap - text.ptr) : text.len;
    uint16_t right[8];

    memset(out, 0, 8 * sizeof *out);
    size_t left = parse_words(span_of(text.ptr, left_len), out);
    if (!gap)
        return left == 8;
    size_t count = parse_words(span_skip(text, left_len + 2), right);
    if (left == SIZE_MAX || count == SIZE_MAX || left + count > 7 ||
        (left > 0 && memchr(text.ptr, '.', left_len)))
        return false;
    memcpy(out + 8 - count, right, count * sizeof *right);
    return true;
}

static bool is_bracketed(struct span host)
{
    return host.len > 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']';
}

static struct span between_brackets(struct span host)
{
    return span_of(host.ptr + 1, host.len - 2);
}

bool place_is_loopback(struct span host)
{
    static const uint16_t one[8] = {0, 0, 0, 0, 0, 0, 0, 1};
    uint16_t words[8];
    uint8_t bytes[4];

    if (is_bracketed(host))
        return parse_ipv6(between_brackets(host), words) && memcmp(words, one, sizeof one) == 0;
    if (host.len > 1 && host.ptr[host.len - 1] == '.')
        host.len--;
    if (parse_ipv4(host, bytes))
        return bytes[0] == 127;
    struct span name = SPAN_LIT("localhost");
    if (host.len > name.len && host.ptr[host.len - name.len - 1] == '.')
        host = span_skip(host, host.len - name.len);
    return span_ieq(host, name);
}

/* --- hosts -------------------------------------------------------------------------------------
 */

/* The host as keys spell it, without a port. 0: no call can have it. */
static size_t write_host(struct span host, char *buf, size_t size)
{
    uint16_t words[8];

    if (is_bracketed(host) && !parse_ipv6(span_until(between_brackets(host), '%'), words))
        return 0;
    size_t len = url_host_key(host, 443, buf, size < HOST_MAX ? size : HOST_MAX);
    return len > 0 && buf[0] != '.' ? len : 0;
}

/* Digits of a port as people write it; 0: none. */
static uint16_t parse_port(struct span text)
{
    long value = text.len && text.ptr[0] != '0' ? take_number(&text, 10, 5) : -1;

    return text.len == 0 && value > 0 && value <= 65535 ? (uint16_t)value : 0;
}

size_t place_address_write(struct span text, char *buf, size_t size)
{
    struct span port = url_port_part(text);
    struct span host = span_of(text.ptr, text.len - port.len);

    if (port.len < 2 || parse_port(span_skip(port, 1)) == 0 || memchr(host.ptr, '%', host.len))
        return 0;
    size_t len = write_host(host, buf, size);
    if (len == 0 || port.len > size - len)
        return 0;
    memcpy(buf + len, port.ptr, port.len);
    return len + port.len;
}

/* --- bases -------------------------------------------------------------------------------------
 */

/* Takes the scheme off *text, lower case in *scheme. */
static bool take_scheme(struct span *text, struct span *scheme)
{
    static const struct span schemes[] = {SPAN_LIT("https"), SPAN_LIT("http")};

    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        size_t len = schemes[i].len;
        if (!span_istarts(*text, schemes[i]) ||
            !span_starts(span_skip(*text, len), SPAN_LIT("://")))
            continue;
        *scheme = schemes[i];
        *text = span_skip(*text, len + 3);
        return true;
    }
    return false;
}

const char *place_base_parse(struct span text, struct place_base *out)
{
    struct place_base base;
    char key[HOST_MAX];
    struct span rest = text;

    if (!take_scheme(&rest, &base.scheme))
        return "one without http:// or https://";
    if (span_has_control(text) || memchr(text.ptr, ' ', text.len))
        return "one with a blank or a control character";
    if (memchr(rest.ptr, '?', rest.len) || memchr(rest.ptr, '#', rest.len))
        return "one with a query or a fragment";
    struct span authority = span_until(rest, '/');
    base.path = span_skip(rest, authority.len);
    if (memchr(authority.ptr, '@', authority.len))
        return "one with a user name or a password";
    struct span port = url_port_part(authority);
    base.host = span_of(authority.ptr, authority.len - port.len);
    base.port = base.scheme.len == 5 ? 443 : 80;
    if (port.len > 0 && (base.port = parse_port(span_skip(port, 1))) == 0)
        return "one whose port is not from 1 to 65535";
    if (write_host(base.host, key, sizeof key) == 0)
        return "one without a good host";
    while (base.path.len > 0 && base.path.ptr[base.path.len - 1] == '/')
        base.path.len--;
    base.text =
        span_of(text.ptr, text.len - (size_t)(rest.ptr + rest.len - base.path.ptr) + base.path.len);
    *out = base;
    return NULL;
}

void place_base_describe(struct span text, char *buf, size_t size)
{
    struct place_base base;
    const char *fault = text.len > 0 ? place_base_parse(text, &base) : "nothing";

    for (size_t i = 0; i < text.len; i++)
        if (strchr("@?#", text.ptr[i]))
            text.len = 0;
    if (text.len > 0)
        snprintf(buf, size, "\"%.*s\", %s", (int)(text.len < 60 ? text.len : 60), text.ptr, fault);
    else
        snprintf(buf, size, "%s", fault);
}
