/*
 * values.c - option values out of text, whatever the locale.
 */
#include "config/values.h"

#include "config/place.h"

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
    bool seconds = option->type == VALUE_SECONDS || option->type == VALUE_LEASE;
    *out = option->type == VALUE_UINT ? millionths / 1000000
           : seconds                  ? millionths * 1000
                                      : millionths;
    return true;
}

static bool parse_lease(const struct option *option, struct span text, uint64_t *out)
{
    if (!span_ieq(text, SPAN_LIT("call")))
        return parse_number(option, text, out);
    *out = VALUE_LEASE_OF_CALL;
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

/* Which of the choices the list has, one bit each; "ignore" goes with no other. */
static bool parse_rate_limit(const struct option *option, struct span text, uint64_t *out)
{
    struct span name;
    uint64_t index;

    *out = 0;
    while (config_next_name(&text, &name)) {
        if (!parse_choice(option, name, &index))
            return false;
        *out |= UINT64_C(1) << index;
    }
    return *out != 0 && ((*out & RATE_LIMIT_IGNORE) == 0 || *out == RATE_LIMIT_IGNORE);
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

/* "408, 500-504", and for some "connect". */
static bool parse_statuses(const struct option *option, struct span text, struct value *out)
{
    struct span item;
    unsigned first, last;

    while (config_next_name(&text, &item)) {
        if (option->type == VALUE_STATUS_CONNECT && span_ieq(item, SPAN_LIT("connect"))) {
            out->number = true;
            continue;
        }
        struct span from = span_until(item, '-');
        struct span to = from.len < item.len ? span_skip(item, from.len + 1) : item;
        if (!parse_status(from, &first) || !parse_status(to, &last) || last < first)
            return false;
        for (; first <= last; first++)
            status_set_add(&out->statuses, first);
    }
    return true;
}

bool config_next_name(struct span *names, struct span *name)
{
    size_t len = 0;

    *names = span_trim(*names);
    while (len < names->len && !strchr(", \t", names->ptr[len]))
        len++;
    *name = span_of(names->ptr, len);
    bool found = names->len > 0;
    *names = span_trim(span_skip(*names, len));
    if (names->len > 0 && names->ptr[0] == ',')
        *names = span_skip(*names, 1);
    return found;
}

bool value_add_item(char *list, size_t size, struct span item)
{
    size_t at = strlen(list), gap = at > 0 ? 2 : 0;

    if (at + gap + item.len >= size)
        return false;
    memcpy(list + at, ", ", gap);
    memcpy(list + at + gap, item.ptr, item.len);
    list[at + gap + item.len] = '\0';
    return true;
}

static bool parse_names(struct span text, struct value *value)
{
    struct span name;

    while (config_next_name(&text, &name))
        if (name.len == 0 || span_has_control(name) ||
            !value_add_item(value->text, sizeof value->text, name))
            return false;
    return true;
}

bool config_next_text(struct span *texts, struct span *text)
{
    bool found = texts->len > 0;

    *text = span_trim(span_take(texts, ','));
    return found;
}

static bool parse_texts(struct span list, struct value *value)
{
    struct span text;

    while (config_next_text(&list, &text))
        if (text.len == 0 || text.len > CONFIG_TEXT_MAX || span_has_control(text) ||
            ++value->number > CONFIG_TEXTS_MAX ||
            !value_add_item(value->text, sizeof value->text, text))
            return false;
    return true;
}

static void keep_text(struct value *value, struct span text)
{
    size_t len = text.len < VALUE_TEXT_MAX - 1 ? text.len : VALUE_TEXT_MAX - 1;

    memcpy(value->text, text.ptr, len);
    value->text[len] = '\0';
}

/* "" is none: that takes the base of a wider target back. */
static bool parse_base(struct span text, struct value *value)
{
    struct place_base base = {.text = text};

    if (text.len > 0 && place_base_parse(text, &base))
        return false;
    keep_text(value, base.text);
    return true;
}

/* It goes into JSON, and into the comparisons of programs, as it is. */
static bool parse_code(struct span text)
{
    if (text.len == 0 || text.len > CONFIG_CODE_MAX)
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] < ' ' || text.ptr[i] > '~' || strchr("\"'\\", text.ptr[i]))
            return false;
    return true;
}

bool value_parse(const struct option *option, struct span text, struct value *out)
{
    struct value value = {0};
    bool good = false;

    text = span_trim(text);
    if (!text.ptr || text.len >= VALUE_TEXT_MAX)
        return false;
    switch (option->type) {
    case VALUE_UINT:
    case VALUE_SECONDS:
    case VALUE_RATIO:
    case VALUE_FACTOR:
        good = parse_number(option, text, &value.number);
        break;
    case VALUE_LEASE:
        good = parse_lease(option, text, &value.number);
        break;
    case VALUE_BOOL:
        good = parse_bool(text, &value.number);
        break;
    case VALUE_PATH:
        good = text.len == 0 || text.ptr[0] == '/';
        break;
    case VALUE_STATUS:
    case VALUE_STATUS_CONNECT:
        good = parse_statuses(option, text, &value);
        break;
    case VALUE_TEXTS:
        good = parse_texts(text, &value);
        break;
    case VALUE_CHOICE:
        good = parse_choice(option, text, &value.number);
        break;
    case VALUE_RATE_LIMIT:
        good = parse_rate_limit(option, text, &value.number);
        break;
    case VALUE_NAMES:
        good = parse_names(text, &value);
        break;
    case VALUE_BASE:
        good = parse_base(text, &value);
        break;
    case VALUE_ADDRESS:
        good = text.len == 0 || place_address_write(text, value.text, VALUE_TEXT_MAX - 1) > 0;
        break;
    case VALUE_CODE:
        good = parse_code(text);
        break;
    }
    if (!good)
        return false;
    if (!value.text[0]) /* else it is spelled anew already */
        keep_text(&value, text);
    *out = value;
    return true;
}

/* Of a list that is spelled anew: NAMES, TEXTS. */
static bool append_spelled(bool (*parse)(struct span text, struct value *value), struct span text,
                           struct value *value)
{
    struct value more = *value;

    if (!parse(text, &more))
        return false;
    *value = more;
    return true;
}

bool value_append(const struct option *option, struct span text, struct value *value)
{
    struct value more;

    if (option->type == VALUE_NAMES)
        return append_spelled(parse_names, span_trim(text), value);
    if (option->type == VALUE_TEXTS)
        return append_spelled(parse_texts, span_trim(text), value);
    if (!value_has_statuses(option) || !value_parse(option, text, &more) ||
        !value_add_item(value->text, sizeof value->text, span_str(more.text)))
        return false;
    for (unsigned i = 0; i < sizeof more.statuses.bits / sizeof *more.statuses.bits; i++)
        value->statuses.bits[i] |= more.statuses.bits[i];
    value->number |= more.number;
    return true;
}
