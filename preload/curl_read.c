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

/* What the application's own callback gives; libcurl's default is fread on stdin. */
static size_t read_application(struct easy *easy, char *buffer, size_t size, size_t count)
{
    const struct shadow_value *function = &easy->options.value[SHADOW_READFUNCTION];
    const struct shadow_value *data = &easy->options.value[SHADOW_READDATA];
    void *from = data->set ? data->pointer : stdin; /* as libcurl's default for both */

    if (function->pointer)
        return ((curl_read_callback)function->pointer)(buffer, size, count, from);
    return fread(buffer, size, count, from);
}

/* Shows the door what it has not seen yet: after a rewind the same bytes come again. True when the
 * call must not go on. */
static bool is_refused(struct easy *easy, const char *buffer, size_t len)
{
    curl_off_t size = curl_options_body_size(&easy->options);
    uint64_t end = easy->body_at + len;
    size_t fresh = end > easy->body_shown ? (size_t)(end - easy->body_shown) : 0;
    bool last = len == 0 || (size >= 0 && end >= (uint64_t)size);

    easy->body_at = end;
    if (end > easy->body_shown)
        easy->body_shown = end;
    if (fresh > len)
        fresh = len;
    return shim_body(&easy->call, span_of(buffer + (len - fresh), fresh), last) &&
           shim_admit_model(&easy->call) == SHIM_REFUSED;
}

static size_t refuse(struct easy *easy)
{
    easy->refused = true;
    if (easy->multi) {
        easy->next_refused = easy->multi->refused;
        easy->multi->refused = easy;
    }
    return CURL_READFUNC_ABORT;
}

static size_t read_watched(char *buffer, size_t size, size_t count, void *data)
{
    struct easy *easy = data;

    if (easy->refused) /* asked once more on the way out */
        return CURL_READFUNC_ABORT;
    size_t got = read_application(easy, buffer, size, count);
    bool refused = false;

    if (got == CURL_READFUNC_ABORT || got == CURL_READFUNC_PAUSE || got > size * count)
        return got;
    if (shim_model_pending(&easy->call))
        GUARD_ERRNO(refused = is_refused(easy, buffer, got));
    return refused ? refuse(easy) : got;
}

static int rewind_by_ioctl(struct easy *easy, curl_off_t offset, int origin)
{
    curl_ioctl_callback ioctl =
        (curl_ioctl_callback)easy->options.value[SHADOW_IOCTLFUNCTION].pointer;

    if (offset != 0 || origin != SEEK_SET)
        return CURL_SEEKFUNC_CANTSEEK;
    return ioctl(easy->handle, CURLIOCMD_RESTARTREAD,
                 easy->options.value[SHADOW_IOCTLDATA].pointer) == CURLIOE_OK
               ? CURL_SEEKFUNC_OK
               : CURL_SEEKFUNC_FAIL;
}

/* libcurl seeks a FILE* by itself, but only while fread is its own: with our callback a redirect
 * that sends the body again would fail (error 65). */
static int seek_file(const struct easy *easy, curl_off_t offset, int origin)
{
    const struct shadow_value *data = &easy->options.value[SHADOW_READDATA];

    return fseeko(data->set ? data->pointer : stdin, (off_t)offset, origin) == 0
               ? CURL_SEEKFUNC_OK
               : CURL_SEEKFUNC_CANTSEEK;
}

static int seek_watched(void *data, curl_off_t offset, int origin)
{
    struct easy *easy = data;
    const struct shadow_value *seek = &easy->options.value[SHADOW_SEEKFUNCTION];
    int result;

    if (seek->pointer)
        result = ((curl_seek_callback)seek->pointer)(easy->options.value[SHADOW_SEEKDATA].pointer,
                                                     offset, origin);
    else if (easy->options.value[SHADOW_IOCTLFUNCTION].pointer)
        result = rewind_by_ioctl(easy, offset, origin);
    else
        result = seek_file(easy, offset, origin);
    if (result == CURL_SEEKFUNC_OK && origin == SEEK_SET)
        easy->body_at = (uint64_t)offset;
    return result;
}

/* A callback of the application that cannot be rewound must stay so in libcurl's eyes. */
static bool can_seek(const struct curl_options *options)
{
    return options->value[SHADOW_SEEKFUNCTION].pointer ||
           options->value[SHADOW_IOCTLFUNCTION].pointer ||
           !options->value[SHADOW_READFUNCTION].pointer;
}

void curl_read_watch(struct easy *easy)
{
    struct curl_options *options = &easy->options;
    const curl_read_callback watched = read_watched;
    const curl_seek_callback seek = seek_watched;

    easy->body_at = easy->body_shown = 0;
    curl_options_override(options, easy->real, easy->handle, SHADOW_READFUNCTION, (void *)watched);
    curl_options_override(options, easy->real, easy->handle, SHADOW_READDATA, easy);
    if (!can_seek(options))
        return;
    curl_options_override(options, easy->real, easy->handle, SHADOW_SEEKFUNCTION, (void *)seek);
    curl_options_override(options, easy->real, easy->handle, SHADOW_SEEKDATA, easy);
}
