/* A libcurl of one handle at a time, for fuzz_easy: keeps what is set as libcurl 7.88 keeps it
 * (which options share a field, what sets the method), and makes transfers of it without a network.
 */
#ifndef BREAKER_TESTS_FUZZ_FAKE_EASY_H
#define BREAKER_TESTS_FUZZ_FAKE_EASY_H

#include "cut.h"

#include "curl_options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

enum fake_method { FAKE_GET, FAKE_HEAD, FAKE_POST, FAKE_PUT, FAKE_MIME, FAKE_FORM };

/* All that an application can have set. */
struct fake_set {
    void *value[SHADOW_COUNT]; /* strings and blobs are owned */
    char *copied;              /* COPYPOSTFIELDS, owned; then POSTFIELDS points to it */
    size_t copied_len;
    unsigned protocols;
    bool abstract_socket;
    enum fake_method method;
    bool upload, no_body;
};

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
static unsigned fake_version;

static const struct {
    CURLoption option;
    enum option_kind kind;
} fake_options[SHADOW_COUNT] = {
#define SHADOW(id, kind) {CURLOPT_##id, KIND_##kind},
    CURL_SHADOWED(SHADOW)
#undef SHADOW
};

/* --- options ------------------------------------------------------------------------------------
 */

static inline void fake_defaults(struct fake_set *set)
{
    memset(set, 0, sizeof *set);
    set->protocols = ~0u;
    set->value[SHADOW_POSTFIELDSIZE_LARGE] = set->value[SHADOW_INFILESIZE_LARGE] = (void *)-1;
    set->value[SHADOW_TCP_NODELAY] = set->value[SHADOW_SSL_VERIFYPEER] = (void *)1;
    set->value[SHADOW_SSL_VERIFYHOST] = (void *)2;
    set->value[SHADOW_HTTPAUTH] = (void *)1;
    set->value[SHADOW_READDATA] = stdin;
    set->value[SHADOW_WRITEDATA] = stdout;
}

static inline void *fake_own(enum option_kind kind, const void *given)
{
    const struct curl_blob *blob = given;
    struct curl_blob *copy;

    if (!given || kind == KIND_LONG || kind == KIND_POINTER)
        return (void *)(uintptr_t)given;
    if (kind == KIND_STRING)
        return strdup(given);
    copy = malloc(sizeof *copy + blob->len);
    *copy = (struct curl_blob){copy + 1, blob->len, CURL_BLOB_COPY};
    memcpy(copy->data, blob->data, blob->len);
    return copy;
}

static inline void fake_put(struct fake_set *set, enum shadow_index index, const void *value)
{
    enum option_kind kind = fake_options[index].kind;
    void *owned = fake_own(kind, value);

    if (kind == KIND_STRING || kind == KIND_BLOB)
        free(set->value[index]);
    set->value[index] = owned;
}

static inline void fake_drop_copied(struct fake_set *set)
{
    if (set->copied)
        set->value[SHADOW_POSTFIELDS] = NULL;
    free(set->copied);
    set->copied = NULL;
}

static inline long fake_number(const struct fake_set *set, enum shadow_index index)
{
    return (long)set->value[index];
}

static inline void fake_clear(struct fake_set *set)
{
    for (int i = 0; i < SHADOW_COUNT; i++)
        if (fake_options[i].kind == KIND_STRING || fake_options[i].kind == KIND_BLOB)
            free(set->value[i]);
    free(set->copied);
    fake_defaults(set);
}

static inline void fake_copy(struct fake_set *to, const struct fake_set *from)
{
    *to = *from;
    for (int i = 0; i < SHADOW_COUNT; i++)
        to->value[i] = fake_own(fake_options[i].kind, from->value[i]);
    if (from->copied) {
        to->copied = malloc(from->copied_len + 1);
        memcpy(to->copied, from->copied, from->copied_len);
        to->value[SHADOW_POSTFIELDS] = to->copied;
    }
}

/* The name of an option in which they differ; NULL: none. */
static inline const char *fake_difference(const struct fake_set *a, const struct fake_set *b)
{
    static const char *const names[] = {
#define SHADOW(id, kind) #id,
        CURL_SHADOWED(SHADOW)
#undef SHADOW
    };

    for (int i = 0; i < SHADOW_COUNT; i++) {
        const void *x = a->value[i], *y = b->value[i];
        if (i == SHADOW_POSTFIELDS && a->copied && b->copied) {
            if (a->copied_len != b->copied_len || memcmp(a->copied, b->copied, a->copied_len) != 0)
                return "COPYPOSTFIELDS";
        } else if (fake_options[i].kind == KIND_BLOB && x && y) {
            const struct curl_blob *p = x, *q = y;
            if (p->len != q->len || memcmp(p->data, q->data, p->len) != 0)
                return names[i];
        } else if (fake_options[i].kind == KIND_STRING && x && y ? strcmp(x, y) != 0 : x != y) {
            return names[i];
        }
    }
    if (a->protocols != b->protocols)
        return "PROTOCOLS(_STR)";
    if (a->value[SHADOW_UNIX_SOCKET_PATH] && a->abstract_socket != b->abstract_socket)
        return "abstract or not";
    return a->method != b->method || a->upload != b->upload || a->no_body != b->no_body ? "method"
                                                                                        : NULL;
}

/* COPYPOSTFIELDS; false: it cannot be. */
static inline bool fake_copy_fields(struct fake_set *set, const char *fields)
{
    long told = fake_number(set, SHADOW_POSTFIELDSIZE_LARGE);

    if (fields && told < 0)
        told = (long)strlen(fields);
    fake_drop_copied(set);
    set->value[SHADOW_POSTFIELDS] = NULL;
    set->method = FAKE_POST;
    if (!fields)
        return true;
    set->copied = malloc((size_t)told + 1);
    set->copied_len = (size_t)told;
    memcpy(set->copied, fields, set->copied_len);
    set->copied[told] = '\0';
    set->value[SHADOW_POSTFIELDS] = set->copied;
    return true;
}

static inline void fake_user(struct fake_set *set, const char *both)
{
    size_t len = both ? strcspn(both, ":") : 0;
    char *name = both ? strndup(both, len) : NULL;

    fake_put(set, SHADOW_USERNAME, name);
    fake_put(set, SHADOW_PASSWORD, both && both[len] ? both + len + 1 : NULL);
    free(name);
}

/* What sets the method. False: it is another option. */
static inline bool fake_set_method(struct fake_set *set, CURLoption option, long on)
{
    switch ((int)option) {
    case CURLOPT_HTTPGET:
        if (on) {
            set->method = FAKE_GET;
            set->upload = set->no_body = false;
        }
        return true;
    case CURLOPT_NOBODY:
        set->no_body = on;
        set->method = on ? FAKE_HEAD : set->method == FAKE_HEAD ? FAKE_GET : set->method;
        return true;
    case CURLOPT_POST:
        set->method = on ? FAKE_POST : FAKE_GET;
        set->no_body &= !on;
        set->upload = false;
        return true;
    case CURLOPT_UPLOAD:
    case CURLOPT_PUT:
        set->upload = on;
        set->method = on ? FAKE_PUT : FAKE_GET;
        set->no_body &= !on;
        return true;
    default:
        return false;
    }
}

/* One that is refused changes nothing here. (7.88 then allows none; who goes on with that?) */
static inline CURLcode fake_protocols(struct fake_set *set, const char *names)
{
    unsigned mask = 0;

    if (fake_version < 0x075500)
        return CURLE_UNKNOWN_OPTION;
    if (!names)
        return CURLE_BAD_FUNCTION_ARGUMENT;
    if (strcmp(names, "all") == 0)
        mask = ~0u;
    else if (strcmp(names, "http,https") == 0)
        mask = CURLPROTO_HTTP | CURLPROTO_HTTPS;
    else if (strcmp(names, "https") == 0)
        mask = CURLPROTO_HTTPS;
    if (mask == 0)
        return CURLE_UNSUPPORTED_PROTOCOL;
    set->protocols = mask;
    return CURLE_OK;
}

/* Options that do more than to be kept. CURLE_AGAIN: it is none of them. */
static inline CURLcode fake_set_special(struct fake_set *set, CURLoption option, void *value)
{
    switch ((int)option) {
    case CURLOPT_POSTFIELDS:
        fake_drop_copied(set);
        set->value[SHADOW_POSTFIELDS] = value;
        set->method = FAKE_POST;
        return CURLE_OK;
    case CURLOPT_COPYPOSTFIELDS:
        return fake_copy_fields(set, value) ? CURLE_OK : CURLE_OUT_OF_MEMORY;
    case CURLOPT_POSTFIELDSIZE_LARGE:
        if ((long)value < -1)
            return CURLE_BAD_FUNCTION_ARGUMENT;
        if (fake_number(set, SHADOW_POSTFIELDSIZE_LARGE) < (long)value)
            fake_drop_copied(set);
        set->value[SHADOW_POSTFIELDSIZE_LARGE] = value;
        return CURLE_OK;
    case CURLOPT_USERPWD:
        fake_user(set, value);
        return CURLE_OK;
    case CURLOPT_TIMEOUT:
        set->value[SHADOW_TIMEOUT_MS] = (void *)((long)value * 1000);
        return CURLE_OK;
    case CURLOPT_PROTOCOLS:
        set->protocols = (unsigned)(uintptr_t)value;
        return CURLE_OK;
    case CURLOPT_PROTOCOLS_STR:
        return fake_protocols(set, value);
    case CURLOPT_UNIX_SOCKET_PATH:
    case CURLOPT_ABSTRACT_UNIX_SOCKET:
        set->abstract_socket = option == CURLOPT_ABSTRACT_UNIX_SOCKET;
        fake_put(set, SHADOW_UNIX_SOCKET_PATH, value);
        return CURLE_OK;
    case CURLOPT_AWS_SIGV4:
        fake_put(set, SHADOW_AWS_SIGV4, value);
        if (value)
            set->value[SHADOW_HTTPAUTH] = (void *)(uintptr_t)CURLAUTH_AWS_SIGV4;
        return CURLE_OK;
    case CURLOPT_MIMEPOST:
    case CURLOPT_HTTPPOST:
        set->method = option == CURLOPT_MIMEPOST ? FAKE_MIME : FAKE_FORM;
        set->no_body = false;
        return CURLE_AGAIN;
    default:
        return CURLE_AGAIN;
    }
}

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

/* --- a transfer
 * ----------------------------------------------------------------------------------- */

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
