/*
 * curl_mime.c - the mime API names the model of a multipart request: the form field "model". Name
 * and data of a part may be set in any order.
 */
#include "easymap.h"

#include "guard.h"

#include <string.h>

curl_mime *hook_mime_init(real_t real, CURL *handle)
{
    curl_mime *mime = real->mime_init(handle);
    struct easy *easy = mime ? easymap_easy(handle) : NULL;

    if (easy)
        GUARD_ERRNO({
            easy->mime_model[0] = '\0';
            easymap_add_mime(mime, mime, easy);
        });
    return mime;
}

curl_mimepart *hook_mime_addpart(real_t real, curl_mime *mime)
{
    curl_mimepart *part = real->mime_addpart(mime);
    struct mime_node *node = part ? easymap_mime(mime) : NULL;

    if (node)
        GUARD_ERRNO(easymap_add_mime(part, mime, node->easy));
    return part;
}

static void tell_model(struct mime_node *node)
{
    if (node->is_model && *node->data)
        memcpy(node->easy->mime_model, node->data, sizeof node->easy->mime_model);
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
    struct mime_node *node = result == CURLE_OK && data ? easymap_mime(part) : NULL;

    if (node) {
        size_t len = size == CURL_ZERO_TERMINATED ? strlen(data) : size;
        if (len < sizeof node->data) {
            memcpy(node->data, data, len);
            node->data[len] = '\0';
            tell_model(node);
        }
    }
    return result;
}

void hook_mime_free(real_t real, curl_mime *mime)
{
    GUARD_ERRNO(easymap_remove_mime(mime));
    real->mime_free(mime);
}
