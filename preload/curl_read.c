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

static const struct pulled_body *source_of(struct easy *easy)
{
    const struct shadow_value *value = easy->options.value;
    struct pulled_body *source = &easy->source;
    const curl_off_t resume_from = value[SHADOW_RESUME_FROM_LARGE].number;

    if (source->known)
        return source;
    *source = (struct pulled_body){
        .read = (curl_read_callback)value[SHADOW_READFUNCTION].pointer,
        .seek = (curl_seek_callback)value[SHADOW_SEEKFUNCTION].pointer,
        .ioctl = (curl_ioctl_callback)value[SHADOW_IOCTLFUNCTION].pointer,
        .read_data = value[SHADOW_READDATA].set ? value[SHADOW_READDATA].pointer : stdin,
        .seek_data = value[SHADOW_SEEKDATA].pointer,
        .ioctl_data = value[SHADOW_IOCTLDATA].pointer,
        .start = -1,
        .unsent = resume_from > 0 ? (uint64_t)resume_from : 0,
        .known = true,
    };
    if (!source->read && shim_detour_possible(&easy->call))
        source->start = ftello(source->read_data);
    return source;
}

/* libcurl's default is fread, on stdin. */
size_t curl_read_application(struct easy *easy, char *buffer, size_t size)
{
    const struct pulled_body *source = source_of(easy);

    return source->read ? source->read(buffer, 1, size, source->read_data)
                        : fread(buffer, 1, size, source->read_data);
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Shows the door what it has not seen yet: after a rewind the same bytes come again. True when the
 * call must not go on. */
static bool is_refused(struct easy *easy, const char *buffer, size_t len)
{
    curl_off_t size = curl_options_body_size(&easy->options);
    uint64_t end = easy->body_at + len;
    uint64_t seen = later(later(easy->body_at, easy->body_shown), source_of(easy)->unsent);
    size_t fresh = end > seen ? (size_t)(end - seen) : 0;
    bool last = len == 0 || (size >= 0 && end >= (uint64_t)size);

    easy->body_at = end;
    if (end > easy->body_shown)
        easy->body_shown = end;
    if (!shim_body(easy->active, span_of(buffer + (len - fresh), fresh), last) ||
        shim_admit_model(easy->active) == SHIM_ADMITTED)
        return false;
    /* Begun, it can go to nobody else, and not to its own host again if that is what comes of it.
     */
    return easy->detour || curl_read_can_rewind(easy) ||
           shim_exhausted(&easy->call) == SHIM_REFUSED;
}

static size_t refuse(struct easy *easy)
{
    easy->superseded = true;
    if (easy->multi) {
        easy->next_superseded = easy->multi->superseded;
        easy->multi->superseded = easy;
    }
    return CURL_READFUNC_ABORT;
}

static size_t read_watched(char *buffer, size_t size, size_t count, void *data)
{
    struct easy *easy = data;

    if (easy->superseded) /* asked once more on the way out */
        return CURL_READFUNC_ABORT;
    size_t got = curl_read_application(easy, buffer, size * count);
    bool refused = false;

    if (got == CURL_READFUNC_ABORT || got == CURL_READFUNC_PAUSE || got > size * count)
        return got;
    if (shim_model_pending(easy->active))
        GUARD_ERRNO(refused = is_refused(easy, buffer, got));
    return refused ? refuse(easy) : got;
}

static int rewind_by_ioctl(const struct pulled_body *source, CURL *handle, curl_off_t offset,
                           int origin)
{
    if (offset != 0 || origin != SEEK_SET)
        return CURL_SEEKFUNC_CANTSEEK;
    return source->ioctl(handle, CURLIOCMD_RESTARTREAD, source->ioctl_data) == CURLIOE_OK
               ? CURL_SEEKFUNC_OK
               : CURL_SEEKFUNC_FAIL;
}

static int seek_watched(void *data, curl_off_t offset, int origin)
{
    struct easy *easy = data;
    const struct pulled_body *source = source_of(easy);
    int result;

    if (source->seek)
        result = source->seek(source->seek_data, offset, origin);
    else if (source->ioctl)
        result = rewind_by_ioctl(source, easy->handle, offset, origin);
    else /* libcurl seeks a FILE* by itself, but only while fread is its own: with our callback a
            redirect that sends the body again would fail (error 65) */
        result = fseeko(source->read_data, (off_t)offset, origin) == 0 ? CURL_SEEKFUNC_OK
                                                                       : CURL_SEEKFUNC_CANTSEEK;
    if (result == CURL_SEEKFUNC_OK && origin == SEEK_SET)
        easy->body_at = (uint64_t)offset;
    return result;
}

/* A callback of the application that cannot be rewound must stay so in libcurl's eyes. */
bool curl_read_can_rewind(const struct easy *easy)
{
    const struct curl_options *options = &easy->options;

    return options->value[SHADOW_SEEKFUNCTION].pointer ||
           options->value[SHADOW_IOCTLFUNCTION].pointer ||
           !options->value[SHADOW_READFUNCTION].pointer;
}

bool curl_read_rewind(struct easy *easy)
{
    const struct pulled_body *source = source_of(easy);

    if (!source->seek && !source->ioctl)
        return !source->read && source->start >= 0 &&
               fseeko(source->read_data, (off_t)source->start, SEEK_SET) == 0;
    return seek_watched(easy, 0, SEEK_SET) == CURL_SEEKFUNC_OK;
}

void curl_read_install(struct easy *easy, curl_read_callback read, curl_seek_callback seek)
{
    curl_call_override(easy, SHADOW_READFUNCTION, (void *)read);
    curl_call_override(easy, SHADOW_READDATA, easy);
    if (!seek)
        return;
    curl_call_override(easy, SHADOW_SEEKFUNCTION, (void *)seek);
    curl_call_override(easy, SHADOW_SEEKDATA, easy);
}

void curl_read_watch(struct easy *easy)
{
    easy->body_at = easy->body_shown = 0;
    easy->source.known = false;
    curl_read_install(easy, read_watched, curl_read_can_rewind(easy) ? seek_watched : NULL);
}
