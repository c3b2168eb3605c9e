/* The world of fuzz_easy: its input, and a table and a configuration in which hosts are healthy,
 * refused, refused late, unreachable, or have fallbacks. */
#ifndef BREAKER_TESTS_FUZZ_EASY_WORLD_H
#define BREAKER_TESTS_FUZZ_EASY_WORLD_H

#include "cut.h"

#include "config/config.h"
#include "shim.h"
#include "table/slot.h"
#include "table/table.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECRET "canary"

enum { FILES = 3 };

static struct span input;
static FILE *files[FILES]; /* the application's data of all kinds */

static inline unsigned take(void)
{
    unsigned byte = input.len > 0 ? (unsigned char)input.ptr[0] : 0;

    input = span_skip(input, 1);
    return byte;
}

static uint64_t boot = UINT64_C(1000) * CLOCK_NS_PER_S;
static struct table table;
static char directory[] = "/tmp/breaker-fuzz-XXXXXX", path[64];

static inline uint64_t fake_boot(void)
{
    return boot;
}

static inline int64_t fake_wall(void)
{
    return 0;
}

static const char ini[] =
    "[breaker]\njitter = 0\n"
    "[target open.test]\n[target open.test:80]\n"
    "[target pass.test]\nwhen_exhausted = pass\n"
    "[target back.test]\nfallback = foreign\n"
    "[target chain.test]\nfallback = down, foreign\n"
    "[target down.test]\nfallback = foreign\n"
    "[target late.test]\nfallback = model\n"
    "[target addr.test]\nfallback_address = other.test:443\n"
    "[fallback foreign]\nbase = https://foreign.test/v1\nauth = Authorization: Bearer own\n"
    "model = *:other\n"
    "[fallback model]\nbase = https://late.test/v1\nmodel = *:other\n"
    "[fallback down]\nbase = https://gone.test/v1\n";

static inline void remove_directory(void)
{
    unlink(path);
    rmdir(directory);
}

static inline void set_up(void)
{
    static const struct clock_ops clock = {fake_boot, fake_boot, fake_wall};
    char config[64];
    int file = memfd_create("breaker.ini", 0);

    MUST(mkdtemp(directory));
    atexit(remove_directory);
    snprintf(path, sizeof path, "%s/table", directory);
    MUST(file >= 0 && fchmod(file, 0600) == 0);
    MUST(write(file, ini, sizeof ini - 1) == (ssize_t)sizeof ini - 1);
    snprintf(config, sizeof config, "/proc/self/fd/%d", file);
    clearenv();
    setenv("HOME", directory, 1);
    setenv("BREAKER_TABLE", path, 1);
    setenv("BREAKER_CONFIG", config, 1);
    shim_set_clock(&clock);
    shim_capture_environment();
    MUST(table_open(&table, path, true) == TABLE_OK);
    for (int i = 0; i < FILES; i++)
        MUST((files[i] = fopen("/dev/null", "r+")));
    MUST((stdin = fopen("/dev/null", "r")) && (stdout = fopen("/dev/null", "w")));
}

/* Nothing is left of what another input did. */
static inline void force_breakers(void)
{
    static const char *const refused[] = {"open.test",        "open.test:80",    "pass.test",
                                          "pass.test:80",     "back.test",       "back.test:80",
                                          "addr.test",        "chain.test",      "late.test/bad",
                                          "late.test:80/bad", "foreign.test/bad"};

    for (int i = 0; i < TABLE_CAPACITY; i++)
        if (table.slots[i].identity != 0)
            memset((void *)&table.slots[i].word, 0, TABLE_SLOT_SIZE - offsetof(struct slot, word));
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct span key = span_str(refused[i]);
        struct slot *s = table_claim(&table, table_identity(&table, key), key, true);
        MUST(s);
        s->word = breaker_force_open(0);
    }
}

#endif
