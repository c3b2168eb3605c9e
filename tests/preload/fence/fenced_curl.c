/*
 * fenced_curl.c - libcurl in a fence that leaves it what it needs by itself.
 *
 *   fenced_curl easy|multi|early|late URL
 *
 * "multi" fences itself in when the request is under way, and tells so by a line; "early" before
 * the transfer begins, "late" in the write callback.
 */
#include "fence.h"

#include <curl/curl.h>

static const struct sock_filter curls[] = {
    NUMBER,
    IF(openat, KILL_PROCESS),
    IF(newfstatat, KILL_PROCESS),
    IF(fstat, KILL_PROCESS),
    IF(statx, KILL_PROCESS),
    IF(statfs, KILL_PROCESS),
    IF(fstatfs, KILL_PROCESS),
    IF(geteuid, KILL_PROCESS),
    IF(getpid, KILL_PROCESS),
    RETURN(ALLOW),
};
static const struct sock_fprog curling = PROGRAM(curls);

static size_t swallow(char *bytes, size_t size, size_t count, void *unused)
{
    return size * count;
}

static CURL *request(const char *url)
{
    CURL *curl = curl_easy_init();

    MUST(curl);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, "{\"model\":\"m\",\"messages\":[]}");
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, swallow);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)BOUND_S);
    return curl;
}

static void status(CURL *curl)
{
    long code = 0;

    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
    told((int)code);
}

static void easy(const char *url)
{
    CURL *curl = request(url);

    fence_by_prctl(&curling);
    for (int i = 0; i < 2; i++) {
        MUST(curl_easy_perform(curl) == CURLE_OK);
        status(curl);
    }
    CURL *other = request(url);
    MUST(curl_easy_perform(other) == CURLE_OK);
    status(other);
    curl_easy_cleanup(other);
    curl_easy_cleanup(curl);
}

static void multi(const char *url)
{
    CURLM *many = curl_multi_init();
    CURL *curl = request(url);
    long sent = 0;
    int running = 1, left;

    MUST(curl_multi_add_handle(many, curl) == CURLM_OK);
    while (running && sent == 0) {
        MUST(curl_multi_perform(many, &running) == CURLM_OK);
        MUST(curl_multi_poll(many, NULL, 0, 10, NULL) == CURLM_OK);
        curl_easy_getinfo(curl, CURLINFO_REQUEST_SIZE, &sent);
    }
    MUST(running);
    fence_by_prctl(&curling);
    told(1);
    while (running) {
        MUST(curl_multi_perform(many, &running) == CURLM_OK);
        MUST(!running || curl_multi_poll(many, NULL, 0, 1000, NULL) == CURLM_OK);
    }
    CURLMsg *message = curl_multi_info_read(many, &left);
    MUST(message && message->msg == CURLMSG_DONE && message->data.result == CURLE_OK);
    status(curl);
    MUST(curl_multi_remove_handle(many, curl) == CURLM_OK);
    curl_easy_cleanup(curl);
    curl_multi_cleanup(many);
}

/* The result, and the status. */
static void early(const char *url)
{
    CURLM *many = curl_multi_init();
    CURL *curl = request(url);
    int running = 1, left;

    MUST(curl_multi_add_handle(many, curl) == CURLM_OK);
    fence_by_prctl(&curling);
    while (running) {
        MUST(curl_multi_perform(many, &running) == CURLM_OK);
        MUST(!running || curl_multi_poll(many, NULL, 0, 1000, NULL) == CURLM_OK);
    }
    CURLMsg *message = curl_multi_info_read(many, &left);
    MUST(message && message->msg == CURLMSG_DONE);
    told(message->data.result);
    status(curl);
    MUST(curl_multi_remove_handle(many, curl) == CURLM_OK);
    curl_easy_cleanup(curl);
    curl_multi_cleanup(many);
}

static size_t fence_and_swallow(char *bytes, size_t size, size_t count, void *unused)
{
    static bool fenced;

    if (!fenced)
        fence_by_prctl(&curling);
    fenced = true;
    return size * count;
}

static void late(const char *url)
{
    CURL *curl = request(url);

    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, fence_and_swallow);
    told(curl_easy_perform(curl));
    status(curl);
    curl_easy_cleanup(curl);
}

int main(int count, char **argument)
{
    MUST(count == 3 && curl_global_init(CURL_GLOBAL_ALL) == CURLE_OK);
    if (strcmp(argument[1], "multi") == 0)
        multi(argument[2]);
    else if (strcmp(argument[1], "early") == 0)
        early(argument[2]);
    else if (strcmp(argument[1], "late") == 0)
        late(argument[2]);
    else
        easy(argument[2]);
    _exit(0);
}
