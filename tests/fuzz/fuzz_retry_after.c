/* libFuzzer: when an answer says to come again. As a slow reader says it (strptime, a decimal
 * number of any length), the same as headers of a head and as values alone, never later when the
 * clock is.
 *
 * The input: lines "<kind><value>\n", and 8 bytes of a wall clock before them. kind: 'm'
 * retry-after-ms, 'a' x-amz-retry-after, 's' Retry-After (of another byte: modulo 3). Of a kind the
 * first that can be read counts. */
#include "cut.h"

#include "http/head.h"

#include <time.h>

enum { MS_MAX = 24 * 60 * 60 * 1000, LINES_MAX = 32, VALUE_MAX = 200 };

struct said {
    unsigned kind; /* 0 retry-after-ms, 1 x-amz-retry-after, 2 Retry-After */
    struct span value;
};

/* "12", "12.5": as ms, capped; -1: it is no number. Digit by digit, as one does it on paper. */
static int64_t slow_number(struct span text, unsigned unit)
{
    bool fraction = memchr(text.ptr, '.', text.len) != NULL;
    struct span whole = span_take(&text, '.');
    int64_t ms = 0, place = unit;

    if (whole.len == 0 || (fraction && text.len == 0))
        return -1;
    for (size_t i = 0; i < whole.len + text.len; i++) {
        char c = i < whole.len ? whole.ptr[i] : text.ptr[i - whole.len];
        if (c < '0' || c > '9')
            return -1;
        if (i < whole.len)
            ms = ms * 10 + (int64_t)unit * (c - '0');
        else
            ms += (place /= 10) * (c - '0');
        ms = ms < MS_MAX ? ms : MS_MAX;
    }
    return ms;
}

/* False: it is no IMF-fixdate. strptime() takes more than that: what it read is written again. */
static bool slow_date(struct span text, int64_t *seconds)
{
    static const char form[] = "%a, %d %b %Y %H:%M:%S GMT";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    char copy[VALUE_MAX + 1], again[VALUE_MAX + 1];
    struct tm tm = {0}, normal;

    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    if (text.len != 29 || strlen(copy) != text.len)
        return false;
    memcpy(copy, "Sun", 3); /* whatever three letters stand there */
    for (size_t i = 0; i < 3; i++)
        if (span_lower(text.ptr[i]) < 'a' || span_lower(text.ptr[i]) > 'z')
            return false;
    const char *end = strptime(copy, form, &tm);
    if (!end || *end)
        return false;
    snprintf(again, sizeof again, "Sun, %02d %.3s %04d %02d:%02d:%02d GMT", tm.tm_mday,
             months + (size_t)tm.tm_mon * 3, tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
    if (strcmp(again, copy) != 0)
        return false;
    if (tm.tm_sec > 60)
        return false;
    normal = tm;
    normal.tm_sec = 0;
    *seconds = timegm(&normal) + tm.tm_sec;
    return normal.tm_mday == tm.tm_mday; /* else there is no such day */
}

static bool slow_value(const struct said *said, int64_t wall, uint32_t *ms)
{
    struct span value = span_trim(said->value);
    int64_t number = slow_number(value, said->kind == 2 ? 1000 : 1), when;

    if (number < 0 && said->kind == 2 && slow_date(value, &when)) {
        __int128 left = ((__int128)when - wall) * 1000;
        number = left < 0 ? 0 : left < MS_MAX ? (int64_t)left : MS_MAX;
    }
    *ms = number < 0 ? 0 : (uint32_t)number;
    return number >= 0;
}

static uint32_t slow_answer(const struct said *said, size_t count, int64_t wall)
{
    uint32_t ms;

    for (unsigned kind = 0; kind < 3; kind++)
        for (size_t i = 0; i < count; i++)
            if (said[i].kind == kind && slow_value(&said[i], wall, &ms))
                return ms;
    return 0;
}

static uint32_t head_answer(const struct said *said, size_t count, int64_t wall, int64_t later)
{
    static const char *const names[] = {"retry-after-ms", "X-Amz-Retry-After", "Retry-After"};
    char text[64 + LINES_MAX * (VALUE_MAX + 32)];
    size_t len = (size_t)sprintf(text, "HTTP/1.1 429 Slow\r\n");
    static struct http_head head;

    for (size_t i = 0; i < count; i++)
        len += (size_t)sprintf(text + len, "%s:%.*s\r\n", names[said[i].kind],
                               (int)said[i].value.len, said[i].value.ptr);
    len += (size_t)sprintf(text + len, "\r\n");
    http_head_init_response(&head);
    http_head_feed(&head, span_of(text, len));
    MUST(head.state == HTTP_HEAD_DONE);
    uint32_t ms = http_head_retry_ms(&head.facts, wall);
    MUST(http_head_retry_ms(&head.facts, later) <= ms);
    return ms;
}

/* The first of each kind alone. */
static uint32_t values_answer(const struct said *said, size_t count, int64_t wall,
                              struct said *kept)
{
    struct span value[3] = {SPAN_NONE, SPAN_NONE, SPAN_NONE};

    for (size_t i = count; i > 0; i--)
        value[said[i - 1].kind] = said[i - 1].value;
    for (unsigned kind = 0; kind < 3; kind++)
        kept[kind] = (struct said){kind, value[kind].ptr ? value[kind] : SPAN_LIT("")};
    return http_retry_ms(value[0], value[1], value[2], wall);
}

/* What a header's value cannot hold in a head: then it is another line, or none at all. */
static bool fits_a_line(struct span value)
{
    return value.len <= VALUE_MAX && !span_has_control(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct said said[LINES_MAX], kept[3];
    size_t count = 0;
    int64_t wall;

    if (size < sizeof wall)
        return 0;
    memcpy(&wall, data, sizeof wall);
    char *copy = malloc(size);
    MUST(copy);
    memcpy(copy, data, size);
    struct span text = span_of(copy + sizeof wall, size - sizeof wall);
    while (text.len > 0 && count < LINES_MAX) {
        struct span line = span_take(&text, '\n');
        if (line.len == 0 || !fits_a_line(span_skip(line, 1)))
            continue;
        unsigned kind = *line.ptr == 'm'   ? 0
                        : *line.ptr == 'a' ? 1
                        : *line.ptr == 's' ? 2
                                           : (unsigned char)*line.ptr % 3u;
        said[count++] = (struct said){kind, span_skip(line, 1)};
    }
    int64_t later = wall < INT64_MAX - 1000 ? wall + 1000 : wall;
    uint32_t ms = head_answer(said, count, wall, later);
    MUST(ms <= MS_MAX);
    MUST(ms == slow_answer(said, count, wall));
    ms = values_answer(said, count, wall, kept);
    MUST(ms <= MS_MAX && ms == slow_answer(kept, 3, wall));
    free(copy);
    return 0;
}
