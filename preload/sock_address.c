#include "sock_address.h"

#include "base/span.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

bool sock_address_of(const struct sockaddr *from, socklen_t length, struct sock_address *address,
                     uint16_t *port)
{
    sa_family_t family;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    unsigned char bytes[16] = {[10] = 0xff, [11] = 0xff};

    if (!from || length < (socklen_t)(offsetof(struct sockaddr, sa_family) + sizeof family))
        return false;
    memcpy(&family, (const char *)from + offsetof(struct sockaddr, sa_family), sizeof family);
    if (family == AF_INET && length >= (socklen_t)sizeof v4) {
        memcpy(&v4, from, sizeof v4);
        memcpy(bytes + 12, &v4.sin_addr, 4);
        *port = ntohs(v4.sin_port);
    } else if (family == AF_INET6 &&
               length >= (socklen_t)offsetof(struct sockaddr_in6, sin6_scope_id)) {
        /* The kernel takes one without a scope (RFC 2133). */
        memcpy(&v6, from, offsetof(struct sockaddr_in6, sin6_scope_id));
        memcpy(bytes, &v6.sin6_addr, 16);
        *port = ntohs(v6.sin6_port);
    } else {
        return false;
    }
    memcpy(address->word, bytes, sizeof bytes);
    return true;
}

bool sock_address_is_v4(const struct sock_address *address)
{
    struct in6_addr v6;

    memcpy(&v6, address->word, sizeof v6);
    return IN6_IS_ADDR_V4MAPPED(&v6);
}

/* inet_ntop is not on the list of async-signal-safe functions, and glibc's prints with sprintf: of
 * an address that is one. */
static size_t put_number(char *at, unsigned value, unsigned base)
{
    static const char digits[] = "0123456789abcdef";
    char reversed[8];
    size_t len = 0;

    do
        reversed[len++] = digits[value % base];
    while ((value /= base) != 0);
    for (size_t i = 0; i < len; i++)
        at[i] = reversed[len - 1 - i];
    return len;
}

static size_t put_v4(char *at, const unsigned char *bytes)
{
    size_t len = 0;

    for (int i = 0; i < 4; i++) {
        if (i > 0)
            at[len++] = '.';
        len += put_number(at + len, bytes[i], 10);
    }
    return len;
}

/* The longest run of zero groups, the first of equals, of two at least (RFC 5952); its end. */
static int zero_run(const unsigned char *bytes, int *begin)
{
    int best = 1;

    *begin = -1;
    for (int i = 0; i < 8; i++) {
        int len = 0;
        while (i + len < 8 && bytes[2 * (i + len)] == 0 && bytes[2 * (i + len) + 1] == 0)
            len++;
        if (len > best) {
            best = len;
            *begin = i;
        }
        if (len > 0)
            i += len - 1;
    }
    return *begin + best;
}

static size_t put_v6(char *at, const unsigned char *bytes)
{
    int begin, end = zero_run(bytes, &begin);
    size_t len = 0;

    for (int i = 0; i < 8; i++) {
        if (i == begin) {
            at[len++] = ':';
            at[len++] = ':';
            i = end - 1;
            continue;
        }
        if (i > 0 && i != end) /* without a run `end` is 0 */
            at[len++] = ':';
        len += put_number(at + len, (unsigned)bytes[2 * i] << 8 | bytes[2 * i + 1], 16);
    }
    return len;
}

size_t sock_address_text(const struct sock_address *address, char text[SOCK_ADDRESS_TEXT_SIZE])
{
    const unsigned char *bytes = (const unsigned char *)address->word;
    size_t len = 0;

    if (sock_address_is_v4(address)) {
        len = put_v4(text, bytes + 12);
    } else {
        text[len++] = '[';
        len += put_v6(text + len, bytes);
        text[len++] = ']';
    }
    text[len] = '\0';
    return len;
}

size_t sock_name_of(const char *node, union sock_name *name)
{
    size_t len = strnlen(node, SOCK_NAME_SIZE + 1);

    memset(name, 0, sizeof *name);
    if (len > 0 && node[len - 1] == '.')
        len--;
    if (len == 0 || len >= SOCK_NAME_SIZE)
        return 0;
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)node[i] <= ' ' || strchr("/:[]\x7f", node[i]))
            return 0;
        name->text[i] = span_lower(node[i]);
    }
    return len;
}

bool sock_name_is_numeric(const char *node)
{
    const char *percent = strchr(node, '%');
    size_t len = percent ? (size_t)(percent - node) : strlen(node);
    struct in6_addr v6;
    struct in_addr v4;
    char text[INET6_ADDRSTRLEN];

    if (len >= sizeof text)
        return false;
    memcpy(text, node, len);
    text[len] = '\0';
    if (inet_pton(AF_INET6, text, &v6) == 1)
        return true;
    /* inet_aton takes anything behind a blank; a name with one is none of ours anyway. */
    return !percent && !strpbrk(text, " \t\n\v\f\r") && inet_aton(text, &v4) != 0;
}
