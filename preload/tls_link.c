#include "tls_link.h"

#include <pthread.h>
#include <string.h>

#define EX_INDEX_SSL       0 /* CRYPTO_EX_INDEX_SSL */
#define NAMETYPE_HOST_NAME 0 /* TLSEXT_NAMETYPE_host_name */

static struct sock_pool links = {.object_size = sizeof(struct tls_link), .per_block = 64};

uint32_t tls_link_process;

static struct span name_of(const struct tls_real *real, const SSL *ssl)
{
    const char *name = real->get_servername(ssl, NAMETYPE_HOST_NAME);

    return name ? span_str(name) : SPAN_NONE;
}

/* One BIO chain for both directions that ends in one descriptor; -1: there is none. Not every
 * libssl bears the question where there is no BIO. */
static int descriptor_of(const struct tls_real *real, const SSL *ssl)
{
    int fd = real->get_rbio(ssl) ? real->get_rfd(ssl) : -1;

    return fd >= 0 && real->get_wfd(ssl) == fd ? fd : -1;
}

static void set_state(struct tls_link *link, enum tls_link_state state)
{
    atomic_store_explicit(&link->state, state, memory_order_release);
}

void tls_link_pass(struct tls_link *link)
{
    if (tls_link_state(link) == TLS_LINK_AWAITED)
        atomic_fetch_sub_explicit(&sock_carried_awaited, 1, memory_order_relaxed);
    set_state(link, TLS_LINK_PASSED);
    sock_tied_forget(&link->tie);
}

/* NULL: no room. */
static struct tls_link *make(const struct tls_real *real, SSL *ssl)
{
    struct tls_link *link = sock_pool_take(&links);

    if (!link)
        return NULL;
    set_state(link, TLS_LINK_PASSED);
    link->process = tls_link_process;
    sock_tied_forget(&link->tie);
    atomic_store_explicit(&link->ended, false, memory_order_relaxed);
    if (real->set_ex_data(ssl, real->index, link))
        return link;
    sock_pool_give(&links, link);
    return NULL;
}

static struct tls_link *begin(const struct tls_real *real, SSL *ssl)
{
    struct tls_link *link = make(real, ssl);
    int fd;

    if (!link || real->is_dtls(ssl))
        return link;
    fd = descriptor_of(real, ssl);
    if (fd >= 0) {
        if (sock_tied_by_descriptor(&link->tie, fd, name_of(real, ssl)))
            set_state(link, TLS_LINK_TIED);
    } else if (real->get_rbio(ssl)) {
        set_state(link, TLS_LINK_AWAITED);
        atomic_fetch_add_explicit(&sock_carried_awaited, 1, memory_order_relaxed);
    }
    return link;
}

void tls_link_leave(const struct tls_real *real, SSL *ssl)
{
    GUARD_ERRNO(make(real, ssl));
}

static void look_for(const struct tls_real *real, const SSL *ssl, struct tls_link *link)
{
    unsigned char random[SOCK_HELLO_RANDOM];

    if (real->get_client_random(ssl, random, sizeof random) != sizeof random ||
        !sock_tied_by_random(&link->tie, random))
        return;
    atomic_fetch_sub_explicit(&sock_carried_awaited, 1, memory_order_relaxed);
    set_state(link, TLS_LINK_TIED);
}

bool tls_link_follow(const struct tls_real *real, SSL *ssl, struct tls_link *link)
{
    GUARD_ERRNO({
        if (tls_link_state(link) == TLS_LINK_AWAITED)
            look_for(real, ssl, link);
        if (tls_link_state(link) == TLS_LINK_TIED &&
            sock_tied_follow(&link->tie, name_of(real, ssl)))
            set_state(link, TLS_LINK_FOLLOWED);
        else
            tls_link_pass(link);
    });
    return tls_link_state(link) == TLS_LINK_FOLLOWED;
}

/* Another descriptor under the same object (SSL_set_fd, SSL_set_connect_state), which begins. */
static bool is_anothers(const struct tls_real *real, const SSL *ssl, const struct tls_link *link)
{
    int fd = real->is_init_finished(ssl) ? -1 : descriptor_of(real, ssl);

    return fd >= 0 && fd != sock_tied_descriptor(&link->tie);
}

static void end(struct tls_link *link)
{
    if (link->process == tls_link_process) {
        sock_tied_end(&link->tie, SOCK_END_CLOSE);
        tls_link_pass(link);
    }
    sock_pool_give(&links, link);
}

void tls_link_clear(const struct tls_real *real, SSL *ssl, struct tls_link *link)
{
    GUARD_ERRNO({
        real->set_ex_data(ssl, real->index, NULL);
        end(link);
    });
}

void tls_link_shake(const struct tls_real *real, SSL *ssl, struct tls_link *link)
{
    if (link && tls_link_state(link) == TLS_LINK_FOLLOWED) {
        if (!is_anothers(real, ssl, link))
            return;
        tls_link_clear(real, ssl, link);
        link = NULL;
    }
    GUARD_ERRNO({
        if (!link)
            begin(real, ssl);
        else if (tls_link_state(link) == TLS_LINK_AWAITED)
            look_for(real, ssl, link);
    });
}

/* --- what libcrypto calls -----------------------------------------------------------------------
 */

static int forget_in_duplicate(void *to, const void *from, void **data, int index, long number,
                               void *argument)
{
    (void)to;
    (void)from;
    (void)index;
    (void)number;
    (void)argument;
    *data = NULL;
    return 1;
}

static void end_with_object(void *parent, void *data, void *all, int index, long number,
                            void *argument)
{
    (void)parent;
    (void)all;
    (void)index;
    (void)number;
    (void)argument;
    if (data)
        GUARD_ERRNO(end(data));
}

static void begin_anew(void)
{
    tls_link_process++;
    sock_pool_abandon(&links);
    sock_carried_in_child();
}

bool tls_link_prepare(struct tls_real *real)
{
    static atomic_bool prepared;

    if (!atomic_exchange(&prepared, true) && pthread_atfork(NULL, NULL, begin_anew) != 0)
        return false;
    real->index = real->CRYPTO_get_ex_new_index(EX_INDEX_SSL, 0, NULL, NULL, forget_in_duplicate,
                                                end_with_object);
    return real->index > 0;
}
