/*
 * storm.c - one call after the other, each on a connection of its own, until standard input ends.
 *
 *   storm URL MODEL...
 *
 * Calls of the first model must go well, whatever becomes of the others.
 */
#include "program.h"

#include <curl/curl.h>
#include <poll.h>
#include <stdio.h>

static bool goes_on(void)
{
    struct pollfd input = {.fd = 0, .events = POLLIN};

    return poll(&input, 1, 0) == 0;
}

int main(int argc, char **argv)
{
    CURL *easy = curl_easy_init();
    char body[128];
    long status;

    if (argc < 3 || !easy)
        return 2;
    curl_easy_setopt(easy, CURLOPT_URL, argv[1]);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, sink);
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body);
    for (int i = 2; goes_on(); i = i + 1 < argc ? i + 1 : 2) {
        snprintf(body, sizeof body, "{\"messages\":[],\"model\":\"%s\"}", argv[i]);
        CURLcode code = curl_easy_perform(easy);
        status = 0;
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        if (i == 2 && (code != CURLE_OK || status != 200)) {
            fprintf(stderr, "%s: %d, status %ld\n", argv[i], code, status);
            return 3;
        }
    }
    curl_easy_cleanup(easy);
    return 0;
}
