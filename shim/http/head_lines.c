/* The header lines: where they end, which of them are read, and what they say. */
#include "http/credential.h"
#include "http/encoding.h"
#include "http/field_name.h"
#include "http/head_parts.h"

/* Takes what a line says, without blanks at its ends; false: it cannot be followed. */
typedef bool read_field(struct http_head *head, struct span value);

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Takes the first item off a list; *list is SPAN_NONE after the last one. */
static struct span take_item(struct span *list)
{
    const char *comma = memchr(list->ptr, ',', list->len);
    struct span item = *list;

    if (comma) {
        item.len = (size_t)(comma - list->ptr);
        *list = span_skip(*list, item.len + 1);
    } else {
        *list = SPAN_NONE;
    }
    return span_trim(item);
}

/* FNV-1a of a host, in lower case. Only to tell that two lines differ. */
static uint64_t host_hash(struct span host)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (size_t i = 0; i < host.len; i++)
        hash = (hash ^ (unsigned char)span_lower(host.ptr[i])) * 0x100000001b3u;
    return hash;
}

/* RFC 9112 3.2: a second one that says otherwise makes the request a bad one. */
static bool read_host(struct http_head *head, struct span host)
{
    uint64_t hash = host_hash(host);

    if (host.len > HTTP_HEAD_HOST_MAX)
        return false;
    for (size_t i = 0; i < host.len; i++)
        if ((unsigned char)host.ptr[i] <= ' ' || host.ptr[i] == 0x7f)
            return false;
    if (head->seen & SEEN_HOST)
        return hash == head->host_line;
    head->seen |= SEEN_HOST;
    head->host_line = hash;
    if (head->facts.absolute) /* the target's counts (RFC 9112 3.2.2) */
        return true;
    head->facts.host_len = (uint16_t)host.len;
    memcpy(head->facts.host, host.ptr, host.len);
    return true;
}

/* Digits and nothing else; false: none, or more than *number can hold. */
static bool read_number(struct span digits, uint64_t *number)
{
    enum { ALWAYS_FIT = 19 };
    uint64_t value = 0;

    for (size_t i = 0; i < digits.len; i++) {
        unsigned digit = (unsigned char)digits.ptr[i] - (unsigned)'0';
        if (digit > 9)
            return false;
        if (__builtin_expect(i >= ALWAYS_FIT, 0) && value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *number = value;
    return digits.len > 0;
}

/* Old proxies join equal ones to a list (RFC 9110 8.6). */
static __attribute__((noinline)) bool read_lengths(struct http_head *head, struct span list)
{
    struct http_head_facts *facts = &head->facts;

    while (list.ptr) {
        uint64_t length;
        if (facts->has_length)
            head->seen |= SEEN_LENGTHS;
        if (!read_number(take_item(&list), &length))
            return false;
        if (facts->has_length && facts->length != length)
            return false;
        facts->has_length = true;
        facts->length = length;
    }
    return true;
}

static bool read_content_length(struct http_head *head, struct span value)
{
    struct http_head_facts *facts = &head->facts;

    head->number = value.ptr;
    if (facts->has_length || !read_number(value, &facts->length))
        return read_lengths(head, value);
    facts->has_length = true;
    return true;
}

/* Several lines are one list; its last coding tells how the body ends. */
static bool read_transfer_encoding(struct http_head *head, struct span list)
{
    while (list.ptr) {
        struct span coding = take_item(&list);
        if (coding.len == 0)
            continue;
        head->facts.chunked = span_ieq(coding, SPAN_LIT("chunked"));
        head->facts.coded = !head->facts.chunked;
    }
    return true;
}

static bool read_connection(struct http_head *head, struct span list)
{
    while (list.ptr) {
        struct span option = take_item(&list);
        if (span_ieq(option, SPAN_LIT("close")))
            head->seen |= SEEN_CLOSE;
        else if (span_ieq(option, SPAN_LIT("keep-alive")))
            head->seen |= SEEN_KEEP_ALIVE;
        else if (span_ieq(option, SPAN_LIT("upgrade")))
            head->seen |= SEEN_UPGRADE;
    }
    return true;
}

static bool read_content_type(struct http_head *head, struct span type)
{
    if (head->response)
        head->facts.content = (uint8_t)content_kind_of(type);
    return true;
}

static bool read_content_encoding(struct http_head *head, struct span list)
{
    if (head->response && !encoding_is_plain(list))
        head->facts.encoded = true;
    return true;
}

static bool read_upgrade(struct http_head *head, struct span value)
{
    (void)value;
    head->seen |= SEEN_PROTOCOL;
    return true;
}

static bool read_retry_after(struct http_head *head, struct span value)
{
    head_retry(head, RETRY_SECONDS, value);
    return true;
}

static bool read_retry_after_ms(struct http_head *head, struct span value)
{
    head_retry(head, RETRY_MS, value);
    return true;
}

static bool read_amz_retry_after(struct http_head *head, struct span value)
{
    head_retry(head, RETRY_AMZ, value);
    return true;
}

/* --- which lines are read ------------------------------------------------------------------------
 */

#define IN_REQUESTS  1u
#define IN_RESPONSES 2u
#define IN_BOTH      3u

struct field {
    struct span name;
    unsigned where;
    read_field *read;
};

/* By first letter: field_of. */
static const struct field fields[] = {
    {SPAN_LIT("content-length"), IN_BOTH, read_content_length},
    {SPAN_LIT("content-type"), IN_BOTH, read_content_type},
    {SPAN_LIT("connection"), IN_BOTH, read_connection},
    {SPAN_LIT("content-encoding"), IN_BOTH, read_content_encoding},
    {SPAN_LIT("host"), IN_REQUESTS, read_host},
    {SPAN_LIT("retry-after"), IN_RESPONSES, read_retry_after},
    {SPAN_LIT("retry-after-ms"), IN_RESPONSES, read_retry_after_ms},
    {SPAN_LIT("transfer-encoding"), IN_BOTH, read_transfer_encoding},
    {SPAN_LIT("upgrade"), IN_BOTH, read_upgrade},
    {SPAN_LIT("x-amz-retry-after"), IN_RESPONSES, read_amz_retry_after},
    {SPAN_LIT(""), 0, NULL},
};

/* The first of them that begins with the letter. */
static const struct field *const by_letter[32] = {
    ['c' & 31] = &fields[0], ['h' & 31] = &fields[4], ['r' & 31] = &fields[5],
    ['t' & 31] = &fields[7], ['u' & 31] = &fields[8], ['x' & 31] = &fields[9],
};

/* The letters they begin with, in either case. Most lines are told by it alone. Credentials too,
 * which are of no table: those of others begin with these letters, or with one of a line that is
 * read. */
#define LETTER(c)          (1u << ((c)&31))
#define LETTERS            (LETTER('c') | LETTER('t') | LETTER('u'))
#define CREDENTIAL_LETTERS (LETTER('a') | LETTER('o') | LETTER('x'))
#define REQUEST_LETTERS    (LETTERS | LETTER('h') | CREDENTIAL_LETTERS)
#define RESPONSE_LETTERS   (LETTERS | LETTER('r') | LETTER('x'))

/* The field that a line is of: with its name at the begin, and a colon behind it, or blanks and a
 * colon. */
static const struct field *field_of(const struct http_head *head, struct span line)
{
    char first = span_lower(line.ptr[0]);
    const struct field *field = by_letter[first & 31];

    for (; field && field->name.ptr[0] == first; field++) {
        size_t len = field->name.len;
        if (line.len <= len || (line.ptr[len] != ':' && !is_blank(line.ptr[len])) ||
            !field_name_is(line.ptr, field->name))
            continue;
        while (len < line.len && is_blank(line.ptr[len]))
            len++;
        if (len < line.len && line.ptr[len] == ':')
            return field->where & (head->response ? IN_RESPONSES : IN_REQUESTS) ? field : NULL;
    }
    return NULL;
}

/* Whose quota the request draws on: hashed, and nothing depends on how the line is written. */
static bool is_credential(struct http_head *head, struct span line)
{
    struct span key;

    if (head->response || head->facts.credential != 0)
        return false;
    enum credential_kind kind = credential_in_header(line, &key);
    if (kind == CREDENTIAL_PROVIDERS)
        head->facts.credential = credential_hash(0, key);
    else if (kind == CREDENTIAL_OTHER)
        head->others = credential_hash(head->others, key);
    return kind != CREDENTIAL_NONE;
}

/* --- where lines and the head end ----------------------------------------------------------------
 */

static void end_of_head(struct http_head *head)
{
    struct http_head_facts *facts = &head->facts;

    if (facts->coded && !head->response) {
        head_alien(head);
        return;
    }
    if (facts->credential == 0)
        facts->credential = head->others;
    facts->path_len = head->path_len <= HTTP_HEAD_PATH_MAX ? (uint16_t)head->path_len : 0;
    facts->close =
        (head->seen & SEEN_CLOSE) || (facts->minor == 0 && !(head->seen & SEEN_KEEP_ALIVE));
    facts->upgrade = (head->seen & SEEN_UPGRADE) && (head->seen & SEEN_PROTOCOL);
    head->state = HTTP_HEAD_DONE;
}

/* A line without its line end, not empty, or `whole` unset: the begin of one that is too long. */
static void read_line(struct http_head *head, struct span line, bool whole)
{
    if (is_blank(line.ptr[0])) { /* folded: what it continues would have to be read anew */
        if (head->known)
            head_alien(head);
        return;
    }
    if (is_credential(head, line)) {
        head->known = false;
        return;
    }
    const struct field *field = field_of(head, line);
    head->known = field != NULL;
    if (!field)
        return;
    size_t colon = field->name.len; /* blanks before it are not followed */
    struct span value = span_of(line.ptr + colon + 1, line.len - colon - 1);
    if (!whole || line.ptr[colon] != ':' || !field->read(head, span_trim(value)))
        head_alien(head);
}

/* A line without its LF. It may be as long whole as in pieces: how bytes arrive decides nothing. */
static inline void end_of_line(struct http_head *head, struct span line)
{
    bool whole = line.len <= HTTP_HEAD_LINE_MAX;

    if (!whole)
        line.len = HTTP_HEAD_LINE_MAX;
    else if (line.len > 0 && line.ptr[line.len - 1] == '\r')
        line.len--;
    if (line.len == 0)
        end_of_head(head);
    else
        read_line(head, line, whole);
}

/* Bytes of a line of which there is more elsewhere. */
static void gather(struct http_head *head, struct span piece)
{
    size_t room = HTTP_HEAD_LINE_MAX - head->line_len;
    size_t len = piece.len < room ? piece.len : room;

    if (head->overlong)
        return;
    memcpy(head->line + head->line_len, piece.ptr, len);
    head->line_len = (uint16_t)(head->line_len + len);
    if (len < piece.len) {
        head->overlong = true;
        read_line(head, span_of(head->line, head->line_len), false);
    }
}

/* The line whose begin is in line[] and whose end is here; SPAN_NONE: it was too long, and read. */
static struct span gathered(struct http_head *head, struct span piece)
{
    gather(head, piece);
    struct span line = head->overlong ? SPAN_NONE : span_of(head->line, head->line_len);
    head->overlong = false;
    head->line_len = 0;
    return line;
}

size_t head_lines(struct http_head *head, struct span bytes)
{
    const unsigned letters = head->response ? RESPONSE_LETTERS : REQUEST_LETTERS;
    size_t at = 0;

    while (at < bytes.len && head->state == HTTP_HEAD_MORE) {
        const char *begin = bytes.ptr + at, *end = memchr(begin, '\n', bytes.len - at);
        if (!end) {
            gather(head, span_of(begin, bytes.len - at));
            return bytes.len;
        }
        at = (size_t)(end - bytes.ptr) + 1;
        if (head->line_len == 0 && (unsigned char)*begin > ' ' && !(letters & LETTER(*begin))) {
            head->known = false; /* most lines */
            continue;
        }
        struct span line = span_of(begin, (size_t)(end - begin));
        if (head->line_len > 0)
            line = gathered(head, line);
        if (line.ptr)
            end_of_line(head, line);
    }
    return at;
}
