#include "environment.h"

#include "base/span.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#define ENVIRONMENT_BYTES 16384
#define ENVIRONMENT_NAMES 64

static char storage[ENVIRONMENT_BYTES];
static size_t stored;
static const char *names[ENVIRONMENT_NAMES + 1];
static size_t name_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

struct environment environment_captured;
atomic_bool environment_ready;

/* The copy of `text` in static storage, or NULL when there is no room. */
static const char *keep(const char *text)
{
    size_t size = strlen(text) + 1;

    if (size > ENVIRONMENT_BYTES - stored)
        return NULL;
    char *copy = memcpy(storage + stored, text, size);
    stored += size;
    return copy;
}

static const char *value_of(const char *assignment, struct span name)
{
    struct span text = span_str(assignment);

    if (!span_starts(text, name) || text.len <= name.len || text.ptr[name.len] != '=')
        return NULL;
    return assignment + name.len + 1;
}

/* False: there is more than fits. A configuration that would be half read is none at all. */
static bool capture_one(const char *assignment)
{
    const char *value;

    if (*assignment != 'H' && *assignment != 'B')
        return true; /* most, in each process that starts */
    if (value_of(assignment, SPAN_LIT("HOME"))) {
        const char *copy = keep(assignment);
        environment_captured.home = copy ? value_of(copy, SPAN_LIT("HOME")) : NULL;
        return true; /* an unusable HOME is like none */
    }
    if (!span_starts(span_str(assignment), SPAN_LIT("BREAKER_")))
        return true;
    if ((value = value_of(assignment, SPAN_LIT("BREAKER_DISABLED")))) {
        environment_captured.disabled |= *value && strcmp(value, "0") != 0;
        return true;
    }
    const char *copy = name_count < ENVIRONMENT_NAMES ? keep(assignment) : NULL;
    if (!copy)
        return false;
    names[name_count++] = copy;
    if ((value = value_of(copy, SPAN_LIT("BREAKER_CONFIG"))) && *value)
        environment_captured.config = value;
    if ((value = value_of(copy, SPAN_LIT("BREAKER_SET"))))
        environment_captured.set = value;
    return true;
}

static void capture(void)
{
    environment_captured.all = names;
    environment_captured.disabled = getauxval(AT_SECURE) != 0;
    for (char **entry = environ; entry && *entry; entry++)
        if (!capture_one(*entry))
            environment_captured.disabled = true;
    atomic_store_explicit(&environment_ready, true, memory_order_release);
}

void environment_capture(void)
{
    pthread_once(&once, capture);
}
