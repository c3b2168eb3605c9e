/*
 * waiting_preload.c - a preload that waits WAIT_NS before each call of curl_easy_perform, or
 * WAIT_SEND_NS before each send, and does nothing else: what a delay of that length costs on this
 * machine, which is the scale for our own figures.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>
#include <time.h>

static int (*real_perform)(void *easy);
static ssize_t (*real_send)(int fd, const void *bytes, size_t len, int flags);
static uint64_t wait_perform_ns, wait_send_ns;

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void wait_for(uint64_t ns)
{
    uint64_t end = ns ? now_ns() + ns : 0;

    while (ns && now_ns() < end)
        ;
}

static uint64_t number(const char *name)
{
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, 10) : 0;
}

__attribute__((constructor)) static void prepare(void)
{
    wait_perform_ns = number("WAIT_NS");
    wait_send_ns = number("WAIT_SEND_NS");
    *(void **)&real_perform = dlsym(RTLD_NEXT, "curl_easy_perform");
    *(void **)&real_send = dlsym(RTLD_NEXT, "send");
}

int curl_easy_perform(void *easy);
int curl_easy_perform(void *easy)
{
    wait_for(wait_perform_ns);
    return real_perform(easy);
}

ssize_t send(int fd, const void *bytes, size_t len, int flags);
ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
    wait_for(wait_send_ns);
    return real_send(fd, bytes, len, flags);
}
