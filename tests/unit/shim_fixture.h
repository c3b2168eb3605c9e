/*
 * shim_fixture.h - the door as a layer uses it: real table file, real configuration, fake clock.
 *
 * Each test runs in a child process with its own table, since the configuration and the table of
 * a process are fixed at its first covered call. What a file does not use of it, it need not.
 */
#ifndef BREAKER_TESTS_SHIM_FIXTURE_H
#define BREAKER_TESTS_SHIM_FIXTURE_H

#include "child_check.h"
#include "shim.h"

#include "table/slot.h"
#include "table/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static uint64_t boot = UINT64_C(1000) * CLOCK_NS_PER_S;
static uint64_t slept; /* time that the machine was suspended */

static uint64_t fake_boot(void)
{
    return boot;
}

static uint64_t fake_mono(void)
{
    return boot - slept;
}

static inline int64_t fake_wall(void)
{
    return 0;
}

/* After so long a child hangs. Generous: under a sanitizer, on a busy machine, some take long. */
enum { CHILD_SECONDS = 300 };

static const struct clock_ops fake = {fake_boot, fake_mono, fake_wall};

static inline void advance(double seconds)
{
    boot += (uint64_t)(seconds * 1e9);
}

/* Runs `body` in a child with a table of its own; an assertion that fails makes it exit 1. */
static inline void in_child(void (*body)(void), const char *settings)
{
    char dir[] = "/tmp/test-shim-XXXXXX";
    char table[64];
    int status = -1;

    assert_non_null(mkdtemp(dir));
    snprintf(table, sizeof table, "%s/table", dir);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(CHILD_SECONDS); /* or a hang would be everybody's */
        setenv("BREAKER_TABLE", table, 1);
        setenv("BREAKER_JITTER", "0", 1);
        setenv("BREAKER_SET", settings, 1);
        setenv("HOME", dir, 1);
        shim_set_clock(&fake);
        body();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    unlink(table);
    rmdir(dir);
    if (status != 0)
        fail_msg("the child ended with wait status %#x", (unsigned)status);
}

/* The slot of a key in the child's table, as any other process finds it; NULL: it has none. */
static inline struct slot *slot_of(const char *key)
{
    static struct table table;
    static bool attached;

    CHECK(attached || table_attach(&table, getenv("BREAKER_TABLE"), true) == TABLE_OK);
    attached = true;
    return table_lookup_text(&table, span_str(key));
}

static inline struct slot_totals totals_of(const char *key)
{
    static const struct slot_totals none;
    struct slot *slot = slot_of(key);

    return slot ? slot_totals(slot) : none;
}

static inline enum shim_need open_path(struct shim_call *call, const char *path)
{
    struct shim_request request = {
        .method = SPAN_LIT("POST"),
        .scheme = SPAN_LIT("https"),
        .host = SPAN_LIT("api.openai.com"),
        .port = 443,
        .path = span_str(path),
    };

    return shim_open(call, &request);
}

/* Opens and admits a chat call of `model`. */
static inline enum shim_verdict chat(struct shim_call *call, const char *model)
{
    char body[256];
    int len =
        snprintf(body, sizeof body, "{\"messages\":[{\"model\":\"x\"}],\"model\":\"%s\"}", model);

    CHECK(open_path(call, "/v1/chat/completions") == SHIM_NEEDS_BODY);
    CHECK(shim_body(call, span_of(body, (size_t)len), true));
    return shim_admit(call);
}

static inline void end_status(struct shim_call *call, unsigned status)
{
    struct call_end end = {.kind = END_COMPLETE,
                           .phase = PHASE_BODY,
                           .status = (uint16_t)status,
                           .byte_received = true,
                           .age_ns = CLOCK_NS_PER_MS};
    shim_settle(call, &end);
}

static inline void end_kind(struct shim_call *call, enum call_end_kind kind, enum call_phase phase,
                            double age)
{
    struct call_end end = {.kind = kind, .phase = phase, .age_ns = (uint64_t)(age * 1e9)};
    shim_settle(call, &end);
}

/* One whole call; returns the verdict. */
static inline enum shim_verdict call_status(const char *model, unsigned status)
{
    static struct shim_call call;
    enum shim_verdict verdict = chat(&call, model);

    if (verdict == SHIM_ADMITTED)
        end_status(&call, status);
    else
        shim_obeyed(&call);
    return verdict;
}

static inline void trip(const char *model)
{
    for (int i = 0; i < 5; i++)
        CHECK(call_status(model, 500) == SHIM_ADMITTED);
    CHECK(call_status(model, 500) == SHIM_REFUSED);
}

#define IN_CHILD(name, settings)                                                                   \
    static void test_##name(void **state)                                                          \
    {                                                                                              \
        (void)state;                                                                               \
        in_child(body_##name, settings);                                                           \
    }

#endif
