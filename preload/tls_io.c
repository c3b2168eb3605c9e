#include "tls_io.h"

/* SSL_R_UNEXPECTED_EOF_WHILE_READING, an error of its own since OpenSSL 3. */
#define REASON_OF(code)       ((code)&0x7fffff)
#define REASON_UNEXPECTED_END 294

#define BIO_MEMORY 0x401 /* BIO_TYPE_MEM */

static void pass_if_lost(struct tls_link *link)
{
    if (!sock_tied_has(&link->tie))
        tls_link_pass(link);
}

void tls_io_lose_sight(struct tls_link *link)
{
    sock_tied_end(&link->tie, SOCK_END_DROP);
    tls_link_pass(link);
}

/* --- writes -------------------------------------------------------------------------------------
 */

static int write_real(const struct tls_real *real, SSL *ssl, const struct tls_io_write *write,
                      size_t size, size_t *sent)
{
    int result;

    switch (write->as) {
    case TLS_IO_WRITE_EX:
        return real->write_ex(ssl, write->buf, size, sent);
    case TLS_IO_WRITE_EX2:
        return real->write_ex2(ssl, write->buf, size, write->flags, sent);
    case TLS_IO_WRITE:
        break;
    }
    result = real->write(ssl, write->buf, (int)size);
    if (result > 0)
        *sent = (size_t)result;
    return result;
}

/* As it does by itself: its first write would carry the request along in the same call. */
static int shake_first(const struct tls_real *real, SSL *ssl, const struct tls_io_write *write)
{
    int result = real->do_handshake(ssl);

    if (result > 0)
        return result;
    return write->as == TLS_IO_WRITE ? -1 : 0;
}

/* What the call's failure says of the connection, as an errno. */
static __attribute__((noinline)) int error_of_write(const struct tls_real *real, const SSL *ssl,
                                                    int result, int error)
{
    int told = real->get_error(ssl, result);

    if (told != TLS_ERROR_SYSCALL && told != TLS_ERROR_ZERO_RETURN)
        return EAGAIN; /* it wants something, or is TLS's own trouble */
    return error != 0 ? error : EPIPE;
}

static int write_followed(const struct tls_real *real, SSL *ssl, struct tls_link *link,
                          const struct tls_io_write *write, size_t *sent)
{
    struct sock_write look = sock_tied_write_look(&link->tie, write->buf, write->size);
    int result, error;

    if (!look.conn) {
        tls_link_pass(link);
        return write_real(real, ssl, write, write->size, sent);
    }
    if (look.allowed == 0) {
        *sent = write->size;
        return write->as == TLS_IO_WRITE ? (int)write->size : 1;
    }
    result = write_real(real, ssl, write, (size_t)look.allowed, sent);
    error = errno;
    sock_tied_write_done(&look, result > 0 ? *sent : 0,
                         result > 0 ? 0 : error_of_write(real, ssl, result, error));
    errno = error;
    if (result <= 0 || *sent < look.allowed)
        return result;
    *sent = write->size;
    return write->as == TLS_IO_WRITE ? (int)write->size : result;
}

/* Out of line, once for each connection. */
static __attribute__((noinline)) int write_first(const struct tls_real *real, SSL *ssl,
                                                 struct tls_link *link,
                                                 const struct tls_io_write *write, size_t *sent)
{
    int result;

    tls_link_shake(real, ssl, link);
    link = tls_link_of(real, ssl);
    if (!link)
        return write_real(real, ssl, write, write->size, sent);
    if (!real->is_init_finished(ssl) && (result = shake_first(real, ssl, write)) <= 0)
        return result;
    if (tls_link_state(link) == TLS_LINK_PASSED || !tls_link_follow(real, ssl, link) ||
        write->size == 0)
        return write_real(real, ssl, write, write->size, sent);
    return write_followed(real, ssl, link, write, sent);
}

int tls_io_write(const struct tls_real *real, SSL *ssl, struct tls_link *link,
                 const struct tls_io_write *write, size_t *sent)
{
    if (!link || tls_link_state(link) != TLS_LINK_FOLLOWED)
        return write_first(real, ssl, link, write, sent);
    if (write->size == 0)
        return write_real(real, ssl, write, 0, sent);
    return write_followed(real, ssl, link, write, sent);
}

/* --- reads --------------------------------------------------------------------------------------
 */

static int read_real(const struct tls_real *real, SSL *ssl, const struct tls_io_read *read,
                     size_t *got)
{
    int result;

    if (read->ex)
        return read->peek ? real->peek_ex(ssl, read->buf, read->size, got)
                          : real->read_ex(ssl, read->buf, read->size, got);
    result = read->peek ? real->peek(ssl, read->buf, (int)read->size)
                        : real->read(ssl, read->buf, (int)read->size);
    if (result > 0)
        *got = (size_t)result;
    return result;
}

/* Behind its last byte the object is as after the peer's close_notify: programs look at that, too.
 */
static int tell(const struct tls_real *real, SSL *ssl, struct tls_link *link,
                const struct tls_io_read *read, size_t got)
{
    if (got > 0)
        return read->ex ? 1 : (int)got;
    if (!atomic_exchange_explicit(&link->ended, true, memory_order_relaxed))
        real->set_shutdown(ssl, real->get_shutdown(ssl) | TLS_RECEIVED_SHUTDOWN);
    return 0;
}

/* Records that go through memory BIOs: has it made all that it can of those that it was given? Not
 * every program reads until it is told so, some ask (uvloop). */
static bool is_drained(const struct tls_real *real, const SSL *ssl, const struct tls_link *link)
{
    void *bio = link->tie.in_memory ? real->get_rbio(ssl) : NULL;

    return bio && real->BIO_method_type(bio) == BIO_MEMORY && real->BIO_ctrl_pending(bio) == 0 &&
           real->pending(ssl) == 0;
}

static __attribute__((noinline)) void note_failure(const struct tls_real *real, const SSL *ssl,
                                                   struct tls_link *link, int result, int error)
{
    switch (real->get_error(ssl, result)) {
    case TLS_ERROR_WANT_READ:
        sock_tied_drained(&link->tie);
        break;
    case TLS_ERROR_ZERO_RETURN:
        sock_tied_end(&link->tie, SOCK_END_EOF);
        break;
    case TLS_ERROR_SYSCALL: /* without an errno: the end, without close_notify */
        sock_tied_end(&link->tie, error == 0                        ? SOCK_END_EOF
                                  : sock_conn_is_peers_fault(error) ? SOCK_END_RESET
                                                                    : SOCK_END_DROP);
        break;
    case TLS_ERROR_SSL:
        sock_tied_end(&link->tie, REASON_OF(real->ERR_peek_last_error()) == REASON_UNEXPECTED_END
                                      ? SOCK_END_EOF
                                      : SOCK_END_DROP);
        break;
    default:
        break;
    }
}

int tls_io_read(const struct tls_real *real, SSL *ssl, struct tls_link *link,
                const struct tls_io_read *read, size_t *got)
{
    int result, error;

    if (read->size > 0 && sock_tied_answer(&link->tie, read->buf, read->size, read->peek, got))
        return tell(real, ssl, link, read, *got);
    result = read_real(real, ssl, read, got);
    error = errno;
    if (result > 0 && !read->peek) {
        sock_tied_received(&link->tie, read->buf, *got, is_drained(real, ssl, link));
    } else if (result <= 0 && read->size > 0 &&
               sock_tied_answer(&link->tie, read->buf, read->size, read->peek, got)) {
        /* A request was refused while this read waited: what it met with is our doing. */
        real->ERR_clear_error();
        result = tell(real, ssl, link, read, *got);
    } else if (result <= 0) {
        note_failure(real, ssl, link, result, error);
    }
    pass_if_lost(link);
    errno = error;
    return result;
}
