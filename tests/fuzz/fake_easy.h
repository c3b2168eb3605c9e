/* A libcurl of one handle at a time, for fuzz_easy: keeps what is set as libcurl 7.88 keeps it
 * (fake_options.h), and makes transfers of it without a network. */
#ifndef BREAKER_TESTS_FUZZ_FAKE_EASY_H
#define BREAKER_TESTS_FUZZ_FAKE_EASY_H

#include "fake_options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

struct fake {
    struct fake_set set;
    char *effective_url; /* of the last transfer, owned */
    long status, os_errno;
    bool was_connected;
};

/* What the network does with the transfer that begins. */
struct fake_network {
    long status; /* 0: it cannot be connected to */
    const char *type, *body;
};
typedef struct fake_network fake_network_ask(struct fake *fake, const char *host);
static fake_network_ask *fake_network; /* the fuzzer's */

static inline CURLcode fake_setopt(struct fake *fake, CURLoption option, void *value)
{
    struct fake_set *set = &fake->set;

    if (fake_set_method(set, option, (long)value))
        return CURLE_OK;
    CURLcode result = fake_set_special(set, option, value);
    if (result != CURLE_AGAIN)
        return result;
    for (int i = 0; i < SHADOW_COUNT; i++)
        if (fake_options[i].option == option) {
            fake_put(set, (enum shadow_index)i, value);
            return CURLE_OK;
        }
    return CURLE_UNKNOWN_OPTION;
}

static inline CURLcode fake_fail(struct fake *fake, CURLcode code, long os_errno)
{
    char *errors = fake->set.value[SHADOW_ERRORBUFFER];

    fake->os_errno = os_errno;
    if (errors)
        memcpy(errors, "it failed", sizeof "it failed");
    return code;
}

/* Is there a body that is pulled, and how did that go? */
static inline CURLcode fake_send_body(struct fake *fake, curl_read_callback read, void *data)
{
    const struct fake_set *set = &fake->set;
    bool pulls = set->upload || (set->method == FAKE_POST && !set->value[SHADOW_POSTFIELDS]);
    long size =
        fake_number(set, set->upload ? SHADOW_INFILESIZE_LARGE : SHADOW_POSTFIELDSIZE_LARGE);
    char buffer[64];

    if (set->no_body)
        return CURLE_OK;
    if (set->method == FAKE_POST && !set->upload && set->value[SHADOW_POSTFIELDS]) {
        const char *fields = set->value[SHADOW_POSTFIELDS];
        long told = fake_number(set, SHADOW_POSTFIELDSIZE_LARGE);
        char *sent = strndup(fields, told >= 0 ? (size_t)told : strlen(fields)); /* all is there */
        free(sent);
    }
    for (long sent = 0; pulls && read && (size < 0 || sent < size);) {
        size_t got = read(buffer, 1, sizeof buffer, data);
        if (got == CURL_READFUNC_ABORT)
            return CURLE_ABORTED_BY_CALLBACK;
        if (got == CURL_READFUNC_PAUSE || got == 0)
            break;
        MUST(got <= sizeof buffer);
        sent += (long)got;
    }
    return CURLE_OK;
}

/* Gives the application head and body, which it may change the handle in. */
static inline CURLcode fake_deliver(struct fake *fake, struct fake_network *answer)
{
    const struct fake_set *set = &fake->set;
    char line[64], body[256];
    size_t len = (size_t)snprintf(body, sizeof body, "%s", answer->body);

    fake->status = answer->status;
    snprintf(line, sizeof line, "HTTP/1.1 %ld X\r\n", answer->status);
    curl_write_callback header = (curl_write_callback)set->value[SHADOW_HEADERFUNCTION];
    if (header && header(line, 1, strlen(line), set->value[SHADOW_HEADERDATA]) != strlen(line))
        return fake_fail(fake, CURLE_WRITE_ERROR, 0);
    for (size_t at = 0; at < len && !set->no_body;) {
        size_t piece = len - at < 20 ? len - at : 20;
        curl_write_callback write = (curl_write_callback)set->value[SHADOW_WRITEFUNCTION];
        if (write && write(body + at, 1, piece, set->value[SHADOW_WRITEDATA]) != piece)
            return fake_fail(fake, CURLE_WRITE_ERROR, 0);
        at += piece;
    }
    return CURLE_OK;
}

/* An answer that stands in the socket already: libcurl was told that it is connected. */
static inline struct fake_network fake_read_answer(int fd)
{
    static char text[4096 + 1];
    ssize_t got = read(fd, text, sizeof text - 1);

    MUST(got > 12 && memcmp(text, "HTTP/1.1 ", 9) == 0);
    text[got] = '\0';
    const char *body = strstr(text, "\r\n\r\n");
    MUST(body);
    return (struct fake_network){strtol(text + 9, NULL, 10), "application/json", body + 4};
}

static inline CURLcode fake_exchange(struct fake *fake, int fd, const char *host,
                                     curl_read_callback read, void *read_data)
{
    const struct fake_set *set = &fake->set;
    curl_sockopt_callback sockopt = (curl_sockopt_callback)set->value[SHADOW_SOCKOPTFUNCTION];
    int state =
        sockopt ? sockopt(set->value[SHADOW_SOCKOPTDATA], fd, CURLSOCKTYPE_IPCXN) : CURL_SOCKOPT_OK;
    struct fake_network answer = {0};

    if (state == CURL_SOCKOPT_ERROR)
        return fake_fail(fake, CURLE_ABORTED_BY_CALLBACK, 0);
    if (state != CURL_SOCKOPT_ALREADY_CONNECTED) {
        answer = fake_network(fake, host);
        if (answer.status == 0)
            return fake_fail(fake, CURLE_COULDNT_CONNECT, ECONNREFUSED);
    }
    fake->was_connected = true;
    if (set->value[SHADOW_CONNECT_ONLY])
        return CURLE_OK;
    CURLcode result = fake_send_body(fake, read, read_data);
    if (result != CURLE_OK)
        return fake_fail(fake, result, 0);
    if (state == CURL_SOCKOPT_ALREADY_CONNECTED)
        answer = fake_read_answer(fd);
    return fake_deliver(fake, &answer);
}

static inline CURLcode fake_perform(struct fake *fake)
{
    const struct fake_set *set = &fake->set;
    const char *url = set->value[SHADOW_URL], *begin = url ? strstr(url, "://") : NULL;
    curl_read_callback read = (curl_read_callback)set->value[SHADOW_READFUNCTION];
    curl_opensocket_callback opens =
        (curl_opensocket_callback)set->value[SHADOW_OPENSOCKETFUNCTION];
    curl_closesocket_callback closes =
        (curl_closesocket_callback)set->value[SHADOW_CLOSESOCKETFUNCTION];
    void *read_data = set->value[SHADOW_READDATA], *close_data = set->value[SHADOW_CLOSESOCKETDATA];
    struct curl_sockaddr address = {.family = AF_INET, .socktype = SOCK_STREAM};
    char host[64] = "";

    fake->status = fake->os_errno = 0;
    fake->was_connected = false;
    free(fake->effective_url);
    fake->effective_url = url ? strdup(url) : NULL;
    if (!begin)
        return fake_fail(fake, CURLE_URL_MALFORMAT, 0);
    snprintf(host, sizeof host, "%.*s", (int)strcspn(begin + 3, "/:?#"), begin + 3);
    int fd = opens ? opens(set->value[SHADOW_OPENSOCKETDATA], CURLSOCKTYPE_IPCXN, &address)
                   : open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd == CURL_SOCKET_BAD)
        return fake_fail(fake, CURLE_COULDNT_CONNECT, 0);
    CURLcode result = fake_exchange(fake, fd, host, read, read_data);
    if (closes)
        closes(close_data, fd);
    else
        close(fd);
    return result;
}

static inline CURLcode fake_getinfo(struct fake *fake, CURLINFO info, void *value)
{
    switch ((int)info) {
    case CURLINFO_EFFECTIVE_URL:
        *(const char **)value = fake->effective_url;
        return CURLE_OK;
    case CURLINFO_CONTENT_TYPE:
        *(const char **)value = fake->status ? "application/json" : NULL;
        return CURLE_OK;
    case CURLINFO_COOKIELIST:
        *(struct curl_slist **)value = NULL;
        return CURLE_OK;
    case CURLINFO_RESPONSE_CODE:
        *(long *)value = fake->status;
        return CURLE_OK;
    case CURLINFO_OS_ERRNO:
        *(long *)value = fake->os_errno;
        return CURLE_OK;
    case CURLINFO_NAMELOOKUP_TIME_T:
        *(curl_off_t *)value = 1;
        return CURLE_OK;
    case CURLINFO_CONNECT_TIME_T:
    case CURLINFO_PRETRANSFER_TIME_T:
        *(curl_off_t *)value = fake->was_connected;
        return CURLE_OK;
    case CURLINFO_REQUEST_SIZE:
        *(long *)value = fake->was_connected;
        return CURLE_OK;
    default:
        return CURLE_UNKNOWN_OPTION;
    }
}

#endif
