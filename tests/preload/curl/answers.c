/*
 * answers.c - a program whose calls are all refused, and what it does to its descriptors between.
 *
 *   answers MODE URL
 *
 * Every call asks for one of the models m0 to m19, whose breakers are open, so that an answer tells
 * whose it is. Exit 0, or 1 with a word on stderr.
 */
#include "program.h"

#include <curl/curl.h>

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *url;

static void die(const char *what)
{
    fprintf(stderr, "answers: %s\n", what);
    exit(1);
}

#define LONG (-1) /* a model whose answer libcurl takes two reads for */
static char long_model[251];

struct answer {
    char text[8192];
    size_t len;
    int cut; /* abort at the first byte of the body */
};

static size_t keep(char *data, size_t size, size_t count, void *to)
{
    struct answer *answer = to;
    size_t len = size * count;

    if (answer->cut || answer->len + len >= sizeof answer->text)
        return 0;
    memcpy(answer->text + answer->len, data, len);
    answer->len += len;
    answer->text[answer->len] = '\0';
    return len;
}

static CURL *new_handle(void)
{
    CURL *easy = curl_easy_init();

    if (!easy)
        die("curl_easy_init");
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT, 10L);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, keep);
    return easy;
}

static CURLcode ask(CURL *easy, int number, struct answer *answer)
{
    char body[300];

    if (number == LONG) /* each byte is three in the head of the answer */
        snprintf(body, sizeof body, "{\"model\":\"%s\"}", long_model);
    else
        snprintf(body, sizeof body, "{\"model\":\"m%d\"}", number);
    answer->len = 0;
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, answer);
    curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, body);
    return curl_easy_perform(easy);
}

/* One whole refusal, of this model and no other. */
static void must_be_refused(CURL *easy, int number)
{
    static _Thread_local struct answer answer;
    char key[32], *end;
    long status = 0;

    snprintf(key, sizeof key, "/m%d is ", number);
    if (ask(easy, number, &answer) != CURLE_OK)
        die("a refused call failed");
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    end = strstr(answer.text, "circuit_open");
    if (status != 503 || !strstr(answer.text, key) || !end || strcmp(end, "circuit_open\"}}") != 0)
        die("an answer is not the one asked for");
}

static int open_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    int count = 0;

    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

/* Closes what it does not know, as daemons do, and opens files where our sockets were. */
static void close_all_and_open(void)
{
    enum { FILES = 40 };
    int files[FILES], descriptors;
    CURL *easy = new_handle();
    struct stat st;

    for (int round = 0; round < 3; round++) {
        must_be_refused(easy, round);
        curl_easy_cleanup(easy); /* its own descriptors go as they should */
        close_range(3, ~0u, 0);
        descriptors = open_descriptors();
        for (int i = 0; i < FILES; i++)
            files[i] = open(".", O_TMPFILE | O_RDWR, 0600);
        easy = new_handle();
        for (int i = 0; i < 5; i++)
            must_be_refused(easy, i);
        for (int i = 0; i < FILES; i++)
            if (fstat(files[i], &st) != 0 || st.st_size != 0 || close(files[i]) != 0)
                die("a file of the program was touched");
    }
    curl_easy_cleanup(easy);
    if (open_descriptors() > descriptors + 8)
        die("descriptors are left");
}

static void ask_often(CURL *easy, int number)
{
    for (int i = 0; i < 300; i++)
        must_be_refused(easy, number);
}

/* While the parent's answer is on its way (its request is being written) the child gets its own. */
static pid_t child;
static int go[2];

static int let_child_ask(CURL *easy, curl_infotype type, char *data, size_t size, void *user)
{
    int status;

    (void)easy;
    (void)data;
    (void)size;
    (void)user;
    if (type != CURLINFO_HEADER_OUT || child == 0)
        return 0;
    if (write(go[1], "", 1) != 1 || waitpid(child, &status, 0) != child || status != 0)
        die("the child failed");
    child = 0;
    return 0;
}

static void fork_between(void)
{
    CURL *easy = new_handle();
    char byte;

    must_be_refused(easy, 0);
    if (pipe(go) != 0 || (child = fork()) < 0)
        die("fork");
    if (child == 0) {
        if (read(go[0], &byte, 1) != 1)
            die("pipe");
        ask_often(easy, 1);
        _exit(0);
    }
    curl_easy_setopt(easy, CURLOPT_VERBOSE, 1L);
    curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, let_child_ask);
    ask_often(easy, 2);
    curl_easy_cleanup(easy);
    if (child != 0)
        die("the child did not ask");
}

/* However many at once: few descriptors stay. */
#define THREADS 16
static pthread_barrier_t all_asking;

static int wait_for_all(CURL *easy, curl_infotype type, char *data, size_t size, void *user)
{
    int *waited = user;

    (void)easy;
    (void)data;
    (void)size;
    if (type == CURLINFO_HEADER_OUT && !(*waited)++)
        pthread_barrier_wait(&all_asking);
    return 0;
}

static void *ask_in_thread(void *number)
{
    CURL *easy = new_handle();
    int waited = 0;

    curl_easy_setopt(easy, CURLOPT_VERBOSE, 1L);
    curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, wait_for_all);
    curl_easy_setopt(easy, CURLOPT_DEBUGDATA, &waited);
    ask_often(easy, (int)(intptr_t)number);
    curl_easy_cleanup(easy);
    return NULL;
}

static void threads(void)
{
    pthread_t thread[THREADS];
    int before = open_descriptors();

    pthread_barrier_init(&all_asking, NULL, THREADS);
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, ask_in_thread, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    if (open_descriptors() > before + 8)
        die("descriptors are left");
}

/* What one call did not read is not the next one's answer. */
static void cut_short(void)
{
    static struct answer cut = {.cut = 1};
    CURL *easy = new_handle();

    memset(long_model, '%', sizeof long_model - 1);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 1024L);
    for (int i = 0; i < 20; i++) {
        if (ask(easy, i % 2 ? LONG : i, &cut) != CURLE_WRITE_ERROR)
            die("not cut");
        curl_easy_setopt(easy, CURLOPT_FAILONERROR, 1L);
        if (ask(easy, i % 2 ? LONG : i, &cut) != CURLE_HTTP_RETURNED_ERROR)
            die("no error");
        curl_easy_setopt(easy, CURLOPT_FAILONERROR, 0L);
        must_be_refused(easy, (i + 1) % 20);
    }
    curl_easy_cleanup(easy);
}

/* Told to go by the connection's end, it would wait for ever. */
static void ignore_length(void)
{
    CURL *easy = new_handle();

    for (int i = 0; i < 5; i++) {
        curl_easy_setopt(easy, CURLOPT_IGNORE_CONTENT_LENGTH, 1L);
        must_be_refused(easy, i);
    }
    curl_easy_cleanup(easy);
}

/* Bodies of which libcurl sends only a part before it is answered. */
static void large_bodies(void)
{
    static const size_t sizes[] = {0, 1000, 16000, 17000, 200000, 3000000};
    struct answer answer = {.len = 0};
    CURL *easy = new_handle();

    for (int round = 0; round < 3; round++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            size_t size = sizes[s] + 64;
            char *body = malloc(size + 1);
            int head = sprintf(body, "{\"model\":\"m7\",\"q\":\"");
            memset(body + head, 'x', size - (size_t)head);
            body[size] = '\0';
            answer.len = 0;
            curl_easy_setopt(easy, CURLOPT_WRITEDATA, &answer);
            curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body);
            curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)size);
            if (curl_easy_perform(easy) != CURLE_OK || !strstr(answer.text, "/m7 is "))
                die("a large body");
            curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, -1L);
            must_be_refused(easy, 1);
            free(body);
        }
    curl_easy_cleanup(easy);
}

int main(int argc, char **argv)
{
    static const struct mode modes[] = {
        {"close-all", close_all_and_open},
        {"fork", fork_between},
        {"threads", threads},
        {"cut", cut_short},
        {"ignore-length", ignore_length},
        {"large", large_bodies},
    };

    if (argc != 3)
        return 2;
    url = argv[2];
    curl_global_init(CURL_GLOBAL_DEFAULT);
    int status = RUN_MODE(modes, argv[1]);
    curl_global_cleanup();
    return status;
}
