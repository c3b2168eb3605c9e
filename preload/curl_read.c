/*
 * curl_read.c - a body that libcurl pulls by READFUNCTION shows its model only while it is sent.
 *
 * Our callback stands before the application's from admission to the end of the transfer. When the
 * model becomes known and is refused, it aborts before the bytes that complete the request go out;
 * the same handle then gets the synthetic answer (FIELD-NOTES 2.6). Nothing is held back.
 */
#include "curl_call.h"

#include "guard.h"

#include <stdio.h>

typedef size_t read_function(char *buffer, size_t size, size_t count, void *data);
typedef int seek_function(void *data, curl_off_t offset, int origin);

/* What the application's own callback gives; libcurl's default is fread on stdin. */
static size_t read_application(struct easy *easy, char *buffer, size_t size, size_t count)
{
    const struct shadow_value *function = &easy->options.value[SHADOW_READFUNCTION];
    const struct shadow_value *data = &easy->options.value[SHADOW_READDATA];

    if (function->pointer)
        return ((read_function *)function->pointer)(buffer, size, count, data->pointer);
    return fread(buffer, size, count, data->set && data->pointer ? data->pointer : stdin);
}

/* How long the body is as the application told; -1: until its end. */
static curl_off_t told_size(const struct easy *easy)
{
    const struct curl_options *options = &easy->options;
    const struct shadow_value *size =
        &options->value[options->method == METHOD_PUT ? SHADOW_INFILESIZE_LARGE
                                                      : SHADOW_POSTFIELDSIZE_LARGE];

    return size->set ? size->number : -1;
}

/* Shows the bytes to the door; true when the call must not go on. */
static bool is_refused(struct easy *easy, const char *buffer, size_t len)
{
    curl_off_t size = told_size(easy);

    easy->body_seen += len;
    bool last = len == 0 || (size >= 0 && easy->body_seen >= (uint64_t)size);
    return shim_body(&easy->call, span_of(buffer, len), last) &&
           shim_admit_model(&easy->call) == SHIM_REFUSED;
}

static size_t read_watched(char *buffer, size_t size, size_t count, void *data)
{
    struct easy *easy = data;

    if (easy->refused)
        return CURL_READFUNC_ABORT;
    size_t got = read_application(easy, buffer, size, count);
    bool refused = false;

    if (got == CURL_READFUNC_ABORT || got == CURL_READFUNC_PAUSE || got > size * count)
        return got;
    if (shim_model_pending(&easy->call))
        GUARD_ERRNO(refused = is_refused(easy, buffer, got));
    if (!refused)
        return got;
    easy->refused = true;
    if (easy->multi) {
        easy->next_refused = easy->multi->refused;
        easy->multi->refused = easy;
    }
    return CURL_READFUNC_ABORT;
}

/* libcurl seeks a FILE* by itself only while fread is its own: with our callback it would fail
 * where it did not before (a redirect that sends the body again, error 65). */
static int seek_file(void *data, curl_off_t offset, int origin)
{
    struct easy *easy = data;
    const struct shadow_value *file = &easy->options.value[SHADOW_READDATA];

    return fseeko(file->set && file->pointer ? file->pointer : stdin, (off_t)offset, origin) == 0
               ? CURL_SEEKFUNC_OK
               : CURL_SEEKFUNC_CANTSEEK;
}

void curl_read_watch(struct easy *easy)
{
    struct curl_options *options = &easy->options;
    read_function *const watched = read_watched;
    seek_function *const seek = seek_file;

    easy->watched = true;
    easy->body_seen = 0;
    curl_options_override(options, easy->real, easy->handle, SHADOW_READFUNCTION, (void *)watched);
    curl_options_override(options, easy->real, easy->handle, SHADOW_READDATA, easy);
    if (!options->value[SHADOW_READFUNCTION].pointer &&
        !options->value[SHADOW_SEEKFUNCTION].pointer &&
        !options->value[SHADOW_IOCTLFUNCTION].pointer) {
        curl_options_override(options, easy->real, easy->handle, SHADOW_SEEKFUNCTION, (void *)seek);
        curl_options_override(options, easy->real, easy->handle, SHADOW_SEEKDATA, easy);
    }
}
