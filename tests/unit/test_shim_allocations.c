/* Hooks of async-signal-safe functions come through the door: nothing behind it asks malloc, not
 * even the first call, which loads the configuration and attaches the table. */
#include "shim_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_ALLOCATOR 1 /* of the sanitizer: there is no counting it */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OWN_ALLOCATOR 1
#endif
#endif

static atomic_bool counting;
static atomic_ulong counted;

#ifndef OWN_ALLOCATOR
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t number, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *memory);
void *memalign(size_t alignment, size_t size);

static void count(void)
{
    if (atomic_load(&counting))
        atomic_fetch_add(&counted, 1);
}

void *malloc(size_t size)
{
    count();
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size)
{
    count();
    return __libc_calloc(number, size);
}

void *realloc(void *old, size_t size)
{
    count();
    return __libc_realloc(old, size);
}

void *memalign(size_t alignment, size_t size)
{
    count();
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    *memory = memalign(alignment, size);
    return *memory ? 0 : ENOMEM;
}

void free(void *memory)
{
    if (memory)
        count();
    __libc_free(memory);
}
#endif

static char ini_path[128], log_path[128];

/* With so many targets, in no order. */
static void write_ini(const char *head, unsigned targets)
{
    int fd = open(ini_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    CHECK(fd >= 0);
    CHECK(dprintf(fd, "[breaker]\n%s\n", head) > 0);
    for (unsigned i = 0; i < targets; i++)
        CHECK(dprintf(fd, "[target t%u]\nmatch = h%u*.example/m%u\nopen_seconds = %u\n", i,
                      i * 37 % 256, i, i + 1) > 0);
    CHECK(close(fd) == 0);
}

static void none_counted(const char *what)
{
    atomic_store(&counting, false);
    if (atomic_load(&counted) != 0) {
        fprintf(stderr, "%s: %lu\n", what, atomic_load(&counted));
        _exit(1);
    }
}

static void one_call(const char *what, unsigned status)
{
    atomic_store(&counting, true);
    CHECK(call_status("m", status) == SHIM_ADMITTED);
    none_counted(what);
}

/* By a layer that could take it to a fallback. */
static void rerouting_call(void)
{
    static struct shim_call call;
    const struct shim_request request = {.method = SPAN_LIT("POST"),
                                         .scheme = SPAN_LIT("https"),
                                         .host = SPAN_LIT("api.openai.com"),
                                         .port = 443,
                                         .path = SPAN_LIT("/v1/chat/completions"),
                                         .reroutes = true};

    atomic_store(&counting, true);
    CHECK(shim_open(&call, &request) == SHIM_NEEDS_BODY);
    CHECK(shim_body(&call, SPAN_LIT("{\"model\":\"m\"}"), true));
    CHECK(shim_admit(&call) == SHIM_ADMITTED && shim_detour_on_failure(&call));
    end_status(&call, 200);
    none_counted("a call that may be rerouted");
}

static off_t size_of(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? st.st_size : 0;
}

static void body_everything(void)
{
    const char *home = getenv("HOME"), *table = getenv("BREAKER_TABLE");

    snprintf(ini_path, sizeof ini_path, "%s/breaker.ini", home);
    snprintf(log_path, sizeof log_path, "%s/log", home);
    setenv("BREAKER_CONFIG", ini_path, 1);
    setenv("BREAKER_LOG", log_path, 1);
    write_ini("failure_threshold = 5", 0);
    one_call("the first call", 200);
    CHECK(size_of(table) > 0);
    write_ini("failure_threshold = 5", 256);
    advance(2);
    one_call("a reload", 200);
    write_ini(
        "fallback = f, gone\n[fallback left]\nauth = A: b\n[fallback f]\nbase = http://h:1/v1\n"
        "model = a:b, c:{model}\nauth = Name: ${VAR}\nheader = X: y\n",
        0);
    advance(2);
    one_call("fallbacks, and some left out", 200);
    rerouting_call();
    CHECK(size_of(log_path) > 0);
    CHECK(truncate(log_path, 0) == 0);
    write_ini("no_such_key = 1", 0);
    advance(2);
    one_call("a bad reload", 200);
    CHECK(size_of(log_path) > 0);
    unlink(ini_path);
    advance(2);
    one_call("no file", 200);
    for (int i = 0; i < 8; i++) { /* more than have static room */
        CHECK(table_replace(table, true) == TABLE_OK);
        advance(2);
        one_call("a table replaced", 500);
        CHECK(size_of(table) > 0);
    }
    CHECK(unlink(table) == 0 && mkdir(table, 0700) == 0); /* refused */
    advance(2);
    one_call("a table refused", 500);
    CHECK(rmdir(table) == 0);
    advance(2);
    atomic_store(&counting, true);
    for (int i = 0; i < 12; i++)
        call_status("trips", 500);
    CHECK(call_status("trips", 500) == SHIM_REFUSED);
    none_counted("a trip");
    unlink(log_path);
}

/* In a table of its own, and with none: the first load is bad. */
static void body_trouble(void)
{
    const char *table = getenv("BREAKER_TABLE");

    snprintf(log_path, sizeof log_path, "%s/log", getenv("HOME"));
    setenv("BREAKER_LOG", log_path, 1);
    CHECK(mkdir(table, 0700) == 0);
    atomic_store(&counting, true);
    CHECK(call_status("m", 500) == SHIM_ADMITTED);
    none_counted("a table that is refused at first");
    CHECK(rmdir(table) == 0);
    CHECK(size_of(log_path) > 0);
    unlink(log_path);
}

/* As from a signal handler in the middle of the first load: a clock that makes a call. */
static unsigned nested;

static uint64_t calling_mono(void)
{
    static struct shim_call call;

    if (nested++ == 0)
        CHECK(open_path(&call, "/v1/chat/completions") == SHIM_UNCOVERED);
    return fake_mono();
}

static void body_nested(void)
{
    static const struct clock_ops calling = {fake_boot, calling_mono, fake_wall};

    shim_set_clock(&calling);
    CHECK(call_status("m", 200) == SHIM_ADMITTED);
    CHECK(nested > 0);
    trip("m");
}

static void body_counts(void)
{
    atomic_store(&counting, true);
    void *volatile memory =
        malloc(strlen(getenv("HOME")) + 1); /* or clang knows what becomes of it */
    atomic_store(&counting, false);
    CHECK(memory && atomic_load(&counted) > 0);
    free(memory);
}

static void run(void (*body)(void))
{
#ifdef OWN_ALLOCATOR
    print_message("skipped: the sanitizer's allocator cannot be counted\n");
    (void)body;
    skip();
#else
    in_child(body, "");
#endif
}

static void the_count_counts(void **state)
{
    (void)state;
    run(body_counts);
}

static void loads_and_reloads_ask_no_malloc(void **state)
{
    (void)state;
    run(body_everything);
}

static void nor_does_trouble(void **state)
{
    (void)state;
    run(body_trouble);
}

static void a_handler_in_the_middle_of_it_passes(void **state)
{
    (void)state;
    in_child(body_nested, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_count_counts),
        cmocka_unit_test(loads_and_reloads_ask_no_malloc),
        cmocka_unit_test(nor_does_trouble),
        cmocka_unit_test(a_handler_in_the_middle_of_it_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
