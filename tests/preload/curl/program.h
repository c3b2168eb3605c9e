/*
 * program.h - what the C programs on libcurl share that have one way of using it per mode.
 */
#ifndef BREAKER_TESTS_PROGRAM_H
#define BREAKER_TESTS_PROGRAM_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct mode {
    const char *name;
    void (*run)(void);
};

#define RUN_MODE(modes, name) run_mode(modes, sizeof(modes) / sizeof *(modes), name)

/* Runs the mode of that name; returns main's status, 2: there is none. */
static inline int run_mode(const struct mode *modes, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(modes[i].name, name) == 0) {
            modes[i].run();
            return 0;
        }
    return 2;
}

/* A write callback. */
static inline size_t sink(char *data, size_t size, size_t count, void *user)
{
    (void)data;
    (void)user;
    return size * count;
}

/* For programs with a calloc() of their own: does libbreaker ask, whose code holds `caller`? */
static inline bool is_of_breaker(void *caller)
{
    Dl_info info;

    return dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "libbreaker");
}

static inline void *zeroed(size_t count, size_t size)
{
    void *memory = malloc(count * size);

    return memory ? memset(memory, 0, count * size) : NULL;
}

#endif
