/*
 * waiting_preload.c - a preload that waits WAIT_NS before each curl_easy_perform and does nothing
 * else: what a delay of that length costs on this machine, which is the scale for our own figure.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static int (*real)(void *easy);
static uint64_t wait_ns;

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

__attribute__((constructor)) static void prepare(void)
{
    const char *text = getenv("WAIT_NS");

    wait_ns = text ? strtoull(text, NULL, 10) : 0;
    *(void **)&real = dlsym(RTLD_NEXT, "curl_easy_perform");
}

int curl_easy_perform(void *easy);
int curl_easy_perform(void *easy)
{
    uint64_t end = now_ns() + wait_ns;

    while (now_ns() < end)
        ;
    return real(easy);
}
