/* The options of fake_easy.h's handles: keeps what is set as libcurl 7.88 keeps it (which options
 * share a field, what sets the method). */
#ifndef BREAKER_TESTS_FUZZ_FAKE_OPTIONS_H
#define BREAKER_TESTS_FUZZ_FAKE_OPTIONS_H

#include "cut.h"

#include "curl_options.h"

#include <stdlib.h>
#include <string.h>

enum fake_method { FAKE_GET, FAKE_HEAD, FAKE_POST, FAKE_PUT, FAKE_MIME, FAKE_FORM };

/* All that an application can have set. */
struct fake_set {
    void *value[SHADOW_COUNT]; /* strings and blobs are owned */
    char *copied;              /* COPYPOSTFIELDS, owned; then POSTFIELDS points to it */
    size_t copied_len;
    unsigned protocols;
    bool abstract_socket;
    enum fake_method method;
    bool upload, no_body;
};

static unsigned fake_version;

static const struct {
    CURLoption option;
    enum option_kind kind;
} fake_options[SHADOW_COUNT] = {
#define SHADOW(id, kind) {CURLOPT_##id, KIND_##kind},
    CURL_SHADOWED(SHADOW)
#undef SHADOW
};

static inline void fake_defaults(struct fake_set *set)
{
    memset(set, 0, sizeof *set);
    set->protocols = ~0u;
    set->value[SHADOW_POSTFIELDSIZE_LARGE] = set->value[SHADOW_INFILESIZE_LARGE] = (void *)-1;
    set->value[SHADOW_TCP_NODELAY] = set->value[SHADOW_SSL_VERIFYPEER] = (void *)1;
    set->value[SHADOW_SSL_VERIFYHOST] = (void *)2;
    set->value[SHADOW_HTTPAUTH] = (void *)1;
    set->value[SHADOW_READDATA] = stdin;
    set->value[SHADOW_WRITEDATA] = stdout;
}

static inline void *fake_own(enum option_kind kind, const void *given)
{
    const struct curl_blob *blob = given;
    struct curl_blob *copy;

    if (!given || kind == KIND_LONG || kind == KIND_POINTER)
        return (void *)(uintptr_t)given;
    if (kind == KIND_STRING)
        return strdup(given);
    copy = malloc(sizeof *copy + blob->len);
    *copy = (struct curl_blob){copy + 1, blob->len, CURL_BLOB_COPY};
    memcpy(copy->data, blob->data, blob->len);
    return copy;
}

static inline void fake_put(struct fake_set *set, enum shadow_index index, const void *value)
{
    enum option_kind kind = fake_options[index].kind;
    void *owned = fake_own(kind, value);

    if (kind == KIND_STRING || kind == KIND_BLOB)
        free(set->value[index]);
    set->value[index] = owned;
}

static inline void fake_drop_copied(struct fake_set *set)
{
    if (set->copied)
        set->value[SHADOW_POSTFIELDS] = NULL;
    free(set->copied);
    set->copied = NULL;
}

static inline long fake_number(const struct fake_set *set, enum shadow_index index)
{
    return (long)set->value[index];
}

static inline void fake_clear(struct fake_set *set)
{
    for (int i = 0; i < SHADOW_COUNT; i++)
        if (fake_options[i].kind == KIND_STRING || fake_options[i].kind == KIND_BLOB)
            free(set->value[i]);
    free(set->copied);
    fake_defaults(set);
}

static inline void fake_copy(struct fake_set *to, const struct fake_set *from)
{
    *to = *from;
    for (int i = 0; i < SHADOW_COUNT; i++)
        to->value[i] = fake_own(fake_options[i].kind, from->value[i]);
    if (from->copied) {
        to->copied = malloc(from->copied_len + 1);
        memcpy(to->copied, from->copied, from->copied_len);
        to->value[SHADOW_POSTFIELDS] = to->copied;
    }
}

/* The name of an option in which they differ; NULL: none. */
static inline const char *fake_difference(const struct fake_set *a, const struct fake_set *b)
{
    static const char *const names[] = {
#define SHADOW(id, kind) #id,
        CURL_SHADOWED(SHADOW)
#undef SHADOW
    };

    for (int i = 0; i < SHADOW_COUNT; i++) {
        const void *x = a->value[i], *y = b->value[i];
        if (i == SHADOW_POSTFIELDS && a->copied && b->copied) {
            if (a->copied_len != b->copied_len || memcmp(a->copied, b->copied, a->copied_len) != 0)
                return "COPYPOSTFIELDS";
        } else if (fake_options[i].kind == KIND_BLOB && x && y) {
            const struct curl_blob *p = x, *q = y;
            if (p->len != q->len || memcmp(p->data, q->data, p->len) != 0)
                return names[i];
        } else if (fake_options[i].kind == KIND_STRING && x && y ? strcmp(x, y) != 0 : x != y) {
            return names[i];
        }
    }
    if (a->protocols != b->protocols)
        return "PROTOCOLS(_STR)";
    if (a->value[SHADOW_UNIX_SOCKET_PATH] && a->abstract_socket != b->abstract_socket)
        return "abstract or not";
    return a->method != b->method || a->upload != b->upload || a->no_body != b->no_body ? "method"
                                                                                        : NULL;
}

/* COPYPOSTFIELDS; false: it cannot be. */
static inline bool fake_copy_fields(struct fake_set *set, const char *fields)
{
    long told = fake_number(set, SHADOW_POSTFIELDSIZE_LARGE);

    if (fields && told < 0)
        told = (long)strlen(fields);
    fake_drop_copied(set);
    set->value[SHADOW_POSTFIELDS] = NULL;
    set->method = FAKE_POST;
    if (!fields)
        return true;
    set->copied = malloc((size_t)told + 1);
    set->copied_len = (size_t)told;
    memcpy(set->copied, fields, set->copied_len);
    set->copied[told] = '\0';
    set->value[SHADOW_POSTFIELDS] = set->copied;
    return true;
}

static inline void fake_user(struct fake_set *set, const char *both)
{
    size_t len = both ? strcspn(both, ":") : 0;
    char *name = both ? strndup(both, len) : NULL;

    fake_put(set, SHADOW_USERNAME, name);
    fake_put(set, SHADOW_PASSWORD, both && both[len] ? both + len + 1 : NULL);
    free(name);
}

/* What sets the method. False: it is another option. */
static inline bool fake_set_method(struct fake_set *set, CURLoption option, long on)
{
    switch ((int)option) {
    case CURLOPT_HTTPGET:
        if (on) {
            set->method = FAKE_GET;
            set->upload = set->no_body = false;
        }
        return true;
    case CURLOPT_NOBODY:
        set->no_body = on;
        set->method = on ? FAKE_HEAD : set->method == FAKE_HEAD ? FAKE_GET : set->method;
        return true;
    case CURLOPT_POST:
        set->method = on ? FAKE_POST : FAKE_GET;
        set->no_body &= !on;
        set->upload = false;
        return true;
    case CURLOPT_UPLOAD:
    case CURLOPT_PUT:
        set->upload = on;
        set->method = on ? FAKE_PUT : FAKE_GET;
        set->no_body &= !on;
        return true;
    default:
        return false;
    }
}

/* One that is refused changes nothing here. (7.88 then allows none; who goes on with that?) */
static inline CURLcode fake_protocols(struct fake_set *set, const char *names)
{
    unsigned mask = 0;

    if (fake_version < 0x075500)
        return CURLE_UNKNOWN_OPTION;
    if (!names)
        return CURLE_BAD_FUNCTION_ARGUMENT;
    if (strcmp(names, "all") == 0)
        mask = ~0u;
    else if (strcmp(names, "http,https") == 0)
        mask = CURLPROTO_HTTP | CURLPROTO_HTTPS;
    else if (strcmp(names, "https") == 0)
        mask = CURLPROTO_HTTPS;
    if (mask == 0)
        return CURLE_UNSUPPORTED_PROTOCOL;
    set->protocols = mask;
    return CURLE_OK;
}

/* Options that do more than to be kept. CURLE_AGAIN: it is none of them. */
static inline CURLcode fake_set_special(struct fake_set *set, CURLoption option, void *value)
{
    switch ((int)option) {
    case CURLOPT_POSTFIELDS:
        fake_drop_copied(set);
        set->value[SHADOW_POSTFIELDS] = value;
        set->method = FAKE_POST;
        return CURLE_OK;
    case CURLOPT_COPYPOSTFIELDS:
        return fake_copy_fields(set, value) ? CURLE_OK : CURLE_OUT_OF_MEMORY;
    case CURLOPT_POSTFIELDSIZE_LARGE:
        if ((long)value < -1)
            return CURLE_BAD_FUNCTION_ARGUMENT;
        if (fake_number(set, SHADOW_POSTFIELDSIZE_LARGE) < (long)value)
            fake_drop_copied(set);
        set->value[SHADOW_POSTFIELDSIZE_LARGE] = value;
        return CURLE_OK;
    case CURLOPT_USERPWD:
        fake_user(set, value);
        return CURLE_OK;
    case CURLOPT_TIMEOUT:
        set->value[SHADOW_TIMEOUT_MS] = (void *)((long)value * 1000);
        return CURLE_OK;
    case CURLOPT_PROTOCOLS:
        set->protocols = (unsigned)(uintptr_t)value;
        return CURLE_OK;
    case CURLOPT_PROTOCOLS_STR:
        return fake_protocols(set, value);
    case CURLOPT_UNIX_SOCKET_PATH:
    case CURLOPT_ABSTRACT_UNIX_SOCKET:
        set->abstract_socket = option == CURLOPT_ABSTRACT_UNIX_SOCKET;
        fake_put(set, SHADOW_UNIX_SOCKET_PATH, value);
        return CURLE_OK;
    case CURLOPT_AWS_SIGV4:
        fake_put(set, SHADOW_AWS_SIGV4, value);
        if (value)
            set->value[SHADOW_HTTPAUTH] = (void *)(uintptr_t)CURLAUTH_AWS_SIGV4;
        return CURLE_OK;
    case CURLOPT_MIMEPOST:
    case CURLOPT_HTTPPOST:
        set->method = option == CURLOPT_MIMEPOST ? FAKE_MIME : FAKE_FORM;
        set->no_body = false;
        return CURLE_AGAIN;
    default:
        return CURLE_AGAIN;
    }
}

#endif
