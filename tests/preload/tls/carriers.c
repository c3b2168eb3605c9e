/*
 * carriers.c - what else libssl can do in a connection's life: ways for its records to go, and an
 * end in another thread.
 *
 *   carriers MODE     own_server.h tells what it prints
 */
#include "own_server.h"

static void kernel_tls(void)
{
    SSL_CTX_set_options(context, SSL_OP_ENABLE_KTLS);
    SSL_CTX_set_options(server_context, SSL_OP_ENABLE_KTLS);
    SSL *ssl = shaken();
    int file = open("/proc/self/exe", O_RDONLY);

    told(ssl_call(ssl, "m"));
    told(ssl_call(ssl, "m"));
    bool by_kernel = BIO_get_ktls_send(SSL_get_wbio(ssl));
    if (!by_kernel) /* SSL_sendfile() needs it */
        MUST(SSL_sendfile(ssl, file, 0, 10, 0) == -1);
    ERR_clear_error();
    printf("ktls %d\n", by_kernel);
    close(file);
    end(ssl);
}

/* A read comes back from a ticket, with nothing in its hands. */
static void not_retried(void)
{
    SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
    SSL *ssl = shaken();
    char text[4096];
    unsigned idle = 0;

    for (int i = 0; i < 2; i++) {
        ssl_post(ssl, "m");
        for (size_t have = 0; !is_whole(text, have);) {
            int count = SSL_read(ssl, text + have, (int)(sizeof text - 1 - have));
            if (count > 0)
                have += (size_t)count;
            else
                idle++;
            MUST(count > 0 || SSL_get_error(ssl, count) == SSL_ERROR_WANT_READ);
        }
        told(status_of(text));
    }
    printf("idle %d\n", idle > 0);
    end(ssl);
}

static void asynchronous(void)
{
    SSL_CTX_set_mode(context, SSL_MODE_ASYNC);
    SSL *ssl = shaken();

    told(ssl_call(ssl, "m"));
    told(ssl_call(ssl, "m"));
    end(ssl);
}

/* libssl's own calls from within: no hook sees what is inside. */
static void by_bio(void)
{
    char text[4096], place[32];
    BIO *bio = BIO_new_ssl_connect(context);
    size_t have = 0;

    snprintf(place, sizeof place, "127.0.0.1:%u", port);
    BIO_set_conn_hostname(bio, place);
    BIO_set_nbio(bio, 1);
    while (BIO_do_connect(bio) <= 0)
        MUST(BIO_should_retry(bio) && BIO_wait(bio, time(NULL) + BOUND_S, 0) == 1);
    size_t length = request_of(text, "m", 0);
    MUST(BIO_write(bio, text, (int)length) == (int)length);
    while (!is_whole(text, have)) {
        int count = BIO_read(bio, text + have, (int)(sizeof text - 1 - have));
        MUST(count > 0 || (BIO_should_retry(bio) && BIO_wait(bio, time(NULL) + BOUND_S, 0) == 1));
        have += count > 0 ? (size_t)count : 0;
    }
    told(status_of(text));
    BIO_free_all(bio);
}

static void paired(void)
{
    struct carried c = {client_on(-1), NULL, NULL, connected(port)};
    BIO *inside;

    MUST(BIO_new_bio_pair(&inside, 0, &c.out, 0) == 1);
    c.in = c.out; /* one end for both directions */
    SSL_set_bio(c.ssl, inside, inside);
    SSL_set_connect_state(c.ssl);
    carried_shake(&c);
    told(carried_call(&c, "m"));
    told(carried_call(&c, "m"));
    SSL_free(c.ssl);
    BIO_free(c.out);
    KEPT(close(c.fd));
}

static void *free_it(void *ssl)
{
    SSL_free(ssl);
    return NULL;
}

static void freed_elsewhere(void)
{
    for (int i = 0; i < 2; i++) {
        SSL *ssl = shaken();
        pthread_t thread;
        int fd = SSL_get_fd(ssl);
        told(ssl_call(ssl, "m"));
        MUST(pthread_create(&thread, NULL, free_it, ssl) == 0);
        pthread_join(thread, NULL);
        KEPT(close(fd));
    }
}

static void *shake_datagrams(void *ssl)
{
    MUST(SSL_accept(ssl) == 1);
    return NULL;
}

static void datagrams(void)
{
    SSL_CTX *client = SSL_CTX_new(DTLS_client_method()),
            *server = SSL_CTX_new(DTLS_server_method());
    struct sockaddr_in address[2] = {loopback(0), loopback(0)};
    socklen_t length = sizeof address[0];
    SSL *ssl[2] = {SSL_new(client), NULL};
    char text[4096];
    pthread_t thread;
    int fd[2];

    MUST(SSL_CTX_use_certificate_file(server, getenv("CERTIFICATE"), SSL_FILETYPE_PEM) == 1);
    MUST(SSL_CTX_use_PrivateKey_file(server, getenv("KEY"), SSL_FILETYPE_PEM) == 1);
    ssl[1] = SSL_new(server);
    for (int i = 0; i < 2; i++) {
        fd[i] = KEPT(socket(AF_INET, SOCK_DGRAM, 0));
        KEPT(bind(fd[i], (struct sockaddr *)&address[i], length));
        KEPT(getsockname(fd[i], (struct sockaddr *)&address[i], &length));
    }
    for (int i = 0; i < 2; i++) {
        KEPT(connect(fd[i], (struct sockaddr *)&address[!i], length));
        BIO *bio = BIO_new_dgram(fd[i], BIO_NOCLOSE);
        BIO_ctrl_set_connected(bio, &address[!i]);
        SSL_set_bio(ssl[i], bio, bio);
    }
    MUST(SSL_set_tlsext_host_name(ssl[0], "localhost") == 1);
    MUST(pthread_create(&thread, NULL, shake_datagrams, ssl[1]) == 0);
    MUST(SSL_connect(ssl[0]) == 1);
    pthread_join(thread, NULL);
    size_t size = request_of(text, "datagram", 0);
    ssl_write_all(ssl[0], text, size);
    MUST(SSL_read(ssl[1], text, sizeof text) == (int)size);
    ssl_write_all(ssl[1], "here", 4);
    told(SSL_read(ssl[0], text, sizeof text));
    for (int i = 0; i < 2; i++) {
        SSL_free(ssl[i]);
        KEPT(close(fd[i]));
    }
    SSL_CTX_free(client);
    SSL_CTX_free(server);
}

static const struct mode modes[] = {
    {"kernel-tls", kernel_tls}, {"not-retried", not_retried}, {"asynchronous", asynchronous},
    {"by-bio", by_bio},         {"paired", paired},           {"freed-elsewhere", freed_elsewhere},
    {"datagrams", datagrams},
};

int main(int argc, char **argv)
{
    run_with_server(modes, sizeof modes / sizeof *modes, argc, argv);
    return 0;
}
