#include "curl_options_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct shadowed_option curl_options_shadowed[SHADOW_COUNT] = {
#define SHADOW(id, kind) {CURLOPT_##id, KIND_##kind},
    CURL_SHADOWED(SHADOW)
#undef SHADOW
};

/* --- one value --------------------------------------------------------------------------- */

static void free_value(enum shadow_index index, struct shadow_value *value)
{
    if (curl_options_shadowed[index].kind == KIND_STRING ||
        curl_options_shadowed[index].kind == KIND_BLOB)
        free(value->pointer);
    value->pointer = NULL;
}

static struct curl_blob *copy_of_blob(const struct curl_blob *given)
{
    struct curl_blob *copy = malloc(sizeof *copy + given->len);

    if (!copy)
        return NULL;
    *copy = (struct curl_blob){.data = copy + 1, .len = given->len, .flags = CURL_BLOB_COPY};
    if (given->len > 0)
        memcpy(copy->data, given->data, given->len);
    return copy;
}

static void *kept_value(enum option_kind kind, void *given)
{
    return !given                ? NULL
           : kind == KIND_STRING ? strdup(given)
           : kind == KIND_BLOB   ? copy_of_blob(given)
                                 : given;
}

static bool set_value(enum shadow_index index, struct shadow_value *value, void *given)
{
    void *kept = kept_value(curl_options_shadowed[index].kind, given);

    if (given && !kept)
        return false;
    free_value(index, value);
    value->pointer = kept;
    value->set = true;
    value->overridden |= value->guarded;
    return true;
}

/* Options that libcurl has under two numbers are kept under one: of USERPWD the name stands for
 * both. */
static CURLoption canonical(CURLoption option)
{
    switch ((int)option) {
    case CURLOPT_COPYPOSTFIELDS:
        return CURLOPT_POSTFIELDS;
    case CURLOPT_USERPWD:
        return CURLOPT_USERNAME;
    case CURLOPT_TIMEOUT:
        return CURLOPT_TIMEOUT_MS;
    case CURLOPT_POSTFIELDSIZE:
        return CURLOPT_POSTFIELDSIZE_LARGE;
    case CURLOPT_INFILESIZE:
        return CURLOPT_INFILESIZE_LARGE;
    case CURLOPT_RESUME_FROM:
        return CURLOPT_RESUME_FROM_LARGE;
    default:
        return option;
    }
}

static enum shadow_index index_of(CURLoption option)
{
    switch ((int)canonical(option)) {
#define SHADOW(id, kind)                                                                           \
    case CURLOPT_##id:                                                                             \
        return SHADOW_##id;
        CURL_SHADOWED(SHADOW)
#undef SHADOW
    default:
        return SHADOW_COUNT;
    }
}

/* --- what the application sets ------------------------------------------------------------ */

static void drop_copied_fields(struct curl_options *options)
{
    free(options->copied_fields);
    options->copied_fields = NULL;
    options->copied_size = 0;
}

curl_off_t curl_options_fields_size(const struct curl_options *options)
{
    const struct shadow_value *size = &options->value[SHADOW_POSTFIELDSIZE_LARGE];

    return size->set ? size->number : -1;
}

/* Copied at setopt time, by the size that was told before; it replaces POSTFIELDS. */
static bool note_copied_fields(struct curl_options *options, const char *fields)
{
    curl_off_t told = curl_options_fields_size(options);
    size_t len = !fields ? 0 : told >= 0 ? (size_t)told : strlen(fields);
    char *copy = fields ? malloc(len + 1) : NULL;

    if (fields && !copy)
        return false;
    if (copy)
        *(char *)mempcpy(copy, fields, len) = '\0'; /* it may be put back without a size */
    drop_copied_fields(options);
    options->value[SHADOW_POSTFIELDS].pointer = NULL;
    options->copied_fields = copy;
    options->copied_size = len;
    return true;
}

/* libcurl drops a copied body when a greater size is told afterwards. */
static void note_fields_size(struct curl_options *options, curl_off_t size)
{
    if (options->copied_fields && size > curl_options_fields_size(options))
        drop_copied_fields(options);
}

/* As libcurl's setopt derives the request. */
static void note_request(struct curl_options *options, CURLoption option, void *value)
{
    bool on = (long)(intptr_t)value != 0;

    switch ((int)option) {
    case CURLOPT_HTTPGET:
        if (!on)
            return;
        options->request = REQUEST_GET;
        options->upload = options->no_body = false;
        return;
    case CURLOPT_NOBODY:
        options->no_body = on;
        if (on)
            options->request = REQUEST_HEAD;
        else if (options->request == REQUEST_HEAD)
            options->request = REQUEST_GET;
        return;
    case CURLOPT_POST:
        options->request = on ? REQUEST_POST : REQUEST_GET;
        options->upload = false;
        break;
    case CURLOPT_UPLOAD:
    case CURLOPT_PUT:
        options->request = on ? REQUEST_PUT : REQUEST_GET;
        options->upload = on;
        break;
    case CURLOPT_MIMEPOST:
        options->request = REQUEST_MIME;
        break;
    case CURLOPT_HTTPPOST:
        options->request = REQUEST_FORM;
        break;
    case CURLOPT_POSTFIELDS:
    case CURLOPT_COPYPOSTFIELDS:
        options->request = REQUEST_POST;
        return;
    default:
        return;
    }
    if (on)
        options->no_body = false;
}

/* Options that share one field in libcurl: the last one set rules, and is the one to put back. */
static void note_shared_field(struct curl_options *options, CURLoption option)
{
    switch ((int)option) {
    case CURLOPT_PROTOCOLS:
    case CURLOPT_PROTOCOLS_STR:
        options->protocols_by_name = option == CURLOPT_PROTOCOLS_STR;
        break;
    case CURLOPT_HTTPAUTH:
    case CURLOPT_AWS_SIGV4:
        options->auth_by_signature = option == CURLOPT_AWS_SIGV4;
        break;
    case CURLOPT_UNIX_SOCKET_PATH:
        set_value(SHADOW_ABSTRACT_UNIX_SOCKET, &options->value[SHADOW_ABSTRACT_UNIX_SOCKET], NULL);
        break;
    case CURLOPT_ABSTRACT_UNIX_SOCKET:
        set_value(SHADOW_UNIX_SOCKET_PATH, &options->value[SHADOW_UNIX_SOCKET_PATH], NULL);
        break;
    case CURLOPT_POSTFIELDS:
        drop_copied_fields(options);
        break;
    case CURLOPT_HSTS:
    case CURLOPT_HSTS_CTRL:
    case CURLOPT_HSTSREADFUNCTION:
        options->may_have_hsts = true;
        break;
    case CURLOPT_SHARE: /* may share those of others */
        options->may_have_hsts = options->may_share_cookies = true;
        break;
    case CURLOPT_COOKIEFILE:
    case CURLOPT_COOKIEJAR:
    case CURLOPT_COOKIELIST:
        options->has_cookie_jar = true;
        break;
    default:
        break;
    }
}

/* As libcurl does, at the first colon. */
static bool note_userpwd(struct curl_options *options, const char *both)
{
    const char *colon = both ? strchr(both, ':') : NULL;
    char *name = both ? strndup(both, colon ? (size_t)(colon - both) : strlen(both)) : NULL;
    bool good = (name || !both) &&
                set_value(SHADOW_USERNAME, &options->value[SHADOW_USERNAME], name) &&
                set_value(SHADOW_PASSWORD, &options->value[SHADOW_PASSWORD],
                          colon ? (void *)(colon + 1) : NULL);

    free(name);
    return good;
}

bool curl_options_note(struct curl_options *options, CURLoption option, void *value)
{
    enum shadow_index index = index_of(option);

    note_request(options, option, value);
    if (option == CURLOPT_COPYPOSTFIELDS)
        return note_copied_fields(options, value);
    if (option == CURLOPT_USERPWD)
        return note_userpwd(options, value);
    if (option == CURLOPT_TIMEOUT)
        value = (void *)((intptr_t)value * 1000);
    if (index == SHADOW_POSTFIELDSIZE_LARGE)
        note_fields_size(options, (curl_off_t)(intptr_t)value);
    note_shared_field(options, option);
    return index == SHADOW_COUNT || set_value(index, &options->value[index], value);
}

bool curl_options_change_place(const struct curl_options *options, CURLoption option,
                               const void *value)
{
    const char *url = options->value[SHADOW_URL].string;

    switch ((int)option) {
    case CURLOPT_URL: /* set before each call, it mostly is the same */
        return !url || !value || strcmp(url, value) != 0;
    case CURLOPT_CURLU:
    case CURLOPT_DEFAULT_PROTOCOL:
    case CURLOPT_PATH_AS_IS:
    case CURLOPT_PORT:
    case CURLOPT_CUSTOMREQUEST:
        return true;
    default:
        return false;
    }
}

bool curl_options_withheld(const struct curl_options *options, CURLoption option)
{
    enum shadow_index index = index_of(option);

    return index < SHADOW_COUNT &&
           (options->value[index].overridden || options->value[index].guarded);
}

void curl_options_clear(struct curl_options *options)
{
    for (unsigned i = 0; i < SHADOW_COUNT; i++)
        free_value((enum shadow_index)i, &options->value[i]);
    drop_copied_fields(options);
    memset(options, 0, sizeof *options);
}

bool curl_options_copy(struct curl_options *to, const struct curl_options *from)
{
    bool good = true;

    memset(to, 0, sizeof *to);
    to->request = from->request;
    to->upload = from->upload;
    to->no_body = from->no_body;
    to->protocols_by_name = from->protocols_by_name;
    to->auth_by_signature = from->auth_by_signature;
    to->may_have_hsts = from->may_have_hsts;
    to->has_cookie_jar = from->has_cookie_jar;
    to->may_share_cookies = from->may_share_cookies;
    for (unsigned i = 0; i < SHADOW_COUNT; i++)
        if (from->value[i].set)
            good &= set_value((enum shadow_index)i, &to->value[i], from->value[i].pointer);
    if (from->copied_fields) {
        to->copied_fields = malloc(from->copied_size + 1);
        good &= to->copied_fields != NULL;
        if (to->copied_fields)
            memcpy(to->copied_fields, from->copied_fields, from->copied_size + 1);
        to->copied_size = from->copied_size;
    }
    if (!good)
        curl_options_clear(to);
    return good;
}

/* --- what the request is ------------------------------------------------------------------ */

uint16_t curl_options_port(const struct curl_options *options)
{
    const struct shadow_value *port = &options->value[SHADOW_PORT];

    return port->set && port->number > 0 && port->number < 65536 ? (uint16_t)port->number : 0;
}

const char *curl_options_method(const struct curl_options *options)
{
    static const char *const names[] = {
        [REQUEST_GET] = "GET", [REQUEST_HEAD] = "HEAD", [REQUEST_POST] = "POST",
        [REQUEST_PUT] = "PUT", [REQUEST_MIME] = "POST", [REQUEST_FORM] = "POST",
    };
    const char *custom = options->value[SHADOW_CUSTOMREQUEST].string;

    if (custom)
        return custom;
    if (options->no_body)
        return "HEAD";
    return options->upload ? "PUT" : names[options->request];
}

struct span curl_options_fields(const struct curl_options *options)
{
    const char *fields = options->value[SHADOW_POSTFIELDS].pointer;
    curl_off_t told = curl_options_fields_size(options);

    if (options->copied_fields)
        return span_of(options->copied_fields, told >= 0 && (size_t)told < options->copied_size
                                                   ? (size_t)told
                                                   : options->copied_size);
    return span_of(fields, told >= 0 ? (size_t)told : strlen(fields));
}

enum body_source curl_options_body(const struct curl_options *options)
{
    if (options->no_body)
        return BODY_NONE;
    if (options->upload)
        return BODY_READ;
    switch (options->request) {
    case REQUEST_POST:
        return options->copied_fields || options->value[SHADOW_POSTFIELDS].pointer ? BODY_FIELDS
                                                                                   : BODY_READ;
    case REQUEST_MIME:
        return BODY_MIME;
    case REQUEST_FORM:
        return BODY_FORM;
    case REQUEST_GET:
    case REQUEST_HEAD:
    case REQUEST_PUT: /* an upload, above */
        break;
    }
    return BODY_NONE;
}

enum shadow_index curl_options_size_of_body(const struct curl_options *options)
{
    return !options->upload && options->request == REQUEST_POST ? SHADOW_POSTFIELDSIZE_LARGE
                                                                : SHADOW_INFILESIZE_LARGE;
}

curl_off_t curl_options_body_size(const struct curl_options *options)
{
    const struct shadow_value *size = &options->value[curl_options_size_of_body(options)];

    return size->set ? size->number : -1;
}
