#include "curl_options.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    CURLoption option;
    enum option_kind kind;
} shadowed[SHADOW_COUNT] = {
#define SHADOW(id, kind) {CURLOPT_##id, KIND_##kind},
    CURL_SHADOWED(SHADOW)
#undef SHADOW
};

/* --- one value ---------------------------------------------------------------------------------
 */

static void free_value(enum shadow_index index, struct shadow_value *value)
{
    if (shadowed[index].kind == KIND_STRING)
        free(value->string);
    value->pointer = NULL;
}

static bool set_value(enum shadow_index index, struct shadow_value *value, void *given)
{
    void *kept = given;

    if (shadowed[index].kind == KIND_STRING && given && !(kept = strdup(given)))
        return false;
    free_value(index, value);
    value->pointer = kept;
    value->set = true;
    return true;
}

/* Options that libcurl has under two numbers are kept under one. */
static CURLoption canonical(CURLoption option)
{
    switch ((int)option) {
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
    unsigned i = 0;

    option = canonical(option);
    while (i < SHADOW_COUNT && shadowed[i].option != option)
        i++;
    return (enum shadow_index)i;
}

/* --- what the application sets ------------------------------------------------------------------
 */

static bool note_copied_fields(struct curl_options *options, const char *fields)
{
    const struct shadow_value *size = &options->value[SHADOW_POSTFIELDSIZE_LARGE];
    size_t len = !fields                          ? 0
                 : size->set && size->number >= 0 ? (size_t)size->number
                                                  : strlen(fields);
    char *copy = fields ? malloc(len + 1) : NULL;

    if (fields && !copy)
        return false;
    if (copy)
        memcpy(copy, fields, len);
    free(options->copied_fields);
    options->copied_fields = copy;
    options->copied_size = len;
    return true;
}

static void drop_copied_fields(struct curl_options *options)
{
    free(options->copied_fields);
    options->copied_fields = NULL;
    options->copied_size = 0;
}

/* As libcurl's setopt derives the method. */
static void note_method(struct curl_options *options, CURLoption option, void *value)
{
    bool on = (long)(intptr_t)value != 0;

    switch ((int)option) {
    case CURLOPT_HTTPGET:
        if (on)
            options->method = METHOD_GET;
        break;
    case CURLOPT_NOBODY:
        if (on)
            options->method = METHOD_HEAD;
        else if (options->method == METHOD_HEAD)
            options->method = METHOD_GET;
        break;
    case CURLOPT_POST:
        options->method = on ? METHOD_POST : METHOD_GET;
        break;
    case CURLOPT_UPLOAD:
    case CURLOPT_PUT:
        options->method = on ? METHOD_PUT : METHOD_GET;
        break;
    case CURLOPT_POSTFIELDS:
    case CURLOPT_COPYPOSTFIELDS:
        options->method = METHOD_POST;
        break;
    case CURLOPT_MIMEPOST:
        options->method = METHOD_MIME;
        break;
    case CURLOPT_HTTPPOST:
        options->method = METHOD_FORM;
        break;
    default:
        break;
    }
}

bool curl_options_note(struct curl_options *options, CURLoption option, void *value)
{
    enum shadow_index index = index_of(option);

    note_method(options, option, value);
    if (option == CURLOPT_COPYPOSTFIELDS)
        return note_copied_fields(options, value);
    if (option == CURLOPT_POSTFIELDS)
        drop_copied_fields(options);
    if (option == CURLOPT_PROTOCOLS || option == CURLOPT_PROTOCOLS_STR)
        options->protocols_by_name = option == CURLOPT_PROTOCOLS_STR;
    if (index == SHADOW_COUNT)
        return true;
    return set_value(index, &options->value[index], value);
}

bool curl_options_withheld(const struct curl_options *options, CURLoption option)
{
    enum shadow_index index = index_of(option);

    return index < SHADOW_COUNT && options->value[index].overridden;
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
    to->method = from->method;
    to->protocols_by_name = from->protocols_by_name;
    for (unsigned i = 0; i < SHADOW_COUNT; i++) {
        if (from->value[i].set)
            good &= set_value((enum shadow_index)i, &to->value[i], from->value[i].pointer);
        to->value[i].overridden = from->value[i].overridden;
    }
    if (from->copied_fields) {
        to->copied_fields = malloc(from->copied_size + 1);
        good &= to->copied_fields != NULL;
        if (to->copied_fields)
            memcpy(to->copied_fields, from->copied_fields, from->copied_size);
        to->copied_size = from->copied_size;
    }
    if (!good)
        curl_options_clear(to);
    return good;
}

/* --- what we override ----------------------------------------------------------------------------
 */

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
    default:
        return NULL;
    }
}

void curl_options_override(struct curl_options *options, real_t real, CURL *easy,
                           enum shadow_index index, void *value)
{
    if (real->easy_setopt(easy, shadowed[index].option, value) == CURLE_OK)
        options->value[index].overridden = true;
}

void curl_options_neutralise(struct curl_options *options, real_t real, CURL *easy,
                             enum shadow_index index)
{
    if (options->value[index].set && options->value[index].pointer != default_of(index))
        curl_options_override(options, real, easy, index, default_of(index));
}

/* PROTOCOLS and PROTOCOLS_STR are one field in libcurl: the one that came last is put back. */
static bool is_the_other_protocols(const struct curl_options *options, unsigned index)
{
    return (index == SHADOW_PROTOCOLS && options->protocols_by_name) ||
           (index == SHADOW_PROTOCOLS_STR && !options->protocols_by_name &&
            options->value[SHADOW_PROTOCOLS].set);
}

static void restore_one(struct curl_options *options, real_t real, CURL *easy, unsigned index)
{
    struct shadow_value *value = &options->value[index];

    value->overridden = false;
    if (!is_the_other_protocols(options, index))
        real->easy_setopt(easy, shadowed[index].option,
                          value->set ? value->pointer : default_of((enum shadow_index)index));
}

void curl_options_restore(struct curl_options *options, real_t real, CURL *easy)
{
    bool protocols = options->value[SHADOW_PROTOCOLS].overridden ||
                     options->value[SHADOW_PROTOCOLS_STR].overridden;

    for (unsigned i = 0; i < SHADOW_COUNT; i++)
        if (options->value[i].overridden)
            restore_one(options, real, easy, i);
    if (protocols && options->value[SHADOW_PROTOCOLS].set && !options->protocols_by_name)
        restore_one(options, real, easy, SHADOW_PROTOCOLS);
}

bool curl_options_overridden(const struct curl_options *options)
{
    for (unsigned i = 0; i < SHADOW_COUNT; i++)
        if (options->value[i].overridden)
            return true;
    return false;
}

/* --- what the request is ------------------------------------------------------------------------
 */

const char *curl_options_method(const struct curl_options *options)
{
    static const char *const names[] = {
        [METHOD_GET] = "GET", [METHOD_HEAD] = "HEAD", [METHOD_POST] = "POST",
        [METHOD_PUT] = "PUT", [METHOD_MIME] = "POST", [METHOD_FORM] = "POST",
    };
    const char *custom = options->value[SHADOW_CUSTOMREQUEST].string;

    return custom ? custom : names[options->method];
}

enum body_source curl_options_body(const struct curl_options *options)
{
    switch (options->method) {
    case METHOD_POST:
        return options->copied_fields || options->value[SHADOW_POSTFIELDS].pointer ? BODY_FIELDS
                                                                                   : BODY_READ;
    case METHOD_PUT:
        return BODY_READ;
    case METHOD_MIME:
        return BODY_MIME;
    case METHOD_FORM:
        return BODY_FORM;
    case METHOD_GET:
    case METHOD_HEAD:
        break;
    }
    return BODY_NONE;
}
