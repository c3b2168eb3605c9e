/* getaddrinfo in every way; prints what came, the same with and without the breaker. */
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static void resolve(const char *node, const char *service, const struct addrinfo *hints)
{
    struct addrinfo *list = NULL;

    errno = 77;
    int error = getaddrinfo(node, service, hints, &list);
    printf("%s %s: error %d errno %d:", node ? node : "-", service ? service : "-", error, errno);
    for (const struct addrinfo *one = error ? NULL : list; one; one = one->ai_next) {
        char text[64];
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)one->ai_addr;
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)one->ai_addr;
        inet_ntop(one->ai_family,
                  one->ai_family == AF_INET ? (const void *)&v4->sin_addr : &v6->sin6_addr, text,
                  sizeof text);
        printf(" %s,%u,%d,%d,%s", text, ntohs(v4->sin_port), one->ai_socktype, one->ai_flags,
               one->ai_canonname ? one->ai_canonname : "-");
    }
    printf("\n");
    if (!error)
        freeaddrinfo(list);
}

int main(int count, char **nodes)
{
    struct addrinfo numeric = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    struct addrinfo v4 = {.ai_family = AF_INET, .ai_flags = AI_CANONNAME};
    struct addrinfo v6 = {
        .ai_family = AF_INET6, .ai_flags = AI_V4MAPPED, .ai_socktype = SOCK_STREAM};
    struct addrinfo passive = {.ai_flags = AI_PASSIVE};
    struct addrinfo bad_flags = {.ai_flags = 0x40000000}, bad_family = {.ai_family = 9999};

    resolve(NULL, "80", NULL);
    resolve(NULL, "80", &passive);
    resolve(NULL, NULL, NULL);
    resolve("127.0.0.1", "443", &numeric);
    resolve("::1", NULL, &numeric);
    resolve("localhost", "443", &numeric);
    resolve("localhost", "443", NULL);
    resolve("LOCALHOST.", NULL, &v4);
    resolve("127.1", "80", &v6);
    resolve("localhost", "no-such-service", NULL);
    resolve("localhost", "80", &bad_flags);
    resolve("localhost", "80", &bad_family);
    for (int i = 1; i < count; i++)
        resolve(nodes[i], "443", NULL);
    return 0;
}
