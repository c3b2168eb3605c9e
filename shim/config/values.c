#include "config/values.h"

/* --- the table ---------------------------------------------------------------------------------
 */

static const char *const choice_match[] = {"llm", "listed", "all", NULL};
static const char *const choice_deepbind[] = {"mask", "keep", NULL};
static const char *const choice_mode[] = {"enforce", "off", NULL};
static const char *const choice_exhausted[] = {"503", "pass", NULL};

#define GLOBAL                true
#define TARGET                false
#define TYPE_UINT             VALUE_UINT, NULL, "a whole number"
#define TYPE_SECONDS          VALUE_SECONDS, NULL, "a number of seconds"
#define TYPE_RATIO            VALUE_RATIO, NULL, "a number"
#define TYPE_FACTOR           VALUE_FACTOR, NULL, "a number"
#define TYPE_BOOL             VALUE_BOOL, NULL, "true or false"
#define TYPE_PATH             VALUE_PATH, NULL, "an absolute path"
#define TYPE_STATUS           VALUE_STATUS, NULL, "a list of HTTP statuses and ranges, as in 408, 500-504"
#define TYPE_CHOICE_MATCH     VALUE_CHOICE, choice_match, "llm, listed or all"
#define TYPE_CHOICE_DEEPBIND  VALUE_CHOICE, choice_deepbind, "mask or keep"
#define TYPE_CHOICE_MODE      VALUE_CHOICE, choice_mode, "enforce or off"
#define TYPE_CHOICE_EXHAUSTED VALUE_CHOICE, choice_exhausted, "503 or pass"

#define ROW(key, fallback, min, max, scope, text, ...)                                             \
    row(key, fallback, min, max, scope, text, __VA_ARGS__)
#define row(key_, fallback_, min_, max_, scope_, text_, type_, choices_, expected_)                \
    {.key = key_,                                                                                  \
     .type = type_,                                                                                \
     .fallback = fallback_,                                                                        \
     .min = min_,                                                                                  \
     .max = max_,                                                                                  \
     .global = scope_,                                                                             \
     .text = text_,                                                                                \
     .choices = choices_,                                                                          \
     .expected = expected_},

const struct option options[OPTION_COUNT] = {
#define OPTION(key, type, fallback, min, max, scope, text)                                         \
    ROW(#key, fallback, min, max, scope, text, TYPE_##type)
#include "config/options.def"
#undef OPTION
};

enum config_option option_find(struct span key)
{
    unsigned i = 0;

    while (i < OPTION_COUNT && !span_eq(key, span_str(options[i].key)))
        i++;
    return (enum config_option)i;
}

/* Levenshtein distance of short words, capped. */
static unsigned distance(struct span a, struct span b)
{
    unsigned row[65];

    if (a.len > 64)
        a.len = 64;
    if (b.len > 64)
        b.len = 64;
    for (unsigned j = 0; j <= b.len; j++)
        row[j] = j;
    for (unsigned i = 1; i <= a.len; i++) {
        unsigned diagonal = row[0];
        row[0] = i;
        for (unsigned j = 1; j <= b.len; j++) {
            unsigned best = diagonal + (a.ptr[i - 1] != b.ptr[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[b.len];
}

const char *option_nearest(struct span key)
{
    unsigned best = UINT32_MAX;
    const char *nearest = options[0].key;

    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        unsigned d = distance(key, span_str(options[i].key));
        if (d < best) {
            best = d;
            nearest = options[i].key;
        }
    }
    return nearest;
}

/* --- values ------------------------------------------------------------------------------------
 */

/* Decimal number without sign or exponent, as millionths. No strtod: it obeys the locale. */
static bool parse_millionths(struct span text, bool whole, uint64_t *out)
{
    uint64_t value = 0;
    unsigned digits = 0, decimals = 0;
    bool point = false;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '.' && !point && !whole) {
            point = true;
            continue;
        }
        if (c < '0' || c > '9' || ++digits > 15)
            return false;
        if (point && ++decimals > 6)
            continue; /* finer than a microsecond */
        value = value * 10 + (uint64_t)(c - '0');
    }
    if (digits == 0 || value > UINT64_C(1000000000000))
        return false;
    for (; decimals < 6; decimals++)
        value *= 10;
    *out = value;
    return true;
}

static bool parse_number(const struct option *option, struct span text, uint64_t *out)
{
    uint64_t millionths;

    if (!parse_millionths(text, option->type == VALUE_UINT, &millionths) ||
        millionths < (uint64_t)(option->min * 1e6 + 0.5) ||
        millionths > (uint64_t)(option->max * 1e6 + 0.5))
        return false;
    *out = option->type == VALUE_UINT      ? millionths / 1000000
           : option->type == VALUE_SECONDS ? millionths * 1000
                                           : millionths;
    return true;
}

static bool parse_bool(struct span text, uint64_t *out)
{
    *out = span_ieq(text, SPAN_LIT("true")) || span_ieq(text, SPAN_LIT("yes")) ||
           span_ieq(text, SPAN_LIT("on")) || span_eq(text, SPAN_LIT("1"));
    return *out || span_ieq(text, SPAN_LIT("false")) || span_ieq(text, SPAN_LIT("no")) ||
           span_ieq(text, SPAN_LIT("off")) || span_eq(text, SPAN_LIT("0"));
}

static bool parse_choice(const struct option *option, struct span text, uint64_t *out)
{
    for (unsigned i = 0; option->choices[i]; i++)
        if (span_ieq(text, span_str(option->choices[i]))) {
            *out = i;
            return true;
        }
    return false;
}

static struct span trim(struct span text)
{
    while (text.len > 0 && (text.ptr[0] == ' ' || text.ptr[0] == '\t'))
        text = span_skip(text, 1);
    while (text.len > 0 && (text.ptr[text.len - 1] == ' ' || text.ptr[text.len - 1] == '\t'))
        text.len--;
    return text;
}

static bool parse_status(struct span text, unsigned *out)
{
    *out = 0;
    if (text.len != 3)
        return false;
    for (size_t i = 0; i < 3; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
        *out = *out * 10 + (unsigned)(text.ptr[i] - '0');
    }
    return *out >= 100 && *out <= 599;
}

/* "408, 500-504": items separated by commas or blanks. */
static bool parse_statuses(struct span text, struct status_set *set)
{
    text = trim(text);
    while (text.len > 0) {
        size_t end = 0;
        unsigned first, last;
        while (end < text.len && text.ptr[end] != ',' && text.ptr[end] != ' ')
            end++;
        struct span item = span_of(text.ptr, end);
        const char *dash = item.len ? memchr(item.ptr, '-', item.len) : NULL;
        struct span from = dash ? span_of(item.ptr, (size_t)(dash - item.ptr)) : item;
        struct span to = dash ? span_skip(item, from.len + 1) : item;
        if (!parse_status(from, &first) || !parse_status(to, &last) || last < first)
            return false;
        for (; first <= last; first++)
            status_set_add(set, first);
        text = trim(span_skip(text, end));
        if (text.len > 0 && text.ptr[0] == ',')
            text = trim(span_skip(text, 1));
    }
    return true;
}

static void keep_text(struct value *value, struct span text)
{
    size_t len = text.len < VALUE_TEXT_MAX - 1 ? text.len : VALUE_TEXT_MAX - 1;

    memcpy(value->text, text.ptr, len);
    value->text[len] = '\0';
}

bool value_parse(const struct option *option, struct span text, struct value *out)
{
    struct value value = {0};
    bool good = false;

    text = trim(text);
    if (!text.ptr || text.len >= VALUE_TEXT_MAX)
        return false;
    switch (option->type) {
    case VALUE_UINT:
    case VALUE_SECONDS:
    case VALUE_RATIO:
    case VALUE_FACTOR:
        good = parse_number(option, text, &value.number);
        break;
    case VALUE_BOOL:
        good = parse_bool(text, &value.number);
        break;
    case VALUE_PATH:
        good = text.len == 0 || text.ptr[0] == '/';
        break;
    case VALUE_STATUS:
        good = parse_statuses(text, &value.statuses);
        break;
    case VALUE_CHOICE:
        good = parse_choice(option, text, &value.number);
        break;
    }
    if (!good)
        return false;
    keep_text(&value, text);
    *out = value;
    return true;
}

bool value_append(const struct option *option, struct span text, struct value *value)
{
    struct value more;
    size_t len = strlen(value->text);

    if (option->type != VALUE_STATUS || !value_parse(option, text, &more) ||
        len + 2 + strlen(more.text) >= VALUE_TEXT_MAX)
        return false;
    for (unsigned i = 0; i < sizeof more.statuses.bits / sizeof *more.statuses.bits; i++)
        value->statuses.bits[i] |= more.statuses.bits[i];
    memcpy(value->text + len, ", ", 2);
    memcpy(value->text + len + 2, more.text, strlen(more.text) + 1);
    return true;
}
