/*
 * tailing.c - a plugin whose functions jump into libssl: the calls come, as far as anybody can see,
 * from whoever called the plugin.
 *
 *   tailing PLUGIN PORT MODEL
 *
 * As a program (without PLUGIN defined): loads PLUGIN, RTLD_LOCAL, and makes two calls by it.
 * Prints their statuses.
 */
#include "tls.h"

#include <dlfcn.h>

#ifdef PLUGIN
SSL *plugin_begin(const char *port_text);
int plugin_connect(SSL *ssl);
int plugin_write(SSL *ssl, const void *data, int size);
int plugin_read(SSL *ssl, void *data, int size);
int plugin_error(SSL *ssl, int result);
void plugin_end(SSL *ssl);
size_t plugin_request(char *text, const char *model);
int plugin_status(char *text, size_t have);

SSL *plugin_begin(const char *port_text)
{
    begin_program(port_text);
    return client_on(connected(port));
}

int plugin_connect(SSL *ssl)
{
    return SSL_connect(ssl);
}

int plugin_write(SSL *ssl, const void *data, int size)
{
    return SSL_write(ssl, data, size);
}

int plugin_read(SSL *ssl, void *data, int size)
{
    return SSL_read(ssl, data, size);
}

int plugin_error(SSL *ssl, int result)
{
    return SSL_get_error(ssl, result);
}

void plugin_end(SSL *ssl)
{
    ssl_end(ssl);
    SSL_CTX_free(context);
}

size_t plugin_request(char *text, const char *model)
{
    return request_of(text, model, 0);
}

int plugin_status(char *text, size_t have)
{
    return is_whole(text, have) ? status_of(text) : 0;
}
#else
static void *plugin;

#define OF_PLUGIN(type, name, ...) ((type(*)(__VA_ARGS__))dlsym(plugin, "plugin_" #name))

int main(int argc, char **argv)
{
    MUST(argc == 4);
    plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    MUST(plugin, "%s", dlerror());
    int (*const write)(SSL *, const void *, int) = OF_PLUGIN(int, write, SSL *, const void *, int);
    int (*const read)(SSL *, void *, int) = OF_PLUGIN(int, read, SSL *, void *, int);
    SSL *ssl = OF_PLUGIN(SSL *, begin, const char *)(argv[2]);
    char text[4096];
    int status, count;

    MUST(OF_PLUGIN(int, connect, SSL *)(ssl) == 1);
    for (int i = 0; i < 2; i++) {
        int size = (int)OF_PLUGIN(size_t, request, char *, const char *)(text, argv[3]);
        size_t have = 0;
        MUST(write(ssl, text, size) == size);
        while ((status = OF_PLUGIN(int, status, char *, size_t)(text, have)) == 0) {
            count = read(ssl, text + have, (int)(sizeof text - 1 - have));
            if (count <= 0 && i > 0 && OF_PLUGIN(int, error, SSL *, int)(ssl, count) == 6)
                break; /* SSL_ERROR_ZERO_RETURN: refused */
            MUST(count > 0, "but %d", count);
            have += (size_t)count;
        }
        printf("%d\n", status);
    }
    OF_PLUGIN(void, end, SSL *)(ssl);
    return 0;
}
#endif
