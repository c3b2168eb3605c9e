#include "config/variable.h"

enum piece { PIECE_TEXT, PIECE_NAME, PIECE_END, PIECE_BROKEN };

static bool is_name_char(char c, bool first)
{
    char lower = span_lower(c);

    return (lower >= 'a' && lower <= 'z') || c == '_' || (!first && c >= '0' && c <= '9');
}

/* Behind "${": the name, with '}' behind it; SPAN_NONE: it is none. */
static struct span name_in(struct span text)
{
    size_t len = 0;

    while (len < text.len && is_name_char(text.ptr[len], len == 0))
        len++;
    if (len == 0 || len > VARIABLE_NAME_MAX || len == text.len || text.ptr[len] != '}')
        return SPAN_NONE;
    return span_of(text.ptr, len);
}

/* Takes the next piece off *text: bytes that stand for themselves, or a variable's name. A broken
 * one stays. */
static enum piece take_piece(struct span *text, struct span *piece)
{
    if (text->len == 0)
        return PIECE_END;
    if (text->ptr[0] != '$') {
        *piece = span_until(*text, '$');
        *text = span_skip(*text, piece->len);
        return PIECE_TEXT;
    }
    if (span_starts(*text, SPAN_LIT("$$"))) {
        *piece = span_of(text->ptr, 1);
        *text = span_skip(*text, 2);
        return PIECE_TEXT;
    }
    *piece = span_starts(*text, SPAN_LIT("${")) ? name_in(span_skip(*text, 2)) : SPAN_NONE;
    if (!piece->ptr)
        return PIECE_BROKEN;
    *text = span_skip(*text, piece->len + 3);
    return PIECE_NAME;
}

bool variable_next(struct span *text, struct span *name)
{
    enum piece kind;

    do
        kind = take_piece(text, name);
    while (kind == PIECE_TEXT);
    return kind == PIECE_NAME;
}

bool variable_is_usable(const char *value)
{
    return value && *value && !strpbrk(value, "\r\n");
}

static enum variable_result expand(struct span text, const char *(*look_up)(const char *name),
                                   char *buf, size_t size, struct span *culprit)
{
    char name[VARIABLE_NAME_MAX + 1];
    struct span piece;
    size_t at = 0;
    enum piece kind;

    while ((kind = take_piece(&text, &piece)) == PIECE_TEXT || kind == PIECE_NAME) {
        struct span bytes = piece;
        if (kind == PIECE_NAME) {
            memcpy(name, piece.ptr, piece.len);
            name[piece.len] = '\0';
            const char *value = look_up(name);
            if (!variable_is_usable(value)) {
                *culprit = piece;
                return VARIABLE_UNSET;
            }
            bytes = span_str(value);
        }
        if (bytes.len >= size - at)
            return VARIABLE_TOO_LONG;
        memcpy(buf + at, bytes.ptr, bytes.len);
        at += bytes.len;
    }
    buf[at] = '\0';
    return kind == PIECE_END ? VARIABLE_GOOD : VARIABLE_BROKEN;
}

enum variable_result variable_expand(const char *text, const char *(*look_up)(const char *name),
                                     char *buf, size_t size, struct span *culprit)
{
    struct span unset;

    if (size == 0)
        return VARIABLE_TOO_LONG;
    enum variable_result result = expand(span_str(text), look_up, buf, size, &unset);
    if (result != VARIABLE_GOOD)
        buf[0] = '\0';
    if (result == VARIABLE_UNSET && culprit)
        *culprit = unset;
    return result;
}
