/*
 * curl_mime.c - the mime API names the model of a multipart request: the form field "model". Name
 * and data of a part may be set in any order; its mime's node keeps the model.
 */
#include "curl_call.h"
#include "guard.h"

#include <string.h>

curl_mime *hook_mime_init(real_t real, CURL *handle)
{
    curl_mime *mime = real->mime_init(handle);
    struct easy *easy = mime ? easymap_easy(handle) : NULL;

    if (easy)
        GUARD_ERRNO(easymap_add_mime(mime, NULL, easy));
    return mime;
}

curl_mimepart *hook_mime_addpart(real_t real, curl_mime *mime)
{
    curl_mimepart *part = real->mime_addpart(mime);
    struct mime_node *node = part ? easymap_mime(mime) : NULL;

    if (node)
        GUARD_ERRNO(easymap_add_mime(part, node->root, node->easy));
    return part;
}

static void tell_model(const struct mime_node *part)
{
    if (part->is_model)
        memcpy(part->root->data, part->data, sizeof part->data);
}

CURLcode hook_mime_name(real_t real, curl_mimepart *part, const char *name)
{
    CURLcode result = real->mime_name(part, name);
    struct mime_node *node = result == CURLE_OK ? easymap_mime(part) : NULL;

    if (node) {
        node->is_model = name && strcmp(name, "model") == 0;
        tell_model(node);
    }
    return result;
}

CURLcode hook_mime_data(real_t real, curl_mimepart *part, const char *data, size_t size)
{
    CURLcode result = real->mime_data(part, data, size);
    struct mime_node *node = result == CURLE_OK ? easymap_mime(part) : NULL;

    if (node) {
        size_t len = !data ? 0 : size == CURL_ZERO_TERMINATED ? strlen(data) : size;
        node->in_memory = data && len < sizeof node->data && !memchr(data, '\0', len);
        if (!node->in_memory)
            len = 0; /* no model is as long as that, or has such a byte */
        if (len > 0)
            memcpy(node->data, data, len);
        node->data[len] = '\0';
        tell_model(node);
    }
    return result;
}

/* The part's content is elsewhere from now on: what it was before tells nothing. */
static CURLcode forget_content(curl_mimepart *part, CURLcode result)
{
    struct mime_node *node = result == CURLE_OK ? easymap_mime(part) : NULL;

    if (node) {
        node->in_memory = false;
        node->data[0] = '\0';
        tell_model(node);
    }
    return result;
}

CURLcode hook_mime_filedata(real_t real, curl_mimepart *part, const char *path)
{
    return forget_content(part, real->mime_filedata(part, path));
}

CURLcode hook_mime_data_cb(real_t real, curl_mimepart *part, curl_off_t size,
                           curl_read_callback read, curl_seek_callback seek,
                           curl_free_callback release, void *data)
{
    return forget_content(part, real->mime_data_cb(part, size, read, seek, release, data));
}

CURLcode hook_mime_subparts(real_t real, curl_mimepart *part, curl_mime *parts)
{
    return forget_content(part, real->mime_subparts(part, parts));
}

void hook_mime_free(real_t real, curl_mime *mime)
{
    GUARD_ERRNO(easymap_remove_mime(mime));
    real->mime_free(mime);
}

/* A part of curl_formadd's list that holds its content in memory. */
static struct span form_content(const struct curl_httppost *part)
{
    const long elsewhere = CURL_HTTPPOST_FILENAME | CURL_HTTPPOST_READFILE | CURL_HTTPPOST_BUFFER |
                           CURL_HTTPPOST_CALLBACK;
    curl_off_t len =
        part->flags & CURL_HTTPPOST_LARGE ? part->contentlen : (curl_off_t)part->contentslength;

    if (part->flags & elsewhere || !part->contents)
        return SPAN_NONE;
    return len > 0 ? span_of(part->contents, (size_t)len) : span_str(part->contents);
}

static struct span form_model(const struct curl_httppost *part)
{
    struct span name;

    for (; part; part = part->next) {
        name = part->namelength > 0 ? span_of(part->name, (size_t)part->namelength)
                                    : span_str(part->name);
        if (span_eq(name, SPAN_LIT("model")))
            return form_content(part);
    }
    return SPAN_NONE;
}

struct span curl_mime_model(const struct easy *easy)
{
    const struct shadow_value *mime = &easy->options.value[SHADOW_MIMEPOST];
    const char *model = easy->mime_model;

    if (curl_options_body(&easy->options) == BODY_FORM)
        return form_model(easy->options.value[SHADOW_HTTPPOST].pointer);
    struct mime_node *node = easymap_mime(mime->pointer);
    if (node)
        model = node->root->data;
    return *model ? span_str(model) : SPAN_NONE;
}

curl_mimepart *curl_mime_model_part(const struct easy *easy)
{
    const struct mime_node *mime = easymap_mime(easy->options.value[SHADOW_MIMEPOST].pointer);

    for (const struct mime_node *node = mime ? mime->easy->mimes : NULL; node; node = node->next)
        if (node->root == mime && node->is_model && node->in_memory)
            return (curl_mimepart *)node->key;
    return NULL;
}
