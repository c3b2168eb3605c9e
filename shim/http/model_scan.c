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
    const uint64_t spaces =
        UINT64_C(1) << ' ' | UINT64_C(1) << '\t' | UINT64_C(1) << '\n' | UINT64_C(1) << '\r';

    return (unsigned char)c <= ' ' && (spaces >> c & 1);
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

/* Bytes that stand for themselves: compared with the name as a whole, or added to the model. */
static void add_run(struct model_scan *scan, struct span run)
{
    if (scan->mode == SCAN_NAME) {
        if (run.len > scan->name.len - scan->matched ||
            memcmp(run.ptr, scan->name.ptr + scan->matched, run.len) != 0)
            scan->flags |= SCAN_NAME_DIFFERS;
        else
            scan->matched = (uint16_t)(scan->matched + run.len);
    } else if (run.len > (size_t)MODEL_MAX - scan->value_len) {
        scan_set(scan, SCAN_ABSENT);
    } else {
        memcpy(scan->value + scan->value_len, run.ptr, run.len);
        scan->value_len = (uint16_t)(scan->value_len + run.len);
    }
}

/* A run of such bytes and the one behind it. */
static size_t string_bytes(struct model_scan *scan, struct span bytes)
{
    size_t len = 0;

    if (scan->escape == ESCAPE_NONE && !scan->surrogate) {
        len = scan->mode == SCAN_NAME ? block_find(bytes.ptr, bytes.len, '"', '\\')
                                      : block_find_odd(bytes.ptr, bytes.len);
        add_run(scan, span_of(bytes.ptr, len));
        if (len == bytes.len || scan->mode == SCAN_ABSENT)
            return bytes.len;
    }
    string_byte(scan, bytes.ptr[len]);
    return len + 1;
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

static size_t other_bytes(struct model_scan *scan, struct span bytes)
{
    size_t taken = json_skip_feed(&scan->skip, bytes);

    if (json_skip_over(&scan->skip))
        scan_set(scan, SCAN_MEMBER);
    return taken;
}

/* A member's name, its colon and what begins its value in one go, when they stand here whole and
 * nothing in the name is escaped; and all of a value that is passed over. Returns how many bytes
 * were taken; 0: to be taken one by one. */
static size_t take_member(struct model_scan *scan, struct span bytes)
{
    size_t at = *bytes.ptr == ',' ? skip_spaces(bytes, 1) : 0, name = at + 1;

    if (at == bytes.len || bytes.ptr[at] != '"')
        return 0;
    size_t len = block_find(bytes.ptr + name, bytes.len - name, '"', '\\'), end = name + len;
    if (end == bytes.len || bytes.ptr[end] != '"')
        return 0;
    at = skip_spaces(bytes, end + 1);
    if (at == bytes.len || bytes.ptr[at] != ':')
        return 0;
    scan->flags = span_eq(span_of(bytes.ptr + name, len), scan->name) ? SCAN_NAME_MATCHED : 0;
    scan_set(scan, SCAN_VALUE);
    at = skip_spaces(bytes, at + 1);
    if (at < bytes.len)
        value_byte(scan, bytes.ptr[at++]);
    if (scan->mode == SCAN_OTHER && at < bytes.len)
        at += other_bytes(scan, span_skip(bytes, at));
    return at;
}

static size_t member_bytes(struct model_scan *scan, struct span bytes)
{
    char c = *bytes.ptr;
    /* blanks first, or each of a long run would see the rest */
    size_t taken = is_space(c) ? skip_spaces(bytes, 1) : take_member(scan, bytes);

    if (taken > 0)
        return taken;
    if (c == '"') {
        scan->matched = scan->flags = 0;
        scan_set(scan, SCAN_NAME);
    } else if (c != ',') {
        scan_set(scan, SCAN_ABSENT); /* the end of the object, or no JSON */
    }
    return 1;
}

static void scalar_byte(struct model_scan *scan, char c)
{
    if (c == ',')
        scan_set(scan, SCAN_MEMBER);
    else if (c == '}' || c == '"' || c == '{' || c == '[' || c == ']')
        scan_set(scan, SCAN_ABSENT);
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
    return scan->mode < SCAN_FOUND    ? MODEL_SCAN_MORE
           : scan->mode == SCAN_FOUND ? MODEL_SCAN_FOUND
                                      : MODEL_SCAN_ABSENT;
}

enum model_scan_state model_scan_feed(struct model_scan *scan, struct span bytes)
{
    while (bytes.len > 0 && scan->mode < SCAN_FOUND) {
        size_t taken = advance(scan, bytes);
        bytes = span_of(bytes.ptr + taken, bytes.len - taken);
    }
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
