/* Grows a JSON document out of any bytes: an object without two members of one name, in which the
 * one looked for may stand anywhere, and its text everywhere. */
#ifndef BREAKER_TESTS_FUZZ_GROW_JSON_H
#define BREAKER_TESTS_FUZZ_GROW_JSON_H

#include "cut.h"

enum { GROW_DEPTH = 40, GROW_MAX = 1 << 16 };

struct grow {
    struct span seed; /* what is left of it; at its end everything closes */
    struct span name;
    char *text; /* malloc'ed, GROW_MAX bytes */
    size_t len;
    unsigned members; /* so far: part of each name but the one looked for */
};

static inline unsigned char grow_byte(struct grow *grow)
{
    unsigned char byte = grow->seed.len > 0 ? (unsigned char)grow->seed.ptr[0] : 0;

    grow->seed = span_skip(grow->seed, 1);
    return byte;
}

static inline void grow_put(struct grow *grow, struct span text)
{
    MUST(text.len <= GROW_MAX - grow->len);
    memcpy(grow->text + grow->len, text.ptr, text.len);
    grow->len += text.len;
}

static inline void grow_blanks(struct grow *grow)
{
    static const struct span blanks[] = {SPAN_LIT(" "), SPAN_LIT("\n  "), SPAN_LIT("\r\n\t"),
                                         SPAN_LIT("                                        ")};
    unsigned char byte = grow->seed.len > 0 ? (unsigned char)grow->seed.ptr[0] : 0;

    if (byte % 16 < 4)
        grow_put(grow, blanks[byte % 4]);
}

/* What a string is made of; the byte's lowest bits say what comes next. */
static inline void grow_string_part(struct grow *grow, unsigned char byte)
{
    static const struct span parts[] = {
        SPAN_LIT("\\\""),
        SPAN_LIT("\\\\"),
        SPAN_LIT("\\/"),
        SPAN_LIT("\\n"),
        SPAN_LIT("\\u0041"),
        SPAN_LIT("\\ud83d\\ude00"),
        SPAN_LIT("\\u00e9"),
        SPAN_LIT("\xe2\x82\xac"),
        SPAN_LIT("{"),
        SPAN_LIT("}"),
        SPAN_LIT("]"),
        SPAN_LIT(","),
        SPAN_LIT(":"),
        SPAN_LIT("gpt-4o"),
        SPAN_LIT("\\\",\\\"model\\\":\\\"x"),
        SPAN_LIT("\x7f"),
        SPAN_LIT("0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz")};

    grow_put(grow, parts[byte % (sizeof parts / sizeof *parts)]);
}

static inline void grow_string(struct grow *grow)
{
    unsigned parts = grow_byte(grow) % 8;

    grow_put(grow, SPAN_LIT("\""));
    while (parts-- > 0 && grow->seed.len > 0)
        grow_string_part(grow, grow_byte(grow));
    grow_put(grow, SPAN_LIT("\""));
}

/* The name looked for, each letter maybe escaped. */
static inline void grow_own_name(struct grow *grow)
{
    char escaped[8];

    grow_put(grow, SPAN_LIT("\""));
    for (size_t i = 0; i < grow->name.len; i++) {
        if (grow_byte(grow) % 8 == 7) {
            sprintf(escaped, "\\u%04X", grow->name.ptr[i]);
            grow_put(grow, span_str(escaped));
        } else {
            grow_put(grow, span_of(grow->name.ptr + i, 1));
        }
    }
    grow_put(grow, SPAN_LIT("\""));
}

/* Another name than all others: like the one looked for, and longer. */
static inline void grow_name(struct grow *grow)
{
    static const char *const forms[] = {"\"%.*s%u\"", "\"\\n%.*s%u\"", "\"\\\"%.*s%u\"",
                                        "\"%.*s\\\"%u\""};
    char text[64];
    int own = (int)(grow_byte(grow) % (grow->name.len + 1));

    snprintf(text, sizeof text, forms[grow_byte(grow) % 4], own, grow->name.ptr, grow->members++);
    grow_put(grow, span_str(text));
}

static inline void grow_value(struct grow *grow, unsigned depth);

static inline void grow_members(struct grow *grow, unsigned depth, char opener)
{
    unsigned count = grow_byte(grow) % (depth == 0 ? 12 : 6);
    bool named = false;

    grow_put(grow, span_of(&opener, 1));
    for (unsigned i = 0; i < count && grow->seed.len > 0 && grow->len < GROW_MAX / 2; i++) {
        if (i > 0)
            grow_put(grow, SPAN_LIT(","));
        grow_blanks(grow);
        if (opener == '{') {
            bool ours = !named && grow_byte(grow) % 4 == 0;
            named |= ours;
            ours ? grow_own_name(grow) : grow_name(grow);
            grow_blanks(grow);
            grow_put(grow, SPAN_LIT(":"));
            grow_blanks(grow);
        }
        grow_value(grow, depth + 1);
        grow_blanks(grow);
    }
    grow_put(grow, opener == '{' ? SPAN_LIT("}") : SPAN_LIT("]"));
}

static inline void grow_value(struct grow *grow, unsigned depth)
{
    static const struct span words[] = {SPAN_LIT("true"), SPAN_LIT("null"), SPAN_LIT("-0.5e+3"),
                                        SPAN_LIT("0"), SPAN_LIT("\"\"")};
    unsigned char byte = grow_byte(grow);

    if (byte % 4 == 0)
        grow_put(grow, words[byte / 4 % (sizeof words / sizeof *words)]);
    else if (byte % 4 == 1 && depth < GROW_DEPTH)
        grow_members(grow, depth, byte & 4 ? '{' : '[');
    else
        grow_string(grow);
}

/* free() its ptr, a block of just this length. */
static inline struct span grow_json(struct span seed, struct span name)
{
    struct grow grow = {.seed = seed, .name = name, .text = malloc(GROW_MAX)};

    MUST(grow.text);
    grow_members(&grow, 0, '{');
    char *text = realloc(grow.text, grow.len);
    MUST(text);
    return span_of(text, grow.len);
}

#endif
