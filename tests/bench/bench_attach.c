/* Attaching to an existing table beside the bare system calls for the same file, interleaved:
 * prints both medians and their ratio (goal: at most 1.3). */
#include "lib/by_value.h"
#include "base/clock.h"
#include "table/table.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROUNDS = 1001, CALLS = 20 };

static void attach_bare(const char *path)
{
    char header[sizeof(struct table_header)];
    struct stat st;
    int fd = open(path, O_RDWR | O_CLOEXEC);

    if (fstat(fd, &st) != 0 || pread(fd, header, sizeof header, 0) < 0)
        exit(1);
    void *base = mmap(NULL, TABLE_FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    munmap(base, TABLE_FILE_SIZE);
}

static void attach_ours(const char *path)
{
    struct table t;

    if (table_attach(&t, path, false) != TABLE_OK)
        exit(1);
    table_close(&t);
}

static double time_of(void (*attach)(const char *), const char *path)
{
    uint64_t begin = clock_system.mono_ns();

    for (int i = 0; i < CALLS; i++)
        attach(path);
    return (double)(clock_system.mono_ns() - begin) / CALLS;
}

int main(void)
{
    char dir[] = "/dev/shm/breaker-bench-XXXXXX", path[64];
    double bare[ROUNDS], ours[ROUNDS], ratio[ROUNDS];
    struct table t;

    if (!mkdtemp(dir))
        return 1;
    snprintf(path, sizeof path, "%s/table", dir);
    if (table_open(&t, path, false) != TABLE_OK)
        return 1;
    table_close(&t);
    for (int i = 0; i < ROUNDS; i++) {
        bare[i] = time_of(attach_bare, path);
        ours[i] = time_of(attach_ours, path);
        ratio[i] = ours[i] / bare[i];
    }
    unlink(path);
    rmdir(dir);
    qsort(bare, ROUNDS, sizeof *bare, by_value);
    qsort(ours, ROUNDS, sizeof *ours, by_value);
    qsort(ratio, ROUNDS, sizeof *ratio, by_value);
    printf("attach: bare %.0f ns, ours %.0f ns, ratio %.2f\n", bare[ROUNDS / 2], ours[ROUNDS / 2],
           ratio[ROUNDS / 2]);
    return 0;
}
