/*
 * features.c - what else libssl can do in a connection's life, between a client and a server of one
 * process.
 *
 *   features MODE
 *
 * Prints the statuses, and whether what the mode is about came about. With the library it prints
 * the same.
 */
#include "tls.h"

static SSL_CTX *server_context;

/* What the server does before it answers its number-th request. */
static void (*meanwhile)(SSL *ssl, int number);
static bool takes_early;

static void told(int status)
{
    printf("%d\n", status);
    MUST(ERR_peek_error() == 0);
}

/* --- the server ---------------------------------------------------------------------------------
 */

static size_t take_early(SSL *ssl, char *text, size_t room)
{
    size_t have = 0, count;

    while (SSL_read_early_data(ssl, text + have, room - have, &count) ==
           SSL_READ_EARLY_DATA_SUCCESS)
        have += count;
    return have;
}

static void serve_one(int fd)
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

static void *serve(void *listening)
{
    int fd;

    while ((fd = accept(*(int *)listening, NULL, NULL)) >= 0)
        serve_one(fd);
    return NULL;
}

static void make_server(void)
{
    server_context = SSL_CTX_new(TLS_server_method());
    MUST(SSL_CTX_use_certificate_file(server_context, getenv("CERTIFICATE"), SSL_FILETYPE_PEM) ==
         1);
    MUST(SSL_CTX_use_PrivateKey_file(server_context, getenv("KEY"), SSL_FILETYPE_PEM) == 1);
    SSL_CTX_set_session_id_context(server_context, (const unsigned char *)"x", 1);
}

static void end(SSL *ssl)
{
    MUST(SSL_shutdown(ssl) >= 0);
    ssl_end(ssl);
}

static void version(int number)
{
    SSL_CTX_set_min_proto_version(context, number);
    SSL_CTX_set_max_proto_version(context, number);
}

/* --- modes --------------------------------------------------------------------------------------
 */

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

static SSL_SESSION *kept;

static int keep(SSL *ssl, SSL_SESSION *session)
{
    SSL_SESSION_free(kept);
    kept = session;
    return 1;
}

static void resumed(void)
{
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT);
    SSL_CTX_sess_set_new_cb(context, keep);
    for (int number = TLS1_2_VERSION; number <= TLS1_3_VERSION; number++) {
        version(number);
        SSL *ssl = shaken();
        told(ssl_call(ssl, "m"));
        end(ssl);
        ssl = client_on(connected(port));
        MUST(SSL_set_session(ssl, kept) == 1 && SSL_connect(ssl) == 1);
        printf("reused %d\n", SSL_session_reused(ssl));
        told(ssl_call(ssl, "m"));
        end(ssl);
    }
    SSL_SESSION_free(kept);
}

static void early(void)
{
    char text[4096];
    size_t length = request_of(text, "early", 0), count;

    SSL_CTX_set_max_early_data(server_context, 4096);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT);
    SSL_CTX_sess_set_new_cb(context, keep);
    takes_early = true;
    SSL *ssl = shaken();
    told(ssl_call(ssl, "m"));
    end(ssl);
    ssl = client_on(connected(port));
    MUST(SSL_set_session(ssl, kept) == 1);
    MUST(SSL_write_early_data(ssl, text, length, &count) == 1 && count == length);
    MUST(SSL_connect(ssl) == 1);
    told(ssl_status(ssl));
    printf("early %d\n", SSL_get_early_data_status(ssl) == SSL_EARLY_DATA_ACCEPTED);
    told(ssl_call(ssl, "late"));
    end(ssl);
    struct carried c = carried_on(connected(port)), other = carried_on(connected(port));
    MUST(SSL_do_handshake(other.ssl) == -1); /* hellos are looked at from now on */
    MUST(SSL_set_session(c.ssl, kept) == 1);
    MUST(SSL_write_early_data(c.ssl, text, length, &count) == 1 && count == length);
    carried_shake(&c);
    char answer[4096];
    size_t have = 0;
    int got;
    while (!is_whole(answer, have)) {
        while ((got = SSL_read(c.ssl, answer + have, (int)(sizeof answer - 1 - have))) > 0)
            have += (size_t)got;
        if (!is_whole(answer, have))
            MUST(carry_in(&c) > 0);
    }
    told(status_of(answer));
    printf("early %d\n", SSL_get_early_data_status(c.ssl) == SSL_EARLY_DATA_ACCEPTED);
    told(carried_call(&c, "late"));
    SSL_free(c.ssl);
    KEPT(close(c.fd));
    SSL_free(other.ssl);
    KEPT(close(other.fd));
    SSL_SESSION_free(kept);
}

/* In the middle of a request. */
static void renegotiated(void)
{
    char text[512];

    version(TLS1_2_VERSION);
    SSL_CTX_set_options(server_context, SSL_OP_ALLOW_CLIENT_RENEGOTIATION);
    SSL *ssl = shaken();
    for (int i = 0; i < 3; i++) {
        size_t length = request_of(text, "m", 0);
        ssl_write_all(ssl, text, 30);
        MUST(SSL_renegotiate(ssl) == 1 && SSL_do_handshake(ssl) == 1);
        ssl_write_all(ssl, text + 30, length - 30);
        told(ssl_status(ssl));
    }
    printf("handshakes %ld\n", SSL_total_renegotiations(ssl));
    end(ssl);
}

static int accept_any(int good, X509_STORE_CTX *chain)
{
    return 1;
}

static void ask_who(SSL *ssl, int number)
{
    if (number != 1)
        return;
    SSL_set_verify(ssl, SSL_VERIFY_PEER, accept_any);
    MUST(SSL_verify_client_post_handshake(ssl) == 1 && SSL_do_handshake(ssl) == 1);
}

static void authenticated_late(void)
{
    SSL_CTX_set_post_handshake_auth(context, 1);
    MUST(SSL_CTX_use_certificate_file(context, getenv("CERTIFICATE"), SSL_FILETYPE_PEM) == 1);
    MUST(SSL_CTX_use_PrivateKey_file(context, getenv("KEY"), SSL_FILETYPE_PEM) == 1);
    meanwhile = ask_who;
    SSL *ssl = shaken();
    for (int i = 0; i < 3; i++)
        told(ssl_call(ssl, "m"));
    end(ssl);
}

static void change_keys(SSL *ssl, int number)
{
    MUST(SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED) == 1 && SSL_do_handshake(ssl) == 1);
}

static void keys_updated(void)
{
    char text[512];

    meanwhile = change_keys;
    SSL *ssl = shaken();
    for (int i = 0; i < 3; i++) {
        size_t length = request_of(text, "m", 0);
        ssl_write_all(ssl, text, 30);
        MUST(SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED) == 1);
        ssl_write_all(ssl, text + 30, length - 30);
        told(ssl_status(ssl));
    }
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
    {"kernel-tls", kernel_tls},
    {"resumed", resumed},
    {"early", early},
    {"renegotiated", renegotiated},
    {"authenticated-late", authenticated_late},
    {"keys-updated", keys_updated},
    {"not-retried", not_retried},
    {"asynchronous", asynchronous},
    {"by-bio", by_bio},
    {"paired", paired},
    {"freed-elsewhere", freed_elsewhere},
    {"datagrams", datagrams},
};

int main(int argc, char **argv)
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
    run_mode(modes, sizeof modes / sizeof *modes, argv[1]);
    shutdown(fd, SHUT_RDWR);
    pthread_join(thread, NULL);
    SSL_CTX_free(server_context);
    SSL_CTX_free(context);
    return 0;
}
