/*
 * freed.c - frees its headers when the transfer is over, before it removes the handle: as libcurl
 * allows.
 *
 *   freed [-u] URL KEY...
 *
 * Prints the status of each. -u: the key is in the query of a URL that is given as a CURLU.
 */
#include "program.h"

#include <curl/curl.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static CURLU *parsed(const char *url, const char *key)
{
    char query[64];
    CURLU *parts = curl_url();

    snprintf(query, sizeof query, "alt=sse&key=%s", key);
    curl_url_set(parts, CURLUPART_URL, url, 0);
    curl_url_set(parts, CURLUPART_QUERY, query, 0);
    return parts;
}

static void call(const char *url, const char *key, bool in_url)
{
    char line[64];
    CURLM *multi = curl_multi_init();
    CURL *easy = curl_easy_init();
    int running = 1;
    long status = 0;

    snprintf(line, sizeof line, "Authorization: Bearer %s", key);
    struct curl_slist *headers = curl_slist_append(NULL, in_url ? "X-A: b" : line);
    CURLU *parts = in_url ? parsed(url, key) : NULL;
    if (in_url)
        curl_easy_setopt(easy, CURLOPT_CURLU, parts);
    else
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
    curl_url_cleanup(parts);
    printf("%ld\n", status);
}

int main(int count, char **words)
{
    bool in_url = count > 1 && strcmp(words[1], "-u") == 0;

    for (int i = 2 + in_url; i < count; i++)
        call(words[1 + in_url], words[i], in_url);
    return 0;
}
