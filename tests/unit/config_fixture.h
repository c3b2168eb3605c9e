/*
 * config_fixture.h - a directory of the test's own, files in it, loads of them, and the problems
 * that a load told.
 */
#ifndef BREAKER_TESTS_CONFIG_FIXTURE_H
#define BREAKER_TESTS_CONFIG_FIXTURE_H

#include "config/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PROBLEMS_KEPT 128

static char fixture_dir[] = "/tmp/breaker-config-XXXXXX";
static char fixture_path[64];
static struct config_problem problems[PROBLEMS_KEPT];
static unsigned problem_count;

static inline int fixture_make(void **state)
{
    (void)state;
    if (!mkdtemp(fixture_dir))
        return -1;
    snprintf(fixture_path, sizeof fixture_path, "%s/breaker.ini", fixture_dir);
    return 0;
}

static inline int fixture_remove(void **state)
{
    (void)state;
    unlink(fixture_path);
    return rmdir(fixture_dir);
}

static inline void keep_problem(const struct config_problem *problem, void *data)
{
    assert_ptr_equal(data, &problem_count);
    assert_true(problem_count < PROBLEMS_KEPT);
    problems[problem_count++] = *problem;
}

static inline void write_bytes(const void *bytes, size_t len)
{
    FILE *file = fopen(fixture_path, "w");

    assert_non_null(file);
    assert_int_equal(fchmod(fileno(file), 0600), 0);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

static inline struct config *load_source(const struct config_source *source)
{
    problem_count = 0;
    return config_load(source, keep_problem, &problem_count);
}

/* The configuration of a file with these bytes, alone. */
static inline struct config *load_bytes(const void *bytes, size_t len)
{
    struct config_source source = {.path = fixture_path};

    write_bytes(bytes, len);
    return load_source(&source);
}

static inline struct config *load_text(const char *text)
{
    return load_bytes(text, strlen(text));
}

/* Of a load that must not fail. */
static inline struct config *assert_loaded(struct config *config)
{
    if (!config)
        print_error("%s:%u: %s: %s\n", problems[0].file, problems[0].line, problems[0].key,
                    problems[0].text);
    assert_non_null(config);
    return config;
}

/* One that must be good. */
static inline struct config *load_good(const char *text)
{
    struct config *config = assert_loaded(load_text(text));

    assert_int_equal(problem_count, 0);
    return config;
}

/* The load of `text` told of one thing only, at that line (0: of nothing), of that key, with that
 * part of a message. */
static inline void assert_told(const char *text, unsigned line, const char *key,
                               const char *message)
{
    bool one = problem_count == 1 && problems[0].line == line &&
               strcmp(problems[0].key, key) == 0 && strstr(problems[0].text, message);

    if (line ? !one : problem_count > 0)
        fail_msg("%s: %u problems, %s:%u: %s: %s", text, problem_count, problems[0].file,
                 problems[0].line, problems[0].key, problems[0].text);
    if (line)
        assert_string_equal(problems[0].file, fixture_path);
}

static inline struct policy policy_of(const struct config *config, const char *host,
                                      const char *model)
{
    struct policy policy;

    config_policy(config, span_str(host), span_str(model), &policy);
    return policy;
}

#endif
