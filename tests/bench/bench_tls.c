/*
 * bench_tls.c - post.h over TLS by the system's libssl, to whoever answers.
 */
#include "post.h"

#include <openssl/ssl.h>

static SSL *ssl;

static bool link_begin(int fd)
{
    static SSL_CTX *context;

    if (!context && !(context = SSL_CTX_new(TLS_client_method())))
        return false;
    ssl = SSL_new(context);
    if (ssl && SSL_set_tlsext_host_name(ssl, "localhost") == 1 && SSL_set_fd(ssl, fd) == 1) {
        int result;
        do {
            errno = 0;
            result = SSL_connect(ssl);
        } while (result < 0 && errno == EINTR); /* as post.h's */
        if (result == 1)
            return true;
    }
    SSL_free(ssl);
    return false;
}

static ssize_t link_send(int fd, const void *bytes, size_t size)
{
    (void)fd;
    return SSL_write(ssl, bytes, (int)size);
}

static ssize_t link_receive(int fd, void *bytes, size_t size)
{
    (void)fd;
    return SSL_read(ssl, bytes, (int)size);
}

static void link_end(int fd)
{
    (void)fd;
    SSL_free(ssl);
}

int main(int argc, char **argv)
{
    return post_main(argc, argv);
}
