/*
 * bench_healthy.c - what healthy calls do besides their work: the witness of "costs nothing".
 *
 *   bench_healthy count COUNT [SIN]    (BREAKER_TABLE names a table of its own)
 *   bench_healthy stores COUNT [SIN]
 *
 * Makes COUNT whole calls (open, body, admit, settle) after a warm-up, with the real clock.
 *
 * count prints "MALLOCS LOCKS": allocations and mutex operations of those calls. System calls are
 *   counted from outside, by strace over two values of COUNT.
 * stores maps the table read-only meanwhile; each store faults, is noted by its address, let
 *   through alone by single-stepping its instruction, and the map is closed again. Prints "LINE0
 *   STATS OTHER": stores to the line of the breaker's word, to the statistics, and to anything
 *   else. x86-64 only; elsewhere exits 77.
 *
 * SIN adds one forbidden deed to each call, so that the tests can show that they would see it:
 * malloc, lock, syscall or word.
 */
#include "lib/healthy_call.h"
#include "table/layout.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define WARM_UP   100
#define COUNT_MAX 10000000

/* --- what is counted: these definitions stand before libc's ------------------------------------
 */

static unsigned long mallocs, locks;

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);

void *malloc(size_t size)
{
    mallocs++;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    mallocs++;
    return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    mallocs++;
    return __libc_realloc(old, size);
}

typedef int mutex_function(pthread_mutex_t *mutex);

static int real_mutex(const char *name, pthread_mutex_t *mutex)
{
    mutex_function *real = (mutex_function *)dlsym(RTLD_NEXT, name);

    locks++;
    return real ? real(mutex) : 0;
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    return real_mutex("pthread_mutex_lock", mutex);
}

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    return real_mutex("pthread_mutex_trylock", mutex);
}

/* --- the calls ------------------------------------------------------------------------------ */

enum sin { SIN_NONE, SIN_MALLOC, SIN_LOCK, SIN_SYSCALL, SIN_WORD };

static struct slot *some_slot; /* a claimed one */

static void commit(enum sin sin)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    void *volatile memory;

    switch (sin) {
    case SIN_NONE:
        break;
    case SIN_MALLOC:
        memory = malloc(1);
        free(memory);
        break;
    case SIN_LOCK:
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
        break;
    case SIN_SYSCALL:
        syscall(SYS_getppid);
        break;
    case SIN_WORD:
        atomic_fetch_or(&some_slot->word, 0);
        break;
    }
}

static int one_call(struct shim_call *call)
{
    if (shim_open(call, &request) != SHIM_NEEDS_BODY ||
        !shim_body(call, SPAN_LIT("{\"messages\":[],\"model\":\"gpt-4o-mini\"}"), true) ||
        shim_admit(call) != SHIM_ADMITTED || !shim_admitted(call))
        return 1;
    shim_settle(call, &good);
    return 0;
}

static int calls(unsigned long count, enum sin sin)
{
    static struct shim_call call;

    for (unsigned long i = 0; i < count; i++) {
        if (one_call(&call))
            return 1;
        commit(sin);
    }
    return 0;
}

/* --- stores ----------------------------------------------------------------------------------- */

static char *table_begin;
static unsigned long line0, stats, other;

/* Where the library mapped the table: nobody tells us, so that nothing of it is trusted here. */
static int find_table(const char *path)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[4352];

    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, path))
            table_begin = (char *)strtoul(line, NULL, 16);
    if (maps)
        fclose(maps);
    if (!table_begin)
        return 1;
    struct slot *slots = (struct slot *)(void *)(table_begin + TABLE_HEADER_SIZE);
    for (size_t i = 0; i < TABLE_CAPACITY && !some_slot; i++)
        if (atomic_load(&slots[i].identity) != 0)
            some_slot = &slots[i];
    return some_slot ? 0 : 1;
}

#ifdef __x86_64__
#define TRAP_FLAG 0x100

static void note_store(size_t at)
{
    size_t in_slot = (at - TABLE_HEADER_SIZE) % TABLE_SLOT_SIZE;

    if (at < TABLE_HEADER_SIZE)
        other++;
    else if (in_slot < offsetof(struct slot, opened))
        line0++;
    else if (in_slot >= offsetof(struct slot, stats) && in_slot < offsetof(struct slot, rate))
        stats++;
    else
        other++;
}

static void on_fault(int number, siginfo_t *info, void *data)
{
    ucontext_t *context = data;
    size_t at = (size_t)((char *)info->si_addr - table_begin);

    if (at >= TABLE_FILE_SIZE) {
        signal(number, SIG_DFL); /* a real fault: happens again, and ends us */
        return;
    }
    note_store(at);
    mprotect(table_begin, TABLE_FILE_SIZE, PROT_READ | PROT_WRITE);
    context->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

static void on_step(int number, siginfo_t *info, void *data)
{
    ucontext_t *context = data;

    (void)number;
    (void)info;
    context->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    mprotect(table_begin, TABLE_FILE_SIZE, PROT_READ);
}

static int count_stores(unsigned long count, enum sin sin)
{
    struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    struct sigaction step = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};

    if (sigaction(SIGSEGV, &fault, NULL) || sigaction(SIGTRAP, &step, NULL) ||
        mprotect(table_begin, TABLE_FILE_SIZE, PROT_READ))
        return 1;
    int failed = calls(count, sin);
    mprotect(table_begin, TABLE_FILE_SIZE, PROT_READ | PROT_WRITE);
    printf("%lu %lu %lu\n", line0, stats, other);
    return failed;
}
#else
static int count_stores(unsigned long count, enum sin sin)
{
    (void)count;
    (void)sin;
    return 77;
}
#endif

static enum sin sin_of(const char *name)
{
    static const char *const names[] = {[SIN_MALLOC] = "malloc",
                                        [SIN_LOCK] = "lock",
                                        [SIN_SYSCALL] = "syscall",
                                        [SIN_WORD] = "word"};

    for (unsigned i = SIN_MALLOC; i <= SIN_WORD; i++)
        if (strcmp(name, names[i]) == 0)
            return (enum sin)i;
    return SIN_NONE;
}

int main(int argc, char **argv)
{
    const char *path = getenv("BREAKER_TABLE");
    unsigned long count = argc >= 3 ? strtoul(argv[2], NULL, 10) : 0;
    enum sin sin = argc == 4 ? sin_of(argv[3]) : SIN_NONE;

    if (count == 0 || count > COUNT_MAX || !path || (argc == 4 && sin == SIN_NONE)) {
        fprintf(stderr, "usage: BREAKER_TABLE=FILE bench_healthy count|stores COUNT [SIN]\n");
        return 2;
    }
    if (calls(WARM_UP, SIN_NONE) || find_table(path)) {
        fprintf(stderr, "bench_healthy: no healthy calls over %s\n", path);
        return 1;
    }
    if (strcmp(argv[1], "stores") == 0)
        return count_stores(count, sin);
    mallocs = locks = 0;
    int failed = calls(count, sin);
    unsigned long made = mallocs, taken = locks;
    printf("%lu %lu\n", made, taken);
    return failed;
}
