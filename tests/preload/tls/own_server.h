/*
 * own_server.h - for programs that have a client and a server of TLS in one process.
 *
 *   PROGRAM MODE
 *
 * They print the statuses, and whether what the mode is about came about. With the library they
 * print the same.
 */
#ifndef BREAKER_TESTS_OWN_SERVER_H
#define BREAKER_TESTS_OWN_SERVER_H

#include "told.h"

static SSL_CTX *server_context;

/* What the server does before it answers its number-th request. */
static void (*meanwhile)(SSL *ssl, int number);
static bool takes_early;

static inline size_t take_early(SSL *ssl, char *text, size_t room)
{
    size_t have = 0, count;

    while (SSL_read_early_data(ssl, text + have, room - have, &count) ==
           SSL_READ_EARLY_DATA_SUCCESS)
        have += count;
    return have;
}

static inline void serve_one(int fd)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
    SSL *ssl = SSL_new(server_context);
    char text[4096];
    size_t have = 0;
    int count;

    MUST(SSL_set_fd(ssl, fd) == 1);
    if (takes_early)
        have = take_early(ssl, text, sizeof text - 1);
    if (SSL_accept(ssl) != 1) { /* a client that came for nothing */
        ERR_clear_error();
        ssl_end(ssl);
        return;
    }
    for (int number = 0;; number++) {
        while (!is_whole(text, have) &&
               (count = SSL_read(ssl, text + have, (int)(sizeof text - 1 - have))) > 0)
            have += (size_t)count;
        if (!is_whole(text, have))
            break;
        have = 0;
        if (meanwhile)
            meanwhile(ssl, number);
        ssl_write_all(ssl, answer, sizeof answer - 1);
    }
    SSL_shutdown(ssl);
    ERR_clear_error();
    ssl_end(ssl);
}

static inline void *serve(void *listening)
{
    int fd;

    while ((fd = accept(*(int *)listening, NULL, NULL)) >= 0)
        serve_one(fd);
    return NULL;
}

static inline void make_server(void)
{
    server_context = SSL_CTX_new(TLS_server_method());
    MUST(SSL_CTX_use_certificate_file(server_context, getenv("CERTIFICATE"), SSL_FILETYPE_PEM) ==
         1);
    MUST(SSL_CTX_use_PrivateKey_file(server_context, getenv("KEY"), SSL_FILETYPE_PEM) == 1);
    SSL_CTX_set_session_id_context(server_context, (const unsigned char *)"x", 1);
}

static inline void end(SSL *ssl)
{
    MUST(SSL_shutdown(ssl) >= 0);
    ssl_end(ssl);
}

/* The mode of that name, between a server's start and its end. */
static inline void run_with_server(const struct mode *modes, size_t count, int argc, char **argv)
{
    MUST(argc == 2);
    int fd = KEPT(socket(AF_INET, SOCK_STREAM, 0));
    struct sockaddr_in address = loopback(0);
    socklen_t length = sizeof address;
    char text[16];
    pthread_t thread;

    MUST(bind(fd, (struct sockaddr *)&address, length) == 0 && listen(fd, 9) == 0);
    MUST(getsockname(fd, (struct sockaddr *)&address, &length) == 0);
    make_server();
    MUST(pthread_create(&thread, NULL, serve, &fd) == 0);
    snprintf(text, sizeof text, "%u", ntohs(address.sin_port));
    begin_program(text);
    run_mode(modes, count, argv[1]);
    shutdown(fd, SHUT_RDWR);
    pthread_join(thread, NULL);
    SSL_CTX_free(server_context);
    SSL_CTX_free(context);
}

#endif
