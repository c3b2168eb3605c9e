#include "http/secret.h"

#include "http/url.h"

#define NAME_MAX_JUDGED 256 /* a longer name is none that anybody needs: it counts as a secret */
#define VALUE_BEGIN     32  /* bytes of a value that tell what it is */

/* --- names -----------------------------------------------------------------------------------
 * Judged in lower case, with one '-' for each byte that is neither letter nor digit. */

static const struct span whole_names[] = {
    SPAN_LIT("openai-organization"), SPAN_LIT("openai-project"),
    SPAN_LIT("x-goog-user-project"), /* who pays */
};

static const struct span name_begins[] = {
    SPAN_LIT("x-amz-"), /* of a signature, as a whole */
    SPAN_LIT("cf-access-"),
};

/* They have the word, and are drawn anew for each call. */
static const struct span harmless_names[] = {
    SPAN_LIT("idempotency-key"),
    SPAN_LIT("x-idempotency-key"),
    SPAN_LIT("sec-websocket-key"),
};

static const struct span secret_words[] = {
    SPAN_LIT("authz"),      SPAN_LIT("authorization"), SPAN_LIT("authentication"),
    SPAN_LIT("sig"),        SPAN_LIT("hmac"),          SPAN_LIT("passwd"),
    SPAN_LIT("passphrase"), SPAN_LIT("pass"),          SPAN_LIT("pwd"),
    SPAN_LIT("session"),    SPAN_LIT("sid"),           SPAN_LIT("jwt"),
    SPAN_LIT("bearer"),     SPAN_LIT("sso"),           SPAN_LIT("dpop"),
    SPAN_LIT("csrf"),       SPAN_LIT("xsrf"),          SPAN_LIT("assertion"),
};

/* Alone, or where words were written as one: token, accessToken, oauth. */
static const struct span word_ends[] = {
    SPAN_LIT("key"),      SPAN_LIT("keys"),      SPAN_LIT("keyid"),      SPAN_LIT("token"),
    SPAN_LIT("secret"),   SPAN_LIT("signature"), SPAN_LIT("credential"), SPAN_LIT("credentials"),
    SPAN_LIT("password"), SPAN_LIT("cookie"),    SPAN_LIT("auth"),       SPAN_LIT("sessionid"),
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static bool is_one_of(struct span text, const struct span *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (span_eq(text, list[i]))
            return true;
    return false;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_secret_word(struct span word)
{
    while (word.len > 0 && is_digit(word.ptr[word.len - 1]))
        word.len--; /* oauth2, key1 */
    if (is_one_of(word, secret_words, COUNT(secret_words)))
        return true;
    for (size_t i = 0; i < COUNT(word_ends); i++)
        if (span_ends(word, word_ends[i]))
            return true;
    return false;
}

static bool has_secret_word(struct span name)
{
    while (name.len > 0)
        if (is_secret_word(span_take(&name, '-')))
            return true;
    return false;
}

/* The name as it is judged, in `buf`; the separators at its ends are dropped. */
static struct span judged_form(struct span name, char buf[NAME_MAX_JUDGED])
{
    struct span form = span_of(buf, name.len);

    for (size_t i = 0; i < name.len; i++) {
        char c = span_lower(name.ptr[i]);
        buf[i] = (c >= 'a' && c <= 'z') || is_digit(c) ? c : '-';
    }
    while (form.len > 0 && form.ptr[0] == '-')
        form = span_skip(form, 1);
    while (form.len > 0 && form.ptr[form.len - 1] == '-')
        form.len--;
    return form;
}

static bool is_secret_name(struct span form)
{
    if (is_one_of(form, harmless_names, COUNT(harmless_names)))
        return false;
    for (size_t i = 0; i < COUNT(name_begins); i++)
        if (span_starts(form, name_begins[i]))
            return true;
    return is_one_of(form, whole_names, COUNT(whole_names)) || has_secret_word(form);
}

/* --- values ---------------------------------------------------------------------------------- */

static bool begins_with_scheme(struct span value)
{
    static const struct span schemes[] = {
        SPAN_LIT("bearer"), SPAN_LIT("basic"),  SPAN_LIT("digest"), SPAN_LIT("negotiate"),
        SPAN_LIT("ntlm"),   SPAN_LIT("oauth"),  SPAN_LIT("dpop"),   SPAN_LIT("aws4-hmac-sha256"),
        SPAN_LIT("token"),  SPAN_LIT("apikey"), SPAN_LIT("api-key")};

    for (size_t i = 0; i < COUNT(schemes); i++) {
        size_t len = schemes[i].len;
        if (value.len > len && (value.ptr[len] == ' ' || value.ptr[len] == '\t') &&
            span_istarts(value, schemes[i]))
            return true;
    }
    return false;
}

/* How providers' keys begin, so that one in a header of another name is known all the same. */
static bool begins_like_key(struct span value)
{
    static const struct span begins[] = {
        SPAN_LIT("sk-"),  SPAN_LIT("sk_"),  SPAN_LIT("gsk_"),  SPAN_LIT("csk-"),
        SPAN_LIT("xai-"), SPAN_LIT("AIza"), SPAN_LIT("ya29."), SPAN_LIT("hf_"),
        SPAN_LIT("r8_"),  SPAN_LIT("fw_"),  SPAN_LIT("pplx-"), SPAN_LIT("nvapi-"),
        SPAN_LIT("AKIA"), SPAN_LIT("ASIA"), SPAN_LIT("ABSK"),  SPAN_LIT("bedrock-api-key-"),
        SPAN_LIT("ghp_"), SPAN_LIT("gho_"), SPAN_LIT("ghs_"),  SPAN_LIT("github_pat_"),
        SPAN_LIT("eyJ"), /* a JWT */
    };

    for (size_t i = 0; i < COUNT(begins); i++)
        if (span_starts(value, begins[i]))
            return true;
    return false;
}

static bool is_secret_value(struct span value)
{
    while (value.len > 0 && memchr(" \t\"'", value.ptr[0], 4))
        value = span_skip(value, 1);
    return begins_with_scheme(value) || begins_like_key(value);
}

/* --- headers --------------------------------------------------------------------------------- */

static bool is_several_lines(struct span line)
{
    return memchr(line.ptr, '\r', line.len) || memchr(line.ptr, '\n', line.len) ||
           memchr(line.ptr, '\0', line.len);
}

bool secret_is_header(struct span line)
{
    char buf[NAME_MAX_JUDGED];

    if (line.len == 0)
        return false;
    if (is_several_lines(line))
        return true;
    struct span name = span_until(line, ':');
    if (name.len > sizeof buf || is_secret_name(judged_form(name, buf)))
        return true;
    return is_secret_value(span_skip(line, name.len + 1));
}

/* --- queries --------------------------------------------------------------------------------- */

/* As a form has it: '+' is a blank, then percent-decoded. False: it does not fit. */
static bool decode(struct span text, char *buf, size_t size, struct span *decoded)
{
    char plain[3 * NAME_MAX_JUDGED];

    if (text.len > sizeof plain)
        return false;
    for (size_t i = 0; i < text.len; i++)
        plain[i] = text.ptr[i] == '+' ? ' ' : text.ptr[i];
    *decoded = span_of(buf, url_decode(span_of(plain, text.len), buf, size));
    return decoded->len > 0 || text.len == 0;
}

bool secret_is_parameter(struct span name)
{
    char text[NAME_MAX_JUDGED], buf[NAME_MAX_JUDGED];
    struct span decoded;

    if (!decode(name, text, sizeof text, &decoded))
        return true;
    struct span form = judged_form(decoded, buf);
    return span_eq(form, SPAN_LIT("code")) /* of Azure functions */ || is_secret_name(form);
}

static bool is_secret_query_value(struct span value)
{
    char buf[3 * VALUE_BEGIN];
    struct span decoded;

    if (value.len > sizeof buf)
        value.len = sizeof buf;
    return decode(value, buf, sizeof buf, &decoded) && is_secret_value(decoded);
}

/* What stands between two '&': one parameter, or several to servers that take a ';' for one. */
static bool has_secret(struct span parameters)
{
    struct span whole = parameters;

    if (secret_is_parameter(span_take(&whole, '=')))
        return true;
    while (parameters.len > 0) {
        struct span value = span_take(&parameters, ';');
        struct span name = span_take(&value, '=');
        if (secret_is_parameter(name) || is_secret_query_value(value))
            return true;
    }
    return false;
}

size_t secret_strip_query(struct span query, char *buf)
{
    size_t at = 0;
    bool first = true, more = query.len > 0;

    while (more) {
        struct span parameters = span_take(&query, '&');
        more = query.ptr > parameters.ptr + parameters.len;
        if (has_secret(parameters))
            continue;
        if (!first)
            buf[at++] = '&';
        memcpy(buf + at, parameters.ptr, parameters.len);
        at += parameters.len;
        first = false;
    }
    return at;
}
