/*
 * bench_client.c - one libcurl handle that posts on demand, timed by itself.
 *
 *   bench_client URL [fresh]
 *
 * Reads lines "COUNT" from stdin, makes COUNT POSTs of a 2 KB chat request one after the other over
 * one kept connection (or a new one each), and answers each line with "NS STATUS MARKED CONNECTS":
 * time of the whole block, the status that all of them had (0 when they differ or a call failed),
 * how many answers carried X-Breaker-State, and how many connections were opened. Several of these
 * stay alive at once, so that the runner can take blocks from each in turn: what disturbs the
 * machine then disturbs all of them.
 */
#include <curl/curl.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define BODY_SIZE 2048
#define COUNT_MAX 1000000

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *data)
{
    (void)bytes;
    (void)data;
    return size * count;
}

static size_t on_header(char *line, size_t size, size_t count, void *data)
{
    static const char marker[] = "X-Breaker-State:";
    unsigned *marked = data;

    if (size * count >= sizeof marker - 1 && strncasecmp(line, marker, sizeof marker - 1) == 0)
        (*marked)++;
    return size * count;
}

/* The model stands last, behind the prompt, as openai-python writes it. */
static void make_body(char *body)
{
    static const char head[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"";
    static const char tail[] = "\"}],\"model\":\"bench\"}";
    static const char words[] = "the quick brown fox jumps over the lazy dog. ";
    size_t room = BODY_SIZE - (sizeof head - 1) - (sizeof tail - 1);

    memcpy(body, head, sizeof head - 1);
    for (size_t i = 0; i < room; i++)
        body[sizeof head - 1 + i] = words[i % (sizeof words - 1)];
    memcpy(body + BODY_SIZE - (sizeof tail - 1), tail, sizeof tail);
}

static void block(CURL *easy, unsigned long count, unsigned *marked)
{
    long status = -1, connects = 0;
    uint64_t begun = now_ns();

    *marked = 0;
    for (unsigned long i = 0; i < count; i++) {
        long got = 0, opened = 0;
        if (curl_easy_perform(easy) != CURLE_OK)
            got = -2;
        else
            curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &got);
        curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &opened);
        connects += opened;
        status = i == 0 || status == got ? got : 0;
    }
    uint64_t took = now_ns() - begun;
    printf("%llu %ld %u %ld\n", (unsigned long long)took, status < 0 ? 0 : status, *marked,
           connects);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static char body[BODY_SIZE + 1];
    struct curl_slist *headers = NULL;
    unsigned marked = 0;
    char line[64];
    CURL *easy;

    if (argc < 2 || argc > 3 || !(easy = curl_easy_init()))
        return 2;
    make_body(body);
    headers = curl_slist_append(headers, "Content-Type: application/json");
    headers = curl_slist_append(headers, "Expect:");
    curl_easy_setopt(easy, CURLOPT_URL, argv[1]);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)BODY_SIZE);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, &marked);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT, 10L);
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, argc == 3 ? 1L : 0L);
    while (fgets(line, sizeof line, stdin)) {
        unsigned long count = strtoul(line, NULL, 10);
        if (count == 0 || count > COUNT_MAX)
            break;
        block(easy, count, &marked);
    }
    curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
    return 0;
}
