/*
 * wrapper.c - a program's, or another preload's, own SSL_read and SSL_write in front of libssl's.
 */
#include <dlfcn.h>
#include <stdio.h>

typedef struct ssl_st SSL;

static unsigned reads, writes;

int SSL_read(SSL *ssl, void *data, int size)
{
    int (*next)(SSL *, void *, int) = dlsym(RTLD_NEXT, "SSL_read");

    reads++;
    return next(ssl, data, size);
}

int SSL_write(SSL *ssl, const void *data, int size)
{
    int (*next)(SSL *, const void *, int) = dlsym(RTLD_NEXT, "SSL_write");

    writes++;
    return next(ssl, data, size);
}

__attribute__((destructor)) static void tell(void)
{
    if (writes > 0)
        printf("wrapped %d %d\n", reads >= 3, writes >= 3);
}
