#include "http/body.h"

enum { LINE_MAX_BYTES = 64 * 1024 };

/* body->step: what the next byte belongs to */
enum body_step {
    BODY_PLAIN, /* payload up to the length, or to the end of the connection */
    CHUNK_SIZE, /* before its first digit */
    CHUNK_DIGITS,
    CHUNK_BLANKS, /* after it; old servers pad it */
    CHUNK_EXTENSION,
    CHUNK_SIZE_LF, /* after the CR of its line */
    CHUNK_DATA,
    CHUNK_CR,
    CHUNK_LF,
    TRAILER, /* before a line's first byte */
    TRAILER_LINE,
    TRAILER_LF, /* after the CR of the last, empty one */
};

static void go_to(struct http_body *body, enum body_step step)
{
    body->step = (uint8_t)step;
}

static void init(struct http_body *body, enum body_step step, uint64_t left)
{
    body->state = HTTP_BODY_MORE;
    body->until_close = false;
    body->line_len = 0;
    body->left = left;
    go_to(body, step);
}

static void init_none(struct http_body *body)
{
    init(body, BODY_PLAIN, 0);
    body->state = HTTP_BODY_DONE;
}

void http_body_init_request(struct http_body *body, const struct http_head_facts *head)
{
    if (head->chunked)
        init(body, CHUNK_SIZE, 0);
    else if (head->has_length && head->length > 0)
        init(body, BODY_PLAIN, head->length);
    else
        init_none(body);
}

void http_body_init_response(struct http_body *body, const struct http_head_facts *head,
                             bool head_only)
{
    if (head_only || head->status < 200 || head->status == 204 || head->status == 304) {
        init_none(body);
    } else if (head->chunked || (head->has_length && !head->coded)) {
        http_body_init_request(body, head);
    } else {
        init(body, BODY_PLAIN, UINT64_MAX);
        body->until_close = true;
    }
}

static void broken(struct http_body *body)
{
    body->state = HTTP_BODY_ALIEN;
}

static int hex_value(char c)
{
    char lower = span_lower(c);

    if (c >= '0' && c <= '9')
        return c - '0';
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static void begin_size(struct http_body *body)
{
    body->line_len = 0;
    go_to(body, CHUNK_SIZE);
}

static void end_of_size(struct http_body *body)
{
    body->line_len = 0;
    go_to(body, body->left > 0 ? CHUNK_DATA : TRAILER);
}

/* A byte behind the digits of a size. */
static void after_size(struct http_body *body, char c)
{
    switch (c) {
    case ' ':
    case '\t':
        go_to(body, CHUNK_BLANKS);
        break;
    case ';':
        go_to(body, CHUNK_EXTENSION);
        break;
    case '\r':
        go_to(body, CHUNK_SIZE_LF);
        break;
    case '\n':
        end_of_size(body);
        break;
    default:
        broken(body);
    }
}

static void size_byte(struct http_body *body, char c)
{
    int value = hex_value(c);

    if (value < 0) {
        if (body->step == CHUNK_SIZE)
            broken(body);
        else
            after_size(body, c);
    } else if (body->left >> 60) {
        broken(body);
    } else {
        body->left = body->left << 4 | (uint64_t)value;
        go_to(body, CHUNK_DIGITS);
    }
}

static void trailer_byte(struct http_body *body, char c)
{
    if (c == '\n')
        body->state = HTTP_BODY_DONE;
    else
        go_to(body, c == '\r' ? TRAILER_LF : TRAILER_LINE);
}

/* One byte of the framing. */
static void framing_byte(struct http_body *body, char c)
{
    switch (body->step) {
    case CHUNK_SIZE:
    case CHUNK_DIGITS:
        size_byte(body, c);
        break;
    case CHUNK_BLANKS:
        after_size(body, c);
        break;
    case CHUNK_SIZE_LF:
        if (c == '\n')
            end_of_size(body);
        else
            broken(body);
        break;
    case CHUNK_CR:
    case CHUNK_LF:
        if (c == '\n')
            begin_size(body);
        else if (c == '\r' && body->step == CHUNK_CR)
            go_to(body, CHUNK_LF);
        else
            broken(body);
        break;
    case TRAILER:
        trailer_byte(body, c);
        break;
    case TRAILER_LF:
        if (c == '\n')
            body->state = HTTP_BODY_DONE;
        else
            broken(body);
        break;
    default: /* the other steps take runs */
        broken(body);
    }
}

/* Looks over the inside of an extension or of a trailer's line. */
static size_t skip_line(struct http_body *body, struct span bytes)
{
    const char *end = memchr(bytes.ptr, '\n', bytes.len);
    size_t len = end ? (size_t)(end - bytes.ptr) + 1 : bytes.len;

    if (len > LINE_MAX_BYTES - body->line_len) {
        broken(body);
        return len;
    }
    body->line_len += (uint32_t)len;
    if (end && body->step == CHUNK_EXTENSION) {
        end_of_size(body);
    } else if (end) {
        body->line_len = 0;
        go_to(body, TRAILER);
    }
    return len;
}

static size_t take_framing(struct http_body *body, struct span bytes)
{
    if (body->step == CHUNK_EXTENSION || body->step == TRAILER_LINE)
        return skip_line(body, bytes);
    if (body->line_len == LINE_MAX_BYTES) {
        broken(body);
        return 1;
    }
    body->line_len++;
    framing_byte(body, bytes.ptr[0]);
    return 1;
}

/* A run of payload, as long as there is. */
static size_t take_payload(struct http_body *body, struct span bytes, struct span *payload)
{
    size_t len = bytes.len < body->left ? bytes.len : (size_t)body->left;

    *payload = span_of(bytes.ptr, len);
    if (body->until_close)
        return len;
    body->left -= len;
    if (body->left == 0 && body->step == CHUNK_DATA)
        go_to(body, CHUNK_CR);
    else if (body->left == 0)
        body->state = HTTP_BODY_DONE;
    return len;
}

/* The framing up to a run of payload, and that run. */
static __attribute__((noinline)) size_t take_framed(struct http_body *body, struct span bytes,
                                                    struct span *payload)
{
    size_t at = 0;

    while (body->state == HTTP_BODY_MORE && at < bytes.len) {
        struct span rest = span_skip(bytes, at);
        if (body->step == CHUNK_DATA)
            return at + take_payload(body, rest, payload);
        at += take_framing(body, rest);
    }
    return at;
}

size_t http_body_feed(struct http_body *body, struct span bytes, struct span *payload)
{
    *payload = span_of(bytes.ptr, 0);
    if (body->state != HTTP_BODY_MORE || bytes.len == 0)
        return 0;
    if (body->step == BODY_PLAIN)
        return take_payload(body, bytes, payload);
    return take_framed(body, bytes, payload);
}
