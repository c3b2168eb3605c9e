/*
 * curl_write.c - what the application receives: an error inside a good answer counts (shim.h,
 * shim_watch), and a transfer that its write callback pauses is neither a stall nor a hang.
 *
 * Our callback stands before the application's from admission to the end of the transfer, of LLM
 * calls alone. What the application sets meanwhile is kept in the shadow, and asked for each time,
 * as libcurl does. The bytes pass as they are; those that make it pause come again, and are looked
 * at again. Those that make it end the transfer do not: it saw them, and often ends it for what
 * they say.
 *
 * Where head lines come by the same callback they cannot be told from the body, or come with other
 * data than ours (FIELD-NOTES 2.7): such a transfer is not watched.
 */
#include "curl_call.h"
#include "guard.h"

#include <stdio.h>

/* libcurl's default is fwrite, to stdout. */
static size_t write_application(const struct easy *easy, char *bytes, size_t size, size_t count)
{
    const struct shadow_value *value = easy->options.value;
    curl_write_callback write = (curl_write_callback)value[SHADOW_WRITEFUNCTION].pointer;
    void *data = value[SHADOW_WRITEDATA].set ? value[SHADOW_WRITEDATA].pointer : stdout;

    return write ? write(bytes, size, count, data) : fwrite(bytes, size, count, data);
}

/* The body begins: its head is the final one, libcurl shows no other's body. */
static void take_head(struct easy *easy)
{
    long status = 0;
    const char *type = NULL;

    easy->headed = true;
    easy->listens = shim_times_silence(easy->active);
    uint64_t first_byte_ns = curl_slow_first_byte(easy);
    if (curl_facts_redirected_away(easy)) /* another host's says nothing of the first */
        return;
    easy->real->easy_getinfo(easy->handle, CURLINFO_RESPONSE_CODE, &status);
    easy->real->easy_getinfo(easy->handle, CURLINFO_CONTENT_TYPE, &type);
    if (shim_is_probe(easy->active))
        shim_received(easy->active);
    /* An encoded body is decoded here, or is noise in which no event is found. */
    easy->watching = shim_head(easy->active, (unsigned)status, type ? span_str(type) : SPAN_NONE,
                               SPAN_NONE, first_byte_ns);
}

static void look_ahead(struct easy *easy, struct span bytes, struct shim_watched *watched)
{
    if (!easy->headed)
        take_head(easy);
    if (easy->watching)
        shim_watch_ahead(easy->active, bytes, watched);
}

static size_t write_watched(char *bytes, size_t size, size_t count, void *data)
{
    struct easy *easy = data;
    struct shim_watched watched;

    if (!easy->headed || easy->watching) /* before the application may change them */
        GUARD_ERRNO(look_ahead(easy, span_of(bytes, size * count), &watched));
    size_t taken = write_application(easy, bytes, size, count);

    if (taken == CURL_WRITEFUNC_PAUSE)
        easy->paused = true;
    else if (easy->watching)
        easy->watching = shim_watch_taken(easy->active, &watched);
    curl_slow_hear(easy); /* only now: the application may have taken its time */
    return taken;
}

/* Do head lines come by the write callback? */
static bool shows_heads(const struct shadow_value *value)
{
    return value[SHADOW_HEADER].number != 0 ||
           (value[SHADOW_HEADERDATA].pointer && !value[SHADOW_HEADERFUNCTION].pointer);
}

void curl_write_watch(struct easy *easy)
{
    const struct curl_options *options = &easy->options;
    const curl_write_callback watched = write_watched;

    easy->headed = easy->watching = easy->listens = easy->sees_body = false;
    if (options->no_body || options->value[SHADOW_CONNECT_ONLY].number != 0 ||
        shows_heads(options->value))
        return;
    curl_call_override(easy, SHADOW_WRITEDATA, easy);
    if (options->value[SHADOW_WRITEDATA].overridden)
        curl_call_override(easy, SHADOW_WRITEFUNCTION, (void *)watched);
    easy->sees_body = options->value[SHADOW_WRITEFUNCTION].overridden;
}

void curl_write_leave(struct easy *easy)
{
    curl_options_put_back(&easy->options, easy->real, easy->handle, SHADOW_WRITEFUNCTION);
    curl_options_put_back(&easy->options, easy->real, easy->handle, SHADOW_WRITEDATA);
    easy->sees_body = false;
}

void curl_write_note(struct easy *easy, CURLoption option)
{
    if (option == CURLOPT_HEADER || option == CURLOPT_HEADERDATA ||
        option == CURLOPT_HEADERFUNCTION)
        GUARD_ERRNO(curl_write_leave(easy));
}
