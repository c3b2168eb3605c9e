/*
 * client.c - one LLM call after the other, each over a connection of its own: what a program sees
 * of libbreaker.so's troubles.
 *
 *   client curl|multi|read|socket|named|tls PORT MODEL...
 *
 * A line per call: the model, the status or what went wrong, the bytes of the body; then how many
 * descriptors are open more than before the first.
 */
#include "tls.h"

#include <curl/curl.h>
#include <netdb.h>

#define CREDENTIAL "Authorization: Bearer sk-0f-the-primary"

static void tell(const char *model, const char *what, long status, size_t bytes)
{
    printf("%s %s %ld %zu\n", model, what, status, bytes);
    fflush(stdout);
}

/* --- libcurl --------------------------------------------------------------------------------- */

static size_t count_bytes(char *data, size_t size, size_t count, void *sum)
{
    (void)data;
    *(size_t *)sum += size * count;
    return size * count;
}

struct body {
    char text[128];
    size_t at, size;
};

static size_t read_body(char *to, size_t size, size_t count, void *data)
{
    struct body *body = data;
    size_t part = size * count < 7 ? size * count : 7;

    if (part > body->size - body->at)
        part = body->size - body->at;
    memcpy(to, body->text + body->at, part);
    body->at += part;
    return part;
}

static CURLcode perform_by_multi(CURL *easy)
{
    CURLM *multi = curl_multi_init();
    CURLcode code = CURLE_FAILED_INIT;
    CURLMsg *message;
    int running = 1, queued;

    MUST(multi && curl_multi_add_handle(multi, easy) == CURLM_OK);
    for (int64_t end = now_ms() + BOUND_S * 1000; running && now_ms() < end;) {
        MUST(curl_multi_perform(multi, &running) == CURLM_OK);
        MUST(!running || curl_multi_poll(multi, NULL, 0, 100, NULL) == CURLM_OK);
    }
    while ((message = curl_multi_info_read(multi, &queued)))
        code = message->data.result;
    curl_multi_remove_handle(multi, easy);
    curl_multi_cleanup(multi);
    return code;
}

static void call_curl(const char *how, const char *model)
{
    struct curl_slist *headers = curl_slist_append(NULL, CREDENTIAL);
    CURL *easy = curl_easy_init();
    struct body body = {.at = 0};
    char url[64];
    size_t bytes = 0;
    long status = 0;

    MUST(easy && headers);
    headers = curl_slist_append(headers, "Expect:");
    snprintf(url, sizeof url, "http://localhost:%u/v1/chat/completions", port);
    body.size =
        (size_t)snprintf(body.text, sizeof body.text, "{\"messages\":[],\"model\":\"%s\"}", model);
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_IPRESOLVE, CURL_IPRESOLVE_V4);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT, (long)BOUND_S);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, count_bytes);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &bytes);
    if (strcmp(how, "read") == 0) {
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)body.size);
        curl_easy_setopt(easy, CURLOPT_READFUNCTION, read_body);
        curl_easy_setopt(easy, CURLOPT_READDATA, &body);
    } else {
        curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, body.text);
    }
    CURLcode code = strcmp(how, "multi") == 0 ? perform_by_multi(easy) : curl_easy_perform(easy);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    tell(model, code == CURLE_OK ? "status" : curl_easy_strerror(code), status, bytes);
    curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
}

/* --- sockets --------------------------------------------------------------------------------- */

/* When names are resolved, those of fallbacks are, too. */
static void ask_for_address(void)
{
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list;
    char service[8];

    snprintf(service, sizeof service, "%u", port);
    MUST(getaddrinfo("127.0.0.1", service, &hints, &list) == 0);
    freeaddrinfo(list);
}

static void call_socket(const char *how, const char *model)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    MUST(fd >= 0);
    if (strcmp(how, "named") == 0)
        ask_for_address();
    errno = 0;
    if (connect_to(fd, port) != 0) {
        tell(model, errno == ECONNREFUSED ? "refused" : strerror(errno), 0, 0);
    } else {
        MUST(errno == 0);
        post(fd, port, model);
        tell(model, "status", read_status(fd), 0);
    }
    KEPT(close(fd));
}

static void call_tls(const char *how, const char *model)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)how;
    MUST(fd >= 0);
    if (connect_to(fd, port) != 0) {
        tell(model, errno == ECONNREFUSED ? "refused" : strerror(errno), 0, 0);
    } else {
        SSL *ssl = client_on(fd);
        MUST(SSL_connect(ssl) == 1);
        ssl_post(ssl, model);
        tell(model, "status", ssl_status(ssl), 0);
        MUST(ERR_peek_error() == 0, "%s", ERR_error_string(ERR_peek_error(), NULL));
        SSL_free(ssl);
    }
    KEPT(close(fd));
}

int main(int argc, char **argv)
{
    MUST(argc > 2);
    const char *how = argv[1];
    void (*call)(const char *, const char *) = call_curl;

    if (strcmp(how, "socket") == 0 || strcmp(how, "named") == 0)
        call = call_socket;
    if (strcmp(how, "tls") == 0)
        call = call_tls;
    if (call == call_curl)
        MUST(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
    begin_program(argv[2]);
    unsigned before = open_descriptors();
    for (int i = 3; i < argc; i++)
        call(how, argv[i]);
    printf("descriptors %u\n", open_descriptors() - before);
    SSL_CTX_free(context);
    curl_global_cleanup();
    return 0;
}
