/*
 * guarded.c - a program with a connect() of its own, as sandboxes have: nothing but 127.0.0.1 is
 * let through.
 *
 *   guarded URL
 *
 * fine, shut, fine on new connections; prints CODE STATUS of each.
 */
#include <curl/curl.h>

#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

int connect(int fd, const struct sockaddr *address, socklen_t length)
{
    int (*next)(int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "connect");
    const struct sockaddr_in *to = (const struct sockaddr_in *)address;

    if (to->sin_family == AF_INET && to->sin_addr.s_addr == htonl(INADDR_LOOPBACK))
        return next(fd, address, length);
    errno = EACCES;
    return -1;
}

static size_t drop(char *data, size_t size, size_t count, void *user)
{
    (void)data;
    (void)user;
    return size * count;
}

int main(int argc, char **argv)
{
    static const char *const bodies[] = {"{\"model\":\"fine\"}", "{\"model\":\"shut\"}",
                                         "{\"model\":\"fine\"}"};
    CURL *easy;

    if (argc != 2 || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK ||
        !(easy = curl_easy_init()))
        return 2;
    curl_easy_setopt(easy, CURLOPT_URL, argv[1]);
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT, 10L);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, drop);
    for (int i = 0; i < 3; i++) {
        long status = 0;
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, bodies[i]);
        CURLcode code = curl_easy_perform(easy);
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        printf("%d %ld\n", code, status);
    }
    curl_easy_cleanup(easy);
    return 0;
}
