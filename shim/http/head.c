#include "http/head.h"

#include "http/head_parts.h"

enum { EMPTY_LINES_MAX = 4 };

/* A step takes bytes of a run that is not empty and returns how many; none only when it leaves the
 * first one to another step. */
typedef size_t take_step(struct http_head *head, struct span bytes);

/* The facts as far as they have no length of their own; the rest is large, and valid by length. */
static void init(struct http_head *head)
{
    struct http_head_facts *facts = &head->facts;

    head->state = HTTP_HEAD_MORE;
    facts->status = 0;
    facts->minor = 0;
    facts->has_length = facts->chunked = facts->coded = false;
    facts->content = CONTENT_OTHER;
    facts->encoded = false;
    facts->close = facts->upgrade = facts->absolute = facts->has_query = false;
    facts->credential = 0;
    facts->length = 0;
    facts->retry_is_date = false;
    facts->retry_at_s = 0;
    facts->retry_after_ms = 0;
    facts->method_len = facts->path_len = facts->host_len = 0;
    head->response = head->known = head->overlong = head->like_last = false;
    head->kept_len = head->number_at = head->number_len = 0;
    head->step = STEP_START;
    head->empties = head->words = head->at = head->seen = 0;
    head->retry_source = RETRY_NONE;
    head->line_len = 0;
    head->total = head->path_len = head->host_len = 0;
    head->host_line = head->others = 0;
}

void http_head_init_request(struct http_head *head)
{
    init(head);
}

void http_head_init_response(struct http_head *head)
{
    init(head);
    head->response = true;
}

static void go_to(struct http_head *head, enum head_step step)
{
    head->step = (uint8_t)step;
    head->words = 0xff;
    head->at = 0;
}

static size_t alien(struct http_head *head)
{
    head_alien(head);
    return 0;
}

/* --- a list of words, of which one must stand here -----------------------------------------------
 */

enum { WORDS_MAX = 7 };

/* None begins with another. */
struct words {
    unsigned count;
    bool any_case; /* the words are written in lower case */
    struct span word[WORDS_MAX];
};

/* Which of the words still possible go on with this byte. */
static unsigned words_left(const struct http_head *head, const struct words *words, char c)
{
    unsigned left = 0;

    for (unsigned w = 0; w < words->count; w++)
        if ((head->words >> w & 1) && words->word[w].ptr[head->at] == c)
            left |= 1u << w;
    return left;
}

/* The word that stands here whole, as one nearly always does; WORDS_MAX: none, or not all of it
 * yet. */
static unsigned word_at(const struct words *words, struct span bytes)
{
    for (unsigned w = words->count; w-- > 0;) { /* HTTP/1.1 before HTTP/1.0 */
        if (span_starts(bytes, words->word[w]))
            return w;
    }
    return WORDS_MAX;
}

/* Takes bytes while they can become a word. *found: its index at its last byte, else WORDS_MAX. */
static size_t take_word(struct http_head *head, const struct words *words, struct span bytes,
                        unsigned *found)
{
    size_t used = 0;

    *found = head->at == 0 ? word_at(words, bytes) : WORDS_MAX;
    if (*found != WORDS_MAX) {
        head->at = (uint8_t)words->word[*found].len;
        return head->at;
    }
    while (used < bytes.len) {
        char c = words->any_case ? span_lower(bytes.ptr[used]) : bytes.ptr[used];
        unsigned left = c ? words_left(head, words, c) : 0;
        if (!left)
            return alien(head);
        used++;
        head->words = (uint8_t)left;
        head->at++;
        if (left & (left - 1)) /* none of several is at its end: they would be the same */
            continue;
        unsigned only = (unsigned)__builtin_ctz(left);
        if (head->at == words->word[only].len) {
            *found = only;
            return used;
        }
    }
    return used;
}

/* --- the steps of the first line -----------------------------------------------------------------
 */

static size_t take_start(struct http_head *head, struct span bytes)
{
    static const struct span usual = SPAN_LIT("HTTP/1.1 200 OK\r\n");

    if (head->response && span_starts(bytes, usual)) { /* in one go */
        head->facts.minor = 1;
        head->facts.status = 200;
        go_to(head, STEP_LINES);
        return usual.len;
    }
    if (bytes.ptr[0] != '\r' && bytes.ptr[0] != '\n') {
        go_to(head, head->response ? STEP_ANSWER : STEP_METHOD);
        return 0;
    }
    if (head->empties == EMPTY_LINES_MAX)
        return alien(head);
    if (bytes.ptr[0] == '\r')
        go_to(head, STEP_START_LF);
    else
        head->empties++;
    return 1;
}

static size_t take_start_lf(struct http_head *head, struct span bytes)
{
    if (bytes.ptr[0] != '\n')
        return alien(head);
    head->empties++;
    go_to(head, STEP_START);
    return 1;
}

static const struct words methods = {7,
                                     false,
                                     {SPAN_LIT("GET "), SPAN_LIT("HEAD "), SPAN_LIT("POST "),
                                      SPAN_LIT("PUT "), SPAN_LIT("PATCH "), SPAN_LIT("DELETE "),
                                      SPAN_LIT("OPTIONS ")}};

static size_t take_method(struct http_head *head, struct span bytes)
{
    unsigned found;
    size_t used = take_word(head, &methods, bytes, &found);

    if (found < methods.count) {
        head->facts.method_len = (uint16_t)(head->at - 1);
        memcpy(head->facts.method, methods.word[found].ptr, head->facts.method_len);
        go_to(head, STEP_TARGET);
    }
    return used;
}

static size_t take_target(struct http_head *head, struct span bytes)
{
    switch (bytes.ptr[0]) {
    case '/':
        go_to(head, STEP_PATH);
        return 0;
    case 'h':
    case 'H':
        go_to(head, STEP_SCHEME);
        return 0;
    case '*':
        if (head->facts.method[0] != 'O')
            return alien(head);
        head->facts.path[head->path_len++] = '*';
        go_to(head, STEP_STAR);
        return 1;
    default:
        return alien(head);
    }
}

static size_t take_star(struct http_head *head, struct span bytes)
{
    if (bytes.ptr[0] != ' ')
        return alien(head);
    go_to(head, STEP_VERSION);
    return 1;
}

static size_t take_scheme(struct http_head *head, struct span bytes)
{
    static const struct words schemes = {2, true, {SPAN_LIT("http://"), SPAN_LIT("https://")}};
    unsigned found;
    size_t used = take_word(head, &schemes, bytes, &found);

    if (found < schemes.count) {
        head->facts.absolute = true;
        go_to(head, STEP_AUTHORITY);
    }
    return used;
}

/* Bytes of a target that are no blank and no control character. */
static bool is_target_char(char c)
{
    return (unsigned char)c > ' ' && c != 0x7f;
}

/* After a target's last byte, or one of its parts'. */
static size_t end_part(struct http_head *head, char c)
{
    if (c == '/')
        go_to(head, STEP_PATH);
    else if (c == '?' || c == '#')
        go_to(head, STEP_QUERY);
    else if (c == ' ')
        go_to(head, STEP_VERSION);
    else
        return alien(head);
    return c == '/' ? 0 : 1;
}

static size_t take_authority(struct http_head *head, struct span bytes)
{
    size_t at = 0;

    for (; at < bytes.len; at++) {
        char c = bytes.ptr[at];
        if (c == '/' || c == '?' || c == '#' || !is_target_char(c))
            break;
        if (c == '@') { /* all before it was userinfo */
            head->host_len = 0;
            continue;
        }
        if (head->host_len < HTTP_HEAD_HOST_MAX)
            head->facts.host[head->host_len] = c;
        head->host_len++;
    }
    if (at == bytes.len)
        return at;
    if (head->host_len == 0 || head->host_len > HTTP_HEAD_HOST_MAX)
        return alien(head);
    head->facts.host_len = (uint16_t)head->host_len;
    return at + end_part(head, bytes.ptr[at]);
}

static size_t take_path(struct http_head *head, struct span bytes)
{
    size_t len = 0;

    while (len < bytes.len && is_target_char(bytes.ptr[len]) && bytes.ptr[len] != '?' &&
           bytes.ptr[len] != '#')
        len++;
    if (head->path_len + len <= HTTP_HEAD_PATH_MAX)
        memcpy(head->facts.path + head->path_len, bytes.ptr, len);
    head->path_len += (uint32_t)len;
    return len == bytes.len ? len : len + end_part(head, bytes.ptr[len]);
}

static size_t take_query(struct http_head *head, struct span bytes)
{
    size_t len = 0;

    head->facts.has_query = true;
    while (len < bytes.len && is_target_char(bytes.ptr[len]))
        len++;
    return len == bytes.len ? len : len + end_part(head, bytes.ptr[len]);
}

/* HTTP/1.0 or 1.1, one word each, in this order. */
static size_t take_protocol(struct http_head *head, const struct words *protocols,
                            enum head_step next, struct span bytes)
{
    unsigned found;
    size_t used = take_word(head, protocols, bytes, &found);

    if (found < protocols->count) {
        head->facts.minor = (uint8_t)found;
        go_to(head, next);
    }
    return used;
}

static size_t take_version(struct http_head *head, struct span bytes)
{
    static const struct words versions = {2, false, {SPAN_LIT("HTTP/1.0"), SPAN_LIT("HTTP/1.1")}};

    return take_protocol(head, &versions, STEP_END, bytes);
}

static size_t take_answer(struct http_head *head, struct span bytes)
{
    static const struct words answers = {2, false, {SPAN_LIT("HTTP/1.0 "), SPAN_LIT("HTTP/1.1 ")}};

    return take_protocol(head, &answers, STEP_STATUS, bytes);
}

static size_t take_status(struct http_head *head, struct span bytes)
{
    size_t used = 0;

    for (; head->at < 3 && used < bytes.len; used++, head->at++) {
        char c = bytes.ptr[used];
        if (c < (head->at == 0 ? '1' : '0') || c > '9')
            return alien(head);
        head->facts.status = (uint16_t)(head->facts.status * 10 + (c - '0'));
    }
    if (head->at < 3 || used == bytes.len)
        return used;
    if (bytes.ptr[used] != ' ') {
        go_to(head, STEP_END);
        return used;
    }
    go_to(head, STEP_REASON);
    return used + 1;
}

static size_t take_reason(struct http_head *head, struct span bytes)
{
    const char *end = memchr(bytes.ptr, '\n', bytes.len);

    if (!end)
        return bytes.len;
    go_to(head, STEP_LINES);
    return (size_t)(end - bytes.ptr) + 1;
}

static size_t take_end(struct http_head *head, struct span bytes)
{
    if (bytes.ptr[0] == '\n')
        go_to(head, STEP_LINES);
    else if (bytes.ptr[0] == '\r' && head->step == STEP_END)
        go_to(head, STEP_END_LF);
    else
        return alien(head);
    return 1;
}

static size_t feed(struct http_head *head, struct span bytes)
{
    static take_step *const steps[] = {
        [STEP_START] = take_start,         [STEP_START_LF] = take_start_lf,
        [STEP_METHOD] = take_method,       [STEP_TARGET] = take_target,
        [STEP_STAR] = take_star,           [STEP_SCHEME] = take_scheme,
        [STEP_AUTHORITY] = take_authority, [STEP_PATH] = take_path,
        [STEP_QUERY] = take_query,         [STEP_VERSION] = take_version,
        [STEP_ANSWER] = take_answer,       [STEP_STATUS] = take_status,
        [STEP_REASON] = take_reason,       [STEP_END] = take_end,
        [STEP_END_LF] = take_end,          [STEP_LINES] = head_lines,
    };
    size_t at = 0;

    if (bytes.len > HTTP_HEAD_MAX - head->total)
        bytes.len = HTTP_HEAD_MAX - head->total;
    while (head->state == HTTP_HEAD_MORE && at < bytes.len)
        at += steps[head->step](head, span_skip(bytes, at));
    head->total += (uint32_t)at;
    if (head->state == HTTP_HEAD_MORE && head->total == HTTP_HEAD_MAX)
        head_alien(head);
    return at;
}

size_t http_head_feed(struct http_head *head, struct span bytes)
{
    size_t used;

    if (head->like_last && head->state == HTTP_HEAD_MORE && bytes.len > 0) {
        used = head_same(head, bytes);
        if (used > 0)
            return used;
        init(head);
    }
    bool first = head->total == 0;
    used = feed(head, bytes);
    if (first && head->state == HTTP_HEAD_DONE && !head->response)
        head_keep(head, span_of(bytes.ptr, used));
    return used;
}
