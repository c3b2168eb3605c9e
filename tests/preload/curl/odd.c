/*
 * odd.c - programs in a bad moment: a thread that is cancelled, one with the smallest stack, a
 * process without descriptors.
 *
 *   odd MODE URL
 *
 * Prints what happened, one word or status a line. Every wait ends after 15 s with "never".
 */
#include "program.h"
#include "waiting.h"

#include <curl/curl.h>

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *url;

static void say(const char *word)
{
    printf("%s\n", word);
    fflush(stdout);
}

/* The status of one call; 0: it failed. */
static long ask(void)
{
    CURL *easy = curl_easy_init();
    long status = 0;

    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT, 15L);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, sink);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "{\"model\":\"m\"}");
    if (curl_easy_perform(easy) == CURLE_OK)
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_cleanup(easy);
    return status;
}

static void say_status(long status)
{
    printf("%ld\n", status);
    fflush(stdout);
}

static time_t seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

/* Our looks at files are a second apart: asks on, a few times a second. */
static void ask_until(long wanted)
{
    time_t end = seconds() + 15;

    while (seconds() < end) {
        if (ask() == wanted) {
            say_status(wanted);
            return;
        }
        let_pass_ms(100);
    }
    say("never");
}

static void *ask_while_cancelled(void *unused)
{
    (void)unused;
    pthread_cancel(pthread_self()); /* acts at the first cancellation point */
    ask();
    return NULL;
}

static void cancel_a_thread(void)
{
    pthread_t thread;
    void *result;

    pthread_create(&thread, NULL, ask_while_cancelled, NULL);
    pthread_join(thread, &result);
    say(result == PTHREAD_CANCELED ? "cancelled" : "ended");
}

/* The first call of the process is the one that is cancelled. */
static void cancel_first(void)
{
    cancel_a_thread();
    alarm(15); /* ended by the signal: the lock was left held */
    say_status(ask());
}

/* The cancelled call is the one that looks at the configuration. */
static void cancel_reload(void)
{
    char line[8];

    say_status(ask());
    let_pass_ms(1100); /* the next look is due */
    say("ready");
    if (!fgets(line, sizeof line, stdin))
        return;
    cancel_a_thread();
    if (fgets(line, sizeof line, stdin))
        ask_until(503);
}

/* --- a fork while another thread makes the first call of the process ------------------------- */

/* The search for the real libcurl allocates: there it is held up until somebody wants to fork. */
static atomic_int in_search, search_went_on;
static sem_t held_up, fork_wanted;

void *calloc(size_t count, size_t size)
{
    if (in_search == 1 && is_of_breaker(__builtin_return_address(0))) {
        in_search = 0;
        sem_post(&held_up);
        sem_wait(&fork_wanted);
        while (sleeps_in(getpid()) < 0) /* the main thread: inside fork(), or past it */
            sched_yield();
        search_went_on = 1;
    }
    return zeroed(count, size);
}

static void *search_in_thread(void *unused)
{
    in_search = 1;
    curl_easy_cleanup(curl_easy_init());
    sem_post(&held_up);
    return unused;
}

static void fork_while_searching(void)
{
    pthread_t thread;
    int status = 0;

    sem_init(&held_up, 0, 0);
    sem_init(&fork_wanted, 0, 0);
    alarm(15);
    pthread_create(&thread, NULL, search_in_thread, NULL);
    sem_wait(&held_up);
    sem_post(&fork_wanted);
    pid_t child = fork();
    if (child == 0)
        _exit(search_went_on ? 0 : 1);
    waitpid(child, &status, 0);
    pthread_join(thread, NULL);
    say(status == 0 ? "whole" : "in the middle");
}

static void *ask_in_thread(void *status)
{
    *(long *)status = ask();
    return NULL;
}

static void small_stack(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    long status = -1;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN);
    if (pthread_create(&thread, &attributes, ask_in_thread, &status) != 0)
        say("no thread");
    else
        pthread_join(thread, NULL);
    say_status(status);
}

static void without_descriptors(void)
{
    struct rlimit limit = {64, 64};
    int fds[64], count = 0;

    setrlimit(RLIMIT_NOFILE, &limit);
    while (count < 64 && (fds[count] = dup(0)) >= 0)
        count++;
    say_status(ask());
    while (count > 0)
        close(fds[--count]);
    ask_until(503);
}

int main(int argc, char **argv)
{
    static const struct mode modes[] = {{"cancel-first", cancel_first},
                                        {"cancel-reload", cancel_reload},
                                        {"small-stack", small_stack},
                                        {"fork", fork_while_searching},
                                        {"without-descriptors", without_descriptors}};

    if (argc != 3)
        return 2;
    url = argv[2];
    curl_global_init(CURL_GLOBAL_DEFAULT);
    return RUN_MODE(modes, argv[1]);
}
