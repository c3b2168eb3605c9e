/* Retry-After and its kin. Dates by hand: strptime() follows the locale, timegm() may read files.
 */
#include "http/head_parts.h"

enum { MS_MAX = 24 * 60 * 60 * 1000 };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits, and maybe a fraction, in units of `unit` ms (1 or 1000); what is under a ms is dropped.
 */
static bool parse_number(struct span text, uint32_t unit, uint32_t *ms)
{
    uint64_t value = 0;
    size_t at = 0;

    for (; at < text.len && is_digit(text.ptr[at]); at++)
        if (value <= MS_MAX)
            value = value * 10 + (uint64_t)(text.ptr[at] - '0');
    if (at == 0)
        return false;
    value *= unit;
    if (at < text.len) {
        if (text.ptr[at] != '.' || at + 1 == text.len)
            return false;
        for (at++; at < text.len; at++) {
            if (!is_digit(text.ptr[at]))
                return false;
            unit /= 10;
            value += unit * (uint64_t)(text.ptr[at] - '0');
        }
    }
    *ms = value < MS_MAX ? (uint32_t)value : MS_MAX;
    return true;
}

/* Days since 1970-01-01 in the Gregorian calendar; `month` 1..12. */
static int64_t days_since_1970(int year, int month, int day)
{
    /* A year that begins in March has its leap day at its end. */
    int64_t y = month > 2 ? year : year - 1;
    int64_t m = month > 2 ? month - 3 : month + 9;
    int64_t leap_days = y >= 0 ? y / 4 - y / 100 + y / 400 : -1; /* y is -1 at the least */

    return y * 365 + leap_days + (153 * m + 2) / 5 + day - 1 - 719468;
}

static int days_in_month(int year, int month)
{
    if (month == 2)
        return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28;
    return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

static int number_at(const char *text, size_t digits)
{
    int value = 0;

    for (size_t i = 0; i < digits; i++)
        value = value * 10 + (text[i] - '0');
    return value;
}

/* "Sun, 06 Nov 1994 08:49:37 GMT", the only form that may be sent (RFC 9110 5.6.7). */
static bool parse_date(struct span text, int64_t *seconds)
{
    static const char form[] = "aaa, 00 aaa 0000 00:00:00 GMT";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    int month = 0;

    if (text.len != sizeof form - 1)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i], lower = span_lower(c);
        bool fits = form[i] == '0'   ? is_digit(c)
                    : form[i] == 'a' ? lower >= 'a' && lower <= 'z'
                                     : c == form[i];
        if (!fits)
            return false;
    }
    while (month < 12 && memcmp(months + (size_t)month * 3, text.ptr + 8, 3) != 0)
        month++;
    if (month++ == 12)
        return false;
    int day = number_at(text.ptr + 5, 2), year = number_at(text.ptr + 12, 4);
    int hour = number_at(text.ptr + 17, 2), minute = number_at(text.ptr + 20, 2);
    int second = number_at(text.ptr + 23, 2); /* 60: a leap second */
    if (day < 1 || day > days_in_month(year, month) || hour > 23 || minute > 59 || second > 60)
        return false;
    *seconds =
        days_since_1970(year, month, day) * 86400 + (int64_t)hour * 3600 + minute * 60 + second;
    return true;
}

/* The clock may say anything. */
static uint32_t ms_until(int64_t when, int64_t now)
{
    if (now >= when)
        return 0;
    if (now <= when - MS_MAX / 1000)
        return MS_MAX;
    return (uint32_t)(when - now) * 1000;
}

uint32_t http_head_retry_ms(const struct http_head_facts *facts, int64_t wall_s)
{
    return facts->retry_is_date ? ms_until(facts->retry_at_s, wall_s) : facts->retry_after_ms;
}

static bool parse_value(unsigned source, struct span value, bool *is_date, uint32_t *ms,
                        int64_t *when)
{
    *ms = 0;
    *when = 0;
    *is_date = !parse_number(value, source == RETRY_SECONDS ? 1000 : 1, ms);
    return !*is_date || (source == RETRY_SECONDS && parse_date(value, when));
}

uint32_t http_retry_ms(struct span ms, struct span amz, struct span after, int64_t wall_s)
{
    const struct span values[] = {
        [RETRY_NONE] = SPAN_NONE, [RETRY_SECONDS] = after, [RETRY_AMZ] = amz, [RETRY_MS] = ms};
    uint32_t found;
    int64_t when;
    bool is_date;

    for (unsigned source = RETRY_MS; source > RETRY_NONE; source--)
        if (parse_value(source, span_trim(values[source]), &is_date, &found, &when))
            return is_date ? ms_until(when, wall_s) : found;
    return 0;
}

void head_retry(struct http_head *head, unsigned source, struct span value)
{
    struct http_head_facts *facts = &head->facts;
    bool is_date;
    uint32_t ms;
    int64_t when;

    if (source <= head->retry_source || !parse_value(source, value, &is_date, &ms, &when))
        return;
    head->retry_source = (uint8_t)source;
    facts->retry_is_date = is_date;
    facts->retry_at_s = when;
    facts->retry_after_ms = ms;
}
