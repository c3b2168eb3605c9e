/*
 * tls_entries.c - what the dynamic linker sees of libssl's functions.
 *
 * Unversioned, as connect is: a versioned reference binds to that as well, and the library behind
 * it is found by who calls (tls_real.h). Of an object that is none of ours each is a look-up, a
 * question to libssl where it might become one (is it a server's?), and a jump.
 */
#include "guard.h"
#include "tail.h"
#include "tls_io.h"

#include <limits.h>
#include <string.h>

#define TLS_HOOK(type, name, parameters) TAIL_FUNCTION type SSL_##name parameters;
#include "hooks.def"

/* Defines `site` and `real`. What no library is found for fails. */
#define FIND(name, failure)                                                                        \
    const struct tls_site *site = tls_site_of(__builtin_return_address(0), ssl);                   \
    const struct tls_real *real = site->real;                                                      \
    if (!real || !real->name)                                                                      \
    return failure

static inline struct tls_link *link_of(const struct tls_site *site, const SSL *ssl)
{
    return site->passes || !ssl ? NULL : tls_link_of(site->real, ssl);
}

/* --- handshakes ---------------------------------------------------------------------------------
 */

static inline bool wants_tie(const struct tls_link *link)
{
    return !link || (tls_link_state(link) != TLS_LINK_TIED && tls_link_is_live(link));
}

/* The state that tells a client from a server is not there before. */
int SSL_connect(SSL *ssl)
{
    FIND(connect, -1);
    if (!site->passes && ssl) {
        struct tls_link *link = tls_link_of(real, ssl);
        if (wants_tie(link))
            tls_link_shake(real, ssl, link);
    }
    TAIL_RETURN(real->connect(ssl));
}

int SSL_do_handshake(SSL *ssl)
{
    FIND(do_handshake, -1);
    if (!site->passes && ssl) {
        struct tls_link *link = tls_link_of(real, ssl);
        if (wants_tie(link) && !real->is_server(ssl))
            tls_link_shake(real, ssl, link);
    }
    TAIL_RETURN(real->do_handshake(ssl));
}

int SSL_clear(SSL *ssl)
{
    FIND(clear, 0);
    struct tls_link *link = link_of(site, ssl);
    if (link)
        tls_link_clear(real, ssl, link);
    TAIL_RETURN(real->clear(ssl));
}

/* --- reads --------------------------------------------------------------------------------------
 */

/* A client whose first calls are reads, and the handshake theirs: Node's, between memory BIOs. */
static inline void begin_by_read(const struct tls_site *site, SSL *ssl, const struct tls_link *link)
{
    if (!link && !site->passes && ssl && !site->real->is_server(ssl) &&
        !site->real->is_init_finished(ssl))
        tls_link_shake(site->real, ssl, NULL);
}

static __attribute__((noinline)) int read_plain(const struct tls_real *real, SSL *ssl,
                                                struct tls_link *link, void *buf, int size,
                                                bool peek)
{
    const struct tls_io_read read = {.buf = buf, .size = (size_t)size, .peek = peek};
    size_t got;

    return tls_io_read(real, ssl, link, &read, &got);
}

static __attribute__((noinline)) int read_ex(const struct tls_real *real, SSL *ssl,
                                             struct tls_link *link, void *buf, size_t size,
                                             bool peek, size_t *got)
{
    const struct tls_io_read read = {.buf = buf, .size = size, .ex = true, .peek = peek};

    return tls_io_read(real, ssl, link, &read, got);
}

int SSL_read(SSL *ssl, void *buf, int size)
{
    FIND(read, -1);
    struct tls_link *link = link_of(site, ssl);
    begin_by_read(site, ssl, link);
    if (!tls_link_follows(link) || size < 0)
        TAIL_RETURN(real->read(ssl, buf, size));
    return read_plain(real, ssl, link, buf, size, false);
}

int SSL_peek(SSL *ssl, void *buf, int size)
{
    FIND(peek, -1);
    struct tls_link *link = link_of(site, ssl);
    begin_by_read(site, ssl, link);
    if (!tls_link_follows(link) || size < 0)
        TAIL_RETURN(real->peek(ssl, buf, size));
    return read_plain(real, ssl, link, buf, size, true);
}

int SSL_read_ex(SSL *ssl, void *buf, size_t size, size_t *got)
{
    FIND(read_ex, 0);
    struct tls_link *link = link_of(site, ssl);
    begin_by_read(site, ssl, link);
    if (!tls_link_follows(link))
        TAIL_RETURN(real->read_ex(ssl, buf, size, got));
    return read_ex(real, ssl, link, buf, size, false, got);
}

int SSL_peek_ex(SSL *ssl, void *buf, size_t size, size_t *got)
{
    FIND(peek_ex, 0);
    struct tls_link *link = link_of(site, ssl);
    begin_by_read(site, ssl, link);
    if (!tls_link_follows(link))
        TAIL_RETURN(real->peek_ex(ssl, buf, size, got));
    return read_ex(real, ssl, link, buf, size, true, got);
}

static __attribute__((noinline)) bool answer_left(struct tls_link *link, size_t *left)
{
    return sock_tied_answer_left(&link->tie, left);
}

int SSL_pending(const SSL *ssl)
{
    FIND(pending, 0);
    struct tls_link *link = link_of(site, ssl);
    if (tls_link_follows(link)) {
        size_t left;
        if (answer_left(link, &left))
            return left < INT_MAX ? (int)left : INT_MAX;
    }
    return real->pending(ssl);
}

int SSL_has_pending(const SSL *ssl)
{
    FIND(has_pending, 0);
    struct tls_link *link = link_of(site, ssl);
    if (tls_link_follows(link)) {
        size_t left;
        if (answer_left(link, &left))
            return left > 0;
    }
    return real->has_pending(ssl);
}

int SSL_get_error(const SSL *ssl, int result)
{
    FIND(get_error, TLS_ERROR_SSL);
    struct tls_link *link = link_of(site, ssl);
    if (link && result <= 0 && atomic_load_explicit(&link->ended, memory_order_relaxed))
        return TLS_ERROR_ZERO_RETURN;
    TAIL_RETURN(real->get_error(ssl, result));
}

/* --- writes -------------------------------------------------------------------------------------
 */

/* Of a client that is not known to be none of ours? */
static inline bool wants_write(const struct tls_site *site, SSL *ssl, const struct tls_link *link)
{
    if (link)
        return tls_link_is_live(link);
    return !site->passes && ssl && !site->real->is_server(ssl);
}

static __attribute__((noinline)) int write_plain(const struct tls_real *real, SSL *ssl,
                                                 struct tls_link *link, const void *buf, int size)
{
    const struct tls_io_write write = {buf, (size_t)size, TLS_IO_WRITE, 0};
    size_t sent;

    return tls_io_write(real, ssl, link, &write, &sent);
}

static __attribute__((noinline)) int write_ex(const struct tls_real *real, SSL *ssl,
                                              struct tls_link *link, const void *buf, size_t size,
                                              size_t *sent)
{
    const struct tls_io_write write = {buf, size, TLS_IO_WRITE_EX, 0};

    return tls_io_write(real, ssl, link, &write, sent);
}

static __attribute__((noinline)) int write_ex2(const struct tls_real *real, SSL *ssl,
                                               struct tls_link *link, const void *buf, size_t size,
                                               uint64_t flags, size_t *sent)
{
    const struct tls_io_write write = {buf, size, TLS_IO_WRITE_EX2, flags};

    return tls_io_write(real, ssl, link, &write, sent);
}

int SSL_write(SSL *ssl, const void *buf, int size)
{
    FIND(write, -1);
    struct tls_link *link = link_of(site, ssl);
    if (!wants_write(site, ssl, link) || size < 0)
        TAIL_RETURN(real->write(ssl, buf, size));
    return write_plain(real, ssl, link, buf, size);
}

int SSL_write_ex(SSL *ssl, const void *buf, size_t size, size_t *sent)
{
    FIND(write_ex, 0);
    struct tls_link *link = link_of(site, ssl);
    if (!wants_write(site, ssl, link))
        TAIL_RETURN(real->write_ex(ssl, buf, size, sent));
    return write_ex(real, ssl, link, buf, size, sent);
}

int SSL_write_ex2(SSL *ssl, const void *buf, size_t size, uint64_t flags, size_t *sent)
{
    FIND(write_ex2, 0);
    struct tls_link *link = link_of(site, ssl);
    if (!wants_write(site, ssl, link))
        TAIL_RETURN(real->write_ex2(ssl, buf, size, flags, sent));
    return write_ex2(real, ssl, link, buf, size, flags, sent);
}

/* What leaves before the peer has spoken, or by way of the kernel, is not followed. */
int SSL_write_early_data(SSL *ssl, const void *buf, size_t size, size_t *sent)
{
    FIND(write_early_data, 0);
    struct tls_link *link = link_of(site, ssl);
    if (link && tls_link_is_live(link))
        tls_io_lose_sight(link);
    else if (!link && !site->passes && ssl && !real->is_server(ssl))
        tls_link_leave(real, ssl);
    TAIL_RETURN(real->write_early_data(ssl, buf, size, sent));
}

ssize_t SSL_sendfile(SSL *ssl, int fd, off_t offset, size_t size, int flags)
{
    FIND(sendfile, -1);
    struct tls_link *link = link_of(site, ssl);
    if (link && tls_link_is_live(link))
        tls_io_lose_sight(link);
    TAIL_RETURN(real->sendfile(ssl, fd, offset, size, flags));
}

/* --- by name, for the dlsym hook ----------------------------------------------------------------
 */

/* The same functions under names that are ours alone: of an exported one the loader would look up
 * who has it, in each process that starts. */
#define TLS_HOOK(type, name, parameters)                                                           \
    extern __typeof__(SSL_##name) own_##name                                                       \
        __attribute__((alias("SSL_" #name), visibility("hidden")));
#include "hooks.def"

/* No table, whose addresses the loader would have to relocate. */
void *tls_entry(const char *name)
{
#define TLS_HOOK(type, name_, parameters)                                                          \
    if (strcmp(name, "SSL_" #name_) == 0)                                                          \
        return (void *)own_##name_;
#include "hooks.def"
    return NULL;
}
