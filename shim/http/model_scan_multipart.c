/*
 * model_scan_multipart.c - multipart/form-data (RFC 7578): finds one form field among binary parts.
 *
 * The boundary is learnt from the body's first line. A line of a part's head is collected in
 * scan->value, which is free until the field is found; longer lines are cut, the field's name
 * stands at the front of its line.
 */
#include "http/model_scan_parts.h"

/* Finds `needle` in `text` without regard to ASCII case. */
static const char *find_nocase(struct span text, struct span needle)
{
    for (; text.len >= needle.len; text = span_skip(text, 1))
        if (span_istarts(text, needle))
            return text.ptr;
    return NULL;
}

/* What follows "name=" in the parameters of a head line; SPAN_NONE when there is none. */
static struct span name_parameter(struct span line)
{
    const char *at;

    while (line.len > 0 && (at = memchr(line.ptr, ';', line.len))) {
        line = span_skip(line, (size_t)(at - line.ptr) + 1);
        while (line.len > 0 && (line.ptr[0] == ' ' || line.ptr[0] == '\t'))
            line = span_skip(line, 1);
        if (span_istarts(line, SPAN_LIT("name=")))
            return span_skip(line, 5);
    }
    return SPAN_NONE;
}

/* Content-Disposition: form-data; name="model" (quoted or not), and no file. */
static bool names_our_field(const struct model_scan *scan)
{
    struct span line = span_of(scan->value, scan->value_len);

    if (!span_istarts(line, SPAN_LIT("Content-Disposition:")) ||
        find_nocase(line, SPAN_LIT("filename")))
        return false;
    struct span rest = name_parameter(line);
    bool quoted = rest.len > 0 && rest.ptr[0] == '"';
    if (quoted)
        rest = span_skip(rest, 1);
    if (!span_starts(rest, scan->name))
        return false;
    rest = span_skip(rest, scan->name.len);
    return quoted ? rest.len > 0 && rest.ptr[0] == '"'
                  : rest.len == 0 || rest.ptr[0] == ';' || rest.ptr[0] == ' ';
}

static void end_of_header_line(struct model_scan *scan)
{
    if (scan->value_len > 0 && scan->value[scan->value_len - 1] == '\r')
        scan->value_len--;
    if (scan->value_len == 0) {
        scan_set(scan, scan->flags & SCAN_FIELD_IS_OURS ? SCAN_FIELD : SCAN_CONTENT);
        scan->matched = 0;
        return;
    }
    if (names_our_field(scan))
        scan->flags |= SCAN_FIELD_IS_OURS;
    scan->value_len = 0;
}

static void collect(struct model_scan *scan, char c)
{
    if (scan->value_len < MODEL_MAX)
        scan->value[scan->value_len++] = c;
}

/* "--boundary\r\n". scan->escape: the '\r' was seen, so none is ever part of the boundary. */
static void boundary_byte(struct model_scan *scan, char c)
{
    /* NOLINTNEXTLINE(bugprone-branch-clone): how it must not begin, and end */
    if (scan->boundary_len == 1 ? c != '-' : scan->escape && c != '\n') {
        scan_set(scan, SCAN_ABSENT);
    } else if (c == '\r') {
        scan->escape = 1;
    } else if (c == '\n') {
        scan->escape = 0;
        scan_set(scan, scan->boundary_len > 2 ? SCAN_HEADER : SCAN_ABSENT);
    } else if (scan->boundary_len < sizeof scan->boundary) {
        scan->boundary[scan->boundary_len++] = c;
    } else {
        scan_set(scan, SCAN_ABSENT); /* longer than RFC 2046 allows */
    }
}

static void delimiter_byte(struct model_scan *scan, char c)
{
    if (c == '\n') {
        scan->flags = 0;
        scan->value_len = 0;
        scan_set(scan, SCAN_HEADER);
    } else if (c == '-') {
        if (scan->matched++ == 1)
            scan_set(scan, SCAN_ABSENT); /* "--": the last boundary */
    } else if (c != '\r' && c != ' ' && c != '\t') {
        scan->matched = 0; /* a longer word that begins like the boundary */
        scan_set(scan, SCAN_CONTENT);
    }
}

static void field_byte(struct model_scan *scan, char c)
{
    if (c == '\r' || c == '\n')
        scan_set(scan, scan->value_len > 0 ? SCAN_FOUND : SCAN_ABSENT);
    else if ((unsigned char)c < 0x20 || c == 0x7f || scan->value_len == MODEL_MAX)
        scan_set(scan, SCAN_ABSENT);
    else
        collect(scan, c);
}

/* "\r\n" and the boundary. '\r' stands nowhere else in it, so a mismatch starts over. */
static char delimiter_at(const struct model_scan *scan, unsigned i)
{
    return i == 0 ? '\r' : i == 1 ? '\n' : scan->boundary[i - 2];
}

static size_t skip_content(struct model_scan *scan, struct span bytes)
{
    size_t at = 0;

    while (at < bytes.len) {
        if (scan->matched == 0) {
            const char *cr = memchr(bytes.ptr + at, '\r', bytes.len - at);
            if (!cr)
                return bytes.len;
            at = (size_t)(cr - bytes.ptr);
        }
        char c = bytes.ptr[at++];
        if (c == delimiter_at(scan, scan->matched))
            scan->matched++;
        else
            scan->matched = c == '\r';
        if (scan->matched == scan->boundary_len + 2) {
            scan->matched = 0;
            scan_set(scan, SCAN_DELIMITER);
            break;
        }
    }
    return at;
}

size_t model_scan_multipart(struct model_scan *scan, struct span bytes)
{
    char c = bytes.ptr[0];

    switch ((enum scan_mode)scan->mode) {
    case SCAN_BOUNDARY:
        boundary_byte(scan, c);
        break;
    case SCAN_HEADER:
        if (c == '\n')
            end_of_header_line(scan);
        else
            collect(scan, c);
        break;
    case SCAN_FIELD:
        field_byte(scan, c);
        break;
    case SCAN_DELIMITER:
        delimiter_byte(scan, c);
        break;
    case SCAN_CONTENT:
        return skip_content(scan, bytes);
    default:
        scan_set(scan, SCAN_ABSENT);
        break;
    }
    return 1;
}
