/*
 * calls.c - odd ways to carry what a TLS client says, each of which makes calls that go well.
 *
 *   calls MODE PORT
 *
 * Prints the statuses. With the library they are the same, and each call of "m" counts.
 */
#include "told.h"

static void plain(void)
{
    SSL *ssl = shaken();

    for (int i = 0; i < 3; i++)
        told(ssl_call(ssl, "m"));
    MUST(SSL_shutdown(ssl) >= 0);
    ssl_end(ssl);
}

static void ex(void)
{
    SSL *ssl = shaken();
    char text[4096];
    size_t length = request_of(text, "m", 0), count = 0;

    MUST(SSL_write_ex(ssl, text, length, &count) == 1 && count == length);
    MUST(SSL_peek_ex(ssl, text, 9, &count) == 1 && count == 9 && memcmp(text, "HTTP/1.1 ", 9) == 0);
    MUST(SSL_peek(ssl, text, 9) == 9 && SSL_has_pending(ssl) == 1 && SSL_pending(ssl) > 9);
    MUST(SSL_read_ex(ssl, text, 3, &count) == 1 && count == 3 && memcmp(text, "HTT", 3) == 0);
    for (length = 3; !is_whole(text, length); length += count)
        MUST(SSL_read_ex(ssl, text + length, 1, &count) == 1 && count == 1);
    told(status_of(text));
    ssl_end(ssl);
}

/* The handshake is the first write's. */
static void implicit(void)
{
    SSL *ssl = client_on(connected(port));

    SSL_set_connect_state(ssl);
    told(ssl_call(ssl, "m"));
    told(ssl_call(ssl, "m"));
    ssl_end(ssl);
}

/* Or the first read's, which waits for what nobody was asked for. */
static void implicit_read(void)
{
    int fd = connected(port);
    SSL *ssl = client_on(fd);
    char byte;

    bound_waits(fd, 200);
    SSL_set_connect_state(ssl);
    int result = SSL_read(ssl, &byte, 1);
    MUST(result == -1 && SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ);
    bound_waits(fd, 0);
    told(ssl_call(ssl, "m"));
    ssl_end(ssl);
}

static void await(SSL *ssl, int result)
{
    int error = SSL_get_error(ssl, result);
    struct pollfd one = {SSL_get_fd(ssl), error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, 0};

    MUST(error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE, "%d", error);
    MUST(poll(&one, 1, BOUND_S * 1000) == 1);
}

/* Never blocks; a body that the socket does not take at once, in as many writes as it takes. */
static void unblocked(bool partial)
{
    const size_t filling = 3 << 20;
    char *text = malloc(filling + 1024);
    int fd = KEPT(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)), small = 4096, result;
    unsigned waits = 0;

    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    MUST(connect_to(fd, port) == 0 || errno == EINPROGRESS);
    SSL *ssl = client_on(fd);
    if (partial)
        SSL_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    struct pollfd one = {fd, POLLOUT, 0};
    MUST(poll(&one, 1, BOUND_S * 1000) == 1);
    while ((result = SSL_connect(ssl)) != 1)
        await(ssl, result);
    for (int i = 0; i < 2; i++) {
        size_t length = request_of(text, "m", filling), done = 0, have = 0;
        while (done < length) {
            result = SSL_write(ssl, text + done, (int)(length - done));
            MUST(result <= 0 || partial || result == (int)length);
            done += result > 0 ? (size_t)result : 0;
            if (result <= 0) {
                await(ssl, result);
                waits++;
            }
        }
        while (!is_whole(text, have)) {
            result = SSL_read(ssl, text + have, 1000);
            have += result > 0 ? (size_t)result : 0;
            if (result <= 0)
                await(ssl, result);
        }
        told(status_of(text));
    }
    MUST(waits > 0);
    ssl_end(ssl);
    free(text);
}

static void whole_writes(void)
{
    unblocked(false);
}

static void partial_writes(void)
{
    unblocked(true);
}

static void in_memory(void (*shake)(struct carried *))
{
    struct carried c = carried_on(connected(port));

    shake(&c);
    for (int i = 0; i < 3; i++)
        told(carried_call(&c, "m"));
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

/* Twenty at once, whose records could be anybody's. */
static void memories(void)
{
    struct carried c[20];

    for (int i = 0; i < 20; i++) {
        c[i] = carried_on(connected(port));
        MUST(SSL_do_handshake(c[i].ssl) == -1);
    }
    for (int i = 20; i-- > 0;)
        carried_shake(&c[i]);
    for (int i = 0; i < 20; i++)
        told(carried_call(&c[i], "m"));
    for (int i = 0; i < 20; i++) {
        KEPT(close(c[i].fd));
        SSL_free(c[i].ssl);
    }
}

static void pipelined(void)
{
    SSL *ssl = shaken();
    char text[4096];
    size_t length = request_of(text, "m", 0), have = 0;
    unsigned heads = 0;

    length += request_of(text + length, "m", 5);
    length += request_of(text + length, "m", 7);
    ssl_write_all(ssl, text, length);
    while (heads < 3) {
        int count = SSL_read(ssl, text + have, (int)(sizeof text - 1 - have));
        MUST(count > 0);
        have += (size_t)count;
        text[have] = '\0';
        heads = 0;
        for (char *at = text; (at = strstr(at, "HTTP/1.1 200")); at++)
            heads++;
    }
    told((int)heads);
    ssl_end(ssl);
}

/* Both ends in one process: the server's objects are none of ours. */
static void *serve(void *listening)
{
    SSL_CTX *server = SSL_CTX_new(TLS_server_method());
    char text[4096];

    MUST(SSL_CTX_use_certificate_file(server, getenv("CERTIFICATE"), SSL_FILETYPE_PEM) == 1);
    MUST(SSL_CTX_use_PrivateKey_file(server, getenv("KEY"), SSL_FILETYPE_PEM) == 1);
    SSL *ssl = SSL_new(server);
    int fd = accept(*(int *)listening, NULL, NULL);
    MUST(SSL_set_fd(ssl, fd) == 1 && SSL_accept(ssl) == 1);
    for (int i = 0; i < 2; i++) {
        size_t have = 0, seen = 0;
        MUST(SSL_peek(ssl, text, 4) == 4 && memcmp(text, "POST", 4) == 0);
        MUST(SSL_peek_ex(ssl, text, 5, &seen) == 1 && seen == 5 && memcmp(text, "POST ", 5) == 0);
        while (!is_whole(text, have)) {
            int count = SSL_read(ssl, text + have, 100);
            MUST(count > 0);
            have += (size_t)count;
        }
        MUST(strstr(text, "\"own\""));
        static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
        MUST(SSL_write(ssl, answer, sizeof answer - 1) == (int)sizeof answer - 1);
    }
    MUST(SSL_read(ssl, text, 1) == 0 && SSL_get_error(ssl, 0) == SSL_ERROR_ZERO_RETURN);
    ssl_end(ssl);
    SSL_CTX_free(server);
    return NULL;
}

static void server_side(void)
{
    int fd = KEPT(socket(AF_INET, SOCK_STREAM, 0));
    struct sockaddr_in address = loopback(0);
    socklen_t length = sizeof address;
    pthread_t thread;

    MUST(bind(fd, (struct sockaddr *)&address, length) == 0 && listen(fd, 1) == 0);
    MUST(getsockname(fd, (struct sockaddr *)&address, &length) == 0);
    MUST(pthread_create(&thread, NULL, serve, &fd) == 0);
    SSL *ssl = client_on(connected(ntohs(address.sin_port)));
    MUST(SSL_connect(ssl) == 1);
    told(ssl_call(ssl, "own"));
    told(ssl_call(ssl, "own"));
    MUST(SSL_shutdown(ssl) == 0);
    pthread_join(thread, NULL);
    ssl_end(ssl);
    KEPT(close(fd));
}

/* A proxy on the way: first in clear, then TLS over the same descriptor. */
static void tunnel(void)
{
    int fd = connected((unsigned)atoi(getenv("PROXY")));
    char text[256];

    write_all(fd, text, (size_t)sprintf(text, "CONNECT localhost:%u HTTP/1.1\r\n\r\n", port));
    MUST(read(fd, text, sizeof text) > 12 && memcmp(text + 9, "200", 3) == 0);
    SSL *ssl = client_on(fd);
    MUST(SSL_connect(ssl) == 1);
    told(ssl_call(ssl, "m"));
    ssl_end(ssl);
    struct carried c = carried_on(connected((unsigned)atoi(getenv("PROXY"))));
    write_all(c.fd, text, (size_t)sprintf(text, "CONNECT localhost:%u HTTP/1.1\r\n\r\n", port));
    MUST(read(c.fd, text, sizeof text) > 12);
    carried_shake(&c);
    told(carried_call(&c, "m"));
    SSL_free(c.ssl);
    KEPT(close(c.fd));
}

/* One that is no HTTP proxy: the name of the handshake is all there is to know. */
static void socks(void)
{
    int fd = connected((unsigned)atoi(getenv("PROXY")));
    char text[64] = {5, 1, 0, 3, 9, 'l', 'o', 'c', 'a', 'l', 'h', 'o', 's', 't'};

    write_all(fd, "\5\1\0", 3);
    MUST(read(fd, text + 32, 2) == 2);
    text[14] = (char)(port >> 8);
    text[15] = (char)port;
    text[1] = 1;
    write_all(fd, (char[]){5, 1, 0}, 3);
    write_all(fd, text + 3, 13);
    MUST(read(fd, text, sizeof text) == 10 && text[1] == 0);
    SSL *ssl = client_on(fd);
    MUST(SSL_connect(ssl) == 1);
    told(ssl_call(ssl, "m"));
    ssl_end(ssl);
}

/* A BIO of the program's own, which reads and writes by itself: no descriptor is to be had of it.
 */
static int own_write(BIO *bio, const char *data, int size)
{
    return (int)send(*(int *)BIO_get_data(bio), data, (size_t)size, 0);
}

static int own_read(BIO *bio, char *data, int size)
{
    return (int)recv(*(int *)BIO_get_data(bio), data, (size_t)size, 0);
}

static long own_ctrl(BIO *bio, int command, long number, void *pointer)
{
    return command == BIO_CTRL_FLUSH;
}

static void own_bio(void)
{
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "own");
        int fd = connected(port);
        BIO_meth_set_write(method, own_write);
        BIO_meth_set_read(method, own_read);
        BIO_meth_set_ctrl(method, own_ctrl);
        BIO *bio = BIO_new(method);
        BIO_set_data(bio, &fd);
        BIO_set_init(bio, 1);
        SSL *ssl = client_on(-1);
        MUST(SSL_set_max_proto_version(ssl, version) == 1);
        SSL_set_bio(ssl, bio, bio);
        MUST(SSL_connect(ssl) == 1);
        told(ssl_call(ssl, "m"));
        told(ssl_call(ssl, "m"));
        SSL_free(ssl);
        BIO_meth_free(method);
        KEPT(close(fd));
    }
}

static const struct mode modes[] = {
    {"plain", plain},
    {"ex", ex},
    {"implicit", implicit},
    {"implicit-read", implicit_read},
    {"whole-writes", whole_writes},
    {"partial-writes", partial_writes},
    {"memory", memory},
    {"memory-reads", memory_reads},
    {"memories", memories},
    {"own-bio", own_bio},
    {"pipelined", pipelined},
    {"server-side", server_side},
    {"tunnel", tunnel},
    {"socks", socks},
};

int main(int argc, char **argv)
{
    MUST(argc == 3);
    run_program(modes, sizeof modes / sizeof *modes, argv[1], argv[2]);
    return 0;
}
