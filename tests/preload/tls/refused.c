/*
 * refused.c - a TLS client whose requests for "shut" are refused: how it gets our answer.
 *
 *   refused MODE PORT
 *
 * Prints "fine" and the number of calls of "m" that went well.
 */
#include "tls.h"

static unsigned calls;

static void good_call(SSL *ssl)
{
    MUST(ssl_call(ssl, "m") == 200);
    calls++;
}

static void expect_end(SSL *ssl)
{
    char byte;
    size_t count = 7;

    for (int i = 0; i < 2; i++) {
        int result = SSL_read(ssl, &byte, 1);
        MUST(result == 0 && SSL_get_error(ssl, result) == SSL_ERROR_ZERO_RETURN, "%d", result);
        MUST(SSL_read_ex(ssl, &byte, 1, &count) == 0 &&
             SSL_get_error(ssl, 0) == SSL_ERROR_ZERO_RETURN);
        MUST(SSL_peek(ssl, &byte, 1) <= 0 && SSL_get_error(ssl, 0) == SSL_ERROR_ZERO_RETURN);
        MUST(SSL_pending(ssl) == 0 && SSL_has_pending(ssl) == 0);
    }
    MUST(SSL_get_shutdown(ssl) == SSL_RECEIVED_SHUTDOWN && ERR_peek_error() == 0);
    MUST(SSL_shutdown(ssl) == 1 && ERR_peek_error() == 0);
}

static void expect_answer(SSL *ssl)
{
    char text[4096];
    int have = 0, count;

    while ((count = SSL_read(ssl, text + have, (int)sizeof text - 1 - have)) > 0)
        have += count;
    MUST(is_whole(text, (size_t)have) && status_of(text) == 503 && strstr(text, "circuit_open"));
    expect_end(ssl);
}

static void refused_call(SSL *ssl)
{
    ssl_post(ssl, "shut");
    expect_answer(ssl);
}

static void plain(void)
{
    SSL *ssl = shaken();

    refused_call(ssl);
    ssl_end(ssl);
}

static void kept(void)
{
    SSL *ssl = shaken();

    good_call(ssl);
    good_call(ssl);
    refused_call(ssl);
    ssl_end(ssl);
}

/* Whatever it reads with, and in bits. */
static void bits(void)
{
    SSL *ssl = shaken();
    char text[4096], again[4096];
    size_t have = 0, count, length = request_of(text, "shut", 0);

    MUST(SSL_write_ex(ssl, text, 20, &count) == 1 && count == 20);
    MUST(SSL_write_ex(ssl, text + 20, length - 20, &count) == 1 && count == length - 20);
    MUST(SSL_write(ssl, "more of it", 10) == 10);
    int pending = SSL_pending(ssl);
    MUST(pending > 100 && SSL_has_pending(ssl) == 1);
    MUST(SSL_peek_ex(ssl, again, sizeof again, &count) == 1 && (int)count == pending);
    MUST(SSL_peek(ssl, text, 1) == 1 && text[0] == 'H' && SSL_pending(ssl) == pending);
    while (SSL_read_ex(ssl, text + have, have % 7 + 1, &count) == 1) {
        have += count;
        MUST(SSL_pending(ssl) == pending - (int)have);
    }
    MUST((int)have == pending && memcmp(text, again, have) == 0);
    expect_end(ssl);
    ssl_end(ssl);
}

/* It is told by whoever says that a descriptor is readable. */
static void polled(void)
{
    SSL *ssl = shaken();
    struct pollfd one = {SSL_get_fd(ssl), POLLIN, 0};

    good_call(ssl);
    KEPT(fcntl(one.fd, F_SETFL, O_NONBLOCK));
    MUST(poll(&one, 1, 0) == 0);
    ssl_post(ssl, "shut");
    MUST(poll(&one, 1, BOUND_S * 1000) == 1 && one.revents & POLLIN);
    expect_answer(ssl);
    ssl_end(ssl);
}

/* The descriptor is the one that the object has now. */
static void switched(void)
{
    SSL *ssl = shaken();
    int fd = SSL_get_fd(ssl);

    good_call(ssl);
    struct pollfd both[] = {{connected(port), POLLIN, 0}, {fd, POLLIN, 0}};
    MUST(SSL_set_fd(ssl, both[0].fd) == 1);
    SSL_set_connect_state(ssl);
    MUST(SSL_connect(ssl) == 1);
    good_call(ssl);
    ssl_post(ssl, "shut");
    MUST(poll(both, 2, BOUND_S * 1000) == 1 && both[0].revents & POLLIN);
    expect_answer(ssl);
    ssl_end(ssl);
    KEPT(close(fd));
}

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

struct waiting {
    SSL *ssl;
    int fd;
};

static void *wait_for_answer(void *argument)
{
    struct waiting *w = argument;
    char text[4096];
    int have = 0, count;

    for (;;) {
        struct pollfd one = {w->fd, POLLIN, 0};
        MUST(poll(&one, 1, BOUND_S * 1000) == 1);
        pthread_mutex_lock(&turn);
        while ((count = SSL_read(w->ssl, text + have, (int)sizeof text - 1 - have)) > 0)
            have += count;
        int error = SSL_get_error(w->ssl, count);
        pthread_mutex_unlock(&turn);
        if (error == SSL_ERROR_ZERO_RETURN)
            break;
        MUST(error == SSL_ERROR_WANT_READ, "%d", error);
    }
    MUST(is_whole(text, (size_t)have) && status_of(text) == 503);
    return NULL;
}

/* One thread waits for what another asks for. */
static void two_threads(void)
{
    SSL *ssl = shaken();
    struct waiting w = {ssl, SSL_get_fd(ssl)};
    pthread_t thread;

    good_call(ssl);
    KEPT(fcntl(w.fd, F_SETFL, O_NONBLOCK));
    MUST(pthread_create(&thread, NULL, wait_for_answer, &w) == 0);
    pthread_mutex_lock(&turn);
    ssl_post(ssl, "shut");
    pthread_mutex_unlock(&turn);
    pthread_join(thread, NULL);
    ssl_end(ssl);
}

static void *read_blocked(void *argument)
{
    SSL *ssl = argument;
    char text[4096];
    int have = SSL_read(ssl, text, sizeof text - 1);

    MUST(have > 0 && ERR_peek_error() == 0, "%d", have);
    MUST(is_whole(text, (size_t)have) && status_of(text) == 503);
    MUST(SSL_read(ssl, text, 1) == 0 && SSL_get_error(ssl, 0) == SSL_ERROR_ZERO_RETURN);
    return NULL;
}

/* A read that is under way when a write is refused: full duplex, which libssl does not promise and
 * programs rely on. */
static void duplex(void)
{
    SSL *ssl = shaken();
    pthread_t thread;

    good_call(ssl);
    MUST(pthread_create(&thread, NULL, read_blocked, ssl) == 0);
    wait_for_reader();
    ssl_post(ssl, "shut");
    pthread_join(thread, NULL);
    ssl_end(ssl);
}

/* Nothing is asked before the socket says something: it does, once. */
static void in_memory(void (*shake)(struct carried *))
{
    struct carried c = carried_on(connected(port));
    char text[4096];
    int have = 0, count;

    shake(&c);
    MUST(carried_call(&c, "m") == 200);
    calls++;
    ssl_post(c.ssl, "shut");
    MUST(BIO_ctrl_pending(c.out) == 0);
    MUST(carry_in(&c) == 1);
    while ((count = SSL_read(c.ssl, text + have, 100)) > 0)
        have += count;
    MUST(is_whole(text, (size_t)have) && status_of(text) == 503);
    expect_end(c.ssl);
    carry_out(&c);
    MUST(carry_in(&c) == 0 && carry_in(&c) == 0);
    SSL_free(c.ssl);
    KEPT(close(c.fd));
}

static void memory(void)
{
    in_memory(carried_shake);
}

static void memory_reads(void)
{
    in_memory(carried_shake_by_reads);
}

/* The first write, in which the handshake is: the request does not leave with it. */
static void implicit(void)
{
    SSL *ssl = client_on(connected(port));

    SSL_set_connect_state(ssl);
    refused_call(ssl);
    ssl_end(ssl);
}

static void again(void)
{
    SSL *ssl = shaken();

    refused_call(ssl);
    int fd = SSL_get_fd(ssl);
    MUST(SSL_clear(ssl) == 1);
    KEPT(close(fd));
    MUST(SSL_set_fd(ssl, connected(port)) == 1 && SSL_connect(ssl) == 1);
    good_call(ssl);
    refused_call(ssl);
    ssl_end(ssl);
}

static void close_first(void)
{
    SSL *ssl = shaken();
    char byte;

    ssl_post(ssl, "shut");
    MUST(SSL_read(ssl, &byte, 1) == 1 && byte == 'H');
    KEPT(close(SSL_get_fd(ssl)));
    int result = SSL_read(ssl, &byte, 1);
    MUST(result <= 0 && SSL_get_error(ssl, result) != SSL_ERROR_NONE);
    ERR_clear_error();
    SSL_free(ssl);
}

static void free_first(void)
{
    SSL *ssl = shaken();
    int fd = SSL_get_fd(ssl);

    ssl_post(ssl, "shut");
    SSL_free(ssl);
    KEPT(close(fd));
}

/* What was asked before is answered before. */
static void pipelined(void)
{
    SSL *ssl = shaken();
    char text[8192];
    size_t length = request_of(text, "m", 0);
    int have = 0, count;

    length += request_of(text + length, "shut", 0);
    ssl_write_all(ssl, text, length);
    while ((count = SSL_read(ssl, text + have, 100)) > 0)
        have += count;
    text[have] = '\0';
    MUST(SSL_get_error(ssl, count) == SSL_ERROR_ZERO_RETURN);
    MUST(status_of(text) == 200 && strstr(text, "HTTP/1.1 503 ") && strstr(text, "circuit_open"));
    calls++;
    ssl_end(ssl);
}

static const struct mode modes[] = {
    {"plain", plain},           {"kept", kept},           {"bits", bits},
    {"polled", polled},         {"switched", switched},   {"two-threads", two_threads},
    {"duplex", duplex},         {"memory", memory},       {"memory-reads", memory_reads},
    {"implicit", implicit},     {"again", again},         {"close-first", close_first},
    {"free-first", free_first}, {"pipelined", pipelined},
};

int main(int argc, char **argv)
{
    MUST(argc == 3);
    run_program(modes, sizeof modes / sizeof *modes, argv[1], argv[2]);
    printf("fine\n%u\n", calls);
    return 0;
}
