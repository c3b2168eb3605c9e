/*
 * objects.c - odd lives of the objects of a TLS client, each of which makes calls that go well.
 *
 *   objects MODE PORT
 *
 * Prints the statuses. With the library they are the same, and each call of "m" counts.
 */
#include "told.h"

#include <sys/wait.h>

/* One object, two connections. */
static void clear(void)
{
    SSL *ssl = shaken();

    told(ssl_call(ssl, "m"));
    int fd = SSL_get_fd(ssl);
    MUST(SSL_shutdown(ssl) >= 0 && SSL_clear(ssl) == 1);
    KEPT(close(fd));
    MUST(SSL_set_fd(ssl, connected(port)) == 1 && SSL_connect(ssl) == 1);
    told(ssl_call(ssl, "m"));
    ssl_end(ssl);
}

/* A duplicate of one that has not begun is an object of its own; of another the same. */
static void duplicate(void)
{
    SSL *ssl = client_on(connected(port)), *other = SSL_dup(ssl);

    MUST(other && SSL_set_fd(other, connected(port)) == 1);
    MUST(SSL_connect(ssl) == 1 && SSL_connect(other) == 1);
    told(ssl_call(ssl, "m"));
    told(ssl_call(other, "m"));
    SSL *same = SSL_dup(ssl);
    ssl_end(other);
    told(ssl_call(same, "m"));
    SSL_free(same);
    told(ssl_call(ssl, "m"));
    ssl_end(ssl);
}

/* The descriptor changes its number under it. */
static void moved(void)
{
    SSL *ssl = shaken();
    int fd = SSL_get_fd(ssl), other = KEPT(dup(fd));

    told(ssl_call(ssl, "m"));
    KEPT(close(fd));
    MUST(SSL_set_fd(ssl, other) == 1);
    told(ssl_call(ssl, "m"));
    ssl_end(ssl);
}

/* The object goes on with another connection, and the one that it had stays open. */
static void switched(void)
{
    SSL *ssl = shaken();

    told(ssl_call(ssl, "m"));
    int fd = SSL_get_fd(ssl);
    MUST(SSL_set_fd(ssl, connected(port)) == 1);
    SSL_set_connect_state(ssl);
    MUST(SSL_connect(ssl) == 1);
    told(ssl_call(ssl, "m"));
    ssl_end(ssl);
    KEPT(close(fd));
}

static void close_first(void)
{
    SSL *ssl = shaken();

    told(ssl_call(ssl, "m"));
    KEPT(close(SSL_get_fd(ssl)));
    SSL *second = shaken(); /* the same number */
    told(ssl_call(second, "m"));
    SSL_free(ssl);
    told(ssl_call(second, "m"));
    ssl_end(second);
}

/* Freed, and somebody else's TLS goes on over the descriptor's connection: there is none. */
static void free_first(void)
{
    for (int i = 0; i < 2; i++) {
        SSL *ssl = shaken();
        int fd = SSL_get_fd(ssl);
        told(ssl_call(ssl, "m"));
        SSL_free(ssl);
        char byte;
        MUST(recv(fd, &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
        KEPT(close(fd));
    }
}

/* The child's are calls of its own, what it inherited is only closed there. */
static void forked(void)
{
    SSL *ssl = shaken();

    told(ssl_call(ssl, "m"));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        ssl_end(ssl);
        ssl = shaken();
        told(ssl_call(ssl, "m"));
        ssl_end(ssl);
        fflush(stdout);
        _exit(0);
    }
    int status;
    MUST(waitpid(child, &status, 0) == child && status == 0);
    told(ssl_call(ssl, "m"));
    ssl_end(ssl);
}

/* What the parent had begun goes on in a child, unseen. */
static void inherited(void)
{
    SSL *ssl = shaken();
    pid_t child = fork();

    if (child == 0) {
        told(ssl_call(ssl, "unseen"));
        fflush(stdout);
        _exit(0);
    }
    int status;
    MUST(waitpid(child, &status, 0) == child && status == 0);
    ssl_end(ssl);
}

static void *many(void *nothing)
{
    for (int i = 0; i < 5; i++) {
        SSL *ssl = shaken();
        for (int j = 0; j < 4; j++)
            MUST(ssl_call(ssl, "m") == 200);
        ssl_end(ssl);
    }
    return nothing;
}

static void threads(void)
{
    pthread_t thread[4];

    for (int i = 0; i < 4; i++)
        MUST(pthread_create(&thread[i], NULL, many, NULL) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    told(80);
}

static void *read_blocked(void *ssl)
{
    char text[4096];

    MUST(SSL_read(ssl, text, sizeof text) > 0);
    return NULL;
}

/* One thread reads while another writes what is no HTTP that we know, with which we let go: full
 * duplex, as WebSockets have it. */
static void duplex(void)
{
    static const char text[] = "POST / HTTP/9.9\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    SSL *ssl = shaken();
    pthread_t thread;

    told(ssl_call(ssl, "m"));
    MUST(pthread_create(&thread, NULL, read_blocked, ssl) == 0);
    wait_for_reader();
    ssl_write_all(ssl, text, sizeof text - 1);
    pthread_join(thread, NULL);
    ssl_end(ssl);
}

/* Arguments that libssl has its own word for, and objects that come to nothing. */
static void nothing(void)
{
    SSL *ssl = client_on(connected(port)), *bare = SSL_new(context);
    char byte;

    MUST(SSL_get_error(ssl, SSL_read(bare, &byte, 1)) == SSL_ERROR_SSL);
    MUST(SSL_write(bare, "x", 1) == -1);
    MUST(SSL_do_handshake(bare) == -1);
    MUST(SSL_connect(bare) == -1);
    ERR_clear_error();
    SSL_free(bare);
    MUST(SSL_connect(ssl) == 1);
    MUST(SSL_write(ssl, "x", -1) == -1 && SSL_read(ssl, &byte, -1) == -1);
    ERR_clear_error();
    MUST(SSL_pending(ssl) == 0 && SSL_has_pending(ssl) == 0);
    told(ssl_call(ssl, "m"));
    ssl_end(ssl);
    SSL_free(client_on(-1));
    struct carried c = carried_on(connected(port));
    MUST(SSL_do_handshake(c.ssl) == -1);
    SSL_free(c.ssl);
    KEPT(close(c.fd));
}

static const struct mode modes[] = {
    {"clear", clear},       {"duplicate", duplicate},     {"moved", moved},
    {"switched", switched}, {"close-first", close_first}, {"free-first", free_first},
    {"forked", forked},     {"inherited", inherited},     {"threads", threads},
    {"duplex", duplex},     {"nothing", nothing},
};

int main(int argc, char **argv)
{
    MUST(argc == 3);
    run_program(modes, sizeof modes / sizeof *modes, argv[1], argv[2]);
    return 0;
}
