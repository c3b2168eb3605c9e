/* A preload with a resolver of its own: "error-N" gives N and errno N; every other name one address
 * in memory of its own, made read-only, that only its own freeaddrinfo may free, errno 78. */
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct answer {
    struct addrinfo info;
    struct sockaddr_in address;
};

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **result)
{
    (void)service;
    (void)hints;
    if (node && strncmp(node, "error", 5) == 0) {
        errno = abs(atoi(node + 5));
        *result = (struct addrinfo *)1; /* nobody may look at it */
        return atoi(node + 5);
    }
    struct answer *answer =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (answer == MAP_FAILED)
        abort();
    answer->address = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(443), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    answer->info = (struct addrinfo){.ai_family = AF_INET,
                                     .ai_addrlen = sizeof answer->address,
                                     .ai_addr = (struct sockaddr *)&answer->address};
    mprotect(answer, 4096, PROT_READ);
    if (node && strcmp(node, "empty") == 0)
        *result = NULL;
    else
        *result = &answer->info;
    errno = 78;
    return 0;
}

void freeaddrinfo(struct addrinfo *list)
{
    if (list && munmap(list, 4096) != 0)
        abort();
    dprintf(1, "freed %d\n", list != NULL);
}
