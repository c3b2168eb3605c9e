/*
 * freed.c - frees its headers when the transfer is over, before it removes the handle: as libcurl
 * allows.
 *
 *   freed URL KEY...
 *
 * Prints the status of each.
 */
#include "program.h"

#include <curl/curl.h>

#include <stdio.h>

static void call(const char *url, const char *key)
{
    char line[64];
    CURLM *multi = curl_multi_init();
    CURL *easy = curl_easy_init();
    int running = 1;
    long status = 0;

    snprintf(line, sizeof line, "Authorization: Bearer %s", key);
    struct curl_slist *headers = curl_slist_append(NULL, line);
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "{\"model\":\"m\"}");
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, sink);
    curl_multi_add_handle(multi, easy);
    while (running) {
        curl_multi_perform(multi, &running);
        if (running)
            curl_multi_poll(multi, NULL, 0, 100, NULL);
    }
    curl_slist_free_all(headers);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    curl_multi_remove_handle(multi, easy);
    curl_easy_cleanup(easy);
    curl_multi_cleanup(multi);
    printf("%ld\n", status);
}

int main(int count, char **words)
{
    for (int i = 2; i < count; i++)
        call(words[1], words[i]);
    return 0;
}
