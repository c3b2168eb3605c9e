/*
 * marks.c - one refused call whose debug callback starts a child while libcurl is about to connect:
 * the child connects sockets of its own, on all the numbers that the parent has descriptors at, to
 * a port where nobody listens.
 *
 *   marks fork|vfork URL PORT
 *
 * Exit 0 when each connect of the child was refused and the call was answered with 503.
 */
#include <curl/curl.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct sockaddr_in nobody = {.sin_family = AF_INET};
static int by_vfork, children;

static void die(const char *what)
{
    fprintf(stderr, "marks: %s\n", what);
    exit(1);
}

/* In the child; its descriptors are copies, its memory need not be. */
static int connects_on_all_numbers(void)
{
    for (int fd = 3; fd < 40; fd++) {
        int own = socket(AF_INET, SOCK_STREAM, 0);
        if (own < 0 || (own != fd && dup2(own, fd) != fd))
            return 2;
        if (connect(fd, (struct sockaddr *)&nobody, sizeof nobody) == 0 || errno != ECONNREFUSED)
            return 3;
        if (own != fd)
            close(own);
    }
    return 0;
}

static int start_child(CURL *easy, curl_infotype type, char *data, size_t size, void *user)
{
    int status;

    (void)easy;
    (void)user;
    if (type != CURLINFO_TEXT || !memmem(data, size, "Trying", 6))
        return 0;
    pid_t child = by_vfork ? vfork() : fork();
    if (child == 0)
        _exit(connects_on_all_numbers());
    if (child < 0 || waitpid(child, &status, 0) != child)
        die("no child");
    if (status != 0)
        die("a connect of the child was not refused");
    children++;
    return 0;
}

static size_t skip(char *data, size_t size, size_t count, void *user)
{
    (void)data;
    (void)user;
    return size * count;
}

int main(int argc, char **argv)
{
    CURL *easy;
    CURLcode result;
    long status = 0;

    if (argc != 4 || !(easy = curl_easy_init()))
        return 2;
    by_vfork = strcmp(argv[1], "vfork") == 0;
    nobody.sin_port = htons((unsigned short)atoi(argv[3]));
    nobody.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    curl_easy_setopt(easy, CURLOPT_URL, argv[2]);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "{\"model\":\"m\"}");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, skip);
    curl_easy_setopt(easy, CURLOPT_VERBOSE, 1L);
    curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, start_child);
    for (int i = 0; i < 3; i++) {
        result = curl_easy_perform(easy);
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        if (result != CURLE_OK || status != 503)
            die("the call was not answered");
    }
    curl_easy_cleanup(easy);
    if (children != 3)
        die("no connection was tried");
    return 0;
}
