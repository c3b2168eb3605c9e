/*
 * bench_growth.c - what a whole call takes as there are more keys, or more processes.
 *
 *   bench_growth keys KEYS COUNT           (BREAKER_TABLE names a table of its own)
 *   bench_growth processes NUMBER COUNT
 *
 * Each call is one of shim_open, shim_body, shim_admit and shim_settle, under the real clock. The
 * ns are of CPU: waiting for a core is not in them.
 *
 * keys: COUNT calls that go round KEYS models of one host; prints the ns of each.
 * processes: NUMBER processes make COUNT calls each, at the same time and of the same model; prints
 * the ns of each call, on the average of all.
 */
#include "lib/healthy_pair.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEYS_MAX      1024
#define PROCESSES_MAX 64
#define COUNT_MAX     10000000

static struct {
    char text[64];
    size_t len;
} bodies[KEYS_MAX];

static void go_round(unsigned long keys, unsigned long count)
{
    for (unsigned long n = 0; n < count; n++) {
        struct shim_call *call = &calls[0];
        open_call(call, span_of(bodies[n % keys].text, bodies[n % keys].len));
        if (shim_admit(call) != SHIM_ADMITTED)
            exit(1);
        shim_settle(call, &good);
    }
}

static void make_bodies(void)
{
    for (unsigned k = 0; k < KEYS_MAX; k++)
        bodies[k].len = (size_t)snprintf(bodies[k].text, sizeof bodies[k].text,
                                         "{\"model\":\"model-%u\",\"messages\":[]}", k);
}

static double cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Begins when everybody is there: the last end of the pipe's other side is closed. */
static void one_process(int start, unsigned long count, double *took)
{
    char none;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    go_round(1, 100);
    if (read(start, &none, 1) != 0)
        _exit(1);
    double begun = cpu_ns();
    go_round(1, count);
    *took = (cpu_ns() - begun) / (double)count;
    _exit(0);
}

static int processes(unsigned long number, unsigned long count)
{
    double *took = mmap(NULL, PROCESSES_MAX * sizeof *took, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    double total = 0;
    int ends[2], status;

    if (took == MAP_FAILED || pipe(ends))
        return 1;
    for (unsigned long p = 0; p < number; p++) {
        pid_t child = fork();
        if (child < 0)
            return 1;
        if (child == 0) {
            close(ends[1]);
            one_process(ends[0], count, &took[p]);
        }
    }
    close(ends[1]);
    for (unsigned long p = 0; p < number; p++)
        if (wait(&status) < 0 || status != 0)
            return 1;
    for (unsigned long p = 0; p < number; p++)
        total += took[p];
    printf("%.1f\n", total / (double)number);
    return 0;
}

int main(int argc, char **argv)
{
    unsigned long number = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
    unsigned long count = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
    bool keys = argc == 4 && strcmp(argv[1], "keys") == 0;

    if (argc != 4 || !getenv("BREAKER_TABLE") || count == 0 || count > COUNT_MAX || number == 0 ||
        number > (keys ? KEYS_MAX : PROCESSES_MAX) ||
        (!keys && strcmp(argv[1], "processes") != 0)) {
        fprintf(stderr, "usage: BREAKER_TABLE=FILE bench_growth keys KEYS COUNT | processes NUMBER "
                        "COUNT\n");
        return 2;
    }
    make_bodies();
    if (!keys)
        return processes(number, count);
    go_round(number, number); /* claims them */
    double begun = cpu_ns();
    go_round(number, count);
    printf("%.1f\n", (cpu_ns() - begun) / (double)count);
    return 0;
}
