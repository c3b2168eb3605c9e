/*
 * bench_client.c - one libcurl handle that posts on demand, timed by itself.
 *
 *   bench_client URL [fresh] [body=BYTES] [timeout=MS]
 *
 * Reads lines "COUNT" from stdin, makes COUNT POSTs of a 2 KB chat request one after the other over
 * one kept connection (or a new one each), and answers each line with "NS STATUS MARKED CONNECTS":
 * time of the whole block, the status that all of them had (1 when their connect was refused, 0
 * when they differ or a call failed otherwise), how many answers carried X-Breaker-State, and how
 * many connections were opened. Several of these stay alive at once, so that the runner can take
 * blocks from each in turn: what disturbs the machine then disturbs all of them. Over https the
 * authority is that of SSL_CERT_FILE.
 */
#include <curl/curl.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define BODY_DEFAULT 2048
#define BODY_MIN     256
#define BODY_MAX     (64L << 20)
#define COUNT_MAX    1000000
#define REFUSED      1

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
static void make_body(char *body, size_t size)
{
    static const char head[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"";
    static const char tail[] = "\"}],\"model\":\"bench\"}";
    static const char words[] = "the quick brown fox jumps over the lazy dog. ";
    size_t room = size - (sizeof head - 1) - (sizeof tail - 1);

    memcpy(body, head, sizeof head - 1);
    for (size_t i = 0; i < room; i++)
        body[sizeof head - 1 + i] = words[i % (sizeof words - 1)];
    memcpy(body + size - (sizeof tail - 1), tail, sizeof tail);
}

static void block(CURL *easy, unsigned long count, unsigned *marked)
{
    long status = -1, connects = 0;
    uint64_t begun = now_ns();

    *marked = 0;
    for (unsigned long i = 0; i < count; i++) {
        long got = 0, opened = 0;
        CURLcode code = curl_easy_perform(easy);
        if (code == CURLE_OK)
            curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &got);
        else
            got = code == CURLE_COULDNT_CONNECT ? REFUSED : -2;
        curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &opened);
        connects += opened;
        status = i == 0 || status == got ? got : 0;
    }
    uint64_t took = now_ns() - begun;
    printf("%llu %ld %u %ld\n", (unsigned long long)took, status < 0 ? 0 : status, *marked,
           connects);
    fflush(stdout);
}

struct wishes {
    bool fresh;
    long body_size, timeout_ms;
};

static bool understand(int argc, char **argv, struct wishes *wishes)
{
    *wishes = (struct wishes){.body_size = BODY_DEFAULT, .timeout_ms = 10000};
    for (int i = 2; i < argc; i++)
        if (strcmp(argv[i], "fresh") == 0)
            wishes->fresh = true;
        else if (strncmp(argv[i], "body=", 5) == 0)
            wishes->body_size = strtol(argv[i] + 5, NULL, 10);
        else if (strncmp(argv[i], "timeout=", 8) == 0)
            wishes->timeout_ms = strtol(argv[i] + 8, NULL, 10);
        else
            return false;
    return argc >= 2 && wishes->body_size >= BODY_MIN && wishes->body_size <= BODY_MAX &&
           wishes->timeout_ms > 0;
}

static void prepare(CURL *easy, const char *url, const struct wishes *wishes, char *body)
{
    const char *authority = getenv("SSL_CERT_FILE");

    make_body(body, (size_t)wishes->body_size);
    if (authority)
        curl_easy_setopt(easy, CURLOPT_CAINFO, authority);
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, wishes->body_size);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, wishes->timeout_ms);
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, wishes->fresh ? 1L : 0L);
}

int main(int argc, char **argv)
{
    struct curl_slist *headers = NULL;
    struct wishes wishes;
    unsigned marked = 0;
    char line[64];
    CURL *easy = curl_easy_init();

    if (!understand(argc, argv, &wishes) || !easy) {
        fprintf(stderr, "usage: bench_client URL [fresh] [body=BYTES] [timeout=MS]\n");
        return 2;
    }
    char *body = malloc((size_t)wishes.body_size + 1);
    if (!body)
        return 1;
    prepare(easy, argv[1], &wishes, body);
    headers = curl_slist_append(headers, "Content-Type: application/json");
    headers = curl_slist_append(headers, "Expect:");
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, &marked);
    while (fgets(line, sizeof line, stdin)) {
        unsigned long count = strtoul(line, NULL, 10);
        if (count == 0 || count > COUNT_MAX)
            break;
        block(easy, count, &marked);
    }
    curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
    free(body);
    return 0;
}
