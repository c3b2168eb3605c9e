/* A preload with names of its own: "NAME-A-B.test" is the addresses 127.0.0.A and 127.0.0.B,
 * "dead.test" cannot be resolved, all else is libc's. Writes a line for each query and each list
 * that is freed to the file QUERIES. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ANSWERS   64
#define ADDRESSES 4

static struct answer {
    struct addrinfo info[ADDRESSES];
    struct sockaddr_in address[ADDRESSES];
    int used;
} answers[ANSWERS];

static void tell(const char *what, const char *name)
{
    const char *path = getenv("QUERIES");
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;

    if (fd >= 0) {
        dprintf(fd, "%s %s\n", what, name);
        close(fd);
    }
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **result)
{
    static int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    const char *end = node ? strstr(node, ".test") : NULL;
    int count = 0, i = 0;

    if (!end || (hints && hints->ai_family == AF_INET6)) {
        if (!real)
            real = (int (*)(const char *, const char *, const struct addrinfo *,
                            struct addrinfo **))dlsym(RTLD_NEXT, "getaddrinfo");
        return real(node, service, hints, result);
    }
    tell("asked", node);
    if (strncmp(node, "dead", 4) == 0)
        return EAI_AGAIN;
    while (i < ANSWERS && !__sync_bool_compare_and_swap(&answers[i].used, 0, 1))
        i++;
    if (i == ANSWERS)
        return EAI_MEMORY;
    struct answer *answer = &answers[i];
    for (const char *at = strchr(node, '-'); at && at < end && count < ADDRESSES;
         at = strchr(at + 1, '-'), count++) {
        answer->address[count] = (struct sockaddr_in){
            .sin_family = AF_INET,
            .sin_port = htons(service ? atoi(service) : 0),
            .sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + atoi(at + 1)),
        };
        answer->info[count] = (struct addrinfo){
            .ai_family = AF_INET,
            .ai_socktype = SOCK_STREAM,
            .ai_protocol = IPPROTO_TCP,
            .ai_addrlen = sizeof answer->address[count],
            .ai_addr = (struct sockaddr *)&answer->address[count],
        };
        if (count > 0)
            answer->info[count - 1].ai_next = &answer->info[count];
    }
    *result = answer->info;
    return 0;
}

void freeaddrinfo(struct addrinfo *list)
{
    static void (*real)(struct addrinfo *);
    struct answer *answer = (struct answer *)list;

    if (answer >= answers && answer < answers + ANSWERS) {
        tell("freed", "");
        answer->used = 0;
        return;
    }
    if (!real)
        real = (void (*)(struct addrinfo *))dlsym(RTLD_NEXT, "freeaddrinfo");
    real(list);
}
