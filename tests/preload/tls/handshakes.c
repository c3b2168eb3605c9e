/*
 * handshakes.c - what else libssl can do in a connection's life: handshakes of every kind, at the
 * beginning and later.
 *
 *   handshakes MODE     own_server.h tells what it prints
 */
#include "own_server.h"

static void version(int number)
{
    SSL_CTX_set_min_proto_version(context, number);
    SSL_CTX_set_max_proto_version(context, number);
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

static const struct mode modes[] = {
    {"resumed", resumed},           {"early", early},
    {"renegotiated", renegotiated}, {"authenticated-late", authenticated_late},
    {"keys-updated", keys_updated},
};

int main(int argc, char **argv)
{
    run_with_server(modes, sizeof modes / sizeof *modes, argc, argv);
    return 0;
}
