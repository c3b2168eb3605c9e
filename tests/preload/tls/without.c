/*
 * without.c - a program that looks whether there is a libssl, and there is none.
 *
 *   without weak | scope | handle
 *
 * Prints "absent", or what ten functions said of an object that is none.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef struct ssl_st SSL;

extern int SSL_connect(SSL *) __attribute__((weak));
extern int SSL_read(SSL *, void *, int) __attribute__((weak));
extern int SSL_write(SSL *, const void *, int) __attribute__((weak));
extern int SSL_do_handshake(SSL *) __attribute__((weak));
extern int SSL_peek(SSL *, void *, int) __attribute__((weak));
extern int SSL_read_ex(SSL *, void *, size_t, size_t *) __attribute__((weak));
extern int SSL_write_ex(SSL *, const void *, size_t, size_t *) __attribute__((weak));
extern int SSL_peek_ex(SSL *, void *, size_t, size_t *) __attribute__((weak));
extern int SSL_pending(const SSL *) __attribute__((weak));
extern int SSL_clear(SSL *) __attribute__((weak));

/* Its words lead into the program, to memory, and nowhere. */
static const void *object[8];

#define FIND(name)                                                                                 \
    __typeof__(&SSL_##name) name =                                                                 \
        strcmp(how, "weak") == 0                                                                   \
            ? SSL_##name                                                                           \
            : (__typeof__(&SSL_##name))dlsym(strcmp(how, "scope") == 0 ? RTLD_DEFAULT : self,      \
                                             "SSL_" #name)

static void say(const char *how)
{
    void *self = dlopen(NULL, RTLD_NOW);
    SSL *ssl = (SSL *)object;
    char byte = 'x';
    size_t got;
    FIND(connect);
    FIND(read);
    FIND(write);
    FIND(do_handshake);
    FIND(peek);
    FIND(read_ex);
    FIND(write_ex);
    FIND(peek_ex);
    FIND(pending);
    FIND(clear);

    if (!connect || !read) {
        puts("absent");
        return;
    }
    printf("%d %d %d %d %d\n", connect(ssl), read(ssl, &byte, 1), write(ssl, &byte, 1),
           do_handshake(ssl), peek(ssl, &byte, 1));
    printf("%d %d %d %d %d\n", read_ex(ssl, &byte, 1, &got), write_ex(ssl, &byte, 1, &got),
           peek_ex(ssl, &byte, 1, &got), pending(ssl), clear(ssl));
}

int main(int argc, char **argv)
{
    char here[16];

    object[1] = &object;
    object[2] = here;
    if (argc == 2)
        say(argv[1]);
    return 0;
}
