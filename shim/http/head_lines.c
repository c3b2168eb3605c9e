/* The header lines: where they end, which of them are read, and what they say. */
#include "http/encoding.h"
#include "http/head_parts.h"

#include "http/credential.h"

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

bool head_number(struct span digits, uint64_t *length)
{
    enum { ALWAYS_FIT = 19 };
    uint64_t value = 0;

    for (size_t i = 0; i < digits.len; i++) {
        unsigned digit = (unsigned char)digits.ptr[i] - (unsigned)'0';
        if (digit > 9 || (i >= ALWAYS_FIT && value > (UINT64_MAX - digit) / 10))
            return false;
        value = value * 10 + digit;
    }
    *length = value;
    return digits.len > 0;
}

/* Old proxies join equal ones to a list (RFC 9110 8.6). */
static bool read_content_length(struct http_head *head, struct span list)
{
    struct http_head_facts *facts = &head->facts;

    head->number = list.ptr;
    while (list.ptr) {
        uint64_t length;
        if (facts->has_length)
            head->seen |= SEEN_LENGTHS;
        if (!head_number(take_item(&list), &length))
            return false;
        if (facts->has_length && facts->length != length)
            return false;
        facts->has_length = true;
        facts->length = length;
    }
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

struct field {
    struct span name;
    read_field *read;
};

/* By first letter: field_of. */
static const struct field fields[] = {
    {SPAN_LIT("content-length"), read_content_length},
    {SPAN_LIT("content-type"), read_content_type},
    {SPAN_LIT("connection"), read_connection},
    {SPAN_LIT("content-encoding"), read_content_encoding},
    {SPAN_LIT("host"), read_host},
    {SPAN_LIT("retry-after"), read_retry_after},
    {SPAN_LIT("retry-after-ms"), read_retry_after_ms},
    {SPAN_LIT("transfer-encoding"), read_transfer_encoding},
    {SPAN_LIT("upgrade"), read_upgrade},
    {SPAN_LIT("x-amz-retry-after"), read_amz_retry_after},
    {SPAN_NONE, NULL},
};

/* The first of them that begins with the letter. */
static const struct field *const by_letter[32] = {
    ['c' & 31] = &fields[0], ['h' & 31] = &fields[4], ['r' & 31] = &fields[5],
    ['t' & 31] = &fields[7], ['u' & 31] = &fields[8], ['x' & 31] = &fields[9],
};

/* The letters they begin with, in either case, of lines that are read in a request (no Retry-After)
 * and in a response (no Host). Most lines are told by it alone. */
#define LETTER(c)        (1u << ((c)&31))
#define LETTERS          (LETTER('c') | LETTER('t') | LETTER('u'))
#define REQUEST_LETTERS  (LETTERS | LETTER('h'))
#define RESPONSE_LETTERS (LETTERS | LETTER('r') | LETTER('x'))

static bool may_be_read(const struct http_head *head, char first)
{
    return (head->response ? RESPONSE_LETTERS : REQUEST_LETTERS) & LETTER(first);
}

/* Credentials too, which are of no table: those of others begin with these letters, or with one of
 * a line that is read. */
#define CREDENTIAL_LETTERS (LETTER('a') | LETTER('o') | LETTER('x'))

static bool is_looked_at(const struct http_head *head, char first)
{
    return may_be_read(head, first) || (!head->response && (CREDENTIAL_LETTERS & LETTER(first)));
}

enum { WORD = 8 };

/* Eight bytes of text against as many of a name in lower case: letters may differ in case. */
static bool same_word(const char *text, const char *name)
{
    uint64_t a, b;

    memcpy(&a, text, WORD);
    memcpy(&b, name, WORD);
    return ((a ^ b) & ~((b & UINT64_C(0x4040404040404040)) >> 1)) == 0; /* no '-' has that bit */
}

static bool same_name(const char *text, struct span name)
{
    if (name.len < WORD)
        return span_ieq(span_of(text, name.len), name);
    for (size_t at = 0; at + WORD < name.len; at += WORD)
        if (!same_word(text + at, name.ptr + at))
            return false;
    return same_word(text + name.len - WORD, name.ptr + name.len - WORD);
}

/* Does the line begin with this name, blanks maybe, and a colon? *colon: where it stands. */
static bool is_named(struct span line, struct span name, size_t *colon)
{
    size_t at = name.len;

    if (line.len <= at || (line.ptr[at] != ':' && !is_blank(line.ptr[at])) ||
        !same_name(line.ptr, name))
        return false;
    while (at < line.len && is_blank(line.ptr[at]))
        at++;
    *colon = at;
    return at < line.len && line.ptr[at] == ':';
}

static const struct field *field_of(const struct http_head *head, struct span line, size_t *colon)
{
    char first = span_lower(line.ptr[0]);

    if (!may_be_read(head, first))
        return NULL;
    for (const struct field *field = by_letter[first & 31]; field->read; field++) {
        if (field->name.ptr[0] != first)
            return NULL;
        if (is_named(line, field->name, colon))
            return field;
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

/* A line, not empty, or `whole` unset: the begin of one that is too long. */
static void read_line(struct http_head *head, struct span line, bool whole)
{
    const struct field *field;
    size_t colon = 0;

    if (is_blank(line.ptr[0])) { /* folded: what it continues would have to be read anew */
        if (head->known)
            head_alien(head);
        return;
    }
    if (is_credential(head, line)) {
        head->known = false;
        return;
    }
    field = field_of(head, line, &colon);
    head->known = field != NULL;
    if (field && (!whole || colon != field->name.len ||
                  !field->read(head, span_trim(span_skip(line, colon + 1)))))
        head_alien(head);
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

/* A line without its LF. It may be as long whole as in pieces: how bytes arrive decides nothing. */
static void end_of_line(struct http_head *head, struct span line)
{
    if (line.len > HTTP_HEAD_LINE_MAX) {
        read_line(head, span_of(line.ptr, HTTP_HEAD_LINE_MAX), false);
        return;
    }
    if (line.len > 0 && line.ptr[line.len - 1] == '\r')
        line.len--;
    if (line.len == 0)
        end_of_head(head);
    else
        read_line(head, line, true);
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

size_t head_lines(struct http_head *head, struct span bytes)
{
    size_t at = 0;

    while (at < bytes.len && head->state == HTTP_HEAD_MORE) {
        struct span rest = span_skip(bytes, at);
        const char *end = memchr(rest.ptr, '\n', rest.len);
        struct span piece = span_of(rest.ptr, end ? (size_t)(end - rest.ptr) : rest.len);
        if (!end) {
            gather(head, piece);
            return bytes.len;
        }
        at += piece.len + 1;
        if (head->line_len == 0) {
            if ((unsigned char)piece.ptr[0] > ' ' && !is_looked_at(head, piece.ptr[0]))
                head->known = false; /* most lines */
            else
                end_of_line(head, piece);
            continue;
        }
        gather(head, piece);
        if (!head->overlong)
            end_of_line(head, span_of(head->line, head->line_len));
        head->overlong = false;
        head->line_len = 0;
    }
    return at;
}
