/*
 * span.h - a borrowed run of bytes: pointer and length, never owned, not NUL-terminated.
 *
 * A span lives as long as what it points into. An absent value is SPAN_NONE (ptr NULL); an empty
 * value has ptr != NULL and len 0. All functions are pure, async-signal-safe and thread-safe.
 */
#ifndef BREAKER_BASE_SPAN_H
#define BREAKER_BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct span {
    const char *ptr;
    size_t len;
};

#define SPAN_NONE ((struct span){NULL, 0})
/* Also an initializer of static storage. */
#define SPAN_LIT(literal) ((struct span){(literal), sizeof(literal) - 1})

static inline struct span span_of(const char *ptr, size_t len)
{
    return (struct span){ptr, len};
}

/* The span over a C string; SPAN_NONE for NULL. */
static inline struct span span_str(const char *cstr)
{
    return cstr ? (struct span){cstr, strlen(cstr)} : SPAN_NONE;
}

static inline bool span_eq(struct span a, struct span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* ASCII lower case, independent of the locale (tolower() is not). */
static inline char span_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* Equality that ignores ASCII case; mostly there is nothing to ignore. */
static inline bool span_ieq(struct span a, struct span b)
{
    if (a.len != b.len)
        return false;
    if (span_eq(a, b))
        return true;
    for (size_t i = 0; i < a.len; i++)
        if (a.ptr[i] != b.ptr[i] && span_lower(a.ptr[i]) != span_lower(b.ptr[i]))
            return false;
    return true;
}

static inline bool span_starts(struct span s, struct span prefix)
{
    return s.len >= prefix.len && span_eq(span_of(s.ptr, prefix.len), prefix);
}

/* The same, whatever the ASCII case. */
static inline bool span_istarts(struct span s, struct span prefix)
{
    return s.len >= prefix.len && span_ieq(span_of(s.ptr, prefix.len), prefix);
}

static inline bool span_ends(struct span s, struct span suffix)
{
    return s.len >= suffix.len &&
           span_eq(span_of(s.ptr + (s.len - suffix.len), suffix.len), suffix);
}

/* What is left after dropping the first `n` bytes; `n` is clamped to the length. */
static inline struct span span_skip(struct span s, size_t n)
{
    if (n > s.len)
        n = s.len;
    return (struct span){s.ptr + n, s.len - n};
}

/* What stands before the first `stop`; all of it where there is none. */
static inline struct span span_until(struct span s, char stop)
{
    const char *end = s.len > 0 ? memchr(s.ptr, stop, s.len) : NULL;

    return end ? span_of(s.ptr, (size_t)(end - s.ptr)) : s;
}

/* The same, taken off *s together with the `stop`. */
static inline struct span span_take(struct span *s, char stop)
{
    struct span taken = span_until(*s, stop);

    *s = span_skip(*s, taken.len + 1);
    return taken;
}

/* A C0 control character, or DEL: what no line, name or header may hold. */
static inline bool span_has_control(struct span s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.ptr[i] < 0x20 || s.ptr[i] == 0x7f)
            return true;
    return false;
}

/* Without blanks and tabs at both ends. */
static inline struct span span_trim(struct span s)
{
    for (; s.len > 0 && (s.ptr[0] == ' ' || s.ptr[0] == '\t'); s.len--)
        s.ptr++;
    while (s.len > 0 && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
        s.len--;
    return s;
}

#endif
