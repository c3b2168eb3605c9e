/* libFuzzer: a stream of HTTP/1 messages, read whole and in pieces. Both must come to the same end,
 * and no answer may leave its bounds.
 *
 * The input: "<kind><3 bytes>\n" and the stream. kind: 'q' requests, 's' responses, 'h' responses
 * to HEAD (of another byte: its lowest two bits). The 3 bytes choose where the stream is cut.
 * Whole requests are read as those of one connection, each compared with the last one first; cut
 * ones each for itself. */
#include "cut.h"

#include "http/body.h"

enum { WALL = 784111777, MESSAGES_MAX = 64 };

/* One reader of a stream. */
struct reader {
    bool responses, head_only, in_body, over;
    bool compares; /* with the request before */
    unsigned messages;
    size_t consumed;
    uint64_t payload_hash, payload_len, message_len, facts_hash;
    struct http_head head;
    struct http_body body;
};

static void add(uint64_t *hash, const void *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        *hash = (*hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
}

static void add_number(uint64_t *hash, uint64_t number)
{
    add(hash, &number, sizeof number);
}

static void begin_head(struct reader *reader)
{
    if (!reader->compares || reader->messages == 0)
        memset(&reader->head, 0xa5, sizeof reader->head); /* what stood there must not matter */
    if (reader->compares && reader->messages > 0)
        http_head_next_request(&reader->head);
    else if (reader->responses)
        http_head_init_response(&reader->head);
    else
        http_head_init_request(&reader->head);
    reader->in_body = false;
    reader->message_len = 0;
}

static void check_facts(const struct http_head_facts *facts, bool response)
{
    MUST(facts->minor <= 1);
    MUST(!(facts->chunked && facts->coded));
    MUST(facts->method_len < sizeof facts->method);
    MUST(facts->path_len <= sizeof facts->path);
    MUST(facts->host_len <= sizeof facts->host);
    MUST(http_head_retry_ms(facts, WALL) <= 24 * 60 * 60 * 1000);
    MUST(!facts->retry_is_date || facts->retry_after_ms == 0);
    if (response) {
        MUST(facts->status >= 100 && facts->status <= 999);
        MUST(facts->method_len == 0 && facts->path_len == 0 && facts->host_len == 0);
    } else {
        MUST(facts->method_len >= 3);
        MUST(!facts->coded && facts->status == 0 && http_head_retry_ms(facts, WALL) == 0);
        MUST(facts->path_len == 0 || facts->path[0] == '/' || facts->path[0] == '*');
        MUST(!facts->absolute || facts->host_len > 0);
    }
}

static void add_facts(uint64_t *hash, const struct http_head_facts *facts)
{
    const uint64_t numbers[] = {
        facts->status,         facts->minor,
        facts->has_length,     facts->chunked,
        facts->coded,          facts->close,
        facts->upgrade,        facts->absolute,
        facts->length,         facts->method_len,
        facts->path_len,       facts->host_len,
        facts->retry_after_ms, (uint64_t)facts->retry_at_s,
    };

    add(hash, numbers, sizeof numbers);
    add(hash, facts->method, facts->method_len);
    add(hash, facts->path, facts->path_len);
    add(hash, facts->host, facts->host_len);
}

static size_t read_head(struct reader *reader, struct span bytes)
{
    size_t used = http_head_feed(&reader->head, bytes);

    MUST(used <= bytes.len);
    if (reader->head.state == HTTP_HEAD_MORE) {
        MUST(used == bytes.len);
    } else if (reader->head.state == HTTP_HEAD_ALIEN) {
        reader->over = true;
    } else {
        const struct http_head_facts *facts = &reader->head.facts;
        MUST(used > 0 && bytes.ptr[used - 1] == '\n');
        check_facts(facts, reader->responses);
        add_facts(&reader->facts_hash, facts);
        if (reader->responses)
            http_body_init_response(&reader->body, facts, reader->head_only);
        else
            http_body_init_request(&reader->body, facts);
        reader->in_body = true;
        MUST(http_head_feed(&reader->head, bytes) == 0);
    }
    return used;
}

static size_t read_body(struct reader *reader, struct span bytes)
{
    struct span payload = SPAN_NONE;
    size_t used = http_body_feed(&reader->body, bytes, &payload);

    MUST(used >= 1 && used <= bytes.len);
    MUST(payload.ptr >= bytes.ptr && payload.len <= used);
    MUST(payload.len == 0 || payload.ptr + payload.len == bytes.ptr + used);
    add(&reader->payload_hash, payload.ptr, payload.len);
    reader->payload_len += payload.len;
    reader->message_len += payload.len;
    return used;
}

/* Ends a message that is complete. */
static void settle(struct reader *reader)
{
    if (!reader->in_body || reader->body.state == HTTP_BODY_MORE)
        return;
    if (reader->body.state == HTTP_BODY_DONE) {
        const struct http_head_facts *facts = &reader->head.facts;
        struct span payload;
        MUST(facts->chunked || reader->message_len == 0 || reader->message_len == facts->length);
        MUST(http_body_feed(&reader->body, SPAN_LIT("x"), &payload) == 0 && payload.len == 0);
    }
    add_number(&reader->facts_hash, reader->body.state);
    reader->over = reader->body.state == HTTP_BODY_ALIEN || ++reader->messages == MESSAGES_MAX;
    if (!reader->over)
        begin_head(reader);
}

static void read_piece(void *of, struct span piece)
{
    struct reader *reader = of;

    for (size_t at = 0; at < piece.len && !reader->over;) {
        struct span rest = span_skip(piece, at);
        size_t used = reader->in_body ? read_body(reader, rest) : read_head(reader, rest);
        at += used;
        reader->consumed += used;
        settle(reader);
    }
}

static void begin(struct reader *reader, unsigned kind, bool compares)
{
    memset(reader, 0, sizeof *reader);
    reader->responses = kind != ('q' & 3);
    reader->compares = compares && !reader->responses;
    reader->head_only = kind == ('h' & 3);
    begin_head(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct reader whole, cut;

    struct span stream = cut_copy(data, size);
    if (!stream.ptr)
        return 0;
    begin(&whole, data[0] & 3, true);
    read_piece(&whole, stream);
    begin(&cut, data[0] & 3, false);
    cut_read(read_piece, &cut, stream, data + 1);
    free((void *)(uintptr_t)stream.ptr);
    MUST(whole.over == cut.over && whole.in_body == cut.in_body);
    MUST(whole.messages == cut.messages);
    MUST(whole.head.state == cut.head.state);
    MUST(!whole.in_body || whole.body.state == cut.body.state);
    MUST(whole.facts_hash == cut.facts_hash);
    MUST(whole.payload_len == cut.payload_len && whole.payload_hash == cut.payload_hash);
    MUST(whole.head.state == HTTP_HEAD_ALIEN ||
         (whole.in_body && whole.body.state == HTTP_BODY_ALIEN) || whole.consumed == cut.consumed);
    return 0;
}
