/*
 * tls_io.h - the logic behind the exported entries of libssl (tls_entries.c holds those): what a
 * linked client reads and writes is shown to its flow, refused requests are swallowed, our answer
 * is handed out.
 *
 * Each returns what the real function would: errno, the error queue and SSL_get_error() are as the
 * real call left them, or as after the peer's orderly end where our answer ends.
 */
#ifndef BREAKER_PRELOAD_TLS_IO_H
#define BREAKER_PRELOAD_TLS_IO_H

#include "tls_link.h"

/* A call of SSL_write(), SSL_write_ex() or SSL_write_ex2(). */
struct tls_io_write {
    const void *buf;
    size_t size;
    enum { TLS_IO_WRITE, TLS_IO_WRITE_EX, TLS_IO_WRITE_EX2 } as;
    uint64_t flags; /* of write_ex2 */
};

/* Of a client; `link` is live, or NULL: it has none yet. *sent is set where it went well, which is
 * told by > 0. */
int tls_io_write(const struct tls_real *real, SSL *ssl, struct tls_link *link,
                 const struct tls_io_write *write, size_t *sent);

/* A call of SSL_read(), SSL_read_ex() or one that peeks. */
struct tls_io_read {
    void *buf;
    size_t size;
    bool ex, peek;
};

/* `link` follows. As above. */
int tls_io_read(const struct tls_real *real, SSL *ssl, struct tls_link *link,
                const struct tls_io_read *read, size_t *got);

/* Bytes leave that are not shown: it passes from now on. */
void tls_io_lose_sight(struct tls_link *link);

#endif
