/* client_life.c - what becomes of handles: duplicated, reset, in threads, forked, nested. */
#include "client.h"

#include <sys/wait.h>

static void mode_duplicate(void)
{
    CURL *easy = curl_easy_init();
    struct request r;

    begin(&r, easy, "shut");
    post_fields(&r);
    CURL *copy = curl_easy_duphandle(easy);
    curl_easy_cleanup(easy);
    r.easy = copy;
    perform(&r);
    begin(&r, copy, "fine");
    post_fields(&r);
    perform(&r);
    curl_easy_reset(copy);
    begin(&r, copy, "shut");
    post_fields(&r);
    perform(&r);
    curl_easy_cleanup(copy);
}

static void *run_thread(void *unused)
{
    (void)unused;
    for (int i = 0; i < 4; i++)
        three(post_fields);
    return NULL;
}

static void mode_threads(void)
{
    pthread_t threads[32];

    for (int i = 0; i < 32; i++)
        if (pthread_create(&threads[i], NULL, run_thread, NULL) != 0)
            die("pthread_create");
    for (int i = 0; i < 32; i++)
        pthread_join(threads[i], NULL);
}

static void mode_fork(void)
{
    CURL *easy = curl_easy_init();
    struct request r;
    int status;

    begin(&r, easy, "fine");
    post_fields(&r);
    perform(&r);
    pid_t pid = fork();
    if (pid == 0) {
        CURL *own = curl_easy_init();
        begin(&r, own, "shut");
        post_fields(&r);
        perform(&r);
        curl_easy_cleanup(own);
        _exit(0);
    }
    if (waitpid(pid, &status, 0) != pid || status != 0)
        die("the child failed");
    begin(&r, easy, "shut");
    post_fields(&r);
    perform(&r);
    curl_easy_cleanup(easy);
}

/* A callback that performs another handle, sets options and duplicates its own. */
static struct request nested;
static CURL *nested_copy;

static size_t write_nested(char *data, size_t size, size_t count, void *outer)
{
    struct request *r = outer;
    (void)data;

    if (!nested.easy) {
        begin(&nested, curl_easy_init(), "shut");
        post_fields(&nested);
        perform(&nested);
        curl_easy_cleanup(nested.easy);
        curl_easy_setopt(r->easy, CURLOPT_PRIVATE, "seen");
        curl_easy_setopt(r->easy, CURLOPT_PROXY, "");
        nested_copy = curl_easy_duphandle(r->easy);
    }
    r->received += size * count;
    return size * count;
}

static void nest(const char *model)
{
    CURL *easy = curl_easy_init();
    struct request r, again;
    char *private = NULL;

    memset(&nested, 0, sizeof nested);
    begin(&r, easy, model);
    post_fields(&r);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, write_nested);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &r);
    perform(&r);
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &private);
    if (!private || strcmp(private, "seen") != 0)
        die("PRIVATE set in a callback was lost");
    begin(&again, nested_copy, "fine"); /* the copy made in a callback is the application's own */
    post_fields(&again);
    perform(&again);
    begin(&again, easy, "fine");
    post_fields(&again);
    perform(&again);
    curl_easy_cleanup(nested_copy);
    curl_easy_cleanup(easy);
}

static void mode_nested(void)
{
    nest("fine");
    nest("shut");
}

/* A program that closed its standard descriptors: what it writes there must not meet ours. */
static size_t write_to_stdout(char *data, size_t size, size_t count, void *sum)
{
    if (write(STDOUT_FILENO, data, size * count) >= 0)
        _exit(3);
    return count_bytes(data, size, count, sum);
}

static void mode_closed(void)
{
    struct request r;

    CURL *easy = curl_easy_init();

    begin(&r, easy, "fine"); /* libcurl's own descriptors are there from now on */
    post_fields(&r);
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
    perform(&r);
    begin(&r, easy, "shut");
    post_fields(&r);
    curl_easy_setopt(r.easy, CURLOPT_WRITEFUNCTION, write_to_stdout);
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        close(fd);
    long status = 0;
    CURLcode code = curl_easy_perform(r.easy);
    curl_easy_getinfo(r.easy, CURLINFO_RESPONSE_CODE, &status);
    _exit(code == CURLE_OK && status == 503 ? 0 : 4);
}

const struct mode life_modes[] = {
    {"duplicate", NULL, NULL, mode_duplicate}, {"threads", NULL, NULL, mode_threads},
    {"fork", NULL, NULL, mode_fork},           {"nested", NULL, NULL, mode_nested},
    {"closed", NULL, NULL, mode_closed},       {.name = NULL},
};
