/* A table of the right size and header whose bytes are anybody's: admission, settling and `status`
 * neither fall nor hang nor look outside, and whatever a word says, a call passes again within a
 * day. Memory on both sides of the mapping is out of reach. */
#include "cli/cli.h"
#include "shim_fixture.h"

#include <fcntl.h>
#include <sys/mman.h>

#define KEY   "api.openai.com/m"
#define DAY_S 86400

static const uint64_t wild[] = {0,
                                1,
                                UINT64_MAX,
                                UINT64_C(1) << 63,
                                UINT64_C(1) << 61,
                                UINT64_C(0x5555555555555555),
                                UINT64_C(0xa5a5a5a5a5a5a5a5),
                                UINT64_C(0x7fffffffffffffff)};
enum {
    WILD = sizeof wild / sizeof *wild,
    WORDS = TABLE_SLOT_SIZE / sizeof(uint64_t),
    GUARD = 4096
};

static uint64_t *bytes; /* of the mapping that the process counts in */
static uint64_t noise = 88172645463325252u;

static uint64_t random_word(void)
{
    noise ^= noise << 13;
    noise ^= noise >> 7;
    return noise ^= noise << 17;
}

static void guard(uintptr_t at)
{
    void *page = mmap((void *)at, GUARD, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

    CHECK(page != MAP_FAILED || errno == EEXIST); /* another mapping is its neighbour */
}

/* The first call attaches it; found among our mappings, since nobody but the door knows of it. */
static void attach_guarded(void)
{
    char line[512];
    uintptr_t begin = 0, end;

    CHECK(call_status("m", 200) == SHIM_ADMITTED);
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps);
    while (!bytes && fgets(line, sizeof line, maps))
        if (strstr(line, getenv("BREAKER_TABLE")) && sscanf(line, "%lx-%lx", &begin, &end) == 2)
            bytes = (uint64_t *)begin; /* NOLINT: that is where it is */
    fclose(maps);
    CHECK(bytes && end - begin == TABLE_FILE_SIZE);
    guard(begin - GUARD);
    guard(end);
    CHECK(freopen("/dev/null", "w", stdout));
}

static void show(void)
{
    char *text[] = {"status", NULL}, *json[] = {"status", "--json", NULL};

    CHECK(cmd_status(1, text) == CLI_OK);
    CHECK(cmd_status(2, json) == CLI_OK);
}

static bool is_forced_open(void)
{
    struct slot *slot = slot_of(KEY), *host = slot_of("api.openai.com");

    return breaker_decode(slot_word(slot)).phase == BREAKER_FORCED_OPEN ||
           breaker_decode(slot_word(host)).phase == BREAKER_FORCED_OPEN;
}

static void call_every_way(void)
{
    static const unsigned statuses[] = {200, 500, 429, 404, 503};

    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        call_status("m", statuses[i]);
        call_status("n", statuses[i]);
        advance(0.25);
    }
    advance(DAY_S + 3600);
    CHECK(call_status("m", 200) == SHIM_ADMITTED || is_forced_open());
}

static void try_word(const char *key, unsigned word, unsigned value)
{
    struct slot kept, *slot = slot_of(key);

    CHECK(slot);
    memcpy(&kept, slot, sizeof kept);
    memcpy((char *)slot + word * sizeof *wild, &wild[value], sizeof *wild);
    call_every_way();
    if (value == 2)
        show();
    memcpy(slot, &kept, sizeof kept);
}

/* One word after the other, of the model's slot and of the host's. */
static void body_each_word(void)
{
    attach_guarded();
    trip("m");
    advance(DAY_S);
    for (unsigned word = 0; word < WORDS; word++)
        for (unsigned value = 0; value < WILD; value++) {
            try_word(KEY, word, value);
            try_word("api.openai.com", word, value);
        }
}

/* Of the header only `used` and `table_full` are anybody's to write; the rest was read at attach.
 */
static void body_header_changed_in_use(void)
{
    attach_guarded();
    for (unsigned i = 0; i < TABLE_HEADER_SIZE / sizeof *bytes; i++) {
        uint64_t kept = bytes[i];
        bytes[i] = wild[i % WILD];
        CHECK(call_status("m", 200) == SHIM_ADMITTED);
        call_status("header", 500);
        bytes[i] = kept;
    }
    memset(bytes, 0xff, TABLE_HEADER_SIZE);
    CHECK(call_status("m", 200) == SHIM_ADMITTED);
    call_every_way();
}

static unsigned rounds(void)
{
    const char *text = getenv("HOSTILE_ROUNDS"); /* 10000 looks for more */

    return text ? (unsigned)atoi(text) : 40;
}

/* All at once. In every second round the identities stay, so that the nonsense is met. */
static void body_noise(void)
{
    attach_guarded();
    call_status("n", 500);
    for (unsigned round = 0; round < rounds(); round++) {
        for (unsigned i = TABLE_HEADER_SIZE / sizeof *bytes; i < TABLE_FILE_SIZE / sizeof *bytes;
             i++)
            if (round % 2 == 0 || i % WORDS != 0)
                bytes[i] = random_word();
        call_every_way();
        if (round % 8 < 2)
            show();
        memset(bytes + TABLE_HEADER_SIZE / sizeof *bytes, 0, TABLE_FILE_SIZE - TABLE_HEADER_SIZE);
        CHECK(call_status("m", 200) == SHIM_ADMITTED); /* claims both again */
        CHECK(call_status("n", 500) == SHIM_ADMITTED);
    }
}

IN_CHILD(each_word, "failure_rate = 0.9\nmin_calls = 1000")
IN_CHILD(header_changed_in_use, "")
IN_CHILD(noise, "")

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_word),
        cmocka_unit_test(test_header_changed_in_use),
        cmocka_unit_test(test_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
