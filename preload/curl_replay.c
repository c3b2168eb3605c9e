/*
 * curl_replay.c - a body that the application gives by callback, read beforehand as a whole, and
 * given to libcurl as it stands or with another model in it.
 */
#include "curl_detour.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PULL_MAX  ((size_t)1 << 30)  /* a body without an end is none to be read beforehand */
#define PULL_STEP CURL_MAX_READ_SIZE /* the most that libcurl asks for */

static bool make_room(char **body, size_t len, size_t *room)
{
    char *more;

    if (*room - len >= PULL_STEP)
        return true;
    if (len > PULL_MAX || !(more = realloc(*body, *room * 2 + PULL_STEP)))
        return false;
    *body = more;
    *room = *room * 2 + PULL_STEP;
    return true;
}

/* How much of it is to be had; 0 for "no more, or more than libcurl would take". */
static size_t wanted(curl_off_t size, size_t len)
{
    uint64_t left = size < 0 ? PULL_STEP : (uint64_t)size - len;

    return left < PULL_STEP ? (size_t)left : PULL_STEP;
}

bool curl_replay_pull(struct easy *easy)
{
    curl_off_t size = curl_options_body_size(&easy->options);
    char *body = NULL;
    size_t len = 0, room = 0, got = 0, most;

    if (!curl_read_rewind(easy))
        return false;
    do {
        bool has_room = make_room(&body, len, &room);
        most = has_room ? wanted(size, len) : 0;
        got = most > 0 ? curl_read_application(easy, body + len, most) : 0;
        if (!has_room || got > most) { /* it aborts, or pauses */
            free(body);
            curl_read_rewind(easy);
            return false;
        }
        len += got;
    } while (got > 0);
    easy->detour->pulled = body;
    easy->detour->pulled_len = len;
    return true;
}

static size_t read_replayed(char *buffer, size_t size, size_t count, void *data)
{
    struct detour *detour = ((struct easy *)data)->detour;
    struct span left = span_skip(detour->replay, detour->replayed);
    size_t len = left.len < size * count ? left.len : size * count;

    if (len > 0)
        memcpy(buffer, left.ptr, len);
    detour->replayed += len;
    return len;
}

static int seek_replayed(void *data, curl_off_t offset, int origin)
{
    struct detour *detour = ((struct easy *)data)->detour;

    if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > detour->replay.len)
        return CURL_SEEKFUNC_CANTSEEK;
    detour->replayed = (size_t)offset;
    return CURL_SEEKFUNC_OK;
}

void curl_replay_install(struct easy *easy)
{
    const struct curl_options *options = &easy->options;

    easy->detour->replayed = 0;
    curl_read_install(easy, read_replayed, seek_replayed);
    if (curl_options_body_size(options) >= 0 || easy->detour->told_length)
        curl_call_override_number(easy, curl_options_size_of_body(options),
                                  (long)easy->detour->replay.len);
}
