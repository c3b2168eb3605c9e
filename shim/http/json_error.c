#include "http/json_error.h"

enum mode {
    MODE_VALUE,  /* before a value, or the end of an array */
    MODE_MEMBER, /* before a member's name, a comma or the object's end */
    MODE_TEXT,   /* inside a string that is read: a name, or a value that matters */
    MODE_COLON,
    MODE_SCALAR, /* inside a number or a word */
    MODE_OTHER,  /* inside a value that is passed over */
    MODE_OVER,
};

enum place {
    PLACE_ROOT,
    PLACE_LIST,
    PLACE_CHOICES,
    /* objects */
    PLACE_TOP,
    PLACE_CHOICE,
    PLACE_RESPONSE,
    PLACE_DELTA,
    PLACE_ERROR,
};

enum member {
    MEMBER_OTHER,
    MEMBER_ERROR,
    MEMBER_CHOICES,
    MEMBER_RESPONSE,
    MEMBER_DELTA,
    MEMBER_FINISH,
    MEMBER_DONE,
    MEMBER_TYPE, /* what the document is: "error" says that it is one */
    MEMBER_WORD,
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static enum place place_of(const struct json_error *json)
{
    return (enum place)json->places[json->level];
}

static bool in_object(const struct json_error *json)
{
    return place_of(json) >= PLACE_TOP;
}

static bool text_is(const struct json_error *json, struct span text)
{
    return kept_word_is(&json->text, text);
}

/* --- what a member means --------------------------------------------------------------------- */

static enum member member_named(const struct json_error *json)
{
    static const struct {
        struct span name;
        enum member member;
    } members[] = {
        {SPAN_LIT("error"), MEMBER_ERROR},
        {SPAN_LIT("choices"), MEMBER_CHOICES},
        {SPAN_LIT("response"), MEMBER_RESPONSE},
        {SPAN_LIT("delta"), MEMBER_DELTA},
        {SPAN_LIT("finish_reason"), MEMBER_FINISH},
        {SPAN_LIT("done"), MEMBER_DONE},
        {SPAN_LIT("type"), MEMBER_TYPE},
        {SPAN_LIT("object"), MEMBER_TYPE},
        {SPAN_LIT("code"), MEMBER_WORD},
        {SPAN_LIT("status"), MEMBER_WORD},
        {SPAN_LIT("error_type"), MEMBER_WORD},
        {SPAN_LIT("http_status_code"), MEMBER_WORD},
    };

    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (text_is(json, members[i].name))
            return members[i].member;
    return MEMBER_OTHER;
}

/* Does the member, where it stands, say something as a string, number or word? */
static bool matters(const struct json_error *json)
{
    enum place place = place_of(json);

    switch ((enum member)json->member) {
    case MEMBER_ERROR:
        return in_object(json);
    case MEMBER_FINISH:
        return place == PLACE_CHOICE || place == PLACE_DELTA;
    case MEMBER_DONE:
        return place == PLACE_TOP && json->level == 1; /* of no element of a list */
    case MEMBER_TYPE:
    case MEMBER_WORD:
        return place == PLACE_TOP || place == PLACE_ERROR;
    case MEMBER_OTHER:
    case MEMBER_CHOICES:
    case MEMBER_RESPONSE:
    case MEMBER_DELTA:
        break;
    }
    return false;
}

static void read_kind(struct json_error *json)
{
    json->kinds |= (uint8_t)(1u << error_word_kind(kept_word_span(&json->text)));
}

/* A string, number or word that matters was read. */
static void read_value(struct json_error *json, bool string)
{
    enum place place = place_of(json);
    bool nothing = string ? json->text.len == 0
                          : text_is(json, SPAN_LIT("null")) || text_is(json, SPAN_LIT("false")) ||
                                text_is(json, SPAN_LIT("0"));

    switch ((enum member)json->member) {
    case MEMBER_ERROR:
        json->seen |= !nothing;
        read_kind(json);
        break;
    case MEMBER_FINISH:
        if (place == PLACE_CHOICE)
            json->seen |= string && text_is(json, SPAN_LIT("error"));
        else
            json->ended_badly |= string && text_is(json, SPAN_LIT("ERROR"));
        break;
    case MEMBER_DONE:
        json->done |= !string && text_is(json, SPAN_LIT("true"));
        break;
    case MEMBER_TYPE:
        json->seen |= place == PLACE_TOP && string && text_is(json, SPAN_LIT("error"));
        read_kind(json);
        break;
    case MEMBER_WORD:
        read_kind(json);
        break;
    case MEMBER_OTHER:
    case MEMBER_CHOICES:
    case MEMBER_RESPONSE:
    case MEMBER_DELTA:
        break;
    }
}

/* The place inside an object or array that begins here; PLACE_ROOT: it is passed over. */
static enum place place_inside(const struct json_error *json, char opener)
{
    bool object = opener == '{';

    switch (place_of(json)) {
    case PLACE_ROOT:
        return object ? PLACE_TOP : PLACE_LIST;
    case PLACE_LIST:
        return object ? PLACE_TOP : PLACE_ROOT;
    case PLACE_CHOICES:
        return object ? PLACE_CHOICE : PLACE_ROOT;
    case PLACE_TOP:
        if (json->member == MEMBER_CHOICES && !object)
            return PLACE_CHOICES;
        if (json->member == MEMBER_RESPONSE && object)
            return PLACE_RESPONSE;
        if (json->member == MEMBER_DELTA && object)
            return PLACE_DELTA;
        break;
    case PLACE_CHOICE:
    case PLACE_RESPONSE:
    case PLACE_DELTA:
    case PLACE_ERROR:
        break;
    }
    return json->member == MEMBER_ERROR && object ? PLACE_ERROR : PLACE_ROOT;
}

/* --- the grammar ----------------------------------------------------------------------------- */

static void give_up(struct json_error *json)
{
    json->mode = MODE_OVER;
}

static void after_value(struct json_error *json)
{
    json->mode = place_of(json) == PLACE_ROOT ? MODE_OVER
                 : in_object(json)            ? MODE_MEMBER
                                              : MODE_VALUE;
}

static void leave(struct json_error *json)
{
    bool element = place_of(json) == PLACE_TOP && json->places[json->level - 1] == PLACE_LIST;

    json->level--;
    after_value(json);
    if (element && json->seen)
        give_up(json); /* the first error is the one */
    else if (element)
        json->kinds = 0; /* words of another element, beside no error */
}

static void begin_container(struct json_error *json, char opener)
{
    enum place inside = place_inside(json, opener);

    json->seen |= in_object(json) && json->member == MEMBER_ERROR;
    if (inside == PLACE_ROOT || json->level + 1 == JSON_ERROR_LEVELS) {
        json_skip_begin(&json->skip, opener);
        json->mode = MODE_OTHER;
        return;
    }
    json->places[++json->level] = (uint8_t)inside;
    json->mode = in_object(json) ? MODE_MEMBER : MODE_VALUE;
}

static void begin_text(struct json_error *json, bool name)
{
    json->text.len = 0;
    json->in_name = name;
    json->mode = MODE_TEXT;
}

/* Takes one byte, or none of a scalar's. */
static size_t value_byte(struct json_error *json, char c)
{
    bool list = !in_object(json) && place_of(json) != PLACE_ROOT;

    if (is_space(c) || (list && c == ','))
        return 1;
    if (c == '{' || c == '[') {
        begin_container(json, c);
    } else if (list && c == ']') {
        leave(json);
    } else if (place_of(json) == PLACE_ROOT || c == ']' || c == '}' || c == ',' || c == ':') {
        give_up(json);
    } else if (c != '"') {
        json->text.len = 0;
        json->mode = MODE_SCALAR;
        return 0;
    } else if (in_object(json) && matters(json)) {
        begin_text(json, false);
    } else {
        json_skip_begin(&json->skip, c);
        json->mode = MODE_OTHER;
    }
    return 1;
}

static void member_byte(struct json_error *json, char c)
{
    if (c == '"')
        begin_text(json, true);
    else if (c == '}')
        leave(json);
    else if (c != ',' && !is_space(c))
        give_up(json);
}

static void end_text(struct json_error *json)
{
    if (json->in_name) {
        json->member = (uint8_t)member_named(json);
        json->mode = MODE_COLON;
    } else {
        read_value(json, true);
        json->mode = MODE_MEMBER;
    }
}

static size_t text_bytes(struct json_error *json, struct span bytes)
{
    size_t len = 0;

    while (len < bytes.len && len <= KEPT_WORD_MAX && bytes.ptr[len] != '"' &&
           bytes.ptr[len] != '\\')
        len++;
    kept_word_add(&json->text, span_of(bytes.ptr, len));
    if (len < bytes.len && bytes.ptr[len] == '"' && !kept_word_is_lost(&json->text)) {
        end_text(json);
        return len + 1;
    }
    if (kept_word_is_lost(&json->text) || len < bytes.len) { /* the rest is not kept */
        kept_word_lose(&json->text);
        json_skip_begin(&json->skip, '"');
        json->mode = MODE_OTHER;
    }
    return len;
}

static size_t other_bytes(struct json_error *json, struct span bytes)
{
    size_t taken = json_skip_feed(&json->skip, bytes);

    if (!json_skip_over(&json->skip))
        return taken;
    if (kept_word_is_lost(&json->text)) {
        end_text(json);
        json->text.len = 0;
    } else {
        after_value(json);
    }
    return taken;
}

static bool ends_scalar(char c)
{
    return is_space(c) || c == ',' || c == '}' || c == ']';
}

/* The byte that ends it is not taken. */
static size_t scalar_bytes(struct json_error *json, struct span bytes)
{
    size_t len = 0;

    while (len < bytes.len && !ends_scalar(bytes.ptr[len])) {
        char c = bytes.ptr[len];
        if (c == '"' || c == '{' || c == '[' || c == ':') {
            give_up(json);
            return len;
        }
        kept_word_add(&json->text, span_of(&c, 1));
        len++;
    }
    if (len < bytes.len) {
        if (in_object(json) && matters(json))
            read_value(json, false);
        json->text.len = 0;
        after_value(json);
    }
    return len;
}

/* Returns how many bytes it took; it may be none, but then the mode is another. */
static size_t advance(struct json_error *json, struct span bytes)
{
    char c = bytes.ptr[0];

    switch ((enum mode)json->mode) {
    case MODE_VALUE:
        return value_byte(json, c);
    case MODE_MEMBER:
        member_byte(json, c);
        break;
    case MODE_TEXT:
        return text_bytes(json, bytes);
    case MODE_COLON:
        if (c == ':')
            json->mode = MODE_VALUE;
        else if (!is_space(c))
            give_up(json);
        break;
    case MODE_SCALAR:
        return scalar_bytes(json, bytes);
    case MODE_OTHER:
        return other_bytes(json, bytes);
    case MODE_OVER:
        return bytes.len;
    }
    return 1;
}

void json_error_feed(struct json_error *json, struct span bytes)
{
    while (bytes.len > 0 && json->mode != MODE_OVER)
        bytes = span_skip(bytes, advance(json, bytes));
}

bool json_error_over(const struct json_error *json)
{
    return json->mode == MODE_OVER;
}
