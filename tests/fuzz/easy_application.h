/* The application of fuzz_easy: its handles, its callbacks, which look whether they get its own
 * data, and the values that it sets. */
#ifndef BREAKER_TESTS_FUZZ_EASY_APPLICATION_H
#define BREAKER_TESTS_FUZZ_EASY_APPLICATION_H

#include "easy_world.h"
#include "fake_easy.h"

#include <sys/socket.h>

struct pair {
    struct fake *handle, *twin;
};

static struct pair *performing;
static void *read_data_begun; /* libcurl takes it over when a transfer begins */

/* --- the application's callbacks -----------------------------------------------------------------
 */

static void operate_inside(void);

static inline void check_data(const void *data, enum shadow_index index)
{
    MUST(data == performing->twin->set.value[index]);
}

static inline size_t application_write(char *bytes, size_t size, size_t count, void *data)
{
    check_data(data, SHADOW_WRITEDATA);
    MUST(memchr(bytes, '\0', size * count) == NULL);
    operate_inside();
    return take() % 16 == 15 ? 0 : size * count;
}

static inline size_t application_header(char *bytes, size_t size, size_t count, void *data)
{
    check_data(data, SHADOW_HEADERDATA);
    MUST(size * count > 0 && bytes[size * count - 1] == '\n');
    operate_inside();
    return size * count;
}

/* A body in two pieces; its model is refused late where the host is late.test. */
static size_t body_at;
static inline size_t application_read(char *buffer, size_t size, size_t count, void *data)
{
    static const char body[] = "{\"messages\":[{\"content\":\"x\"}],\"model\":\"bad\"}";
    size_t left = sizeof body - 1 - body_at, len = left < 30 ? left : 30;

    MUST(data == read_data_begun || data == performing->twin->set.value[SHADOW_READDATA]);
    if (len > size * count)
        len = size * count;
    memcpy(buffer, body + body_at, len);
    body_at += len;
    if (take() % 32 == 31)
        return CURL_READFUNC_ABORT;
    operate_inside();
    return len;
}

static inline int application_seek(void *data, curl_off_t offset, int origin)
{
    (void)data;
    MUST(offset >= 0 && origin == SEEK_SET);
    body_at = (size_t)offset;
    return take() % 8 == 7 ? CURL_SEEKFUNC_FAIL : CURL_SEEKFUNC_OK;
}

static inline curl_socket_t application_open(void *data, curlsocktype purpose,
                                             struct curl_sockaddr *address)
{
    (void)purpose;
    (void)address;
    check_data(data, SHADOW_OPENSOCKETDATA);
    return take() % 8 == 7 ? CURL_SOCKET_BAD : open("/dev/null", O_RDWR | O_CLOEXEC);
}

static inline int application_close(void *data, curl_socket_t fd)
{
    (void)data;
    return close(fd);
}

static inline int application_sockopt(void *data, curl_socket_t fd, curlsocktype purpose)
{
    (void)fd;
    (void)purpose;
    check_data(data, SHADOW_SOCKOPTDATA);
    return take() % 8 == 7 ? CURL_SOCKOPT_ERROR : CURL_SOCKOPT_OK;
}

/* --- options ---------------------------------------------------------------------------------- */

static struct curl_slist second = {.data = (char[]){"X-Other: 1"}};
static struct curl_slist first = {.data = (char[]){"Authorization: Bearer " SECRET},
                                  .next = &second};
static struct curl_slist plain = {.data = (char[]){"Content-Type: application/json"}};
static char errors[2][CURL_ERROR_SIZE];
static struct curl_blob blob = {.data = (char[]){SECRET}, .len = 6, .flags = CURL_BLOB_COPY};

static inline void *function_for(CURLoption option)
{
    static const curl_write_callback write_it = application_write, header = application_header;
    static const curl_read_callback read_it = application_read;
    static const curl_seek_callback seek = application_seek;
    static const curl_opensocket_callback opens = application_open;
    static const curl_closesocket_callback closes = application_close;
    static const curl_sockopt_callback sockopt = application_sockopt;

    switch ((int)option) {
    case CURLOPT_WRITEFUNCTION:
        return (void *)write_it;
    case CURLOPT_HEADERFUNCTION:
        return (void *)header;
    case CURLOPT_READFUNCTION:
        return (void *)read_it;
    case CURLOPT_SEEKFUNCTION:
        return (void *)seek;
    case CURLOPT_OPENSOCKETFUNCTION:
        return (void *)opens;
    case CURLOPT_CLOSESOCKETFUNCTION:
        return (void *)closes;
    case CURLOPT_SOCKOPTFUNCTION:
        return (void *)sockopt;
    default:
        return NULL;
    }
}

static inline void *pointer_for(CURLoption option, unsigned which)
{
    static const char *const fields[] = {"{\"model\":\"gpt\"}", "{\"model\":\"bad\",\"n\":1}", "x",
                                         NULL};
    static struct curl_slist *const lists[] = {&first, &plain, &second, NULL};

    switch ((int)option) {
    case CURLOPT_WRITEDATA:
    case CURLOPT_HEADERDATA:
    case CURLOPT_READDATA:
    case CURLOPT_SEEKDATA:
    case CURLOPT_OPENSOCKETDATA:
    case CURLOPT_CLOSESOCKETDATA:
    case CURLOPT_SOCKOPTDATA:
    case CURLOPT_IOCTLDATA:
        return files[which % FILES];
    case CURLOPT_POSTFIELDS:
    case CURLOPT_COPYPOSTFIELDS:
        return (void *)(uintptr_t)fields[which % 4];
    case CURLOPT_HTTPHEADER:
    case CURLOPT_CONNECT_TO:
    case CURLOPT_RESOLVE:
        return lists[which % 4];
    case CURLOPT_ERRORBUFFER:
        return which % 3 == 2 ? NULL : errors[which % 3];
    case CURLOPT_SSLCERT_BLOB:
    case CURLOPT_SSLKEY_BLOB:
        return which % 2 ? &blob : NULL;
    default: /* none is the default of READFUNCTION, which only reset sets: libcurl's fread() */
        return which % 2 || option == CURLOPT_READFUNCTION ? function_for(option) : NULL;
    }
}

static inline void *string_for(CURLoption option, unsigned which)
{
    static const char *const urls[] = {"https://ok.test/v1/chat/completions",
                                       "https://open.test/v1/chat/completions",
                                       "http://open.test/v1/chat/completions",
                                       "https://pass.test/v1/chat/completions",
                                       "https://back.test/v1/chat/completions",
                                       "http://back.test/v1/chat/completions",
                                       "https://chain.test/v1/chat/completions",
                                       "https://down.test/v1/chat/completions",
                                       "https://late.test/v1/chat/completions",
                                       "http://late.test/v1/chat/completions",
                                       "https://addr.test/v1/chat/completions",
                                       "https://open.test/other?key=" SECRET,
                                       "https://u:" SECRET "@back.test/v1/chat/completions",
                                       "nonsense",
                                       NULL};
    static const char *const texts[] = {SECRET, "https", "http,https", "all",
                                        "a:b",  "",      "POST",       NULL};

    return option == CURLOPT_URL ? (void *)(uintptr_t)urls[which % (sizeof urls / sizeof *urls)]
                                 : (void *)(uintptr_t)texts[which % 8];
}

static inline void *number_for(CURLoption option, unsigned which)
{
    /* One that says more than there is in POSTFIELDS would be the application's own fault. */
    static const long of_fields[] = {-1, -1, 0, 1}, of_file[] = {-1, 0, 3, 43};

    if (option == CURLOPT_POSTFIELDSIZE_LARGE)
        return (void *)of_fields[which % 4];
    if (option == CURLOPT_INFILESIZE_LARGE)
        return (void *)of_file[which % 4];
    if (option == CURLOPT_PROTOCOLS)
        return (void *)(uintptr_t)(which % 2 ? CURLPROTO_HTTPS : CURLPROTO_HTTP | CURLPROTO_HTTPS);
    return (void *)(long)(which % 5);
}

static inline void *value_for(CURLoption option, enum option_kind kind, unsigned which)
{
    return kind == KIND_LONG     ? number_for(option, which)
           : kind == KIND_STRING ? string_for(option, which)
                                 : pointer_for(option, which);
}

#endif
