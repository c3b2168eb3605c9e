/*
 * tangle.c - multis in a tangle: handles that we do not know, additions and cleanups that libcurl
 * refuses, a queue.
 *
 *   tangle MODE URL [NUMBER]
 *
 * Prints what the application was told.
 */
#include "program.h"

#include <curl/curl.h>

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *url;
static int number;
static CURLM *multi;

/* While set, libbreaker gets no memory; the program and libcurl do. */
static int starved;

void *calloc(size_t count, size_t size)
{
    return starved && is_of_breaker(__builtin_return_address(0)) ? NULL : zeroed(count, size);
}

static CURL *new_handle(const char *name)
{
    CURL *easy = curl_easy_init();

    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, sink);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, name);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT, 15L);
    curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, "{\"model\":\"m\"}");
    return easy;
}

static void run(void)
{
    int running = 1;

    for (int i = 0; running && i < 1000; i++) {
        CURLMcode code = curl_multi_perform(multi, &running);
        if (code != CURLM_OK) {
            printf("perform %d\n", code);
            break;
        }
        if (running)
            curl_multi_poll(multi, NULL, 0, 100, NULL);
    }
}

static void tell_messages(void)
{
    CURLMsg *message;
    int queued;

    while ((message = curl_multi_info_read(multi, &queued))) {
        char *name = NULL;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &name);
        printf("done %s %d\n", name, message->data.result);
    }
}

/* The end of a handle that we do not know is read ahead with that of one we do; then it goes. */
static void stranger(void)
{
    CURL *known = new_handle("known"), *other;

    starved = 1;
    other = new_handle("stranger");
    starved = 0;
    curl_multi_add_handle(multi, known);
    curl_multi_add_handle(multi, other);
    run();
    curl_multi_remove_handle(multi, known);
    if (number == 0)
        curl_multi_remove_handle(multi, other);
    curl_easy_cleanup(other);
    memset(malloc(6000), 'A', 6000);
    tell_messages();
    curl_easy_cleanup(known);
}

/* --- a timer callback that says no at its n-th call ------------------------------------------ */

static int timer_calls;

static int refuse_nth(CURLM *which, long ms, void *user)
{
    (void)which;
    (void)ms;
    (void)user;
    return ++timer_calls == number ? -1 : 0;
}

static size_t read_body(char *buffer, size_t size, size_t count, void *data)
{
    static const char body[] = "{\"messages\":[],\"model\":\"m\"}";
    size_t *at = data, left = sizeof body - 1 - *at;

    (void)size;
    (void)count;
    memcpy(buffer, body + *at, left);
    *at += left;
    return left;
}

static void pull_body(CURL *easy, size_t *at)
{
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, NULL);
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, read_body);
    curl_easy_setopt(easy, CURLOPT_READDATA, at);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, 27L);
}

static void timer_says_no(void)
{
    CURL *easy = new_handle("pulled");
    size_t at = 0;

    pull_body(easy, &at);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, refuse_nth);
    if (curl_multi_add_handle(multi, easy) != CURLM_OK)
        printf("not added\n");
    else
        run();
    tell_messages();
    printf("removed %d\n", curl_multi_remove_handle(multi, easy));
    curl_easy_cleanup(easy);
}

/* --- a cleanup that libcurl refuses --------------------------------------------------------- */

static size_t clean_up_inside(char *data, size_t size, size_t count, void *user)
{
    (void)data;
    (void)user;
    if (number++ == 0)
        printf("cleanup %d\n", curl_multi_cleanup(multi));
    return size * count;
}

static size_t clean_up_and_read(char *buffer, size_t size, size_t count, void *data)
{
    if (number++ == 0)
        printf("cleanup %d\n", curl_multi_cleanup(multi));
    return read_body(buffer, size, count, data);
}

/* "first" is done and unread, "second" taken away, and "third" tries to clean up. */
static void cleanup_inside(void)
{
    CURL *first = new_handle("first"), *second = new_handle("second"), *third = new_handle("third");

    curl_multi_add_handle(multi, first);
    curl_multi_add_handle(multi, second);
    run();
    curl_multi_remove_handle(multi, second);
    curl_easy_setopt(third, CURLOPT_WRITEFUNCTION, clean_up_inside);
    curl_multi_add_handle(multi, third);
    run();
    tell_messages();
    curl_multi_remove_handle(multi, first);
    curl_multi_remove_handle(multi, third);
    curl_easy_cleanup(first);
    curl_easy_cleanup(second);
    curl_easy_cleanup(third);
}

/* A body that is refused all the same. */
static void cleanup_in_body(void)
{
    CURL *easy = new_handle("pulled");
    size_t at = 0;
    long status = 0;

    pull_body(easy, &at);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, clean_up_and_read);
    curl_multi_add_handle(multi, easy);
    run();
    tell_messages();
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    printf("status %ld\n", status);
    curl_multi_remove_handle(multi, easy);
    curl_easy_cleanup(easy);
}

/* --- the rest ----------------------------------------------------------------------------------
 */

static void no_multi(void)
{
    CURL *easy = new_handle("lost");
    size_t before;

    curl_multi_add_handle(NULL, easy);
    before = mallinfo2().uordblks;
    for (int i = 0; i < 1000; i++)
        if (curl_multi_add_handle(NULL, easy) == CURLM_OK)
            printf("added to nothing\n");
    if (mallinfo2().uordblks > before + 10000)
        printf("memory is lost\n");
    curl_easy_cleanup(easy);
}

/* One connection for two that nobody answers: the second waits 1.2 s for it and has it for 0.3. */
static void queue(void)
{
    CURL *first = new_handle("first"), *second = new_handle("second");

    curl_multi_setopt(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, 1L);
    curl_easy_setopt(first, CURLOPT_TIMEOUT_MS, 1200L);
    curl_easy_setopt(second, CURLOPT_TIMEOUT_MS, 1500L);
    curl_multi_add_handle(multi, first);
    curl_multi_add_handle(multi, second);
    run();
    tell_messages();
    curl_multi_remove_handle(multi, first);
    curl_multi_remove_handle(multi, second);
    curl_easy_cleanup(first);
    curl_easy_cleanup(second);
}

int main(int argc, char **argv)
{
    static const struct mode modes[] = {
        {"stranger", stranger},      {"timer", timer_says_no},
        {"cleanup", cleanup_inside}, {"cleanup-body", cleanup_in_body},
        {"no-multi", no_multi},      {"queue", queue},
    };

    if (argc < 3)
        return 2;
    url = argv[2];
    number = argc > 3 ? atoi(argv[3]) : 0;
    curl_global_init(CURL_GLOBAL_DEFAULT);
    multi = curl_multi_init();
    int status = RUN_MODE(modes, argv[1]);
    curl_multi_cleanup(multi);
    return status;
}
