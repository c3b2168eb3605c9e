#include "http/model_scan.h"

#include "http/block.h"
#include "http/model_scan_parts.h"

/* scan->escape inside a name or the model: 0 none, 1 after a backslash, 2-5 before the 1st to 4th
 * digit of \uXXXX */
#define ESCAPE_NONE  0
#define ESCAPE_BEGUN 1
#define ESCAPE_HEX   2
#define ESCAPE_END   6

_Static_assert(sizeof(struct model_scan) <= 512, "fits where its users keep it");

void model_scan_init(struct model_scan *scan, struct span name)
{
    scan->name = name;
    scan->skip = (struct json_skip){0};
    scan->mode = SCAN_START;
    scan->matched = scan->value_len = scan->flags = scan->surrogate = 0;
    scan->code_point = 0;
    scan->escape = scan->bytes_seen = scan->boundary_len = 0;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* --- strings with escapes: member names and the model ------------------------------------------
 */

/* One decoded byte of the name or of the model. */
static void emit(struct model_scan *scan, unsigned char byte)
{
    if (scan->mode == SCAN_NAME) {
        if (scan->matched < scan->name.len && (unsigned char)scan->name.ptr[scan->matched] == byte)
            scan->matched++;
        else
            scan->flags |= SCAN_NAME_DIFFERS;
        return;
    }
    if (byte < 0x20 || byte == 0x7f || scan->value_len == MODEL_MAX)
        scan_set(scan, SCAN_ABSENT);
    else
        scan->value[scan->value_len++] = (char)byte;
}

static void emit_utf8(struct model_scan *scan, uint32_t c)
{
    if (c < 0x80) {
        emit(scan, (unsigned char)c);
        return;
    }
    if (c < 0x800) {
        emit(scan, (unsigned char)(0xc0 | c >> 6));
    } else {
        if (c < 0x10000) {
            emit(scan, (unsigned char)(0xe0 | c >> 12));
        } else {
            emit(scan, (unsigned char)(0xf0 | c >> 18));
            emit(scan, (unsigned char)(0x80 | (c >> 12 & 0x3f)));
        }
        emit(scan, (unsigned char)(0x80 | (c >> 6 & 0x3f)));
    }
    emit(scan, (unsigned char)(0x80 | (c & 0x3f)));
}

/* A high surrogate that its low half did not follow. */
static void flush_surrogate(struct model_scan *scan)
{
    if (scan->surrogate) {
        scan->surrogate = 0;
        emit_utf8(scan, 0xfffd);
    }
}

static void end_unicode_escape(struct model_scan *scan)
{
    uint32_t c = scan->code_point;

    scan->escape = ESCAPE_NONE;
    if (c >= 0xdc00 && c < 0xe000 && scan->surrogate) {
        c = 0x10000 + ((uint32_t)(scan->surrogate - 0xd800) << 10) + (c - 0xdc00);
        scan->surrogate = 0;
        emit_utf8(scan, c);
        return;
    }
    flush_surrogate(scan);
    if (c >= 0xd800 && c < 0xdc00)
        scan->surrogate = (uint16_t)c;
    else
        emit_utf8(scan, c >= 0xdc00 && c < 0xe000 ? 0xfffd : c);
}

static void hex_digit(struct model_scan *scan, char c)
{
    char lower = span_lower(c);
    int value = c >= '0' && c <= '9'           ? c - '0'
                : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10
                                               : -1;

    if (value < 0) {
        scan_set(scan, SCAN_ABSENT);
        return;
    }
    scan->code_point = scan->code_point << 4 | (uint32_t)value;
    if (++scan->escape == ESCAPE_END)
        end_unicode_escape(scan);
}

static void escape_letter(struct model_scan *scan, char c)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meaning[] = "\"\\/\b\f\n\r\t";
    const char *at = c ? strchr(letters, c) : NULL;

    if (c == 'u') {
        scan->escape = ESCAPE_HEX;
        scan->code_point = 0;
        return;
    }
    scan->escape = ESCAPE_NONE;
    flush_surrogate(scan);
    if (at)
        emit(scan, (unsigned char)meaning[at - letters]);
    else
        scan_set(scan, SCAN_ABSENT);
}

static void end_of_string(struct model_scan *scan)
{
    if (scan->mode == SCAN_NAME) {
        if (!(scan->flags & SCAN_NAME_DIFFERS) && scan->matched == scan->name.len)
            scan->flags |= SCAN_NAME_MATCHED;
        scan_set(scan, SCAN_COLON);
    } else if (scan->mode == SCAN_MODEL) {
        scan_set(scan, scan->value_len > 0 ? SCAN_FOUND : SCAN_ABSENT);
    }
}

static void string_byte(struct model_scan *scan, char c)
{
    if (scan->escape == ESCAPE_BEGUN) {
        escape_letter(scan, c);
    } else if (scan->escape != ESCAPE_NONE) {
        hex_digit(scan, c);
    } else if (c == '\\') {
        scan->escape = ESCAPE_BEGUN;
    } else {
        flush_surrogate(scan);
        if (c == '"')
            end_of_string(scan);
        else
            emit(scan, (unsigned char)c);
    }
}

/* The length of the run of bytes at the start that stand for themselves. */
static size_t plain_run(struct span bytes)
{
    return block_find(bytes.ptr, bytes.len, '"', '\\');
}

static bool has_control(struct span bytes)
{
    bool found = false;

    for (size_t i = 0; i < bytes.len; i++)
        found |= (unsigned char)bytes.ptr[i] < 0x20 || bytes.ptr[i] == 0x7f;
    return found;
}

/* Where nothing is escaped, a run of the name is compared as a whole, and one of the model copied.
 * Returns how many bytes were taken; 0: to be taken one by one. */
static size_t take_run(struct model_scan *scan, struct span bytes)
{
    size_t len = scan->escape == ESCAPE_NONE && !scan->surrogate ? plain_run(bytes) : 0;

    if (scan->mode == SCAN_NAME) {
        if (len > scan->name.len - scan->matched ||
            memcmp(bytes.ptr, scan->name.ptr + scan->matched, len) != 0)
            scan->flags |= SCAN_NAME_DIFFERS;
        else
            scan->matched = (uint16_t)(scan->matched + len);
        return len;
    }
    if (len > (size_t)MODEL_MAX - scan->value_len || has_control(span_of(bytes.ptr, len))) {
        scan_set(scan, SCAN_ABSENT);
        return len;
    }
    memcpy(scan->value + scan->value_len, bytes.ptr, len);
    scan->value_len = (uint16_t)(scan->value_len + len);
    return len;
}

static size_t string_bytes(struct model_scan *scan, struct span bytes)
{
    size_t taken = take_run(scan, bytes);

    if (taken == 0) {
        string_byte(scan, bytes.ptr[0]);
        taken = 1;
    }
    return taken;
}

/* --- the top level -----------------------------------------------------------------------------
 */

static void start_byte(struct model_scan *scan, char c)
{
    static const char bom[] = "\xef\xbb\xbf";

    if (scan->matched < 3 && c == bom[scan->matched] && scan->bytes_seen == scan->matched) {
        scan->matched++;
        scan->bytes_seen++; /* while all of them belong to a byte order mark */
        return;
    }
    scan->bytes_seen = 4;
    if (c == '{') {
        scan_set(scan, SCAN_MEMBER);
    } else if (c == '-') {
        scan->boundary[0] = '-';
        scan->boundary_len = 1;
        scan_set(scan, SCAN_BOUNDARY);
    } else if (!is_space(c)) {
        scan_set(scan, SCAN_ABSENT);
    }
}

static size_t skip_spaces(struct span bytes, size_t at)
{
    while (at < bytes.len && is_space(bytes.ptr[at]))
        at++;
    return at;
}

/* A member's name and colon in one go, when they stand here whole and nothing in them is escaped.
 * Returns how many bytes were taken; 0: to be taken one by one. */
static size_t take_member(struct model_scan *scan, struct span bytes)
{
    size_t at = skip_spaces(bytes, *bytes.ptr == ','), name = at + 1;

    if (at == bytes.len || bytes.ptr[at] != '"')
        return 0;
    size_t len = plain_run(span_skip(bytes, name)), end = name + len;
    if (end == bytes.len || bytes.ptr[end] != '"')
        return 0;
    at = skip_spaces(bytes, end + 1);
    if (at == bytes.len || bytes.ptr[at] != ':')
        return 0;
    scan->flags = span_eq(span_of(bytes.ptr + name, len), scan->name) ? SCAN_NAME_MATCHED : 0;
    scan_set(scan, SCAN_VALUE);
    return at + 1;
}

static size_t member_bytes(struct model_scan *scan, struct span bytes)
{
    size_t blanks =
        skip_spaces(bytes, 0); /* taken first, or each of a long run would see the rest */
    size_t taken = blanks > 0 ? blanks : take_member(scan, bytes);
    char c = *bytes.ptr;

    if (taken > 0)
        return taken;
    if (c == '"') {
        scan->matched = scan->flags = 0;
        scan_set(scan, SCAN_NAME);
    } else if (c != ',' && !is_space(c)) {
        scan_set(scan, SCAN_ABSENT); /* the end of the object, or no JSON */
    }
    return 1;
}

static void value_byte(struct model_scan *scan, char c)
{
    bool ours = scan->flags & SCAN_NAME_MATCHED;

    if (is_space(c))
        return;
    if (ours) {
        scan_set(scan, c == '"' ? SCAN_MODEL : SCAN_ABSENT); /* a model that is no string */
    } else if (c == '"' || c == '{' || c == '[') {
        json_skip_begin(&scan->skip, c);
        scan_set(scan, SCAN_OTHER);
    } else {
        scan_set(scan, SCAN_SCALAR);
    }
}

static void scalar_byte(struct model_scan *scan, char c)
{
    if (c == ',')
        scan_set(scan, SCAN_MEMBER);
    else if (c == '}' || c == '"' || c == '{' || c == '[' || c == ']')
        scan_set(scan, SCAN_ABSENT);
}

static size_t other_bytes(struct model_scan *scan, struct span bytes)
{
    size_t taken = json_skip_feed(&scan->skip, bytes);

    if (json_skip_over(&scan->skip))
        scan_set(scan, SCAN_MEMBER);
    return taken;
}

/* Takes at least one byte; returns how many. */
static size_t advance(struct model_scan *scan, struct span bytes)
{
    char c = bytes.ptr[0];

    switch ((enum scan_mode)scan->mode) {
    case SCAN_START:
        start_byte(scan, c);
        break;
    case SCAN_MEMBER:
        return member_bytes(scan, bytes);
    case SCAN_NAME:
    case SCAN_MODEL:
        return string_bytes(scan, bytes);
    case SCAN_COLON:
        if (c == ':')
            scan_set(scan, SCAN_VALUE);
        else if (!is_space(c))
            scan_set(scan, SCAN_ABSENT);
        break;
    case SCAN_VALUE:
        value_byte(scan, c);
        break;
    case SCAN_SCALAR:
        scalar_byte(scan, c);
        break;
    case SCAN_OTHER:
        return other_bytes(scan, bytes);
    case SCAN_BOUNDARY:
    case SCAN_HEADER:
    case SCAN_FIELD:
    case SCAN_CONTENT:
    case SCAN_DELIMITER:
        return model_scan_multipart(scan, bytes);
    case SCAN_FOUND:
    case SCAN_ABSENT:
        return bytes.len;
    }
    return 1;
}

enum model_scan_state model_scan_state(const struct model_scan *scan)
{
    return scan->mode == SCAN_FOUND    ? MODEL_SCAN_FOUND
           : scan->mode == SCAN_ABSENT ? MODEL_SCAN_ABSENT
                                       : MODEL_SCAN_MORE;
}

enum model_scan_state model_scan_feed(struct model_scan *scan, struct span bytes)
{
    while (bytes.len > 0 && model_scan_state(scan) == MODEL_SCAN_MORE)
        bytes = span_skip(bytes, advance(scan, bytes));
    return model_scan_state(scan);
}

enum model_scan_state model_scan_end(struct model_scan *scan)
{
    if (model_scan_state(scan) == MODEL_SCAN_MORE)
        scan_set(scan, SCAN_ABSENT);
    return model_scan_state(scan);
}

struct span model_scan_value(const struct model_scan *scan)
{
    return scan->mode == SCAN_FOUND ? span_of(scan->value, scan->value_len) : SPAN_NONE;
}
