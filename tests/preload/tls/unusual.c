/*
 * unusual.c - what few clients do with libssl, before, between and instead of calls.
 *
 *   unusual MODE PORT
 *
 * Prints the statuses of its calls. Those of "m" count with the library, those of "unseen" pass.
 */
#include "told.h"

#include <dlfcn.h>
#include <sys/uio.h>
#include <sys/wait.h>

/* --- beginnings ---------------------------------------------------------------------------------
 */

/* As the resolver writes a name to its end; whom a request in absolute form asks is the peer all
 * the same. */
static void dotted(void)
{
    SSL *ssl = client_on(connected(port));
    char text[512];

    MUST(SSL_set_tlsext_host_name(ssl, "LocalHost.") == 1 && SSL_connect(ssl) == 1);
    ssl_write_all(
        ssl, text,
        (size_t)sprintf(text,
                        "POST https://localhost:%u/v1/chat/completions HTTP/1.1\r\n"
                        "Host: localhost:%u\r\nContent-Length: 13\r\n\r\n{\"model\":\"m\"}",
                        port, port));
    told(ssl_status(ssl));
    ssl_end(ssl);
}

/* An empty write is a beginning of something else, though nothing comes of it. */
static void after_nothing(void)
{
    int fd = connected(port);
    MUST(KEPT(write(fd, "", 0)) == 0);
    SSL *ssl = client_on(fd);

    MUST(SSL_connect(ssl) == 1);
    told(ssl_call(ssl, "unseen"));
    ssl_end(ssl);
}

static int write_plain(SSL *ssl, const char *text, size_t length)
{
    int result = SSL_write(ssl, text, (int)length);

    MUST(result == -1 || result == (int)length);
    return result;
}

static int write_ex(SSL *ssl, const char *text, size_t length)
{
    size_t sent;
    int result = SSL_write_ex(ssl, text, length, &sent);

    MUST(result == 0 || sent == length);
    return result;
}

/* The handshake is the first write's, which does not wait for it: its server begins when another
 * connection comes. */
static void unblocked(int (*write_by)(SSL *ssl, const char *text, size_t length))
{
    int fd = connected(port), result;
    SSL *ssl = client_on(fd);
    char text[512];
    size_t length = request_of(text, "m", 0);
    unsigned waits = 0;

    KEPT(fcntl(fd, F_SETFL, O_NONBLOCK));
    SSL_set_connect_state(ssl);
    for (; (result = write_by(ssl, text, length)) <= 0; waits++) {
        struct pollfd one = {fd, POLLIN, 0};
        MUST(SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ && ERR_peek_error() == 0);
        if (waits == 0)
            KEPT(close(connected(port)));
        MUST(poll(&one, 1, BOUND_S * 1000) == 1);
    }
    MUST(waits > 0);
    KEPT(fcntl(fd, F_SETFL, 0));
    told(ssl_status(ssl));
    told(ssl_call(ssl, "m"));
    ssl_end(ssl);
}

static void implicit_unblocked(void)
{
    unblocked(write_plain);
    unblocked(write_ex);
}

/* A duplicate of one that had a connection, and begins again: it has nothing of that. */
static void begun_again(void)
{
    SSL *ssl = shaken();
    int fd = SSL_get_fd(ssl);

    told(ssl_call(ssl, "m"));
    SSL_set_connect_state(ssl);
    SSL *other = SSL_dup(ssl);
    MUST(other && other != ssl);
    MUST(SSL_set_fd(other, connected(port)) == 1 && SSL_connect(other) == 1);
    told(ssl_call(other, "m"));
    SSL_free(SSL_dup(ssl));
    MUST(SSL_set_fd(ssl, connected(port)) == 1 && SSL_connect(ssl) == 1);
    told(ssl_call(ssl, "m"));
    told(ssl_call(other, "m"));
    ssl_end(other);
    told(ssl_call(ssl, "m"));
    ssl_end(ssl);
    KEPT(close(fd));
}

/* A child with our memory and descriptors of its own. */
static void vforked(void)
{
    SSL *ssl = shaken();
    int status;

    told(ssl_call(ssl, "m"));
    pid_t child = vfork();
    if (child == 0) {
        SSL *own = shaken();
        int got = ssl_call(own, "unseen");
        ssl_end(own);
        _exit(got == 200 ? 0 : 1);
    }
    MUST(waitpid(child, &status, 0) == child && status == 0);
    told(ssl_call(ssl, "m"));
    ssl_end(ssl);
}

/* --- between calls ------------------------------------------------------------------------------
 */

static void empty_write(void)
{
    SSL *ssl = shaken();
    size_t sent = 1;

    told(ssl_call(ssl, "m"));
    printf("%d", SSL_write(ssl, "", 0));
    printf("%d%zu\n", SSL_write_ex(ssl, "", 0, &sent), sent);
    ERR_clear_error();
    told(ssl_call(ssl, "m"));
    ssl_end(ssl);
}

/* Early data, much too late. */
static void late_early_data(void)
{
    SSL *ssl = shaken();
    size_t sent;

    told(ssl_call(ssl, "m"));
    MUST(SSL_write_early_data(ssl, "x", 1, &sent) == 0 && ERR_get_error() != 0);
    told(ssl_call(ssl, "unseen"));
    ssl_end(ssl);
}

/* --- others -------------------------------------------------------------------------------------
 */

/* Calls that fail before libssl has looked at the object: there is none. */
static void no_object(void)
{
    char byte = 'x';

    MUST(SSL_read(NULL, &byte, -1) == -1 && ERR_get_error() != 0);
    MUST(SSL_write(NULL, &byte, -1) == -1 && ERR_get_error() != 0);
    SSL *ssl = shaken();
    told(ssl_call(ssl, "m"));
    ssl_end(ssl);
}

/* Looked up in the program's own scope, where the hooks come first. */
static void own_handle(void)
{
    void *self = dlopen(NULL, RTLD_NOW);
    int (*its_connect)(SSL *) = dlsym(self, "SSL_connect");
    SSL *ssl = client_on(connected(port));

    MUST(its_connect == SSL_connect && its_connect(ssl) == 1);
    told(ssl_call(ssl, "m"));
    ssl_end(ssl);
    MUST(dlclose(self) == 0 && !dlerror());
}

#define OF_SPACE(name) __typeof__(&name) its_##name = (__typeof__(&name))dlsym(space, #name)

/* A second copy of the same file, in a namespace of its own. */
static void other_namespace(void)
{
    void *space = dlmopen(LM_ID_NEWLM, "libssl.so.3", RTLD_NOW);
    MUST(space, "%s", dlerror());
    OF_SPACE(TLS_client_method);
    OF_SPACE(SSL_CTX_new);
    OF_SPACE(SSL_new);
    OF_SPACE(SSL_set_fd);
    OF_SPACE(SSL_connect);
    OF_SPACE(SSL_write);
    OF_SPACE(SSL_read);
    OF_SPACE(SSL_free);
    OF_SPACE(SSL_CTX_free);
    MUST(its_SSL_new != SSL_new && its_SSL_connect && !dlerror());
    SSL *ssl = shaken(), *other;
    SSL_CTX *its_context = its_SSL_CTX_new(its_TLS_client_method());
    int fd = connected(port), count;
    char text[4096];
    size_t length = request_of(text, "unseen", 0), have = 0;

    MUST(its_context && (other = its_SSL_new(its_context)));
    MUST(its_SSL_set_fd(other, fd) == 1 && its_SSL_connect(other) == 1);
    MUST(its_SSL_write(other, text, (int)length) == (int)length);
    for (; !is_whole(text, have); have += (size_t)count)
        MUST((count = its_SSL_read(other, text + have, (int)(sizeof text - 1 - have))) > 0);
    told(status_of(text));
    its_SSL_free(other);
    its_SSL_CTX_free(its_context);
    KEPT(close(fd));
    told(ssl_call(ssl, "m"));
    ssl_end(ssl);
}

static void *echo(void *listening)
{
    char text[1024];
    int fd = accept(*(int *)listening, NULL, NULL);
    ssize_t count;

    while ((count = read(fd, text, sizeof text)) > 0)
        MUST(write(fd, text, (size_t)count) == count);
    close(fd);
    return NULL;
}

static void must_echo(int fd, const char *text, size_t length)
{
    char got[1024];

    write_all(fd, text, length);
    for (size_t have = 0; have < length;) {
        ssize_t count = KEPT(read(fd, got, sizeof got));
        MUST(count > 0 && have + (size_t)count <= length &&
             !memcmp(got, text + have, (size_t)count));
        have += (size_t)count;
    }
}

/* While a client between memory BIOs looks for its connection another one begins as TLS does, by a
 * library that nobody knows. */
static void unclaimed(void)
{
    static const char hello[100] = {0x16, 3, 1, 0, 95, 1, 0, 0, 91, 3, 3, 'r'};
    int listener = KEPT(socket(AF_INET, SOCK_STREAM, 0));
    struct sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    pthread_t thread;

    KEPT(bind(listener, (struct sockaddr *)&address, size));
    KEPT(listen(listener, 1));
    KEPT(getsockname(listener, (struct sockaddr *)&address, &size));
    MUST(pthread_create(&thread, NULL, echo, &listener) == 0);
    struct carried c = carried_on(connected(port));
    MUST(SSL_do_handshake(c.ssl) == -1);
    int fd = connected(ntohs(address.sin_port));
    for (int i = 0; i < 6; i++)
        must_echo(fd, hello, sizeof hello);
    char text[512];
    must_echo(fd, text, request_of(text, "shut", 0));
    KEPT(close(fd));
    pthread_join(thread, NULL);
    KEPT(close(listener));
    carried_shake(&c);
    told(carried_call(&c, "m"));
    SSL_free(c.ssl);
    KEPT(close(c.fd));
}

/* --- refused, and other answers -----------------------------------------------------------------
 */

/* It asks for the records of our answer by parts, of which the first are empty. */
static void refused_by_parts(void)
{
    struct carried c = carried_on(connected(port));
    char text[4096], records[64];
    struct iovec parts[] = {{records, 0}, {NULL, 0}, {records, sizeof records}};
    size_t have = 0;
    int count;

    carried_shake(&c);
    ssl_write_all(c.ssl, text, request_of(text, "shut", 0));
    MUST(KEPT(readv(c.fd, parts, 2)) == 0);
    MUST(KEPT(readv(c.fd, parts, 3)) == 1);
    MUST(KEPT(readv(c.fd, parts, 3)) == 0);
    while ((count = SSL_read(c.ssl, text + have, (int)(sizeof text - 1 - have))) > 0)
        have += (size_t)count;
    text[have] = '\0';
    told(status_of(text));
    SSL_free(c.ssl);
    KEPT(close(c.fd));
}

/* Prints what it was answered, of one request. */
static void one_answer(void)
{
    SSL *ssl = shaken();
    char text[4096];

    ssl_post(ssl, "m");
    int count = SSL_read(ssl, text, sizeof text);
    MUST(count > 0);
    printf("%.*s\n", count, text);
    ssl_post(ssl, "m");
    MUST(SSL_read(ssl, text, sizeof text) == count);
    ssl_end(ssl);
}

/* It has read the connection to its end before it decrypts the answer, and then asks no more. */
static void ended_before(void)
{
    struct carried c = carried_on(connected(port));
    char text[4096];

    carried_shake(&c);
    ssl_write_all(c.ssl, text, request_of(text, "m", 0));
    carry_out(&c);
    while (carry_in(&c) > 0)
        ;
    int count = SSL_read(c.ssl, text, sizeof text);
    MUST(count > 0);
    printf("%.*s\n", count, text);
    fflush(stdout);
    _exit(0);
}

static const struct mode modes[] = {
    {"dotted", dotted},
    {"after-nothing", after_nothing},
    {"implicit-unblocked", implicit_unblocked},
    {"begun-again", begun_again},
    {"vforked", vforked},
    {"empty-write", empty_write},
    {"late-early-data", late_early_data},
    {"no-object", no_object},
    {"own-handle", own_handle},
    {"other-namespace", other_namespace},
    {"unclaimed", unclaimed},
    {"refused-by-parts", refused_by_parts},
    {"one-answer", one_answer},
    {"ended-before", ended_before},
};

int main(int argc, char **argv)
{
    MUST(argc == 3);
    run_program(modes, sizeof modes / sizeof *modes, argv[1], argv[2]);
    return 0;
}
