/*
 * detour_fixture.h - a configuration with fallbacks, calls that reroute, and the way of one of
 * them; on shim_fixture.h. Everything is of the child: one call, one detour, one log.
 */
#ifndef BREAKER_TESTS_DETOUR_FIXTURE_H
#define BREAKER_TESTS_DETOUR_FIXTURE_H

#include "shim_fixture.h"

#include <sys/stat.h>

#define HOST "api.openai.com"
#define URL  "https://" HOST "/v1/chat/completions"

/* The first takes no model but "m...", the second none but "gpt...". */
#define FALLBACKS                                                                                  \
    "[fallback one]\nbase = https://one.example/v1\nmodel = m*:x/{model}\n"                        \
    "[fallback two]\nbase = https://two.example/v1\nmodel = gpt*:y\n"                              \
    "[fallback three]\nbase = http://127.0.0.1:3000/v1\nmodel = *:llama\n"

#define TARGET(keys)                                                                               \
    "[target openai]\nmatch = " HOST "\nfallback = one, two, three\n" keys "\n" FALLBACKS

static struct shim_call call;
static struct shim_detour way;

static inline const char *beside_the_table(const char *name)
{
    static char paths[2][128];
    static unsigned next;
    char *path = paths[next++ % 2];

    snprintf(path, sizeof paths[0], "%s/%s", getenv("HOME"), name);
    return path;
}

static inline void write_ini(const char *text)
{
    const char *path = beside_the_table("breaker.ini");
    FILE *file = fopen(path, "w");

    CHECK(file && fchmod(fileno(file), 0600) == 0 && fputs(text, file) >= 0);
    CHECK(fclose(file) == 0);
    setenv("BREAKER_CONFIG", path, 1);
}

/* Before the first call of the child. */
static inline void configure(const char *text)
{
    setenv("BREAKER_LOG", beside_the_table("log"), 1);
    write_ini(text);
}

/* At the end of a child that was configured. */
static inline void clean_up(void)
{
    unlink(beside_the_table("breaker.ini"));
    unlink(beside_the_table("log"));
}

/* The log's n-th line of this event (from 0); NULL: there are fewer. */
static inline const char *logged(const char *event, unsigned n)
{
    static char line[4096];
    char wanted[64];
    FILE *file = fopen(beside_the_table("log"), "r");
    bool found = false;

    snprintf(wanted, sizeof wanted, "\"event\":\"%s\"", event);
    while (file && !found && fgets(line, sizeof line, file))
        found = strstr(line, wanted) && n-- == 0;
    if (file)
        fclose(file);
    return found ? line : NULL;
}

static inline struct shim_request request_to(const char *url, bool reroutes)
{
    struct shim_request request = {.method = SPAN_LIT("POST"), .reroutes = reroutes};

    CHECK(shim_request_of_url(span_str(url), &request));
    return request;
}

static inline struct span body_of(const char *model)
{
    static char body[256];
    int len = snprintf(body, sizeof body, "{\"model\":\"%s\",\"n\":1}", model);

    return span_of(body, (size_t)len);
}

/* One whole call without a way elsewhere, its model NULL where the path has it. */
static inline void end_call(const char *url, const char *model, const struct call_end *end)
{
    static struct shim_call other;
    struct shim_request request = request_to(url, false);

    shim_open(&other, &request);
    if (model)
        shim_body(&other, body_of(model), true);
    CHECK(shim_admit(&other) == SHIM_ADMITTED);
    shim_settle(&other, end);
}

static const struct call_end good_end = {
    .kind = END_COMPLETE, .phase = PHASE_BODY, .status = 200, .byte_received = true};
static const struct call_end bad_end = {
    .kind = END_COMPLETE, .phase = PHASE_BODY, .status = 500, .byte_received = true};
static const struct call_end no_connect = {.kind = END_CONNECT, .phase = PHASE_CONNECTING};

/* M of that URL and model opens, or H. */
static inline void open_model(const char *url, const char *model)
{
    for (int i = 0; i < 5; i++)
        end_call(url, model, &bad_end);
}

static inline void open_host(const char *url)
{
    for (int i = 0; i < 5; i++)
        end_call(url, "of-the-host", &no_connect);
}

static inline void force_open(const char *key)
{
    struct slot *slot = slot_of(key);

    CHECK(slot);
    atomic_store(&slot->word, breaker_force_open(slot_word(slot)));
}

/* The application's call, by a layer that reroutes. */
static inline enum shim_verdict ask_at(const char *url, const char *model)
{
    struct shim_request request = request_to(url, true);

    CHECK(shim_open(&call, &request) != SHIM_UNCOVERED);
    if (model)
        CHECK(shim_body(&call, body_of(model), true));
    return shim_admit(&call);
}

static inline enum shim_verdict ask(const char *model)
{
    return ask_at(URL, model);
}

static inline bool begin_at(const char *url, const char *model)
{
    memset(&way, 0, sizeof way);
    if (!shim_detour_begin(&way, &call, SPAN_LIT("POST"), span_str(url), 0))
        return false;
    if (model)
        shim_detour_body(&way, body_of(model));
    return true;
}

static inline bool begin(const char *model)
{
    return begin_at(URL, model);
}

static inline bool next_is(const char *name)
{
    return shim_detour_next(&way) && strcmp(way.name, name) == 0;
}

/* It goes to the next candidate, which is that one. */
static inline bool taken_by(const char *name)
{
    if (!next_is(name) || shim_detour_admit(&way) != SHIM_ADMITTED)
        return false;
    shim_detour_taken(&way);
    return true;
}

/* A call that is refused is taken by that one, whoever refuses before it, and ends so. */
static inline void reroute(const char *model, const char *name, const struct call_end *end)
{
    CHECK(ask(model) == SHIM_REFUSED && begin(model));
    do
        CHECK(shim_detour_next(&way));
    while (shim_detour_admit(&way) == SHIM_REFUSED);
    CHECK(strcmp(way.name, name) == 0);
    shim_detour_taken(&way);
    shim_settle(&way.call, end);
    shim_detour_end(&way);
}

static inline enum breaker_phase phase_of(const char *key)
{
    return breaker_decode(slot_word(slot_of(key))).phase;
}

#endif
