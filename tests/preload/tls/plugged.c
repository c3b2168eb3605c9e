/*
 * plugged.c - calls by a libssl that only a plugin needs.
 *
 *   plugged PLUGIN PORT MODEL
 *
 * As a program (without PLUGIN defined): loads PLUGIN, RTLD_LOCAL, and runs it; with OWN defined it
 * needs a libssl itself and makes a call of its own before. Prints a status each, and for the
 * plugin whether its libssl is another than the program's.
 */
#include "tls.h"

#include <dlfcn.h>

static void call(const char *model)
{
    SSL *ssl = shaken();

    printf("%d\n", ssl_call(ssl, model));
    ssl_end(ssl);
    fflush(stdout);
}

#ifdef PLUGIN
const void *run_plugin(const char *port_text, const char *model);

const void *run_plugin(const char *port_text, const char *model)
{
    begin_program(port_text);
    call(model);
    SSL_CTX_free(context);
    return (const void *)SSL_CTX_new;
}
#else
int main(int argc, char **argv)
{
    MUST(argc == 4);
    const void *own = NULL;
#ifdef OWN
    begin_program(argv[2]);
    call(argv[3]);
    own = (const void *)SSL_CTX_new;
#endif
    void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    MUST(plugin, "%s", dlerror());
    const void *(*run)(const char *, const char *) = dlsym(plugin, "run_plugin");
    const void *its = run(argv[2], argv[3]);
    puts(its == own ? "same" : "other");
    return 0;
}
#endif
