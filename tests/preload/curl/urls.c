/*
 * urls.c - two POSTs per URL, each by a new handle, and what libcurl tells of it.
 *
 *   urls OPTIONS URL...
 *
 * OPTIONS: words joined by commas, "-" for none: as-is (PATH_AS_IS), then-straight (it, for the
 * first call only), no-user (DISALLOW_USERNAME_IN_URL), curlu (by CURLOPT_CURLU), protocol=P
 * (DEFAULT_PROTOCOL), hsts (an HSTS cache may upgrade), reuse (one handle for all). For each call
 * the result, the status, EFFECTIVE_URL and the Host header that was sent, separated by tabs and
 * ended by \x1e.
 */
#include <curl/curl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char host[512];

static size_t skip(char *data, size_t size, size_t count, void *user)
{
    (void)data;
    (void)user;
    return size * count;
}

static int keep_host(CURL *easy, curl_infotype type, char *data, size_t size, void *user)
{
    char *found = type == CURLINFO_HEADER_OUT ? memmem(data, size, "\r\nHost: ", 8) : NULL;

    (void)easy;
    (void)user;
    if (found)
        snprintf(host, sizeof host, "%.*s", (int)strcspn(found + 8, "\r"), found + 8);
    return 0;
}

static CURLU *set_options(CURL *easy, const char *options, const char *url)
{
    const char *protocol = strstr(options, "protocol=");
    CURLU *object = NULL;

    if (strstr(options, "as-is") || strstr(options, "then-straight"))
        curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    if (strstr(options, "no-user"))
        curl_easy_setopt(easy, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
    if (strstr(options, "hsts"))
        curl_easy_setopt(easy, CURLOPT_HSTS_CTRL, (long)CURLHSTS_ENABLE);
    if (protocol)
        curl_easy_setopt(easy, CURLOPT_DEFAULT_PROTOCOL, protocol + 9);
    if (!strstr(options, "curlu")) {
        curl_easy_setopt(easy, CURLOPT_URL, url);
        return NULL;
    }
    object = curl_url();
    if (curl_url_set(object, CURLUPART_URL, url, CURLU_GUESS_SCHEME) != CURLUE_OK)
        exit(2);
    curl_easy_setopt(easy, CURLOPT_CURLU, object);
    return object;
}

static void ask(const char *options, const char *url, int is_last)
{
    static CURL *kept;
    CURL *easy = kept ? kept : curl_easy_init();
    CURLU *object = set_options(easy, options, url);
    const char *effective = NULL;
    long status = 0;

    host[0] = '\0';
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "{\"model\":\"m\"}");
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, skip);
    curl_easy_setopt(easy, CURLOPT_VERBOSE, 1L);
    curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, keep_host);
    for (int again = 0; again < 2; again++) {
        CURLcode result = curl_easy_perform(easy);
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        curl_easy_getinfo(easy, CURLINFO_EFFECTIVE_URL, &effective);
        if (strstr(options, "then-straight"))
            curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 0L);
        printf("%d\t%ld\t%s\t%s\x1e", result, status, effective, host);
    }
    kept = strstr(options, "reuse") && !is_last ? easy : NULL;
    if (!kept)
        curl_easy_cleanup(easy);
    curl_url_cleanup(object);
}

int main(int argc, char **argv)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
    for (int i = 2; i < argc; i++)
        ask(argv[1], argv[i], i + 1 == argc);
    curl_global_cleanup();
    return 0;
}
