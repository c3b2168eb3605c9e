/*
 * curl_options_override.c - what libcurl is given in the application's place, and puts back.
 */
#include "curl_options_parts.h"

#include <stdio.h>
#include <string.h>

/* libcurl's default where it is not 0 or NULL. */
static void *default_of(enum shadow_index index)
{
    switch (index) {
    case SHADOW_PROTOCOLS:
        return (void *)(intptr_t)CURLPROTO_ALL;
    case SHADOW_PROTOCOLS_STR:
        return "all";
    case SHADOW_POSTFIELDSIZE_LARGE:
    case SHADOW_INFILESIZE_LARGE:
        return (void *)(intptr_t)-1;
    case SHADOW_TCP_NODELAY:
    case SHADOW_SSL_VERIFYPEER:
    case SHADOW_HTTPAUTH: /* CURLAUTH_BASIC */
        return (void *)(intptr_t)1;
    case SHADOW_SSL_VERIFYHOST:
        return (void *)(intptr_t)2;
    case SHADOW_READDATA:
        return stdin;
    case SHADOW_WRITEDATA:
        return stdout;
    default:
        return NULL;
    }
}

static void mark(struct curl_options *options, enum shadow_index index)
{
    options->marked[index / 64] |= UINT64_C(1) << index % 64;
}

/* The first marked one from `first` on; SHADOW_COUNT: none. */
static unsigned next_marked(const struct curl_options *options, unsigned first)
{
    for (unsigned word = first / 64; word < SHADOW_WORDS; word++, first = word * 64) {
        uint64_t left = options->marked[word] >> first % 64;
        if (left)
            return first + (unsigned)__builtin_ctzll(left);
    }
    return SHADOW_COUNT;
}

static bool is_overridden(const struct curl_options *options, enum shadow_index index)
{
    return (options->marked[index / 64] >> index % 64 & 1) && options->value[index].overridden;
}

void curl_options_override(struct curl_options *options, real_t real, CURL *easy,
                           enum shadow_index index, void *value)
{
    if (real->easy_setopt(easy, curl_options_shadowed[index].option, value) != CURLE_OK)
        return;
    options->overridden += !options->value[index].overridden && !options->value[index].guarded;
    options->value[index].overridden = true;
    mark(options, index);
}

void curl_options_guard(struct curl_options *options, enum shadow_index index)
{
    struct shadow_value *value = &options->value[index];

    options->overridden += !value->overridden && !value->guarded;
    value->guarded = true;
    mark(options, index);
}

void curl_options_neutralise(struct curl_options *options, real_t real, CURL *easy,
                             enum shadow_index index)
{
    if (options->value[index].set && options->value[index].pointer != default_of(index))
        curl_options_override(options, real, easy, index, default_of(index));
    curl_options_guard(options, index);
}

/* The size first: it says how much is copied. */
static void put_back_copied_fields(const struct curl_options *options, real_t real, CURL *easy)
{
    real->easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_options_fields_size(options));
    real->easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, options->copied_fields);
}

static void put_back(const struct curl_options *options, real_t real, CURL *easy, unsigned index)
{
    const struct shadow_value *value = &options->value[index];

    if (index == SHADOW_POSTFIELDS && options->copied_fields) {
        put_back_copied_fields(options, real, easy);
        return;
    }
    real->easy_setopt(easy, curl_options_shadowed[index].option,
                      value->set ? value->pointer : default_of((enum shadow_index)index));
}

/* Body and method are one option: what the application set meanwhile is the method all the same. */
static void put_back_method(const struct curl_options *options, real_t real, CURL *easy)
{
    switch (options->request) {
    case REQUEST_POST:
        return;
    case REQUEST_GET:
        real->easy_setopt(easy, CURLOPT_HTTPGET, (void *)1);
        break;
    case REQUEST_PUT:
        real->easy_setopt(easy, CURLOPT_UPLOAD, (void *)1);
        break;
    case REQUEST_MIME:
        put_back(options, real, easy, SHADOW_MIMEPOST);
        break;
    case REQUEST_FORM:
        put_back(options, real, easy, SHADOW_HTTPPOST);
        break;
    case REQUEST_HEAD:
        break;
    }
    if (options->no_body)
        real->easy_setopt(easy, CURLOPT_NOBODY, (void *)1);
}

/* One field of libcurl's under two names: putting back either took the other's value away. */
static void put_back_shared(const struct curl_options *options, real_t real, CURL *easy)
{
    const struct shadow_value *value = options->value;
    bool protocols =
        is_overridden(options, SHADOW_PROTOCOLS) || is_overridden(options, SHADOW_PROTOCOLS_STR);

    if (protocols && value[SHADOW_PROTOCOLS].set && !options->protocols_by_name)
        put_back(options, real, easy, SHADOW_PROTOCOLS);
    if (is_overridden(options, SHADOW_AWS_SIGV4) && !options->auth_by_signature)
        put_back(options, real, easy, SHADOW_HTTPAUTH);
    if (is_overridden(options, SHADOW_ABSTRACT_UNIX_SOCKET) &&
        value[SHADOW_UNIX_SOCKET_PATH].pointer)
        put_back(options, real, easy, SHADOW_UNIX_SOCKET_PATH);
}

void curl_options_restore_copy(const struct curl_options *options, real_t real, CURL *copy)
{
    if (options->overridden == 0)
        return;
    for (unsigned i = next_marked(options, 0); i < SHADOW_COUNT; i = next_marked(options, i + 1))
        if (options->value[i].overridden)
            put_back(options, real, copy, i);
    if (is_overridden(options, SHADOW_POSTFIELDS))
        put_back_method(options, real, copy);
    put_back_shared(options, real, copy);
}

void curl_options_restore_all(struct curl_options *options, real_t real, CURL *easy)
{
    curl_options_restore_copy(options, real, easy);
    for (unsigned i = next_marked(options, 0); i < SHADOW_COUNT; i = next_marked(options, i + 1))
        options->value[i].overridden = options->value[i].guarded = false;
    memset(options->marked, 0, sizeof options->marked);
    options->overridden = 0;
}

void curl_options_release(struct curl_options *options, enum shadow_index index)
{
    struct shadow_value *value = &options->value[index];

    options->overridden -= value->overridden || value->guarded;
    value->overridden = value->guarded = false;
    options->marked[index / 64] &= ~(UINT64_C(1) << index % 64);
}

void curl_options_put_back(struct curl_options *options, real_t real, CURL *easy,
                           enum shadow_index index)
{
    if (!options->value[index].overridden)
        return;
    put_back(options, real, easy, index);
    curl_options_release(options, index);
}

void curl_options_allow_http(struct curl_options *options, real_t real, CURL *easy)
{
    if (!options->value[SHADOW_PROTOCOLS].set && !options->value[SHADOW_PROTOCOLS_STR].set)
        return;
    if (real->version >= 0x075500)
        curl_options_override(options, real, easy, SHADOW_PROTOCOLS_STR, "http,https");
    else
        curl_options_override(options, real, easy, SHADOW_PROTOCOLS,
                              (void *)(intptr_t)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
}
