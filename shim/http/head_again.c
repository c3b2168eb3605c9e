/* A request's head like the one before it: compared, not read. */
#include "http/head_parts.h"

enum {
    DIGITS_MAX = 19,                           /* of a number that always fits */
    KEPT_MAX = HTTP_HEAD_LINE_MAX - DIGITS_MAX /* no line becomes too long by another number */
};

static size_t digits_of(struct span bytes)
{
    size_t len = 0;

    while (len < bytes.len && bytes.ptr[len] >= '0' && bytes.ptr[len] <= '9')
        len++;
    return len;
}

/* Takes the text off the begin of *bytes. */
static bool take(struct span *bytes, const char *text, size_t len)
{
    if (bytes->len < len || memcmp(bytes->ptr, text, len) != 0)
        return false;
    *bytes = span_skip(*bytes, len);
    return true;
}

/* Takes a number that always fits off it. */
static bool take_number(struct span *bytes, uint64_t *number)
{
    size_t len = 0;

    *number = 0;
    for (; len < bytes->len && len <= DIGITS_MAX; len++) {
        unsigned digit = (unsigned char)bytes->ptr[len] - (unsigned)'0';
        if (digit > 9)
            break;
        *number = *number * 10 + digit;
    }
    *bytes = span_skip(*bytes, len);
    return len > 0 && len <= DIGITS_MAX;
}

size_t head_same(struct http_head *head, struct span bytes)
{
    struct span rest = bytes;
    size_t behind = (size_t)head->number_at + head->number_len;
    uint64_t length = 0;

    if (!take(&rest, head->line, head->number_at))
        return 0;
    if (head->number_len > 0 && !take_number(&rest, &length))
        return 0;
    if (!take(&rest, head->line + behind, head->kept_len - behind))
        return 0;
    head->facts.length = length;
    head->total = (uint32_t)(bytes.len - rest.len);
    head->state = HTTP_HEAD_DONE;
    return head->total;
}

void head_keep(struct http_head *head, struct span bytes)
{
    if (bytes.len > KEPT_MAX || (head->seen & SEEN_LENGTHS)) /* lines or a list of them */
        return;
    if (head->facts.has_length) {
        head->number_at = (uint16_t)(head->number - bytes.ptr);
        head->number_len = (uint16_t)digits_of(span_skip(bytes, head->number_at));
    }
    memcpy(head->line, bytes.ptr, bytes.len);
    head->kept_len = (uint16_t)bytes.len;
}

void http_head_next_request(struct http_head *head)
{
    if (head->state == HTTP_HEAD_MORE && head->like_last) /* nothing came since */
        return;
    if (head->state != HTTP_HEAD_DONE || head->kept_len == 0) {
        http_head_init_request(head);
        return;
    }
    head->state = HTTP_HEAD_MORE;
    head->total = 0;
    head->like_last = true;
}

bool http_head_is_again(const struct http_head *head)
{
    return head->like_last;
}
