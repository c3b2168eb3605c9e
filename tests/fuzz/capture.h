/* What the code of a command prints, taken instead of shown. */
#ifndef BREAKER_TESTS_FUZZ_CAPTURE_H
#define BREAKER_TESTS_FUZZ_CAPTURE_H

#include "cut.h"

struct captured {
    struct span out, err;
};

static char *capture_text[2];
static size_t capture_size[2];
static FILE *capture_saved[2];

/* stdout and stderr are variables of glibc's. No MUST() in between: it could not be read. */
static inline void capture_begin(void)
{
    FILE *out = open_memstream(&capture_text[0], &capture_size[0]);
    FILE *err = open_memstream(&capture_text[1], &capture_size[1]);

    MUST(out && err);
    capture_saved[0] = stdout;
    capture_saved[1] = stderr;
    stdout = out;
    stderr = err;
}

static inline struct captured capture_end(void)
{
    FILE *out = stdout, *err = stderr;

    stdout = capture_saved[0];
    stderr = capture_saved[1];
    MUST(fclose(out) == 0 && fclose(err) == 0);
    return (struct captured){span_of(capture_text[0], capture_size[0]),
                             span_of(capture_text[1], capture_size[1])};
}

static inline void capture_free(struct captured *said)
{
    free((void *)(uintptr_t)said->out.ptr);
    free((void *)(uintptr_t)said->err.ptr);
}

#endif
