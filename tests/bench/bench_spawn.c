/*
 * bench_spawn.c - how long a process takes from posix_spawn to its end, under each of some
 * preloads.
 *
 *   bench_spawn ROUNDS COUNT PROGRAM PRELOAD...
 *
 * PRELOAD "-" is none. Each round starts PROGRAM COUNT times under each PRELOAD, one after the
 * other in turns, and prints one line: ns per start under each, in the order given.
 */
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#define PRELOADS_MAX 8

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* One start to end; returns its time, 0 on trouble. */
static uint64_t start(const char *program, char *preload)
{
    char *const argv[] = {(char *)(uintptr_t)program, NULL};
    char home[] = "HOME=/", path[] = "PATH=/usr/bin:/bin", quiet[] = "PROXYCHAINS_QUIET_MODE=1";
    char *const envp[] = {home, path, quiet, preload, NULL};
    uint64_t begun = now_ns();
    int status;
    pid_t pid;

    if (posix_spawn(&pid, program, NULL, NULL, argv, envp) != 0 ||
        waitpid(pid, &status, 0) != pid || status != 0)
        return 0;
    return now_ns() - begun;
}

int main(int argc, char **argv)
{
    static char preloads[PRELOADS_MAX][4096 + 16];
    int kinds = argc - 4;

    if (kinds < 1 || kinds > PRELOADS_MAX) {
        fprintf(stderr, "usage: bench_spawn ROUNDS COUNT PROGRAM PRELOAD...\n");
        return 2;
    }
    unsigned long rounds = strtoul(argv[1], NULL, 10), count = strtoul(argv[2], NULL, 10);
    for (int k = 0; k < kinds; k++)
        if (strcmp(argv[4 + k], "-") != 0)
            snprintf(preloads[k], sizeof preloads[k], "LD_PRELOAD=%.4096s", argv[4 + k]);
        else
            snprintf(preloads[k], sizeof preloads[k], "NO_PRELOAD=1");
    if (rounds > 1000 || count == 0 || count > 100000)
        return 2;
    for (unsigned long r = 0; r < rounds; r++) {
        uint64_t total[PRELOADS_MAX] = {0};
        for (unsigned long i = 0; i < count; i++)
            for (int k = 0; k < kinds; k++) {
                /* The order turns, so that nobody always follows the same neighbour. */
                int kind = (int)((i + (unsigned long)k) % (unsigned long)kinds);
                uint64_t took = start(argv[3], preloads[kind]);
                if (took == 0)
                    return 1;
                total[kind] += took;
            }
        for (int k = 0; k < kinds; k++)
            printf("%.1f%c", (double)total[k] / (double)count, k + 1 < kinds ? ' ' : '\n');
    }
    return 0;
}
