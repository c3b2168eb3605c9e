/*
 * tls.h - what the C programs on libssl share: clients of an LLM server on loopback that trust no
 * certificate in particular, and a strict eye on errno and the error queue.
 */
#ifndef BREAKER_TESTS_TLS_H
#define BREAKER_TESTS_TLS_H

#include "sock.h"
#include "waiting.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>

static SSL_CTX *context;
static unsigned port;

static inline void begin_program(const char *port_text)
{
    port = (unsigned)atoi(port_text);
    context = SSL_CTX_new(TLS_client_method());
    MUST(context);
}

/* Not yet shaken. */
static inline SSL *client_on(int fd)
{
    SSL *ssl = SSL_new(context);

    MUST(ssl && SSL_set_tlsext_host_name(ssl, "localhost") == 1);
    if (fd >= 0)
        MUST(SSL_set_fd(ssl, fd) == 1);
    return ssl;
}

static inline SSL *shaken(void)
{
    SSL *ssl = client_on(connected(port));

    MUST(SSL_connect(ssl) == 1);
    return ssl;
}

static inline size_t request_of(char *text, const char *model, size_t filling)
{
    int body = (int)(strlen(model) + 33 + filling);
    int length = sprintf(text,
                         "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost:%u\r\n"
                         "Content-Length: %d\r\n\r\n{\"model\":\"%s\",\"messages\":[],\"_\":\"",
                         port, body, model);

    memset(text + length, 'x', filling);
    return (size_t)length + filling + (size_t)sprintf(text + length + filling, "\"}");
}

static inline bool is_whole(char *text, size_t have)
{
    text[have] = '\0';
    char *end = strstr(text, "\r\n\r\n"), *length = strcasestr(text, "\r\nContent-Length:");

    return end && length && have >= (size_t)(end + 4 - text) + strtoul(length + 17, NULL, 10);
}

static inline int status_of(const char *text)
{
    return strncmp(text, "HTTP/1.1 ", 9) == 0 ? atoi(text + 9) : -1;
}

static inline void ssl_write_all(SSL *ssl, const char *data, size_t length)
{
    MUST(SSL_write(ssl, data, (int)length) == (int)length);
}

static inline void ssl_post(SSL *ssl, const char *model)
{
    char text[512];

    ssl_write_all(ssl, text, request_of(text, model, 0));
}

/* One whole answer; 0: the stream ended before, -1: it failed. */
static inline int ssl_status(SSL *ssl)
{
    char text[4096];
    size_t have = 0;

    while (have < sizeof text - 1) {
        int count = SSL_read(ssl, text + have, (int)(sizeof text - 1 - have));
        if (count <= 0)
            return SSL_get_error(ssl, count) == SSL_ERROR_ZERO_RETURN ? 0 : -1;
        have += (size_t)count;
        if (is_whole(text, have))
            return status_of(text);
    }
    return -1;
}

static inline int ssl_call(SSL *ssl, const char *model)
{
    ssl_post(ssl, model);
    return ssl_status(ssl);
}

static inline void ssl_end(SSL *ssl)
{
    int fd = SSL_get_fd(ssl);

    SSL_free(ssl);
    if (fd >= 0)
        KEPT(close(fd));
}

/* Is another thread asleep in a read() that libssl made? */
static inline bool sleeps_in_read(void)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *task;
    bool found = false;

    while ((task = readdir(tasks))) {
        pid_t thread = atoi(task->d_name);
        found = found || (thread > 0 && thread != getpid() && sleeps_in(thread) == SYS_read);
    }
    closedir(tasks);
    return found;
}

static inline void wait_for_reader(void)
{
    int64_t end = now_ms() + BOUND_S * 1000;

    while (!sleeps_in_read()) {
        MUST(now_ms() < end);
        sched_yield();
    }
}

/* The mode of that name, which leaves no descriptor behind. */
static inline void run_program(const struct mode *modes, size_t count, const char *name,
                               const char *port_text)
{
    begin_program(port_text);
    unsigned before = open_descriptors();
    run_mode(modes, count, name);
    MUST(open_descriptors() == before);
    SSL_CTX_free(context);
}

/* A client between memory BIOs, and the socket that the program carries its records to. */
struct carried {
    SSL *ssl;
    BIO *in, *out;
    int fd;
};

static inline struct carried carried_on(int fd)
{
    struct carried c = {client_on(-1), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()), fd};

    BIO_set_mem_eof_return(c.in, -1);
    BIO_set_mem_eof_return(c.out, -1);
    SSL_set_bio(c.ssl, c.in, c.out);
    SSL_set_connect_state(c.ssl);
    return c;
}

static inline void carry_out(struct carried *c)
{
    char records[20000];
    int count;

    while ((count = BIO_read(c->out, records, sizeof records)) > 0)
        write_all(c->fd, records, (size_t)count);
}

/* What recv() said. */
static inline ssize_t carry_in(struct carried *c)
{
    char records[20000];
    ssize_t count = recv(c->fd, records, sizeof records, 0);

    if (count > 0)
        MUST(BIO_write(c->in, records, (int)count) == (int)count);
    return count;
}

static inline void carried_shake_by(struct carried *c, int (*step)(SSL *))
{
    int result;

    while (result = step(c->ssl), !SSL_is_init_finished(c->ssl)) {
        MUST(SSL_get_error(c->ssl, result) == SSL_ERROR_WANT_READ);
        carry_out(c);
        MUST(carry_in(c) > 0);
    }
    carry_out(c);
}

static inline void carried_shake(struct carried *c)
{
    carried_shake_by(c, SSL_do_handshake);
}

static inline int read_nothing(SSL *ssl)
{
    char byte;
    int result = SSL_read(ssl, &byte, 1);

    MUST(result == -1);
    return result;
}

/* As Node does: nothing is asked of the object but to read. */
static inline void carried_shake_by_reads(struct carried *c)
{
    carried_shake_by(c, read_nothing);
}

/* As asyncio does: nothing is read before the socket has something. */
static inline int carried_call(struct carried *c, const char *model)
{
    char text[4096];
    size_t have = 0;
    int count;

    ssl_write_all(c->ssl, text, request_of(text, model, 0));
    carry_out(c);
    for (;;) {
        MUST(carry_in(c) > 0, "recv");
        while ((count = SSL_read(c->ssl, text + have, (int)(sizeof text - 1 - have))) > 0) {
            have += (size_t)count;
            if (is_whole(text, have))
                return status_of(text);
        }
        MUST(SSL_get_error(c->ssl, count) == SSL_ERROR_WANT_READ);
    }
}

#endif
